"""What the verbs of pipelines answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.cli.views.answer_views import JsonObject
from omnigraph.cli.views.output_streams import align_columns, format_count

if TYPE_CHECKING:
    from omnigraph.pipelines.config.definition_validator import ValidationReport
    from omnigraph.pipelines.ledger.run_ledger import PrunedLedger, Run, TargetRun
    from omnigraph.pipelines.run.backfill import BackfilledSlot
    from omnigraph.pipelines.run.pipeline_inspection import PipelineStatus, RunPlan
    from omnigraph.pipelines.run.plan_sample import SampledRule
    from omnigraph.pipelines.run.scheduler import ScheduledRun

_SHORT = 16


@dataclass(frozen=True, slots=True)
class ValidatedPipelines:
    """Definitions that were examined."""

    reports: Sequence[ValidationReport]

    def to_json(self) -> JsonObject:
        """The document of `pipeline validate`."""
        return {"pipelines": [each.to_json() for each in self.reports]}

    def to_lines(self) -> Iterator[str]:
        """A line for each pipeline and for each note."""
        for each in self.reports:
            targets = f", {format_count(each.targets, 'target')}" if each.targets else ""
            state = format_count(len(each.problems), "problem") if each.problems else "valid"
            yield f"{each.name}: {state}{targets}"
            yield from (f"  {note}" for note in each.remarks)


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """What a run would do."""

    plan: RunPlan
    sample: Sequence[SampledRule] | None = None

    def to_json(self) -> JsonObject:
        """The document of `pipeline plan`."""
        sample = {} if self.sample is None else {"sample": [x.to_json() for x in self.sample]}
        return {**self.plan.to_json(), **sample}

    def to_lines(self) -> Iterator[str]:
        """The way of the data, then every type with its columns."""
        pipeline = self.plan.pipeline
        yield f"pipeline {pipeline.name}  {pipeline.digest[: 7 + _SHORT]}"
        for name, source in pipeline.sources.items():
            yield f"  from {name} ({source.kind})"
        for target, steps in self.plan.steps:
            own = target.run_branch
            through = "" if own is None else f", through branch {own.name}"
            yield f"  into {target.graph}/{target.branch} ({target.mode}){through}"
            for rule in steps:
                each = rule.steps
                yield f"    {'edge' if each.is_edge else 'node'} {each.type_name}"
                yield from (f"      each {step.items[-1]}" for step in each.expansions)
                yield from () if each.where is None else [f"      where {each.where}"]
                yield from (
                    f"      {line}"
                    for line in align_columns(
                        [(column.name, column.sql) for column in each.columns]
                    )
                )
                yield from (f"      {line}" for line in rule.to_lines())
        if pipeline.schedule is not None:
            yield f"  schedule {pipeline.schedule}, next {self.plan.next_slot}"
        if pipeline.overwrites:
            yield f"  overwrites data: run it with --approve {pipeline.digest}"
        if self.plan.missing_secrets:
            yield f"  not set: {', '.join(self.plan.missing_secrets)}"
        yield from (f"  {note}" for note in self.plan.validation.remarks)
        yield from (f"  {line}" for line in _format_sample(self.sample or ()))


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """One run."""

    run: Run

    def to_json(self) -> JsonObject:
        """The document of `pipeline run`."""
        return self.run.to_json()

    def to_lines(self) -> Iterator[str]:
        """The run, a line for each target, and a line for each that left records out."""
        yield f"run {self.run.id} of {self.run.pipeline}, slot {self.run.slot}: {self.run.status}"
        yield from (f"  {line}" for line in _format_targets(self.run.targets))
        yield from (f"  {line}" for line in _format_rejected(self.run.targets))
        yield from (f"  {line}" for line in _format_warnings(self.run.targets))
        if self.run.error is not None:
            yield f"  {self.run.error}"
        yield from (f"  warning: {each}" for each in self.run.warnings)


@dataclass(frozen=True, slots=True)
class PipelineRuns:
    """The newest runs of a pipeline."""

    runs: Sequence[Run]

    def to_json(self) -> JsonObject:
        """The document of `pipeline runs`."""
        return {"runs": [run.to_json() for run in self.runs]}

    def to_lines(self) -> Iterable[str]:
        """A line for each target of each run."""
        if not self.runs:
            return ["no runs"]
        counts = ("READ", "WRITTEN", "REJECTED")
        rows = [("RUN", "STARTED", "SLOT", "STATUS", "TARGET", *counts, "COMMIT")]
        for run in self.runs:
            head = (run.id, run.started_at, run.slot, run.status)
            rows += [
                (*head, target.target, *_format_counts(target), _format_commit(target))
                for target in run.targets
            ] or [(*head, "", "", "", "", run.error or "")]
        return align_columns(rows, right={5, 6, 7})


@dataclass(frozen=True, slots=True)
class PrunedRuns:
    """What was removed from a ledger."""

    pruned: PrunedLedger

    def to_json(self) -> JsonObject:
        """The document of `pipeline prune`."""
        return {"runs_removed": self.pruned.runs, "batches_removed": self.pruned.batches}

    def to_lines(self) -> Iterator[str]:
        """One line."""
        yield (
            f"removed {format_count(self.pruned.runs, 'run')}, "
            f"{format_count(self.pruned.batches, 'position')} of batches"
        )


@dataclass(frozen=True, slots=True)
class PipelineStatuses:
    """Pipelines and their last runs."""

    statuses: Sequence[PipelineStatus]

    def to_json(self) -> JsonObject:
        """The document of `pipeline status`."""
        return {"pipelines": [each.to_json() for each in self.statuses]}

    def to_lines(self) -> Iterator[str]:
        """A paragraph for each pipeline."""
        for each in self.statuses:
            due = "no schedule" if each.next_slot is None else f"next {each.next_slot}"
            last = (
                "never ran"
                if each.last_run is None
                else f"{each.last_run.status}, {each.last_run.started_at}"
            )
            yield f"{each.pipeline.name}: {last}; {due}"
            if each.last_run is not None:
                yield from (f"  {line}" for line in _format_targets(each.last_run.targets))
                yield from (f"  {line}" for line in _format_rejected(each.last_run.targets))


@dataclass(frozen=True, slots=True)
class ScheduledRuns:
    """What a schedule ran."""

    runs: Sequence[ScheduledRun]

    def to_json(self) -> JsonObject:
        """The document of `pipeline schedule`."""
        return {
            "ran": [
                {
                    "pipeline": each.pipeline,
                    "slot": each.slot,
                    "run": None if each.run is None else each.run.to_json(),
                    "error": each.error,
                }
                for each in self.runs
            ]
        }

    def to_lines(self) -> Iterator[str]:
        """A line for each pipeline that was due."""
        if not self.runs:
            yield "nothing is due"
        for each in self.runs:
            outcome = each.error if each.run is None else each.run.status
            yield f"{each.pipeline}, slot {each.slot}: {outcome}"
            yield from (
                () if each.run is None else (f"  {x}" for x in _format_rejected(each.run.targets))
            )


@dataclass(frozen=True, slots=True)
class BackfilledSlots:
    """The slots of a backfill that were examined, of so many."""

    pipeline: str
    total: int
    slots: Sequence[BackfilledSlot]

    @property
    def is_complete(self) -> bool:
        """Whether all of its slots are done."""
        done = [each for each in self.slots if each.status in ("done", "succeeded")]
        return len(done) == self.total

    def to_json(self) -> JsonObject:
        """The document of `pipeline backfill`."""
        return {
            "pipeline": self.pipeline,
            "slots_total": self.total,
            "complete": self.is_complete,
            "slots": [each.to_json() for each in self.slots],
        }

    def to_lines(self) -> Iterator[str]:
        """How many slots were run, and why the last one failed."""
        ran = [each.run for each in self.slots if each.run is not None]
        before = len(self.slots) - len(ran)
        yield f"{self.pipeline}: {len(ran)} slots run, {before} done before, {self.total} in all"
        if ran and not self.is_complete:
            yield from (f"  {line}" for line in _format_targets(ran[-1].targets))


def _format_sample(rules: Iterable[SampledRule]) -> Iterator[str]:
    for rule in rules:
        counts = f"{rule.rows_in} in, {rule.rows_out} out, {rule.rejected} rejected"
        deleted = f", {rule.deleted} deleted" if rule.deleted else ""
        yield f"sample: {rule.target} {rule.type_name} from {rule.source}: {counts}{deleted}"
        yield from (f"  {reason}" for reason in (*rule.reasons, *rule.broken))


def _format_targets(targets: Iterable[TargetRun]) -> list[str]:
    rows = [
        (
            target.target,
            target.status,
            format_count(target.written, "entity", plural="entities") + _format_deleted(target),
            _format_commit(target),
        )
        for target in targets
    ]
    return align_columns(rows) if rows else []


def _format_deleted(target: TargetRun) -> str:
    count = sum(target.deleted.values())
    return f", {count} deleted" if count else ""


def _format_rejected(targets: Iterable[TargetRun]) -> Iterator[str]:
    """How many rows each target left out, and the file that lists them with their reasons."""
    for target in targets:
        if target.rejected:
            why = "" if target.rejects is None else f", reasons in {target.rejects}"
            yield f"{target.target} left out {format_count(target.rejected, 'row')}{why}"


def _format_counts(target: TargetRun) -> tuple[str, str, str]:
    """How many rows were read, written and rejected; an unknown count is a question mark."""
    read, rejected = (
        "?" if count is None else str(count) for count in (target.rows_read, target.rejected)
    )
    return read, str(target.written), rejected


def _format_commit(target: TargetRun) -> str:
    """The commit of a target, or why there is none."""
    if target.commit is None:
        return target.error or ""
    again = " (made before)" if target.is_repeated else ""
    if target.merged is not None:
        return f"commit {target.commit}, merged by {target.merged}{again}"
    own = "" if target.run_branch is None else f" on branch {target.run_branch}"
    review = ", waits for review" if target.awaits_review else ""
    return f"commit {target.commit}{own}{again}{review}"


def _format_warnings(targets: Iterable[TargetRun]) -> Iterator[str]:
    """The expectations that were not met and did not fail their target."""
    for target in targets:
        for rule in target.rules:
            for each in rule.broken:
                if each.action != "fail":
                    expected = f"{rule.rule} expected {each.name}"
                    found = f"found {each.found} of {rule.rows} rows"
                    yield f"{target.target} {each.action}: {expected}, {found}"

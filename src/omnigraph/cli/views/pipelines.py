"""What the verbs of pipelines answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.cli.views.alignment import aligned
from omnigraph.cli.views.documents import JsonObject
from omnigraph.cli.views.streams import counted

if TYPE_CHECKING:
    from omnigraph.pipelines.due import Ran
    from omnigraph.pipelines.ledger import Run, TargetRun
    from omnigraph.pipelines.review import Planned, Status
    from omnigraph.pipelines.validation import Checked

_SHORT = 16


@dataclass(frozen=True, slots=True)
class CheckedPipelines:
    """Definitions that were looked at."""

    checked: Sequence[Checked]

    def to_json(self) -> JsonObject:
        """The document of `pipeline validate`."""
        return {"pipelines": [each.to_json() for each in self.checked]}

    def to_lines(self) -> Iterator[str]:
        """A line for each pipeline and for each note."""
        for each in self.checked:
            targets = f", {counted(each.targets, 'target')}" if each.targets else ""
            state = counted(len(each.problems), "problem") if each.problems else "valid"
            yield f"{each.name}: {state}{targets}"
            yield from (f"  {note}" for note in each.notes)


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """What a run would do."""

    plan: Planned

    def to_json(self) -> JsonObject:
        """The document of `pipeline plan`."""
        return self.plan.to_json()

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
                    for line in aligned([(column.name, column.sql) for column in each.columns])
                )
                yield from (f"      {line}" for line in rule.to_lines())
        if pipeline.schedule is not None:
            yield f"  schedule {pipeline.schedule}, next {self.plan.next_slot}"
        if pipeline.overwrites:
            yield f"  overwrites data: run it with --approve {pipeline.digest}"
        if self.plan.missing:
            yield f"  not set: {', '.join(self.plan.missing)}"
        yield from (f"  {note}" for note in self.plan.checked.notes)


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
        yield from (f"  {line}" for line in _target_lines(self.run.targets))
        yield from (f"  {line}" for line in _left_out(self.run.targets))
        if self.run.error is not None:
            yield f"  {self.run.error}"


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
                (*head, target.target, *_numbers(target), _made(target)) for target in run.targets
            ] or [(*head, "", "", "", "", run.error or "")]
        return aligned(rows, right={5, 6, 7})


@dataclass(frozen=True, slots=True)
class PipelineStatuses:
    """Pipelines and their last runs."""

    statuses: Sequence[Status]

    def to_json(self) -> JsonObject:
        """The document of `pipeline status`."""
        return {"pipelines": [each.to_json() for each in self.statuses]}

    def to_lines(self) -> Iterator[str]:
        """A paragraph for each pipeline."""
        for each in self.statuses:
            due = "no schedule" if each.next_slot is None else f"next {each.next_slot}"
            last = (
                "never ran" if each.last is None else f"{each.last.status}, {each.last.started_at}"
            )
            yield f"{each.pipeline.name}: {last}; {due}"
            if each.last is not None:
                yield from (f"  {line}" for line in _target_lines(each.last.targets))
                yield from (f"  {line}" for line in _left_out(each.last.targets))


@dataclass(frozen=True, slots=True)
class PipelinesRan:
    """What a schedule ran."""

    ran: Sequence[Ran]

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
                for each in self.ran
            ]
        }

    def to_lines(self) -> Iterator[str]:
        """A line for each pipeline that was due."""
        if not self.ran:
            yield "nothing is due"
        for each in self.ran:
            outcome = each.error if each.run is None else each.run.status
            yield f"{each.pipeline}, slot {each.slot}: {outcome}"
            yield from () if each.run is None else (f"  {x}" for x in _left_out(each.run.targets))


def _target_lines(targets: Iterable[TargetRun]) -> list[str]:
    rows = [
        (
            target.target,
            target.status,
            counted(target.written, "entity", plural="entities"),
            _made(target),
        )
        for target in targets
    ]
    return aligned(rows) if rows else []


def _left_out(targets: Iterable[TargetRun]) -> Iterator[str]:
    """How many rows each target left out, and the file that tells why."""
    for target in targets:
        if target.rejected:
            why = "" if target.rejects is None else f", reasons in {target.rejects}"
            yield f"{target.target} left out {counted(target.rejected, 'row')}{why}"


def _numbers(target: TargetRun) -> tuple[str, str, str]:
    """How many rows were read, written and rejected; what nobody counted is a question mark."""
    read, rejected = (
        "?" if count is None else str(count) for count in (target.rows_read, target.rejected)
    )
    return read, str(target.written), rejected


def _made(target: TargetRun) -> str:
    """The commit of a target, or why there is none."""
    if target.commit is None:
        return target.error or ""
    again = " (made before)" if target.is_repeated else ""
    if target.merged is not None:
        return f"commit {target.commit}, merged by {target.merged}{again}"
    own = "" if target.run_branch is None else f" on branch {target.run_branch}"
    return f"commit {target.commit}{own}{again}"

"""Looking at pipelines without running them: what is wrong, what a run would do, what runs did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

import omnigraph
from omnigraph import Graph
from omnigraph.config.references import find_missing_names
from omnigraph.config.yaml_reader import Findings
from omnigraph.errors import OmnigraphError, PipelineInvalidError
from omnigraph.pipelines.config.definition import (
    MappingRule,
    Pipeline,
    Target,
    compute_next_slot,
    format_slot,
)
from omnigraph.pipelines.config.definition_reader import read_valid_parts
from omnigraph.pipelines.config.definition_validator import (
    ValidationReport,
    find_catalog,
    make_resolver,
    validate_pipeline,
)
from omnigraph.pipelines.config.secret_resolver import Resolver, iter_texts
from omnigraph.pipelines.ledger.run_ledger import Ledger, Run, TargetRun
from omnigraph.pipelines.mapping.mapping_checks import MERGE, check_mapping, list_unset_required
from omnigraph.pipelines.mapping.mapping_sql import MappingSteps, build_steps
from omnigraph.pipelines.run.run_review import reconcile_review
from omnigraph.pipelines.run.target_attempt import UnreportedRun
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage import open_objects


@dataclass(frozen=True, slots=True)
class PlannedRule:
    """A rule as SQL, and what becomes of the properties of its type that it does not set.

    In a merge they keep their values; entities that are new have null there, and cannot be made if
    one of them is `required`. In other modes they are null.
    """

    steps: MappingSteps
    unset: tuple[str, ...]
    required: tuple[str, ...]
    is_patch: bool

    def to_json(self) -> JsonObject:
        """The part of a plan's document about a rule."""
        steps = self.steps
        return {
            "kind": "edge" if steps.is_edge else "node",
            "type": steps.type_name,
            "source": steps.source,
            "where": steps.where,
            "expand": [step.items[-1] for step in steps.expansions],
            "columns": {column.name: column.sql for column in steps.columns},
            "kept": list(self.unset) if self.is_patch else [],
            "nulled": [] if self.is_patch else list(self.unset),
            "required": list(self.required),
        }

    def to_lines(self) -> list[str]:
        """What becomes of what the rule does not set, for people."""
        if not self.unset:
            return []
        names = ", ".join(self.unset)
        lines = [f"keeps {names}" if self.is_patch else f"null: {names}"]
        if self.required:
            lines.append(f"only entities that exist: {', '.join(self.required)} is required")
        return lines


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run of a pipeline would do, as far as its definition says."""

    pipeline: Pipeline
    validation: ValidationReport
    next_slot: str | None
    missing_secrets: tuple[str, ...]
    steps: tuple[tuple[Target, tuple[PlannedRule, ...]], ...]

    def to_json(self) -> JsonObject:
        """The document of a plan."""
        pipeline = self.pipeline
        return {
            "pipeline": pipeline.name,
            "definition_digest": pipeline.digest,
            "schedule": pipeline.schedule,
            "next_slot": self.next_slot,
            "sources": [
                {"name": name, "kind": source.kind} for name, source in pipeline.sources.items()
            ],
            "targets": [
                {
                    "graph": f"graph.{target.graph}",
                    "branch": target.branch,
                    "mode": target.mode,
                    "run_branch": None if target.run_branch is None else target.run_branch.name,
                    "types": [each.to_json() for each in steps],
                }
                for target, steps in self.steps
            ],
            "approval": "human_required" if pipeline.overwrites else "none",
            "missing_secrets": list(self.missing_secrets),
            **{name: self.validation.to_json()[name] for name in ("valid", "problems", "notes")},
        }


def plan_pipeline(path: Path, now: datetime) -> RunPlan:
    """The plan of a pipeline; no source is asked, so that its cost does not depend on any data."""
    findings = Findings(str(path), error=PipelineInvalidError)
    pipeline = read_valid_parts(path, findings)
    if findings.problems:
        raise PipelineInvalidError(
            validate_pipeline(pipeline, findings, looks_at_files=False).problems
        )
    return plan_definition(pipeline, now)


def plan_definition(pipeline: Pipeline, now: datetime) -> RunPlan:
    """The plan of a definition that was read."""
    findings = Findings(pipeline.file, error=PipelineInvalidError)
    found = validate_pipeline(pipeline, findings, looks_at_files=False)
    resolver, _ = make_resolver(pipeline)
    schedule = pipeline.schedule
    return RunPlan(
        pipeline,
        found,
        None if schedule is None else format_slot(compute_next_slot(schedule, now)),
        tuple(find_missing_names(iter_texts(pipeline), resolver.environment)),
        tuple((target, tuple(_plan_rules(target, resolver))) for target in pipeline.targets),
    )


def _plan_rules(target: Target, resolver: Resolver) -> Iterator[PlannedRule]:
    try:
        catalog = find_catalog(target, resolver)
    except OmnigraphError:
        return
    if (
        catalog is not None
        and not check_mapping(target.mapping, catalog, mode=target.mode).problems
    ):
        yield from (_plan_rule(rule, catalog, target) for rule in target.mapping.rules)


def _plan_rule(rule: MappingRule, catalog: Catalog, target: Target) -> PlannedRule:
    type_ = catalog.find_edge(rule.type_name) if rule.is_edge else catalog.nodes[rule.type_name]
    assert type_ is not None, "a checked rule names a type of the schema"
    unset = tuple(name for name in type_.properties if name not in rule.values)
    is_identified = type_.key is not None or rule.id is not None
    return PlannedRule(
        build_steps(rule, catalog),
        unset,
        tuple(list_unset_required(rule, type_)),
        is_patch=target.mode == MERGE and is_identified,
    )


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """A pipeline and its last run; `next_slot` is when it runs again."""

    pipeline: Pipeline
    last_run: Run | None
    next_slot: str | None

    def to_json(self) -> JsonObject:
        """The document of a status."""
        return {
            "pipeline": self.pipeline.name,
            "schedule": self.pipeline.schedule,
            "next_slot": self.next_slot,
            "last_run": None if self.last_run is None else self.last_run.to_json(),
        }


def read_status(pipeline: Pipeline, resolver: Resolver, now: datetime) -> PipelineStatus:
    """The last run of a pipeline, and when the next one is due."""
    last = next(iter(read_runs(pipeline, resolver, limit=1)), None)
    schedule = pipeline.schedule
    return PipelineStatus(
        pipeline, last, None if schedule is None else format_slot(compute_next_slot(schedule, now))
    )


def read_runs(
    pipeline: Pipeline, resolver: Resolver, *, limit: int | None, is_awaiting_review: bool = False
) -> list[Run]:
    """The newest runs, or those that wait for review.

    How one ended that did not say so, and what became of its branches, is read from the graphs.
    """
    ledger = Ledger.open(resolver.resolve_ledger(), pipeline.name)
    if is_awaiting_review:
        waiting = [run for run in ledger.iter_newest_runs() if run.awaits_review]
        found = (run for run in _reconcile_runs(pipeline, resolver, waiting) if run.awaits_review)
        return list(islice(found, limit))
    return _reconcile_runs(pipeline, resolver, ledger.list_runs(limit=limit))


def _reconcile_runs(pipeline: Pipeline, resolver: Resolver, runs: list[Run]) -> list[Run]:
    with ExitStack() as stack:
        graphs: dict[str, Graph] = {}

        def reconcile(run: Run, target: TargetRun) -> TargetRun:
            is_settled = not (target.has_unknown_outcome or target.awaits_review)
            if target.graph not in pipeline.graphs or is_settled:
                return target
            uri = resolver.resolve_graph(target.graph)
            if target.graph not in graphs:
                graphs[target.graph] = stack.enter_context(omnigraph.open(uri))
            if target.awaits_review:
                return reconcile_review(target, graphs[target.graph])
            unreported = UnreportedRun(pipeline.name, run.id)
            found = unreported.reconcile_target(target, graphs[target.graph], open_objects(uri))
            return replace(found, error=resolver.hide_secrets(found.error))

        return [
            replace(run, targets=tuple(reconcile(run, target) for target in run.targets))
            for run in runs
        ]

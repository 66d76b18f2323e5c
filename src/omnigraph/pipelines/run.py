"""A run of a pipeline: every target once, told in the ledger before, between and after.

    resolve secrets -> look at the sources -> check the mappings -> `started` in the ledger
    for each target: look for its key; else read, map, load, publish -> `target` in the ledger
    `finished` in the ledger

A process that ends anywhere in between leaves each target untouched or complete. The next run of
the same slot finds the commits by their keys and makes those that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import omnigraph
from omnigraph.engine.distributed import spark_module
from omnigraph.errors import ApprovalRequired, OmnigraphError
from omnigraph.pipelines.check import check_mapping
from omnigraph.pipelines.definition import Pipeline, Target
from omnigraph.pipelines.ledger import (
    FAILED,
    SUCCEEDED,
    UNCHANGED,
    Ledger,
    Run,
    RunLog,
    TargetRun,
    outcome_of,
    started_target,
)
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.slots import Asked, Slot, choose_slot, earlier_success
from omnigraph.pipelines.sources import opened
from omnigraph.pipelines.targets import Attempt, Records, catalog_of, key_of
from omnigraph.storage import open_objects
from omnigraph.storage.objects import Objects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph import Graph
    from omnigraph.spark.session import SparkOptions

MANUAL = "manual"
SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Why and as whom a pipeline runs; `approve` is the digest that an overwrite needs."""

    trigger: str = MANUAL
    slot: str | None = None
    actor: str | None = None
    approve: str | None = None
    spark: SparkOptions | None = None
    environment: Mapping[str, str] | None = None
    progress: Any = None  # Any: what the load of frames takes
    wait: Callable[[float], None] = field(default=time.sleep)
    # What opens the store of the ledger.
    open_store: Callable[[str], Objects] = field(default=open_objects)


def run_pipeline(pipeline: Pipeline, options: RunOptions | None = None) -> Run:
    """Run a pipeline once; the answer tells what became of every target."""
    asked = options or RunOptions()
    if pipeline.overwrites and asked.approve != pipeline.digest:
        raise ApprovalRequired(pipeline.name, pipeline.digest)
    resolver = Resolver.of(pipeline, asked.environment)
    ledger = Ledger(asked.open_store(resolver.ledger()), pipeline.name)
    with ExitStack() as stack:
        running = Running(pipeline, asked, resolver, ledger, stack)
        try:
            resolver.require_all()
            graphs = running.graphs()
            sources = {name: resolver.source(name) for name in pipeline.sources}
            wanted = Asked(asked.slot, is_scheduled=asked.trigger == SCHEDULE)
            slot = choose_slot(pipeline, sources, ledger, wanted)
        except OmnigraphError as failure:
            log = ledger.start(running.started(asked.slot or "", None, ()))
            log.add("finished", {"status": FAILED, "error": failure.message})
            raise
        log = running.begin(slot)
        return running.finish(slot, log, running.targets(slot, graphs, log))


@dataclass(frozen=True, slots=True)
class Running:
    """A run under way, and what it holds open."""

    pipeline: Pipeline
    options: RunOptions
    resolver: Resolver
    ledger: Ledger
    stack: ExitStack

    @property
    def actor(self) -> str:
        """Who signs the commits."""
        return self.options.actor or f"pipeline:{self.pipeline.name}"

    def graphs(self) -> dict[str, Graph]:
        """The graphs of all targets, whose schemas have what the mappings name."""
        graphs: dict[str, Graph] = {}
        for target in self.pipeline.targets:
            if target.graph not in graphs:
                graph = omnigraph.open(self.resolver.graph(target.graph), actor=self.actor)
                graphs[target.graph] = self.stack.enter_context(graph)
            branch = graphs[target.graph].branch(target.branch)
            check_mapping(target.mapped, catalog_of(branch)).raise_if_any()
        return graphs

    def begin(self, slot: Slot) -> RunLog:
        """Say in the ledger what is going to be done."""
        targets = tuple(self._begun(target, slot) for target in self.pipeline.targets)
        return self.ledger.start(self.started(slot.name, slot.position, targets))

    def started(
        self, slot: str, position: object, targets: tuple[TargetRun, ...]
    ) -> dict[str, object]:
        """The event that starts a run."""
        return {
            "slot": slot,
            "asked": self.options.slot,
            "digest": self.pipeline.digest,
            "trigger": self.options.trigger,
            "actor": self.actor,
            "position": position,
            "targets": [started_target(target) for target in targets],
        }

    def targets(
        self,
        slot: Slot,
        graphs: Mapping[str, Graph],
        log: RunLog,
        records: Records | None = None,
    ) -> list[TargetRun]:
        """Every target in turn: one that fails does not keep the others from their commits."""
        read = records or _Records(self, slot)
        done = []
        for target in self.pipeline.targets:
            begun = self._begun(target, slot)
            attempt = Attempt(
                self.pipeline,
                target,
                graphs[target.graph],
                slot.name,
                rejects=self.resolver.rejects(target),
                progress=self.options.progress,
            )
            if slot.is_empty:
                ended = replace(begun, status=UNCHANGED)
                log.target(ended)
            else:
                ended = self._tried(attempt, begun, read, log)
                attempt.close(ended)
                self._count(ended, read, target, log)
            done.append(ended)
        return done

    def _count(self, ended: TargetRun, records: Records, target: Target, log: RunLog) -> None:
        """Say in the ledger how many records were read, where that is known."""
        is_read = ended.status == SUCCEEDED and not ended.is_repeated
        if is_read and isinstance(records, _Records):
            log.add("read", {"target": ended.target, "rows": records.rows(target)})

    def finish(self, slot: Slot, log: RunLog, targets: list[TargetRun]) -> Run:
        """Say in the ledger how it ended, and answer with what the ledger says."""
        status = outcome_of(tuple(targets))
        log.add("finished", {"status": status})
        if slot.batch is not None and status == SUCCEEDED:
            self.ledger.finish_batch(slot.batch, log.run_id)
        found = self.ledger.run(log.run_id)
        assert found is not None, "a run that was begun is in the ledger"
        return found

    def _begun(self, target: Target, slot: Slot) -> TargetRun:
        key = key_of(self.pipeline, target, slot.name)
        begun = TargetRun(target.name, target.graph, target.branch, key)
        if target.run_branch is None:
            return begun
        own = target.run_branch.name.replace("{pipeline}", self.pipeline.name)
        return replace(begun, run_branch=own.replace("{slot}", slot.name))

    def _tried(
        self, attempt: Attempt, begun: TargetRun, records: Records, log: RunLog
    ) -> TargetRun:
        """A target until it succeeds, fails for good, or was tried often enough."""
        retry = self.pipeline.retry

        def earlier() -> Run | None:
            return earlier_success(self.ledger, attempt.slot, attempt.target.name)

        ended = begun
        for number in range(1, retry.attempts + 1):
            if number > 1:
                self.options.wait(retry.wait_s * 2 ** (number - 2))
            try:
                ended = replace(attempt.run(begun, records, earlier), attempts=number)
            except OmnigraphError as failure:
                ended = replace(
                    begun,
                    status=FAILED,
                    attempts=number,
                    is_retryable=failure.retryable,
                    error=_told(failure),
                )
            log.target(ended)
            if ended.status == SUCCEEDED or not ended.is_retryable:
                break
        return ended


def _told(failure: OmnigraphError) -> str:
    hint = "" if failure.hint is None else f" ({failure.hint})"
    return f"{failure.message}{hint}"


class _Records:
    """The records of a slot: read when the first target needs them, held until the run ends."""

    def __init__(self, running: Running, slot: Slot) -> None:
        self._running = running
        self._slot = slot
        self._found: tuple[SparkSession, Mapping[str, DataFrame]] | None = None
        self._counts: dict[str, Callable[[], int | None]] = {}

    def __call__(self) -> tuple[SparkSession, Mapping[str, DataFrame]]:
        """The session and a frame for each source."""
        if self._found is None:
            spark = spark_module("session").session(self._running.options.spark)
            self._found = spark, dict(self._frames(spark))
        return self._found

    def rows(self, target: Target) -> int | None:
        """How many records a target that was loaded read; None for one that was not."""
        rules = target.mapped.rules
        names = {rule.source or next(iter(self._slot.surveys)) for rule in rules}
        counts = [self._counts[name]() for name in names if name in self._counts]
        return sum(count or 0 for count in counts) if counts else None

    def _frames(self, spark: SparkSession) -> Iterator[tuple[str, DataFrame]]:
        running = self._running
        counted = spark_module("analysis").counted
        refusing_data = spark_module("failures").refusing_data
        for name, found in self._slot.surveys.items():
            source = running.resolver.source(name)
            with refusing_data(name):
                rows = running.stack.enter_context(opened(source, found, spark))
            frame, self._counts[name] = counted(rows)
            yield name, frame

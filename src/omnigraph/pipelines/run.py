"""A run of a pipeline: every target once, told in the ledger before, between and after.

    resolve secrets -> look at the sources -> check the mappings -> `started` in the ledger
    for each target: look for its key; else read, map, load, publish -> `target` in the ledger
    `finished` in the ledger, also when something fails that nobody expected

A process that ends anywhere in between leaves each target untouched or complete. The next run of
the same slot finds the commits by their keys and makes those that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import omnigraph
from omnigraph.engine.distributed import spark_module
from omnigraph.errors import ApprovalRequired, OmnigraphError, SparkDriverLost, TooManyRejected
from omnigraph.errors.interruptions import raising_interruptions
from omnigraph.pipelines.check import check_mapping
from omnigraph.pipelines.definition import Pipeline, Target
from omnigraph.pipelines.ledger import (
    FAILED,
    INTERRUPTED,
    SUCCEEDED,
    UNCHANGED,
    Ledger,
    Run,
    RunLog,
    TargetRun,
    fields_of,
    outcome_of,
)
from omnigraph.pipelines.loading import LoadTerms, catalog_of, load_records
from omnigraph.pipelines.origins.locating import Origins
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.slots import Asked, Slot, choose_slot
from omnigraph.pipelines.sources import opened, require_same
from omnigraph.pipelines.targets import Attempt, Records, key_of, run_branch_of
from omnigraph.storage import open_objects
from omnigraph.storage.objects import Objects

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph import Branch, Graph
    from omnigraph.engine import LoadResult
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
    # What opens the stores of the ledger and of the graphs for what runs note there.
    open_store: Callable[[str], Objects] = field(default=open_objects)


def run_pipeline(pipeline: Pipeline, options: RunOptions | None = None) -> Run:
    """Run a pipeline once; the answer tells what became of every target."""
    return run_records(pipeline, options or RunOptions(), _Records)


def run_records(
    pipeline: Pipeline, asked: RunOptions, records: Callable[[Running, Slot], Records]
) -> Run:
    """Run a pipeline once, with what gives the records of its slot."""
    if pipeline.overwrites and asked.approve != pipeline.digest:
        raise ApprovalRequired(pipeline.name, pipeline.digest)
    resolver = Resolver.of(pipeline, asked.environment)
    ledger = Ledger(asked.open_store(resolver.ledger()), pipeline.name)
    with ExitStack() as stack, resolver.hiding():
        running = Running(pipeline, asked, resolver, ledger, stack)
        try:
            resolver.require_all()
            graphs = running.graphs()
            sources = {name: resolver.source(name) for name in pipeline.sources}
            wanted = Asked(asked.slot, is_scheduled=asked.trigger == SCHEDULE)
            slot = choose_slot(pipeline, sources, ledger, wanted)
        except BaseException as failure:
            log = ledger.start(running.started(asked.slot or "", None, ()))
            log.add("finished", running.ended_by(failure))
            raise
        return running.all(slot, graphs, records(running, slot))


@dataclass(frozen=True, slots=True)
class Running:
    """A run under way, and what it holds open."""

    pipeline: Pipeline
    options: RunOptions
    resolver: Resolver
    ledger: Ledger
    stack: ExitStack
    # What failed in a way that nobody expected: told when the run has ended.
    unexpected: list[Exception] = field(default_factory=list)

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
            check_mapping(target.mapped, catalog_of(branch), mode=target.mode).raise_if_any()
        return graphs

    def all(self, slot: Slot, graphs: Mapping[str, Graph], records: Records) -> Run:
        """The whole run of a slot, from the event that starts it to the one that ends it."""
        log = self.begin(slot)
        with self._ending(log):
            targets = self.targets(slot, graphs, log, records)
        ended = self.finish(slot, log, targets)
        if self.unexpected:
            raise self.unexpected[0]
        return ended

    @contextmanager
    def _ending(self, log: RunLog) -> Iterator[None]:
        """Say in the ledger that a run failed or was stopped, whatever ends it."""
        try:
            with raising_interruptions():
                yield
        except BaseException as failure:
            with suppress(OmnigraphError):
                log.add("finished", self.ended_by(failure))
            raise

    def ended_by(self, failure: BaseException) -> dict[str, object]:
        """The event that ends a run which something raised ended."""
        status = FAILED if isinstance(failure, Exception) else INTERRUPTED
        return {"status": status, "error": told(failure, self.resolver)}

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
            "position": self.resolver.hidden(position),
            "targets": [fields_of(target) for target in targets],
        }

    def targets(
        self, slot: Slot, graphs: Mapping[str, Graph], log: RunLog, records: Records
    ) -> list[TargetRun]:
        """Every target in turn: one that fails does not keep the others from their commits."""
        done = []
        for target in self.pipeline.targets:
            begun = self._begun(target, slot)
            if slot.is_empty:
                ended = replace(begun, status=UNCHANGED)
                log.target(ended)
            else:
                attempt = Attempt(
                    self.pipeline,
                    target,
                    graphs[target.graph],
                    slot,
                    log.run_id,
                    self.options.open_store(self.resolver.graph(target.graph)),
                    rejects=self.resolver.rejects(target),
                    progress=self.options.progress,
                )
                ended = self._tried(attempt, begun, records, log)
                attempt.close(ended)
            done.append(ended)
        return done

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
        own = run_branch_of(self.pipeline, target, slot.name)
        return TargetRun(target.name, target.graph, target.branch, key, run_branch=own)

    def _tried(
        self, attempt: Attempt, begun: TargetRun, records: Records, log: RunLog
    ) -> TargetRun:
        """A target until it succeeds, fails for good, or was tried often enough."""
        retry = self.pipeline.retry
        ended = begun
        for number in range(1, retry.attempts + 1):
            if number > 1:
                self.options.wait(retry.wait_s * 2 ** (number - 2))
                # Who is killed from here on did not say what became of it: not that it failed.
                log.target(replace(begun, attempts=number))
            try:
                if number > 1:
                    # What was read may be why it failed, such as a connection that was lost.
                    records.forget()
                with raising_interruptions():
                    begun = _begin(attempt, replace(begun, attempts=number), log)
                    made = begun if begun.status == SUCCEEDED else attempt.run(begun, records)
                ended = replace(made, rejects=self.resolver.hidden(made.rejects))
            except Exception as failure:  # noqa: BLE001 — told when the run has ended
                ended = self._failed(replace(begun, attempts=number), failure)
            log.target(ended)
            if ended.status == SUCCEEDED or not ended.is_retryable:
                break
        return ended

    def _failed(self, begun: TargetRun, failure: Exception) -> TargetRun:
        """A target that failed; what nobody expected stops no other target, and is told later."""
        failed = replace(begun, status=FAILED, error=told(failure, self.resolver))
        if not isinstance(failure, OmnigraphError):
            self.unexpected.append(failure)
            return failed
        if isinstance(failure, TooManyRejected):
            rejects = self.resolver.hidden(failure.rejects)
            failed = replace(failed, rejected=failure.rejected, rejects=rejects)
        return replace(failed, is_retryable=failure.retryable, error_code=failure.code)


def _begin(attempt: Attempt, begun: TargetRun, log: RunLog) -> TargetRun:
    found = attempt.begin(begun)
    if found.status != SUCCEEDED and found.key != begun.key:
        # Before the commit is there: the key leads from the ledger to it.
        log.target(found)
    return found


def told(failure: BaseException, resolver: Resolver) -> str:
    """A failure as the ledger tells it, without the values of secrets."""
    if not isinstance(failure, Exception):
        text = "it was stopped"
    elif not isinstance(failure, OmnigraphError):
        text = f"{type(failure).__name__}: {failure}".splitlines()[0]
    else:
        hint = "" if failure.hint is None else f" ({failure.hint})"
        text = f"{failure.message}{hint}"
    hidden: str = resolver.hidden(text)
    return hidden


class _Records:
    """The records of a slot: read when the first target needs them, held until the run ends."""

    def __init__(self, running: Running, slot: Slot) -> None:
        self._running = running
        self._slot = slot
        self._found: dict[str, Origins] | None = None
        self._is_kept = False
        self._held = ExitStack()
        running.stack.callback(self._let_go)

    def load(self, branch: Branch, terms: LoadTerms) -> LoadResult:
        """Load what a target takes of them, unless a source is not as it was at the start."""
        try:
            with spark_module("failures").naming_driver_loss("load the records"):
                return self._load(branch, terms)
        except SparkDriverLost:
            # What was read went with it: the next attempt reads it in another Spark.
            self._is_kept = False
            raise

    def _load(self, branch: Branch, terms: LoadTerms) -> LoadResult:
        if self._found is None:
            sessions = spark_module("session")
            spark = sessions.strict(sessions.session(self._running.options.spark))
            self._found = dict(self._opened(spark))
        return load_records(branch, self._found, terms, staged=self._require_same)

    def _require_same(self) -> None:
        for name, found in self._slot.surveys.items():
            require_same(self._running.resolver.source(name), found)

    def keep(self) -> None:
        """A target has them now: the others get the same."""
        self._is_kept = True

    def forget(self) -> None:
        """Read them anew when they are asked for again, unless a target has them."""
        if not self._is_kept:
            self._found = None
            self._let_go()

    def _let_go(self) -> None:
        # Any failure: what was read from them counts, not how they end.
        with suppress(Exception):
            self._held.close()

    def rows(self, target: Target) -> int | None:
        """How many records a target that was loaded read; None for one that was not."""
        rules = target.mapped.rules
        names = {rule.source or next(iter(self._slot.surveys)) for rule in rules}
        found = self._found or {}
        counts = [found[name].count() if name in found else None for name in names]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def _opened(self, spark: SparkSession) -> Iterator[tuple[str, Origins]]:
        running = self._running
        refusing_data = spark_module("failures").refusing_data
        cancelled_if_left = spark_module("cancelling").cancelled_if_left
        staging = running.resolver.graph(running.pipeline.targets[0].graph)
        for name, found in self._slot.surveys.items():
            source = running.resolver.source(name)
            with cancelled_if_left(spark), refusing_data(name):
                reading = opened(source, found, spark, staging=staging)
                rows = self._held.enter_context(reading)
            yield name, Origins.of(name, source, found, rows)

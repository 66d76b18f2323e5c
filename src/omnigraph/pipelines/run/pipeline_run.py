"""A run of a pipeline: every target once, noted in the ledger before, between and after.

    resolve secrets -> look at the sources -> check the mappings -> `started` in the ledger
    for each target: look for its key; else read, map, load, publish -> `target` in the ledger
    `finished` in the ledger, also when something fails unexpectedly

A process that ends anywhere in between leaves each target untouched or complete. The next run of
the same slot finds the commits by their keys and makes those that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import omnigraph
from omnigraph.engine.spark_bridge import import_spark_module
from omnigraph.errors import (
    ApprovalRequiredError,
    ExpectationFailedError,
    OmnigraphError,
    SparkDriverLostError,
    TooManyRejectedError,
)
from omnigraph.errors.base_error import raise_interruptions
from omnigraph.pipelines.config.definition import (
    FeedSource,
    KafkaSource,
    Pipeline,
    PostgresSource,
    SqlSource,
    Target,
)
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.config.slot_references import bind_slot, find_interval, uses_slots
from omnigraph.pipelines.ledger.rule_outcomes import RuleOutcome
from omnigraph.pipelines.ledger.run_ledger import (
    FAILED,
    INTERRUPTED,
    SUCCEEDED,
    UNCHANGED,
    Ledger,
    Run,
    RunLog,
    TargetRun,
    encode_target,
    status_of,
)
from omnigraph.pipelines.mapping.mapping_checks import check_mapping
from omnigraph.pipelines.reports.run_reports import RunReporter
from omnigraph.pipelines.run.run_slot import Slot, SlotRequest, choose_slot
from omnigraph.pipelines.run.target_attempt import (
    LoadRequest,
    RecordSource,
    TargetAttempt,
    catalog_of,
    key_of,
    load_records,
    run_branch_of,
)
from omnigraph.pipelines.sources import open_source, require_unchanged
from omnigraph.pipelines.sources.provenance import OpenSource, SlotSources
from omnigraph.pipelines.sources.spark_source import sort_queries_last
from omnigraph.storage import open_objects
from omnigraph.storage.objects.object_store import Objects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph import Branch, Graph
    from omnigraph.engine import LoadResult
    from omnigraph.schema.catalog import Catalog
    from omnigraph.spark.spark_session import SparkOptions

MANUAL = "manual"
# Sources whose tasks read whole records, whatever a rule asks for: several rules share one reading.
_WHOLE_SOURCES = (FeedSource, KafkaSource, PostgresSource)
SCHEDULE = "schedule"


# What opens the graph of a target: its id in the definition, its address, and the actor.
GraphOpener: TypeAlias = "Callable[[str, str, str | None], Graph]"


def open_by_address(_graph: str, uri: str, actor: str | None) -> Graph:
    """A graph as its storage has it, which asks no policy."""
    return omnigraph.open(uri, actor=actor)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Why and as whom a pipeline runs; `approve` is the digest that an overwrite needs."""

    trigger: str = MANUAL
    slot: str | None = None
    actor: str | None = None
    approve: str | None = None
    # The digests that a schedule may run.
    approved: tuple[str, ...] = ()
    # Whether sources that are read by increments begin anew.
    is_full: bool = False
    spark: SparkOptions | None = None
    environment: Mapping[str, str] | None = None
    progress: Any = None  # Any: what the load of frames takes
    wait: Callable[[float], None] = field(default=time.sleep)
    # What opens the stores of the ledger and of the graphs for what runs note there.
    open_store: Callable[[str], Objects] = field(default=open_objects)
    open_graph: GraphOpener = field(default=open_by_address)
    # The revision of the cluster that the definition is of.
    revision: int | None = None
    # Whether a schedule leaves a slot to a process that is running it.
    yields_to_others: bool = False


def run_pipeline(pipeline: Pipeline, options: RunOptions | None = None) -> Run:
    """Run a pipeline once; the answer says what became of every target."""
    return run_with_records(pipeline, options or RunOptions(), _SlotRecords)


def run_with_records(
    pipeline: Pipeline, asked: RunOptions, records: Callable[[RunContext, Slot], RecordSource]
) -> Run:
    """Run a pipeline once, with what gives the records of its slot."""
    if pipeline.overwrites and asked.approve != pipeline.digest:
        raise ApprovalRequiredError(pipeline.name, pipeline.digest)
    is_interval = uses_slots(pipeline)
    if is_interval and pipeline.schedule is not None:
        interval = find_interval(pipeline.schedule, asked.slot, datetime.now(UTC))
        pipeline, asked = bind_slot(pipeline, interval), replace(asked, slot=interval.name)
    resolver = Resolver.from_environment(pipeline, asked.environment)
    ledger = Ledger(asked.open_store(resolver.resolve_ledger()), pipeline.name)
    with ExitStack() as stack, resolver.hide_secrets_in_errors():
        running = RunContext(pipeline, asked, resolver, ledger, stack)
        try:
            resolver.require_secrets()
            graphs = running.open_graphs()
            sources = {name: resolver.resolve_source(name) for name in pipeline.sources}
            is_scheduled = asked.trigger == SCHEDULE
            wanted = SlotRequest(
                asked.slot,
                is_scheduled=is_scheduled,
                is_full=asked.is_full,
                is_interval=is_interval,
            )
            ledger.liveness.fence_lost_runs()
            slot = choose_slot(pipeline, sources, ledger, wanted)
        except BaseException as failure:
            log = ledger.start_run(running.build_start_event(asked.slot or "", None, ()))
            log.add_event("finished", running.build_end_event(failure))
            running.reporter.report_end(log)
            raise
        return running.run_slot(slot, graphs, records(running, slot))


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run under way, and what it holds open."""

    pipeline: Pipeline
    options: RunOptions
    resolver: Resolver
    ledger: Ledger
    stack: ExitStack
    # What failed unexpectedly: reported when the run has ended.
    unexpected_errors: list[Exception] = field(default_factory=list)
    # The schemas of targets whose graphs are open.
    catalogs: dict[str, Catalog] = field(default_factory=dict)

    @property
    def actor(self) -> str:
        """Who signs the commits."""
        return self.options.actor or f"pipeline:{self.pipeline.name}"

    @property
    def reporter(self) -> RunReporter:
        """What reports the run to others."""
        return RunReporter(self.resolver, self.ledger, self.catalogs)

    def open_graphs(self) -> dict[str, Graph]:
        """The graphs of all targets, whose schemas have what the mappings name."""
        graphs: dict[str, Graph] = {}
        for target in self.pipeline.targets:
            if target.graph not in graphs:
                uri = self.resolver.resolve_graph(target.graph)
                graph = self.options.open_graph(target.graph, uri, self.actor)
                graphs[target.graph] = self.stack.enter_context(graph)
            branch = graphs[target.graph].branch(target.branch)
            catalog = self.catalogs[target.name] = catalog_of(branch)
            check_mapping(target.mapping, catalog, mode=target.mode).raise_if_any()
        return graphs

    def run_slot(self, slot: Slot, graphs: Mapping[str, Graph], records: RecordSource) -> Run:
        """The whole run of a slot, from the event that starts it to the one that ends it."""
        log = self.begin(slot)
        with self._record_end(log):
            for warning in slot.warnings:
                log.add_warning(warning)
            self.reporter.report_start(log)
            targets = self.run_targets(slot, graphs, log, records)
        ended = self.finish(slot, log, targets)
        if self.unexpected_errors:
            raise self.unexpected_errors[0]
        return ended

    @contextmanager
    def _record_end(self, log: RunLog) -> Iterator[None]:
        """Say in the ledger that a run failed or was stopped, whatever ends it."""
        try:
            with raise_interruptions(), self.ledger.liveness.send_heartbeats(log.run_id):
                yield
        except BaseException as failure:
            with suppress(OmnigraphError):
                log.add_event("finished", self.build_end_event(failure))
                self.reporter.report_end(log)
            raise

    def build_end_event(self, failure: BaseException) -> dict[str, object]:
        """The event that ends a run which something raised ended."""
        status = FAILED if isinstance(failure, Exception) else INTERRUPTED
        return {
            "status": status,
            "error": format_failure(failure, self.resolver),
            "error_code": failure.code if isinstance(failure, OmnigraphError) else None,
        }

    def begin(self, slot: Slot) -> RunLog:
        """Say in the ledger what is going to be done."""
        targets = tuple(self._make_target_run(target, slot) for target in self.pipeline.targets)
        return self.ledger.start_run(self.build_start_event(slot.name, slot.position, targets))

    def build_start_event(
        self, slot: str, position: object, targets: tuple[TargetRun, ...]
    ) -> dict[str, object]:
        """The event that starts a run."""
        return {
            "slot": slot,
            "asked": self.options.slot,
            "digest": self.pipeline.digest,
            "revision": self.options.revision,
            "trigger": self.options.trigger,
            "actor": self.actor,
            "position": self.resolver.hide_secrets(position),
            "targets": [encode_target(target) for target in targets],
        }

    def run_targets(
        self, slot: Slot, graphs: Mapping[str, Graph], log: RunLog, records: RecordSource
    ) -> list[TargetRun]:
        """Every target in turn: one that fails does not keep the others from their commits."""
        done = []
        for target in self.pipeline.targets:
            begun = self._make_target_run(target, slot)
            if slot.is_empty:
                ended = replace(begun, status=UNCHANGED)
                log.record_target(ended)
            else:
                attempt = self._make_attempt(target, slot, graphs, log.run_id)
                ended = self._try_target(attempt, begun, records, log)
                attempt.close_run_branch(ended)
            done.append(ended)
        return done

    def has_loads(self, slot: Slot, graphs: Mapping[str, Graph]) -> bool:
        """Whether every target has the load of a slot, so that a run would find only that."""
        for target in self.pipeline.targets:
            attempt = self._make_attempt(target, slot, graphs, "")
            if attempt.begin_run(self._make_target_run(target, slot)).status != SUCCEEDED:
                return False
        return True

    def _make_attempt(
        self, target: Target, slot: Slot, graphs: Mapping[str, Graph], run_id: str
    ) -> TargetAttempt:
        return TargetAttempt(
            self.pipeline,
            target,
            graphs[target.graph],
            slot,
            run_id,
            self.options.open_store(self.resolver.resolve_graph(target.graph)),
            rejects=self.resolver.resolve_rejects(target),
            progress=self.options.progress,
            require_alive=partial(self.ledger.liveness.require_not_fenced, run_id),
        )

    def finish(self, slot: Slot, log: RunLog, targets: list[TargetRun]) -> Run:
        """Say in the ledger how it ended, and answer with what the ledger says."""
        status = status_of(tuple(targets))
        log.add_event("finished", {"status": status})
        if slot.batch is not None and status == SUCCEEDED:
            self.ledger.finish_batch(slot.batch, log.run_id)
        if self.pipeline.keep_runs_s is not None:
            # What is not removed now, the next run removes.
            with suppress(OmnigraphError):
                kept = timedelta(seconds=self.pipeline.keep_runs_s)
                self.ledger.prune(datetime.now(UTC) - kept)
        self.reporter.report_end(log)
        found = self.ledger.find_run(log.run_id)
        assert found is not None, "a run that was begun is in the ledger"
        return found

    def _make_target_run(self, target: Target, slot: Slot) -> TargetRun:
        key = key_of(self.pipeline, target, slot.name)
        own = run_branch_of(self.pipeline, target, slot.name)
        return TargetRun(target.name, target.graph, target.branch, key, run_branch=own)

    def _try_target(
        self, attempt: TargetAttempt, begun: TargetRun, records: RecordSource, log: RunLog
    ) -> TargetRun:
        """A target until it succeeds, fails for good, or was tried often enough."""
        retry = self.pipeline.retry
        ended = begun
        for number in range(1, retry.attempts + 1):
            if number > 1:
                self.options.wait(retry.wait_s * 2 ** (number - 2))
                # Who is killed from here on did not say what became of it: not that it failed.
                log.record_target(replace(begun, attempts=number))
            try:
                if number > 1:
                    # What was read may be why it failed, such as a connection that was lost.
                    records.discard()
                with raise_interruptions():
                    begun = _begin_attempt(attempt, replace(begun, attempts=number), log)
                    made = begun if begun.status == SUCCEEDED else attempt.run(begun, records)
                ended = replace(made, rejects=self.resolver.hide_secrets(made.rejects))
            except Exception as failure:  # noqa: BLE001 — reported when the run has ended
                ended = self._make_failed_run(replace(begun, attempts=number), failure)
            log.record_target(ended)
            if ended.status == SUCCEEDED or not ended.is_retryable:
                break
        return ended

    def _make_failed_run(self, begun: TargetRun, failure: Exception) -> TargetRun:
        """A target that failed; an unexpected failure is reported when all targets are done."""
        failed = replace(begun, status=FAILED, error=format_failure(failure, self.resolver))
        if not isinstance(failure, OmnigraphError):
            self.unexpected_errors.append(failure)
            return failed
        if isinstance(failure, TooManyRejectedError):
            rejects = self.resolver.hide_secrets(failure.rejects)
            failed = replace(failed, rejected=failure.rejected, rejects=rejects)
        if isinstance(failure, ExpectationFailedError):
            failed = replace(failed, rules=tuple(map(RuleOutcome.from_json, failure.rules)))
        return replace(failed, is_retryable=failure.retryable, error_code=failure.code)


def _begin_attempt(attempt: TargetAttempt, begun: TargetRun, log: RunLog) -> TargetRun:
    found = attempt.begin_run(begun)
    if found.status != SUCCEEDED and found.key != begun.key:
        # Before the commit is there: the key leads from the ledger to it.
        log.record_target(found)
    return found


def format_failure(failure: BaseException, resolver: Resolver) -> str:
    """A failure as the ledger shows it, without the values of secrets."""
    if not isinstance(failure, Exception):
        text = "it was stopped"
    elif not isinstance(failure, OmnigraphError):
        text = f"{type(failure).__name__}: {failure}".splitlines()[0]
    else:
        hint = "" if failure.hint is None else f" ({failure.hint})"
        text = f"{failure.message}{hint}"
    hidden: str = resolver.hide_secrets(text)
    return hidden


class _SlotRecords:
    """The records of a slot: read when the first target needs them, held until the run ends."""

    def __init__(self, running: RunContext, slot: Slot) -> None:
        self._running = running
        self._slot = slot
        self._found: SlotSources | None = None
        self._counts: dict[str, int] = {}
        self._is_kept = False
        self._held = ExitStack()
        running.stack.callback(self._release)

    def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
        """Load what a target takes of them, unless a source is not as it was at the start."""
        try:
            with import_spark_module("spark_failures").raise_on_driver_loss("load the records"):
                return self._load_target(branch, terms)
        except SparkDriverLostError:
            # What was read went with it: the next attempt reads it in another Spark.
            self._is_kept = False
            raise

    def _load_target(self, branch: Branch, terms: LoadRequest) -> LoadResult:
        if self._found is None:
            sessions = import_spark_module("spark_session")
            spark = sessions.get_strict_session(sessions.get_session(self._running.options.spark))
            self._found = self._list_sources(spark)
        result = load_records(branch, self._found, terms, staged=self._require_unchanged_sources)
        self._counts |= terms.records
        return result

    def _require_unchanged_sources(self) -> None:
        for name, found in self._slot.source_states.items():
            require_unchanged(self._running.resolver.resolve_source(name), found)

    def retain(self) -> None:
        """A target has them now: the others get the same."""
        self._is_kept = True

    def discard(self) -> None:
        """Read them anew when they are asked for again, unless a target has them."""
        if not self._is_kept:
            self._found = None
            self._release()

    def _release(self) -> None:
        # Any failure: what was read from them counts, not how they end.
        with suppress(Exception):
            self._held.close()

    def count_rows(self, target: Target) -> int | None:
        """How many records a target that was loaded read; None for one that was not."""
        rules = target.mapping.rules
        names = {rule.source or next(iter(self._slot.source_states)) for rule in rules}
        counts = [self._count_records(name) for name in names]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def _count_records(self, name: str) -> int | None:
        known = None if self._found is None else self._found.count(name)
        return self._counts.get(name) if known is None else known

    def _list_sources(self, spark: SparkSession) -> SlotSources:
        """The sources, opened when they are needed: some are read without Spark."""
        resolver, states = self._running.resolver, self._slot.source_states
        names = sort_queries_last(self._running.pipeline.sources)
        resolved = {name: (resolver.resolve_source(name), states[name]) for name in names}
        found = SlotSources(
            names,
            lambda name: self._open_source(name, found, spark),
            states=resolved,
            session=spark,
        )
        return found

    def _open_source(self, name: str, all_: SlotSources, spark: SparkSession) -> OpenSource:
        source, found = all_.states[name]
        running = self._running
        staging = running.resolver.resolve_graph(running.pipeline.targets[0].graph)
        refusing_data = import_spark_module("spark_failures").translate_source_errors
        cancelled_if_left = import_spark_module("job_cancellation").cancel_on_error
        others: dict[str, DataFrame] = {}
        if isinstance(source, SqlSource):
            plain = [each for each in all_.names if not isinstance(all_.states[each][0], SqlSource)]
            others = {each: all_.open(each).records for each in plain}
        with cancelled_if_left(spark), refusing_data(name):
            reading = open_source(source, found, spark, staging=staging, others=others)
            rows = self._held.enter_context(reading)
            if isinstance(source, _WHOLE_SOURCES) and self._count_readers(name, all_) > 1:
                rows = rows.persist()
                self._held.callback(rows.unpersist)
        return OpenSource.from_records(name, source, found, rows)

    def _count_readers(self, name: str, all_: SlotSources) -> int:
        """How many rules read a source; a query over several sources may be one of them."""
        first = next(iter(self._slot.source_states))
        targets = self._running.pipeline.targets
        rules = [rule.source or first for target in targets for rule in target.mapping.rules]
        queries = (isinstance(each, SqlSource) for each, _ in all_.states.values())
        return rules.count(name) + sum(queries)

"""What rules make of a few records of their sources: how many rows, and which are rejected.

Sources are read as a run would read them next, and nothing is written to a graph or to the ledger.
Rows are checked one by one. What is wrong between rows, such as an edge without its node, shows
only when all of them are loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import omnigraph
from omnigraph.bulk.row_checks import RowChecks
from omnigraph.bulk.split_reader import SplitSink
from omnigraph.bulk.splits import FileRange, Format, GraphLocation, InputSplit, LoadJob
from omnigraph.engine.spark_bridge import import_spark_module
from omnigraph.errors import ExpectationFailedError, LoadError
from omnigraph.pipelines.config.definition import MappingRule, Pipeline, Target
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.config.slot_references import bind_slot, find_interval, uses_slots
from omnigraph.pipelines.ledger.run_ledger import Ledger
from omnigraph.pipelines.sources import open_source, read_source_state
from omnigraph.pipelines.sources.spark_source import sort_queries_last
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage.objects.source_files import SourceFile
from omnigraph.writers.inputs.input_rows import AbsentColumns
from omnigraph.writers.inputs.input_tables import (
    REFUSED,
    REFUSED_MESSAGE,
    REFUSED_PROPERTY,
    REFUSED_RECORD,
    read_table,
)
from omnigraph.writers.inputs.row_sink import RowNumbers
from omnigraph.writers.load_records import LoadMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.spark.spark_session import SparkOptions

# So many different reasons of a rule are listed.
REASONS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class SampledRule:
    """What a rule made of the records of its source."""

    target: str
    type_name: str
    source: str
    rows_in: int
    rows_out: int
    deleted: int
    rejected: int
    reasons: tuple[str, ...]
    broken: tuple[str, ...]

    def to_json(self) -> JsonObject:
        """The part of a plan's document about it."""
        return {
            "target": self.target,
            "type": self.type_name,
            "source": self.source,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rows_deleted": self.deleted,
            "rows_rejected": self.rejected,
            "reasons": list(self.reasons),
            "broken_expectations": list(self.broken),
        }


def sample_pipeline(
    pipeline: Pipeline, *, records: int, spark_options: SparkOptions | None = None
) -> list[SampledRule]:
    """What every rule makes of so many records of its source."""
    if pipeline.schedule is not None and uses_slots(pipeline):
        pipeline = bind_slot(pipeline, find_interval(pipeline.schedule, None, datetime.now(UTC)))
    resolver = Resolver.from_environment(pipeline)
    resolver.require_secrets()
    sessions = import_spark_module("spark_session")
    spark = sessions.get_strict_session(sessions.get_session(spark_options))
    with ExitStack() as stack, resolver.hide_secrets_in_errors():
        sampler = _Sampler(pipeline, resolver, spark, stack)
        sampler.read_records(records)
        return list(sampler.iter_rules())


@dataclass(frozen=True, slots=True)
class _Sampler:
    """The records of a sample, by source."""

    pipeline: Pipeline
    resolver: Resolver
    spark: SparkSession
    stack: ExitStack
    frames: dict[str, DataFrame] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def read_records(self, records: int) -> None:
        """Read some records of each source: what the next run reads first."""
        last = Ledger.open(self.resolver.resolve_ledger(), self.pipeline.name).find_last_batch()
        after: Mapping[str, Any] = {} if last is None else last[1]["position"]  # Any: JSON
        staging = self.resolver.resolve_graph(self.pipeline.targets[0].graph)
        whole: dict[str, DataFrame] = {}
        for name in sort_queries_last(self.pipeline.sources):
            source = self.resolver.resolve_source(name)
            with import_spark_module("spark_failures").translate_source_errors(name):
                found = read_source_state(source, after=after.get(name))
                reading = open_source(source, found, self.spark, staging=staging, others=whole)
                whole[name] = self.stack.enter_context(reading)
                rows = whole[name].limit(records).toArrow()
            # Every rule gets the same records, which are read once.
            self.frames[name] = self.spark.createDataFrame(rows)
            self.counts[name] = rows.num_rows

    def iter_rules(self) -> Iterator[SampledRule]:
        """What each rule of each target makes of them."""
        for target in self.pipeline.targets:
            graph = omnigraph.open(self.resolver.resolve_graph(target.graph))
            branch = self.stack.enter_context(graph).branch(target.branch)
            view = branch.snapshot().view
            for rule in target.mapping.rules:
                yield self._sample_rule(target, rule, view)

    def _sample_rule(self, target: Target, rule: MappingRule, view: View) -> SampledRule:
        # Spark is here by now.
        from omnigraph.pipelines.mapping.mapping_frames import build_frames  # noqa: PLC0415
        from omnigraph.pipelines.mapping.rule_observer import RuleObserver  # noqa: PLC0415

        observer, mapped = RuleObserver(), replace(target.mapping, rules=(rule,))
        ((type_name, frame),) = build_frames(
            mapped, view.accepted.catalog, self.frames, mode=target.mode, observer=observer
        )
        rows = _drop_required_members(frame).toArrow()
        checked = check_rows(rows, type_name, view, mode=target.mode)
        broken: tuple[str, ...] = ()
        try:
            observer.check_expectations({type_name: checked.rejected})
        except ExpectationFailedError as failure:
            broken = failure.broken
        source = rule.source or next(iter(self.frames))
        return SampledRule(
            target.name,
            type_name,
            source,
            self.counts[source],
            checked.good,
            checked.deleted,
            checked.rejected,
            tuple(dict.fromkeys(checked.reasons))[:REASONS_MAX],
            broken,
        )


def _drop_required_members(frame: DataFrame) -> DataFrame:
    """The same rows: Arrow does not take a null struct for one with a member that is never null."""
    if REFUSED not in frame.columns:
        return frame
    members = ", ".join(
        f"{name}: string" for name in (REFUSED_PROPERTY, REFUSED_MESSAGE, REFUSED_RECORD)
    )
    return frame.withColumn(REFUSED, frame[f"`{REFUSED}`"].cast(f"struct<{members}>"))


@dataclass(slots=True)
class CheckedRows:
    """Rows of one type by what a load would do to them, as far as each row shows it."""

    good: int = 0
    deleted: int = 0
    rejected: int = 0
    reasons: list[str] = field(default_factory=list)


def check_rows(rows: pa.Table, type_name: str, view: View, *, mode: str) -> CheckedRows:
    """Check rows by the reader and the rules of every load; none is written."""
    found = CheckedRows()
    for part, is_deletion in import_spark_module("frame_load").split_deletions(rows):
        if is_deletion:
            found.deleted += part.num_rows
        else:
            _check_written(part, type_name, view, found, mode=mode)
    return found


def _check_written(
    rows: pa.Table, type_name: str, view: View, found: CheckedRows, *, mode: str
) -> None:
    size = max(rows.num_rows, 1)
    job = LoadJob(GraphLocation(""), "", {}, LoadMode(mode), "", problems_max=size, may_mark=True)
    piece = FileRange(SourceFile("", 0, ""), Format.ARROW, "sample", type_name)

    of_rules: list[str] = []

    def keep_good(
        type_key: TypeKey, part: pa.Table, numbers: RowNumbers, absent: AbsentColumns, /
    ) -> None:
        shape = view.get_shape(type_key)
        checks = RowChecks(type_key, view.types[type_key], shape, size)
        found.good += checks.filter_valid(checks.identify_rows(part, numbers, absent)).rows.num_rows
        of_rules.extend(each.violation.message for each in checks.problems)

    reading = SplitSink(view.accepted, InputSplit(job, 0, piece), keep_good)
    reading.begin_file("sample", noun="row")
    try:
        read_table(rows.to_batches(), rows.schema, reading)
        reading.flush_rest()
    except LoadError as failure:
        found.reasons.append(failure.message)
    found.reasons += [each.violation.message for each in reading.problems]
    found.reasons += of_rules
    found.rejected += rows.num_rows - found.good

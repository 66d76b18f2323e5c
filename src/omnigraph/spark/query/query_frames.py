"""Rows of a query in Spark: a data frame, and what tasks still have to do with its rows.

Steps that run in tasks wait until something needs their result, so that one task does as many of
them as possible: each task is another process that rows have to be sent to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from omnigraph.query.typed_tree import Expr
from omnigraph.rows.evaluator import Params
from omnigraph.spark.query.column_layout import Field, FrameRows, Layout, filter_satisfying
from omnigraph.spark.query.table_scans import ScanPiece, ScanSplits, TableScan, plan_splits
from omnigraph.spark.spark_types import wire_type_of
from omnigraph.storage.tables.store_address import StoreAddress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class SizeThresholds:
    """What is few."""

    # Tables of so few rows are read by the driver: a task costs more than they do.
    local_rows: int = 2_000
    # Tables of so few rows are read by one task, and every other task can have them.
    small_rows: int = 200_000
    # Tables of so few rows are joined by hashing them: sorting the others costs more.
    hashed_rows: int = 2_000_000
    # So many nodes can be sent to every task that reads edges.
    frontier_max: int = 100_000


DEFAULT_THRESHOLDS: Final = SizeThresholds()


class TaskStep(Protocol):
    """Something that tasks do with rows, some at a time."""

    def run(self, table: pa.Table) -> pa.Table:
        """What rows become."""


@dataclass(frozen=True)
class FilterStep:
    """Keeps the rows that satisfy conditions."""

    layout: Layout
    params: Params
    conditions: tuple[Expr, ...]

    def run(self, table: pa.Table) -> pa.Table:
        """The rows whose conditions are true."""
        return filter_satisfying(FrameRows(table, self.layout), self.conditions, self.params)


@dataclass(frozen=True)
class FrameTask:
    """What a task does: reads units if there are any, then takes each step."""

    fields: tuple[Field, ...]
    steps: tuple[TaskStep, ...]
    scans: ScanSplits | None = None
    # Whether the steps need all rows of the partition at once.
    is_whole: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that those of a partition become."""
        # Other tasks use the other cores.
        pa.set_cpu_count(1)
        schema = pa.schema([(each.column, wire_type_of(each.kind)) for each in self.fields])
        for table in self._read_tables(batches):
            rows = table
            for step in self.steps:
                rows = step.run(rows)
            if rows.num_rows:
                yield from rows.select(schema.names).cast(schema).combine_chunks().to_batches()

    def _read_tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        if self.scans is not None:
            yield from self.scans.read_tables(batches)
        elif self.is_whole:
            if found := list(batches):
                yield pa.Table.from_batches(found)
        else:
            for batch in batches:
                yield pa.Table.from_batches([batch])


@dataclass(frozen=True)
class Frame:
    """Rows with some columns; they are small if there are so few that every task can have them."""

    base: DataFrame
    fields: tuple[Field, ...]
    steps: tuple[TaskStep, ...] = ()
    scans: ScanSplits | None = None
    is_small: bool = False
    # Whether those of one partition fit into the memory of a task.
    is_hashable: bool = False

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [each.column for each in self.fields]

    @property
    def data(self) -> DataFrame:
        """The rows as Spark's data frame."""
        if not self.steps and self.scans is None:
            return self.base
        return apply_task(self.base, FrameTask(self.fields, self.steps, self.scans))

    @property
    def is_unrestricted(self) -> bool:
        """Whether it is all of a table."""
        return (
            self.scans is not None
            and not self.steps
            and not any(scan.conditions for scan in self.scans.scans)
        )

    def add_step(self, step: TaskStep, fields: Sequence[Field] | None = None) -> Frame:
        """The rows after a step, which may give them other columns."""
        return replace(
            self,
            fields=self.fields if fields is None else tuple(fields),
            steps=(*self.steps, step),
        )

    def select_columns(self, columns: frozenset[str]) -> Frame:
        """The rows with those columns of them that are wanted, and at least one."""
        kept = tuple(each for each in self.fields if each.column in columns) or self.fields[:1]
        if len(kept) == len(self.fields):
            return self
        if self.steps or self.scans is not None:
            # What tasks do not give back they need not send.
            return replace(self, fields=kept)
        return replace(self, base=self.base.select(*(each.column for each in kept)), fields=kept)

    def rename_columns(self, names: dict[str, str]) -> Frame:
        """The rows with other names for some columns."""
        fields = tuple(
            replace(each, column=names.get(each.column, each.column)) for each in self.fields
        )
        return Frame(self.data.withColumnsRenamed(names), fields, is_small=self.is_small)

    def join(self, other: Frame, on: Sequence[str], *, how: str = "inner") -> Frame:
        """The rows with those of another frame that have equal values in some columns."""
        data = self.data.join(other.hinted, list(on), how)
        fields = self.fields
        if how in ("inner", "left"):
            fields = (*fields, *(each for each in other.fields if each.column not in on))
        return Frame(data.select(*(each.column for each in fields)), fields)

    def cross_join(self, other: Frame) -> Frame:
        """Each row with each row of another frame."""
        rows = other.hinted if other.is_small else other.data
        return Frame(self.data.crossJoin(rows), (*self.fields, *other.fields))

    def deduplicate(self, *, by: str | None = None) -> Frame:
        """The rows, equal ones once; `by` is a column that they are joined by next, if any."""
        data = self.data
        if by is not None and len(self.columns) > 1:
            # Equal rows have this value too: they meet where the join needs them to be anyway.
            data = data.repartition(by)
        return Frame(data.distinct(), self.fields, is_small=self.is_small)

    @property
    def hinted(self) -> DataFrame:
        """The rows, with word to Spark if they are few."""
        if self.is_small:
            return self.data.hint("broadcast")
        return self.data.hint("shuffle_hash") if self.is_hashable else self.data


def apply_task(data: DataFrame, task: FrameTask) -> DataFrame:
    """The rows that tasks make of others."""
    return data.mapInArrow(task, ", ".join(each.spark for each in task.fields))


@dataclass(frozen=True)
class FrameBuilder:
    """What makes frames for one query, and what it keeps until the query is over."""

    spark: SparkSession
    address: StoreAddress
    layout: Layout
    params: Params
    thresholds: SizeThresholds
    persisted_frames: list[DataFrame] = field(default_factory=list)

    def scan_join_side(
        self,
        scans: Sequence[TableScan],
        fields: Sequence[Field],
        *,
        is_distinct: bool = False,
        by: str | None = None,
    ) -> Frame:
        """The rows of scans, to be joined with others: if they are few, they are in the plan."""
        if sum(scan.pin.rows for scan in scans) > self.thresholds.local_rows:
            return self.scan_tables(scans, fields, is_distinct=is_distinct, by=by)
        pieces = tuple(map(ScanPiece, range(len(scans))))
        task = ScanSplits(self.address, self.params, tuple(scans), (pieces,), is_distinct)
        schema = pa.schema([(each.column, wire_type_of(each.kind)) for each in fields])
        tables = [table.select(schema.names).cast(schema) for table in task.read_split(0)]
        rows = pa.concat_tables([schema.empty_table(), *tables])
        if not rows.num_rows:
            return self.make_empty(fields)
        return Frame(self.spark.createDataFrame(rows), tuple(fields), is_small=True)

    def scan_tables(
        self,
        scans: Sequence[TableScan],
        fields: Sequence[Field],
        *,
        is_distinct: bool = False,
        by: str | None = None,
    ) -> Frame:
        """The rows of scans; equal ones once, if they are to be distinct.

        `by` is a column that they are joined by next, if any.
        """
        units = plan_splits(self.address, scans, self.thresholds.small_rows)
        is_alone = len(units) <= 1
        task = ScanSplits(self.address, self.params, tuple(scans), units, is_distinct and is_alone)
        base = self.spark.range(0, len(units), 1, len(units))
        rows = sum(scan.pin.rows * len(scan.outputs) for scan in scans)
        found = Frame(
            base,
            tuple(fields),
            scans=task,
            is_small=rows <= self.thresholds.small_rows,
            is_hashable=rows <= self.thresholds.hashed_rows,
        )
        return found if is_alone or not is_distinct else found.deduplicate(by=by)

    def make_empty(self, fields: Sequence[Field]) -> Frame:
        """No rows."""
        schema = ", ".join(each.spark for each in fields)
        return Frame(self.spark.createDataFrame([], schema), tuple(fields), is_small=True)

    def filter_rows(self, frame: Frame, conditions: Sequence[Expr]) -> Frame:
        """The rows that satisfy conditions."""
        if not conditions:
            return frame
        return frame.add_step(FilterStep(self.layout, self.params, tuple(conditions)))

    def persist(self, frame: Frame) -> Frame:
        """The same rows, which are kept once they are found."""
        data = frame.data.persist()
        self.persisted_frames.append(data)
        return Frame(data, frame.fields, is_small=frame.is_small)

    def close(self) -> None:
        """Release the cached frames."""
        for data in self.persisted_frames:
            data.unpersist()
        self.persisted_frames.clear()

"""The steps after a pattern: groups, order, first rows, and the columns of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.optimizer.plan_split import SplitPlan
from omnigraph.query import logical_plan as plans
from omnigraph.query.typed_tree import (
    AggregateValue,
    Column,
    ColumnValue,
    NodeObject,
    NodeValue,
    OrderKey,
    ResultType,
)
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import Values, flatten_chunks, to_comparable, to_numpy
from omnigraph.rows.evaluator import Params, is_constant
from omnigraph.rows.result_types import result_type_of, to_result_values
from omnigraph.rows.row_order import encode_floats, encode_ordered_bytes
from omnigraph.spark.query.column_layout import Field, FrameRows, Layout, evaluate_rows
from omnigraph.spark.query.partial_aggregates import (
    FinalAggregation,
    GroupKey,
    PartialAggregation,
    make_measure,
)
from omnigraph.spark.query.query_frames import Frame, FrameTask, apply_task
from omnigraph.spark.spark_types import from_wire, to_wire

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_SIGN_BIT: Final = np.uint64(2**63)
# The largest limit that Spark takes.
_LIMIT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the result: where its values are, and for a bare node those of its fields."""

    column: Column
    field: Field
    members: tuple[Field, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        """All its columns."""
        return (self.field, *self.members)


@dataclass(frozen=True, slots=True)
class SortField:
    """A key to sort by: something that Spark sorts as we would."""

    field: Field
    is_descending: bool


@dataclass(frozen=True)
class ResultStage:
    """What becomes of the rows of a pattern."""

    plan: plans.ReadPlan
    split: SplitPlan
    layout: Layout
    params: Params

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        """The columns of the result."""
        return tuple(self._build_output(number, each) for number, each in enumerate(self._columns))

    @property
    def _columns(self) -> tuple[Column, ...]:
        for step in self.split.steps:
            if isinstance(step, plans.Project | plans.Aggregate):
                return step.columns
        raise AssertionError("a plan says what it returns")

    @property
    def _is_aggregated(self) -> bool:
        return any(isinstance(step, plans.Aggregate) for step in self.split.steps)

    @property
    def _keys(self) -> tuple[OrderKey, ...]:
        for step in self.split.steps:
            if isinstance(step, plans.Sort):
                return tuple(key for key in step.keys if not is_constant(key.value))
        return ()

    @property
    def _limit(self) -> int | None:
        counts = [step.count for step in self.split.steps if isinstance(step, plans.Limit)]
        return min(counts) if counts else None

    @property
    def needed_columns(self) -> frozenset[str]:
        """The columns of the pattern that are read."""
        return frozenset().union(*map(self.layout.collect_needed_columns, self.split.steps))

    def build_table(self, frame: Frame) -> pa.Table:
        """The result from the rows of the pattern."""
        if self._is_aggregated:
            return self._group_rows(frame)
        fields = [field for each in self.outputs for field in each.fields]
        sort = self._list_sort_fields()
        step = OutputRows(self.layout, self.params, self.outputs, self._keys)
        found = frame.add_step(step, [*fields, *(each.field for each in sort)])
        return self._decode_result(self._sort_rows(found.data, sort, fields).toArrow())

    def _sort_rows(
        self, data: DataFrame, sort: Sequence[SortField], fields: Sequence[Field]
    ) -> DataFrame:
        if sort:
            # Imported here: building a plan needs no Spark.
            from pyspark.sql import functions as spark  # noqa: PLC0415

            def key(each: SortField) -> SparkColumn:
                column = spark.col(each.field.column)
                return column.desc_nulls_last() if each.is_descending else column.asc_nulls_first()

            data = data.orderBy(*map(key, sort))
        if self._limit is not None:
            # More rows than this fit no result: a larger limit leaves out none.
            data = data.limit(min(self._limit, _LIMIT_MAX))
        return data.select(*(each.column for each in fields))

    def _list_sort_fields(self) -> tuple[SortField, ...]:
        return tuple(
            SortField(
                Field(f"k{number}", sort_type_of(_value_type_of(key.value.type))), key.is_descending
            )
            for number, key in enumerate(self._keys)
        )

    # ---- groups ----

    def _group_rows(self, frame: Frame) -> pa.Table:
        shown_columns = self.outputs
        keys = tuple(self._build_key(each) for each in shown_columns if _is_key(each.column))
        calls = [each.column.value for each in shown_columns if not _is_key(each.column)]
        measures = tuple(
            make_measure(call.function, call.argument, number)
            for number, call in enumerate(calls)
            if isinstance(call, AggregateValue)
        )
        partial = PartialAggregation(self.layout, self.params, keys, measures)
        parts = frame.add_step(partial, partial.fields).data
        sort = self._list_sort_fields()
        fields = [field for each in shown_columns for field in each.fields]
        step = OutputGroups(FinalAggregation(partial), shown_columns, self._keys)
        if not keys:
            # One group, which is there even without any row.
            found = step.run(parts.toArrow())
            is_shown = self._limit is None or self._limit > 0
            return self._decode_result(found if is_shown else found.slice(0, 0))
        data = parts.repartition(*(key.field.column for key in keys))
        task = FrameTask((*fields, *(each.field for each in sort)), (step,), is_whole=True)
        return self._decode_result(self._sort_rows(apply_task(data, task), sort, fields).toArrow())

    def _build_key(self, each: OutputColumn) -> GroupKey:
        value = each.column.value
        if not isinstance(value, NodeValue):
            return GroupKey(value, each.field)
        sources = self.layout.object_fields_of(value).values()
        carried = zip(each.members, (source.column for source in sources), strict=True)
        return GroupKey(value, each.field, tuple(carried))

    # ---- the result ----

    def _build_output(self, number: int, column: Column) -> OutputColumn:
        if not isinstance(column.value, NodeValue):
            return OutputColumn(column, Field(f"r{number}", _value_type_of(column.value.type)))
        members = tuple(
            Field(f"r{number}p{place}", each.kind)
            for place, each in enumerate(self.layout.object_fields_of(column.value).values())
        )
        return OutputColumn(column, Field(f"r{number}", pa.utf8()), members)

    def _decode_result(self, rows: pa.Table) -> pa.Table:
        catalog = self.layout.catalog
        arrays: list[pa.Array] = []
        fields: list[pa.Field] = []
        for each in self.outputs:
            kind = result_type_of(each.column.type, catalog)
            parts = [
                flatten_chunks(to_result_values(from_wire(rows[field.column], field.kind)))
                for field in each.fields
            ]
            is_node = isinstance(each.column.value, NodeValue)
            arrays.append(
                pa.StructArray.from_arrays(parts, fields=list(kind)) if is_node else parts[0]
            )
            fields.append(pa.field(each.column.name, kind))
        return pa.table(arrays, schema=pa.schema(fields))


def _is_key(column: Column) -> bool:
    return not isinstance(column.value, AggregateValue)


def _value_type_of(type_: ResultType) -> pa.DataType:
    """The type of values; a bare node is its id."""
    return pa.utf8() if isinstance(type_, NodeObject) else arrow_type_of(type_)


@dataclass(frozen=True)
class OutputRows:
    """From rows of the pattern to those of the result, with what they are sorted by."""

    layout: Layout
    params: Params
    outputs: tuple[OutputColumn, ...]
    keys: tuple[OrderKey, ...]

    def run(self, table: pa.Table) -> pa.Table:
        """The columns of the result at some rows."""
        rows = FrameRows(table, self.layout)
        found: dict[str, pa.Array] = {}
        for each in self.outputs:
            value = each.column.value
            found[each.field.column] = to_wire(evaluate_rows(value, rows, self.params))
            if isinstance(value, NodeValue):
                sources = self.layout.object_fields_of(value).values()
                for member, source in zip(each.members, sources, strict=True):
                    found[member.column] = flatten_chunks(table[source.column])
        for number, key in enumerate(self.keys):
            found[f"k{number}"] = encode_sort_values(evaluate_rows(key.value, rows, self.params))
        return pa.table(found)


@dataclass(frozen=True)
class OutputGroups:
    """From parts of groups to the rows of the result, with what they are sorted by."""

    combined: FinalAggregation
    outputs: tuple[OutputColumn, ...]
    keys: tuple[OrderKey, ...]

    def run(self, table: pa.Table) -> pa.Table:
        """The columns of the result at all groups of a table, in which each group is whole."""
        firsts, measured = self.combined.combine_groups(table)
        values: dict[str, Values] = {}
        found: dict[str, pa.Array] = {}
        numbers = iter(range(len(measured)))
        for each in self.outputs:
            if _is_key(each.column):
                for field in each.fields:
                    found[field.column] = flatten_chunks(firsts[field.column])
                known: Values = from_wire(firsts[each.field.column], each.field.kind)
            else:
                known = measured[next(numbers)]
                found[each.field.column] = to_wire(known)
            values.setdefault(each.column.name, known)
        for number, key in enumerate(self.keys):
            assert isinstance(key.value, ColumnValue), "groups are sorted by their columns"
            found[f"k{number}"] = encode_sort_values(values[key.value.name])
        return pa.table(found)


# ---- what Spark sorts as we would ----


def sort_type_of(kind: pa.DataType) -> pa.DataType:
    """The type of what values of a type are sorted by."""
    if pa.types.is_string(kind):
        return pa.utf8()
    return pa.binary() if pa.types.is_nested(kind) else pa.int64()


def encode_sort_values(values: Values) -> pa.Array:
    """Texts, bytes or integers in the order of values; nulls stay nulls."""
    known = flatten_chunks(to_comparable(values))
    kind = known.type
    if pa.types.is_string(kind):
        return known
    if pa.types.is_nested(kind):
        return encode_ordered_bytes(known).cast(pa.binary())
    if pa.types.is_floating(kind):
        codes = encode_floats(to_numpy(known.cast(pa.float64())))
    elif pa.types.is_uint64(kind):
        codes = (to_numpy(known) ^ _SIGN_BIT).view(np.int64)
    else:
        codes = to_numpy(known).astype(np.int64)
    return pa.array(codes, mask=to_numpy(known.is_null()))

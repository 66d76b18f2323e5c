"""The steps after a pattern: groups, order, first rows, and the columns of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.optimizer.plan_split import SplitPlan
from omnigraph.query import logical_plan as plans
from omnigraph.query.typed_reads import Column, OrderKey
from omnigraph.query.typed_tree import (
    AggregateValue,
    ColumnValue,
    Expr,
    NodeObject,
    NodeValue,
)
from omnigraph.rows.comparison import Values, flatten_chunks, to_numpy
from omnigraph.rows.evaluator import GroupColumns, Params, evaluate_column, is_constant
from omnigraph.rows.result_types import result_type_of, to_result_values
from omnigraph.rows.whole_aggregates import is_whole_aggregate
from omnigraph.spark.query.column_layout import Field, FrameRows, Layout
from omnigraph.spark.query.partial_aggregates import (
    FinalAggregation,
    GroupKey,
    PartialAggregation,
    make_measure,
)
from omnigraph.spark.query.query_frames import Frame, FrameTask, apply_task
from omnigraph.spark.query.sort_encoding import encode_sort_values, sort_type_of
from omnigraph.spark.query.whole_groups import (
    GroupArguments,
    WholeAggregation,
    value_type_of,
)
from omnigraph.spark.spark_types import from_wire, to_wire

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

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
        """The columns of the result; one that a group has is where the group has it."""
        *_, last = self._column_steps
        if len(self._column_steps) == 1:
            return tuple(self._build_output(f"r{at}", each) for at, each in enumerate(last.columns))
        known = {each.column.name: each for each in self._grouped}
        return tuple(
            replace(known[each.value.name], column=each)
            if isinstance(each.value, ColumnValue) and each.value.name in known
            else self._build_output(f"x{at}", each)
            for at, each in enumerate(last.columns)
        )

    @property
    def _grouped(self) -> tuple[OutputColumn, ...]:
        """The columns of the groups."""
        first, *_ = self._column_steps
        return tuple(self._build_output(f"r{at}", each) for at, each in enumerate(first.columns))

    @property
    def _column_steps(self) -> tuple[plans.Project | plans.Aggregate, ...]:
        return tuple(
            step for step in self.split.steps if isinstance(step, plans.Project | plans.Aggregate)
        )

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
    def _limit(self) -> plans.Limit | None:
        """The last limit: one before a group only chooses what is ranked."""
        limits = [step for step in self.split.steps if isinstance(step, plans.Limit)]
        return limits[-1] if limits else None

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
        limit = self._limit
        if limit is not None and limit.offset:
            data = data.offset(min(limit.offset, _LIMIT_MAX))
        if limit is not None and limit.count is not None:
            # More rows than this fit no result: a larger limit leaves out none.
            data = data.limit(min(limit.count, _LIMIT_MAX))
        return data.select(*(each.column for each in fields))

    def _list_sort_fields(self) -> tuple[SortField, ...]:
        return tuple(
            SortField(
                Field(f"k{number}", sort_type_of(value_type_of(key.value.type))), key.is_descending
            )
            for number, key in enumerate(self._keys)
        )

    # ---- groups ----

    def _group_rows(self, frame: Frame) -> pa.Table:
        keys = tuple(self._build_key(each) for each in self._grouped if _is_key(each.column))
        calls = tuple(
            each.column.value
            for each in self._grouped
            if isinstance(each.column.value, AggregateValue)
        )
        combined = self._combine(keys, calls)
        parts = frame.add_step(combined.before, combined.before.fields).data
        sort = self._list_sort_fields()
        fields = [field for each in self.outputs for field in each.fields]
        step = OutputGroups(
            combined.after, self._grouped, self.outputs, self._conditions, self._keys, self.params
        )
        if not keys:
            # One group, which is there even without any row.
            found = step.run(parts.toArrow())
            limit = self._limit or plans.Limit(self.split.pattern, None)
            return self._decode_result(found.slice(limit.offset, limit.count))
        data = parts.repartition(*(key.field.column for key in keys))
        task = FrameTask((*fields, *(each.field for each in sort)), (step,), is_whole=True)
        return self._decode_result(self._sort_rows(apply_task(data, task), sort, fields).toArrow())

    def _combine(self, keys: tuple[GroupKey, ...], calls: tuple[AggregateValue, ...]) -> GroupSteps:
        """How groups are found: of parts, unless an aggregate needs all rows of one at once."""
        if any(map(is_whole_aggregate, calls)):
            arguments = GroupArguments(self.layout, self.params, keys, calls)
            return GroupSteps(arguments, WholeAggregation(arguments))
        measures = tuple(
            make_measure(call.function, call.argument, number) for number, call in enumerate(calls)
        )
        partial = PartialAggregation(self.layout, self.params, keys, measures)
        return GroupSteps(partial, FinalAggregation(partial))

    @property
    def _conditions(self) -> tuple[Expr, ...]:
        """Those of `having`."""
        found = (step.conditions for step in self.split.steps if isinstance(step, plans.Having))
        return next(found, ())

    def _build_key(self, each: OutputColumn) -> GroupKey:
        value = each.column.value
        if not isinstance(value, NodeValue):
            return GroupKey(value, each.field)
        sources = self.layout.object_fields_of(value).values()
        carried = zip(each.members, (source.column for source in sources), strict=True)
        return GroupKey(value, each.field, tuple(carried))

    # ---- the result ----

    def _build_output(self, name: str, column: Column) -> OutputColumn:
        if not isinstance(column.value, NodeValue):
            return OutputColumn(column, Field(name, value_type_of(column.value.type)))
        members = tuple(
            Field(f"{name}p{place}", each.kind)
            for place, each in enumerate(self.layout.object_fields_of(column.value).values())
        )
        return OutputColumn(column, Field(name, pa.utf8()), members)

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
            if isinstance(each.column.type, NodeObject):
                mask = parts[0].is_null() if parts[0].null_count else None
                arrays.append(pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask))
            else:
                arrays.append(parts[0])
            fields.append(pa.field(each.column.name, kind))
        return pa.table(arrays, schema=pa.schema(fields))


def _is_key(column: Column) -> bool:
    return not isinstance(column.value, AggregateValue)


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
            found[each.field.column] = to_wire(evaluate_column(value, rows, self.params))
            if isinstance(value, NodeValue):
                sources = self.layout.object_fields_of(value).values()
                for member, source in zip(each.members, sources, strict=True):
                    found[member.column] = flatten_chunks(table[source.column])
        for number, key in enumerate(self.keys):
            found[f"k{number}"] = encode_sort_values(evaluate_column(key.value, rows, self.params))
        return pa.table(found)


@dataclass(frozen=True, slots=True)
class GroupSteps:
    """What is done with rows, before those of a group are together, and after."""

    before: PartialAggregation | GroupArguments
    after: FinalAggregation | WholeAggregation


@dataclass(frozen=True)
class OutputGroups:
    """From parts of groups to the rows of the result, with what they are sorted by."""

    combined: FinalAggregation | WholeAggregation
    grouped: tuple[OutputColumn, ...]
    outputs: tuple[OutputColumn, ...]
    conditions: tuple[Expr, ...]
    keys: tuple[OrderKey, ...]
    params: Params

    def run(self, table: pa.Table) -> pa.Table:
        """The columns of the result at all groups of a table, in which each group is whole."""
        firsts, measured = self.combined.combine_groups(table)
        values: dict[str, Values] = {}
        found: dict[str, pa.Array] = {}
        numbers = iter(range(len(measured)))
        count = 1
        for each in self.grouped:
            if _is_key(each.column):
                count = firsts.num_rows
                for field in each.fields:
                    found[field.column] = flatten_chunks(firsts[field.column])
                known: Values = from_wire(firsts[each.field.column], each.field.kind)
            else:
                known = measured[next(numbers)]
                found[each.field.column] = to_wire(known)
            values.setdefault(each.column.name, known)
        groups = GroupColumns(count, values.__getitem__)
        for each in self.outputs:
            if each.field.column not in found:
                found[each.field.column] = to_wire(
                    evaluate_column(each.column.value, groups, self.params)
                )
        for number, key in enumerate(self.keys):
            found[f"k{number}"] = encode_sort_values(
                evaluate_column(key.value, groups, self.params)
            )
        is_kept = np.ones(count, np.bool_)
        for condition in self.conditions:
            is_kept &= to_numpy(evaluate_column(condition, groups, self.params))
        rows = pa.table(found)
        return rows if is_kept.all() else rows.filter(pa.array(is_kept))

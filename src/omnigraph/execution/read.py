"""Running a read plan over one type: scan, filter, group, sort, cut off, project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import assert_never

import pyarrow as pa

from omnigraph.errors import ExecutionError
from omnigraph.execution.columns import TableShape
from omnigraph.execution.exact import Values, flat
from omnigraph.execution.expressions import Params, evaluate
from omnigraph.execution.groups import aggregated, grouped, one_group
from omnigraph.execution.order import SortKey, sorted_places
from omnigraph.execution.result import Result
from omnigraph.execution.result_types import object_properties, result_type, shown
from omnigraph.execution.scan import TypeRows, matching_batches, physical_names
from omnigraph.execution.view import View
from omnigraph.query import plan as plans
from omnigraph.query.typed import (
    NOW_NAME,
    AggregateValue,
    Column,
    ColumnValue,
    Expr,
    NodeValue,
    OrderKey,
    SystemName,
    SystemValue,
)
from omnigraph.query.walk import chain_of
from omnigraph.schema.accepted import TypeKey, TypeKind

_Step = plans.Aggregate | plans.Sort | plans.Limit | plans.Project


def run_read(plan: plans.ReadPlan, view: View, params: Params, *, now: int) -> Result:
    """The rows of a plan that reads one node type; `now` is the millisecond of the request."""
    scan, steps = _single_type(plan.root)
    reading = _Reading(view, {**params, NOW_NAME: now}, scan)
    return Result(plan.columns, reading.run(steps))


def _single_type(root: plans.Operator) -> tuple[plans.Scan, list[_Step]]:
    """The only scan of a plan, with all conditions on its rows, and the steps after it."""
    _, *operators = chain_of(root)
    filters = [each.condition for each in operators if isinstance(each, plans.Filter)]
    scans = [each for each in operators if isinstance(each, plans.Scan)]
    steps = [each for each in operators if isinstance(each, _Step)]
    if len(scans) != 1 or len(filters) + 1 + len(steps) < len(operators):
        raise ExecutionError(
            "traversal and search are not supported by this version yet",
            hint="read one node type per query",
        )
    # A filter below the scan reads no row, and none comes after a sort or an aggregate.
    return replace(scans[0], conditions=(*scans[0].conditions, *filters)), steps


@dataclass(frozen=True)
class _Reading:
    """One run over one type. Rows are physical columns until a step makes the result's columns."""

    view: View
    params: Params
    scan: plans.Scan

    @cached_property
    def type_key(self) -> TypeKey:
        return TypeKey(TypeKind.NODE, self.scan.type_name)

    @property
    def shape(self) -> TableShape:
        return self.view.shape(self.type_key)

    def run(self, steps: Sequence[_Step]) -> pa.Table:
        first_count = steps[0].count if steps and isinstance(steps[0], plans.Limit) else None
        rows = self._matching(first_count)
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            match step:
                case plans.Sort(keys=keys):
                    limit = following.count if isinstance(following, plans.Limit) else None
                    rows = self._sorted(rows, keys, limit)
                case plans.Limit(count=count):
                    rows = rows.slice(0, min(count, rows.num_rows))
                case plans.Project(columns=columns):
                    rows = self._projected(rows, columns)
                case plans.Aggregate(columns=columns):
                    rows = self._aggregated(rows, columns)
                case _:
                    assert_never(step)
        return rows

    def _matching(self, count: int | None) -> pa.Table:
        names = physical_names(self.shape, list(self._columns()))
        conditions = self.scan.conditions
        batches = matching_batches(self.view, self.type_key, conditions, self.params, names=names)
        schema = pa.schema([self.shape.schema.field(name) for name in names])
        return pa.Table.from_batches(_first(batches, count), schema=schema)

    def _columns(self) -> Iterator[str]:
        properties = self.view.catalog.nodes[self.scan.type_name].properties
        wanted = properties if self.scan.properties is None else self.scan.properties
        for name in wanted:
            if not properties[name].type.is_blob:
                yield self.shape.columns[name]

    def _sorted(self, rows: pa.Table, keys: Sequence[OrderKey], limit: int | None) -> pa.Table:
        columns = [
            SortKey(values, key.is_descending)
            for key in keys
            if isinstance(values := self._sorting(rows, key.value), pa.Array | pa.ChunkedArray)
        ]
        places = sorted_places(columns, rows.num_rows, limit=limit)
        # To take most rows from many chunks costs more than to put the chunks together first.
        is_most = 2 * len(places) > rows.num_rows
        return (rows.combine_chunks() if is_most else rows).take(pa.array(places))

    def _sorting(self, rows: pa.Table, key: Expr) -> Values | pa.Scalar:
        if not isinstance(key, ColumnValue):
            return evaluate(key, TypeRows(rows, self.shape), self.params)
        values = flat(rows[key.name])
        return values.field(0) if pa.types.is_struct(values.type) else values

    # ---- result columns ----

    def _projected(self, rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
        return pa.table(
            [self._column(rows, each) for each in columns], schema=self._schema(columns)
        )

    def _aggregated(self, rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
        keys = [each for each in columns if not isinstance(each.value, AggregateValue)]
        codes = [self._grouping(rows, each.value) for each in keys]
        groups = grouped(codes, rows.num_rows) if keys else one_group(rows.num_rows)
        firsts = rows.take(pa.array(groups.first_rows)) if keys else rows
        found: list[Values] = []
        for column in columns:
            if isinstance(column.value, AggregateValue):
                values = self._values(rows, column.value.argument)
                found.append(shown(aggregated(column.value.function, values, groups)))
            else:
                found.append(self._column(firsts, column))
        return pa.table(found, schema=self._schema(columns))

    def _grouping(self, rows: pa.Table, key: Expr) -> Values:
        if isinstance(key, NodeValue):
            key = SystemValue(key.variable, SystemName.ID)
        return self._values(rows, key)

    def _column(self, rows: pa.Table, column: Column) -> pa.ChunkedArray:
        """A column of the result, a batch at a time."""
        kind = result_type(column.type, self.view.catalog)
        parts = [
            self._shown(pa.Table.from_batches([batch]), column.value, kind)
            for batch in rows.to_batches()
        ]
        return pa.chunked_array(parts, kind)

    def _shown(self, rows: pa.Table, value: Expr, kind: pa.DataType) -> pa.Array:
        if not isinstance(value, NodeValue):
            return flat(shown(self._values(rows, value)))
        known = TypeRows(rows, self.shape)
        properties = object_properties(value.type, self.view.catalog)
        members = [
            known.system(value.variable, SystemName.ID),
            *(shown(known.property(value.variable, each.name)) for each in properties),
        ]
        return pa.StructArray.from_arrays([flat(each) for each in members], fields=list(kind))

    def _values(self, rows: pa.Table, value: Expr) -> Values:
        found = evaluate(value, TypeRows(rows, self.shape), self.params)
        if not isinstance(found, pa.Scalar):
            return found
        # Arrow repeats a vector once or more, but not zero times.
        return pa.repeat(found, max(rows.num_rows, 1)).slice(0, rows.num_rows)

    def _schema(self, columns: Sequence[Column]) -> pa.Schema:
        return pa.schema(
            [pa.field(each.name, result_type(each.type, self.view.catalog)) for each in columns]
        )


def _first(batches: Iterable[pa.RecordBatch], count: int | None) -> Iterator[pa.RecordBatch]:
    """The batches of the first rows, or all of them; no more is read than needed."""
    rows = 0
    for batch in batches:
        if count is not None and rows >= count:
            return
        yield batch
        rows += batch.num_rows

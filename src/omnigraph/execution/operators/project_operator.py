"""Rows to result columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from omnigraph.execution.batch import (
    Batch,
    slice_batch,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.group_operator import GroupedRows, evaluate_groups
from omnigraph.execution.operators.object_projection import (
    project_edge,
    project_nodes,
    project_path,
)
from omnigraph.execution.operators.row_keys import evaluate_rows
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.query.typed_reads import Column
from omnigraph.query.typed_tree import (
    AggregateValue,
    ColumnValue,
    EdgeValue,
    Expr,
    NodeObject,
    NodeValue,
    PathValue,
    PropertyValue,
    SystemName,
    SystemValue,
)
from omnigraph.rows.comparison import Values, flatten_chunks
from omnigraph.rows.group_aggregates import with_one_zero
from omnigraph.rows.result_types import iter_object_properties, result_type_of, to_result_values
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.type_sets import is_type_set

# So many rows at a time: their texts fit the 32-bit offsets of an Arrow array, and memory and time
# are checked in between.
MORSEL_ROWS: Final = 65_536
# To count the bytes of fewer rows takes longer than to fetch them from a topology, which holds
# the values anyway.
UNCOUNTED_ROWS_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class _ProjectedColumn:
    """A column with its Arrow type; `variable` and `property` if it is a field of an entity."""

    name: str
    value: Expr
    type: pa.DataType
    variable: str | None
    # None is the id.
    property: str | None


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns of a result."""

    columns: tuple[_ProjectedColumn, ...]
    schema: pa.Schema

    def build_table(self, rows: Batch | GroupedRows, context: ExecutionContext) -> pa.Table:
        """The columns of rows; every property is fetched for these rows only."""
        groups, batch = (rows, rows.first_rows) if isinstance(rows, GroupedRows) else (None, rows)
        morsels = (batch,) if batch.num_rows <= MORSEL_ROWS else tuple(_split_morsels(batch))
        arrays: list[Values] = []
        context.budget.check_interrupts()
        for column in self.columns:
            known = None if groups is None else _project_group(column, groups, context)
            if known is not None:
                arrays.append(known)
                continue
            parts = [_project_column(column, morsel, context) for morsel in morsels]
            if groups is not None:
                parts = [with_one_zero(each) for each in parts]
            arrays.append(parts[0] if len(parts) == 1 else pa.chunked_array(parts, column.type))
        return pa.Table.from_arrays(arrays, schema=self.schema)


def build_projection(columns: Sequence[Column], catalog: Catalog) -> Projection:
    """The projection of a plan."""
    projected = tuple(
        _ProjectedColumn(
            each.name, each.value, result_type_of(each.type, catalog), *_find_field(each.value)
        )
        for each in columns
    )
    schema = pa.schema([pa.field(each.name, each.type) for each in projected])
    return Projection(projected, schema)


def _find_field(value: Expr) -> tuple[str | None, str | None]:
    """The variable and the property that an expression is; no property for an id."""
    match value:
        case PropertyValue(variable, name):
            return variable, name
        case SystemValue(variable, SystemName.ID):
            return variable, None
        case _:
            return None, None


def _project_group(
    column: _ProjectedColumn, groups: GroupedRows, context: ExecutionContext
) -> Values | None:
    """An aggregate, or what is computed from the columns of groups; None for a key."""
    match column.value:
        case AggregateValue(type=NodeObject(type_name)):
            ids = flatten_chunks(groups.aggregates[column.name])
            return project_nodes(ids, type_name, column.type, context)
        case AggregateValue():
            return to_result_values(groups.aggregates[column.name])
        case ColumnValue(name):
            return to_result_values(groups.aggregates[name])
        case value if any(isinstance(part, ColumnValue) for part in iter_subexpressions(value)):
            found = flatten_chunks(to_result_values(evaluate_groups(value, groups, context)))
            context.budget.allocate(found.nbytes)
            return found
        case _:
            return None


def _project_column(column: _ProjectedColumn, batch: Batch, context: ExecutionContext) -> pa.Array:
    variable = column.variable
    if variable is not None and variable in batch.nodes and variable not in context.nullable:
        numbers = batch.nodes[variable]
        nodes = context.source.get_nodes(context.nodes_of[variable])
        name = column.property
        values = nodes.fetch_ids(numbers) if name is None else nodes.fetch_values(name, numbers)
        found = values if values.type == column.type else to_result_values(values)
    elif isinstance(column.value, PathValue):
        found = project_path(column.value, column.type, batch, context)
    elif isinstance(column.value, EdgeValue):
        found = project_edge(column.value, column.type, batch, context)
    elif isinstance(column.value, NodeValue):
        found = _project_node(column.value, column.type, batch, context)
    else:
        found = flatten_chunks(to_result_values(evaluate_rows(column.value, batch, context)))
        if pa.types.is_null(found.type):
            # A selection that fits no edge has no rows, and its properties have no known type.
            found = found.cast(column.type)
    is_small = batch.num_rows <= UNCOUNTED_ROWS_MAX and isinstance(context.source, TopologySource)
    # What is computed may be of any size, and no topology holds it.
    if variable is None or not is_small:
        context.budget.check_interrupts()
        # Held as long as the query: they are its result.
        context.budget.allocate(found.nbytes)
    return found


def _project_node(
    value: NodeValue, kind: pa.DataType, batch: Batch, context: ExecutionContext
) -> pa.Array:
    rows = context.rows_of(batch)
    is_set = is_type_set(value.type.type_name)
    properties = iter_object_properties(value.type, context.view.catalog)
    own = (SystemName.TYPE, SystemName.ID)
    members = [
        *(rows.get_system_field(value.variable, each) for each in own[not is_set :]),
        *(to_result_values(rows.get_property(value.variable, each.name)) for each in properties),
    ]
    fields = [flatten_chunks(each) for each in members]
    mask = fields[0].is_null() if fields[0].null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)


def _split_morsels(batch: Batch) -> Iterator[Batch]:
    for start in range(0, batch.num_rows, MORSEL_ROWS):
        yield slice_batch(batch, start, min(start + MORSEL_ROWS, batch.num_rows))

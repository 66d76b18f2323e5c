"""Rows to result columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from omnigraph.execution.batch import Batch, BoundEdges
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.group_operator import GroupedRows
from omnigraph.execution.operators.row_keys import evaluate_rows
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology.topology_nodes import DenseNodes
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query.typed_tree import (
    AggregateValue,
    Column,
    Expr,
    NodeValue,
    PropertyValue,
    SystemName,
    SystemValue,
)
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.group_aggregates import with_one_zero
from omnigraph.rows.result_types import (
    iter_object_properties,
    result_type_of,
    to_result_values,
)
from omnigraph.schema.catalog import Catalog

# So many rows at a time: their texts fit the 32-bit offsets of an Arrow array, and memory and time
# are looked at in between.
MORSEL_ROWS: Final = 65_536

# More rows are worth the steps that look at memory and time in between.
ROWS_MAX: Final = 1_024


def build_result_table(
    columns: Sequence[Column], rows: Batch | GroupedRows, reading: ExecutionContext
) -> pa.Table:
    """The columns of a result; every property is fetched for these rows only."""
    catalog = reading.view.catalog
    schema = pa.schema(
        [pa.field(each.name, result_type_of(each.type, catalog)) for each in columns]
    )
    if isinstance(rows, GroupedRows):
        batch, known = rows.first_rows, rows.aggregates
    else:
        batch, known = rows, {}
    plain = [each for each in columns if not isinstance(each.value, AggregateValue)]
    kinds = [schema.field(each.name).type for each in plain]
    parts: list[list[pa.Array]] = [[] for _ in plain]
    for morsel in _split_morsels(batch) if plain else ():
        reading.budget.check_interrupts()
        for column, kind, into in zip(plain, kinds, parts, strict=True):
            values = _project_column(column.value, kind, morsel, reading)
            if isinstance(rows, GroupedRows):
                values = with_one_zero(values)
            # Held as long as the query: they are its result.
            reading.budget.allocate(values.nbytes)
            into.append(values)
    found = {name: to_result_values(values) for name, values in known.items()}
    for column, kind, arrays in zip(plain, kinds, parts, strict=True):
        found[column.name] = pa.chunked_array(arrays, kind)
    return pa.table([found[field.name] for field in schema], schema=schema)


def _project_column(
    value: Expr, kind: pa.DataType, batch: Batch, reading: ExecutionContext
) -> pa.Array:
    if not isinstance(value, NodeValue):
        values = flatten_chunks(to_result_values(evaluate_rows(value, batch, reading)))
        # A selection that fits no edge has no rows, and does not know the type of its properties.
        return values.cast(kind) if pa.types.is_null(values.type) else values
    rows = reading.rows_of(batch)
    properties = iter_object_properties(value.type, reading.view.catalog)
    members = [
        rows.get_system_field(value.variable, SystemName.ID),
        *(to_result_values(rows.get_property(value.variable, each.name)) for each in properties),
    ]
    return pa.StructArray.from_arrays([flatten_chunks(each) for each in members], fields=list(kind))


def _split_morsels(batch: Batch) -> Iterator[Batch]:
    if batch.num_rows <= MORSEL_ROWS:
        yield batch
        return
    for start in range(0, batch.num_rows, MORSEL_ROWS):
        part = slice(start, start + MORSEL_ROWS)
        yield Batch(
            min(MORSEL_ROWS, batch.num_rows - start),
            {name: numbers[part] for name, numbers in batch.nodes.items()},
            {
                name: BoundEdges(bound.types, bound.type_indices[part], bound.dense_ids[part])
                for name, bound in batch.edges.items()
            },
            scores=None if batch.scores is None else batch.scores[part],
        )


@dataclass(frozen=True, slots=True)
class _ProjectedField:
    variable: str
    type_name: str
    # None is the id.
    name: str | None


@dataclass(frozen=True, slots=True)
class Projection:
    """Columns that are properties and ids of nodes."""

    schema: pa.Schema
    fields: tuple[_ProjectedField, ...]

    def build_table(self, batch: Batch, reading: ExecutionContext) -> pa.Table:
        """The columns of rows."""
        source = reading.source
        assert isinstance(source, TopologySource)
        arrays = [
            _fetch_column(
                source.get_nodes(field.type_name), field.name, batch.nodes[field.variable]
            )
            for field in self.fields
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def build_projection(
    columns: Sequence[Column], types: dict[str, str], catalog: Catalog
) -> Projection | None:
    """The columns of a plan, if all of them are properties and ids of node variables."""
    fields = []
    for column in columns:
        match column.value:
            case PropertyValue(variable, name) if variable in types:
                fields.append(_ProjectedField(variable, types[variable], name))
            case SystemValue(variable, SystemName.ID) if variable in types:
                fields.append(_ProjectedField(variable, types[variable], None))
            case _:
                return None
    schema = pa.schema(
        [pa.field(each.name, result_type_of(each.type, catalog)) for each in columns]
    )
    return Projection(schema, tuple(fields))


def _fetch_column(nodes: DenseNodes, name: str | None, at: DenseIds) -> pa.Array:
    if name is None:
        return nodes.fetch_ids(at)
    column = nodes.get_column(name)
    return to_result_values(column.take_one(int(at[0])) if len(at) == 1 else column.take(at))

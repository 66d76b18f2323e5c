"""Rows to result columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from omnigraph.execution.batch import Batch, BoundEdges
from omnigraph.execution.exact import flatten_chunks
from omnigraph.execution.groups import with_one_zero
from omnigraph.execution.reading import ExecutionContext
from omnigraph.execution.result_types import (
    iter_object_properties,
    result_type_of,
    to_result_values,
)
from omnigraph.execution.tail.grouped import GroupedRows
from omnigraph.execution.tail.values import evaluate_rows
from omnigraph.query.typed import AggregateValue, Column, Expr, NodeValue, SystemName

# So many rows at a time: their texts fit the 32-bit offsets of an Arrow array, and memory and time
# are looked at in between.
MORSEL_ROWS: Final = 65_536


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

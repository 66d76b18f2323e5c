"""Rows to result columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from omnigraph.execution.batch import Batch, BoundEdges
from omnigraph.execution.exact import flat
from omnigraph.execution.groups import with_one_zero
from omnigraph.execution.reading import Reading
from omnigraph.execution.result_types import object_properties, result_type, shown
from omnigraph.execution.tail.grouped import Grouped
from omnigraph.execution.tail.values import row_values
from omnigraph.query.typed import AggregateValue, Column, Expr, NodeValue, SystemName

# So many rows at a time: their texts fit the 32-bit offsets of an Arrow array, and memory and time
# are looked at in between.
MORSEL_ROWS: Final = 65_536


def result_table(columns: Sequence[Column], rows: Batch | Grouped, reading: Reading) -> pa.Table:
    """The columns of a result; every property is fetched for these rows only."""
    catalog = reading.view.catalog
    schema = pa.schema([pa.field(each.name, result_type(each.type, catalog)) for each in columns])
    if isinstance(rows, Grouped):
        batch, known = rows.firsts, rows.aggregates
    else:
        batch, known = rows, {}
    plain = [each for each in columns if not isinstance(each.value, AggregateValue)]
    kinds = [schema.field(each.name).type for each in plain]
    parts: list[list[pa.Array]] = [[] for _ in plain]
    for morsel in _morsels(batch) if plain else ():
        reading.budget.check()
        for column, kind, into in zip(plain, kinds, parts, strict=True):
            values = _shown(column.value, kind, morsel, reading)
            if isinstance(rows, Grouped):
                values = with_one_zero(values)
            # Held as long as the query: they are its result.
            reading.budget.hold(values.nbytes)
            into.append(values)
    found = {name: shown(values) for name, values in known.items()}
    for column, kind, arrays in zip(plain, kinds, parts, strict=True):
        found[column.name] = pa.chunked_array(arrays, kind)
    return pa.table([found[field.name] for field in schema], schema=schema)


def _shown(value: Expr, kind: pa.DataType, batch: Batch, reading: Reading) -> pa.Array:
    if not isinstance(value, NodeValue):
        values = flat(shown(row_values(value, batch, reading)))
        # A selection that fits no edge has no rows, and does not know the type of its properties.
        return values.cast(kind) if pa.types.is_null(values.type) else values
    rows = reading.rows(batch)
    properties = object_properties(value.type, reading.view.catalog)
    members = [
        rows.system(value.variable, SystemName.ID),
        *(shown(rows.property(value.variable, each.name)) for each in properties),
    ]
    return pa.StructArray.from_arrays([flat(each) for each in members], fields=list(kind))


def _morsels(batch: Batch) -> Iterator[Batch]:
    if batch.num_rows <= MORSEL_ROWS:
        yield batch
        return
    for start in range(0, batch.num_rows, MORSEL_ROWS):
        part = slice(start, start + MORSEL_ROWS)
        yield Batch(
            min(MORSEL_ROWS, batch.num_rows - start),
            {name: numbers[part] for name, numbers in batch.nodes.items()},
            {
                name: BoundEdges(bound.types, bound.members[part], bound.numbers[part])
                for name, bound in batch.edges.items()
            },
            scores=None if batch.scores is None else batch.scores[part],
        )

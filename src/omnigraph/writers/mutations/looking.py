"""The committed rows that the conditions of a statement match, and what that depends on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from omnigraph.execution.expressions import Params
from omnigraph.execution.scan import matching_batches, physical_names, pinned_ids, rows_schema
from omnigraph.execution.view import View
from omnigraph.query import typed
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.row_ids import FEW_IDS, ROW_ID
from omnigraph.storage.table import Table
from omnigraph.versioning.footprint import WHOLE, Reads
from omnigraph.versioning.idset import IdSet
from omnigraph.writers.mutations.budget import Budget

# Blobs are read a few rows at a time, as many as seem to fit: nobody knows their sizes before.
_FIRST_BLOBS: Final = 4
_GROWTH: Final = 4
_PART_BYTES: Final = 16 * 1024 * 1024


def looked_at(
    view: View, type_key: TypeKey, conditions: Sequence[typed.Expr], params: Params
) -> Reads:
    """The entities that could change the answer of conditions, whether or not they exist."""
    ids = pinned_ids(view, type_key, conditions, params)
    return WHOLE if ids is None else Reads(ids=IdSet(ids))


def matched(
    view: View,
    type_key: TypeKey,
    conditions: Sequence[typed.Expr],
    params: Params,
    *,
    columns: Sequence[str],
    budget: Budget,
) -> pa.Table:
    """The committed rows that satisfy conditions: ids, ends, some columns, and `_rowid`."""
    shape = view.shape(type_key)
    names = [*physical_names(shape, columns), ROW_ID]
    batches = []
    for batch in matching_batches(view, type_key, conditions, params, names=names):
        budget.spend(batch.nbytes)
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=rows_schema(shape, names))


def with_blobs(rows: pa.Table, table: Table, columns: Sequence[str], *, budget: Budget) -> pa.Table:
    """Committed rows with columns of blobs, which are read for these rows alone."""
    if not columns:
        return rows
    parts = list(_blobs(rows[ROW_ID].combine_chunks(), table, columns, budget))
    fields = [table.schema.field(name) for name in columns]
    blobs = pa.concat_tables([pa.schema(fields).empty_table(), *parts])
    for field in fields:
        rows = rows.append_column(field, blobs[field.name])
    return rows


def _blobs(
    row_ids: pa.Array, table: Table, columns: Sequence[str], budget: Budget
) -> Iterator[pa.Table]:
    start, count = 0, _FIRST_BLOBS
    while start < len(row_ids):
        part = table.take(row_ids.slice(start, count), columns=columns)
        budget.spend(part.nbytes)
        yield part
        start += part.num_rows
        fitting = part.num_rows * _PART_BYTES // max(part.nbytes, 1)
        count = max(1, min(fitting, count * _GROWTH, FEW_IDS))

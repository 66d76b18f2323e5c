"""The committed rows that the conditions of a statement match, and what that depends on."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.execution.expressions import Params
from omnigraph.execution.scan import matching_batches, physical_names, pinned_ids, rows_schema
from omnigraph.execution.view import View
from omnigraph.query import typed
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.versioning.footprint import WHOLE, Reads
from omnigraph.versioning.idset import IdSet
from omnigraph.writers.committed_values import read_values
from omnigraph.writers.mutations.budget import Budget


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
    row_ids = rows[ROW_ID].combine_chunks()
    parts = list(read_values(table, row_ids, columns, spend=budget.spend))
    fields = [table.schema.field(name) for name in columns]
    blobs = pa.concat_tables([pa.schema(fields).empty_table(), *parts])
    for field in fields:
        rows = rows.append_column(field, blobs[field.name])
    return rows

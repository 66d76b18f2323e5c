"""Rows of entities at a view, by their ids."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.type_scan import build_rows_schema, list_physical_columns
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN


def fetch_rows(
    view: View,
    type_key: TypeKey,
    ids: pa.Array,
    *,
    columns: Sequence[str] | None = None,
    with_row_ids: bool = False,
) -> pa.Table:
    """The rows of the ids that a type has at a view, in the order of ids, as physical columns.

    `columns` None means all; `__id` and the ends of edges are always there, `_rowid` if asked for.
    """
    shape = view.get_shape(type_key)
    names = list_physical_columns(shape, columns) + ([ROW_ID] if with_row_ids else [])
    found = view.open_table(type_key).find(ID_COLUMN, ids, columns=names)
    return sort_by_id(found.cast(build_rows_schema(shape, names)))


def fetch_keys(
    view: View, type_key: TypeKey, ids: pa.Array, *, columns: Sequence[str] = ()
) -> pa.Table:
    """The ids among the given ones that a type has at a view, in order, with their row ids.

    Some columns may be read along, which costs less than to read them afterwards.
    """
    names = list(dict.fromkeys([ID_COLUMN, ROW_ID, *columns]))
    return sort_by_id(view.open_table(type_key).find(ID_COLUMN, ids, columns=names))


def read_all_ids(view: View, type_key: TypeKey) -> pa.Array:
    """The ids of all entities of a type at a view, in any order."""
    found = view.open_table(type_key).scan(columns=[ID_COLUMN])[ID_COLUMN]
    return found.cast(pa.large_string()).combine_chunks()


def sort_by_id(rows: pa.Table) -> pa.Table:
    """Rows in the order of the bytes of their ids."""
    return rows.take(pc.sort_indices(rows[ID_COLUMN])) if rows.num_rows > 1 else rows

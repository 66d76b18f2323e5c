"""The marks of a commit: what its entities hold or held that another write may have read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from omnigraph.engine.checks.moved import MovedRows
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.pins import Pin
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.versioning.idset import IdSet
from omnigraph.writers.limits import MARKS_MAX
from omnigraph.writers.validate import marks_of
from omnigraph.writers.validate.groups import groups_of

_ENDS = (SOURCE_COLUMN, TARGET_COLUMN)


def compute_marks(view: View, type_key: TypeKey, before: Pin | None, moved: MovedRows) -> IdSet:
    """The marks of the rows that came, and of the ends of edges that went."""
    type_, shape = view.types[type_key], view.get_shape(type_key)
    found: list[IdSet] = []
    for rows in _read_moved_rows(
        view.open_table(type_key), _list_mark_columns(shape, type_), moved.added_rows
    ):
        found += filter(None, [marks_of(shape, type_, rows)])
    if before is not None and isinstance(type_, EdgeType):
        for rows in _read_moved_rows(view.tables.open(before), _ENDS, moved.removed_rows):
            found += filter(None, [marks_of(shape, type_, rows)])
    return IdSet.union_of(found)


def _list_mark_columns(shape: TableShape, type_: NodeType | EdgeType) -> tuple[str, ...]:
    """The columns that marks are made of."""
    ends = _ENDS if isinstance(type_, EdgeType) else ()
    groups = (group.columns for group in groups_of(shape, type_) if not group.has_key)
    return tuple(dict.fromkeys((*ends, *(name for columns in groups for name in columns))))


def _read_moved_rows(table: Table, columns: tuple[str, ...], moved: pa.Table) -> Iterator[pa.Table]:
    """The columns of moved rows, as many at a time as marks are made of."""
    row_ids = moved[ROW_ID].combine_chunks()
    for start in range(0, len(row_ids) if columns else 0, MARKS_MAX):
        yield table.take(row_ids[start : start + MARKS_MAX], columns=columns)

"""Values of committed rows that a write keeps: those that it does not assign, or has no column for.

How large values are is not known before they are read: the first parts are small, and each shows
how many rows fit into the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ResourceLimitError
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.storage.tables.row_ids import FEW_IDS, ROW_ID, ROWS_PER_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.default_values import DefaultValues
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import (
    NO_COPIES,
    NO_EDGE_COPIES,
    AbsentRows,
    GraphChange,
    TypeChange,
    combine_column,
)
from omnigraph.writers.key_cache import KeyCache

# Counts the bytes that were read, and refuses too many.
SpendBytes: TypeAlias = Callable[[int], None]
# Takes rows, and those that are new and lack a column.
FillRows: TypeAlias = Callable[[pa.Table, AbsentRows], pa.Table]
_Positions = np.ndarray[Any, np.dtype[np.int64]]

_FIRST_ROWS: Final = 4
_GROWTH: Final = 16
_PART_BYTES: Final = 16 * 1024 * 1024
# A load in one process holds the values it keeps beside its own rows, which may be as large.
KEPT_BYTES_MAX: Final = 4 * 1024**3


def read_values(
    table: Table, row_ids: pa.Array, columns: Sequence[str], *, spend: SpendBytes
) -> Iterator[pa.Table]:
    """Columns of committed rows in the order of their row ids, in parts of bounded size."""
    # More rows at once would be found by a scan, which is worth it once, for all of them.
    looked_up_max = max(FEW_IDS, table.count() // ROWS_PER_ID)
    start, count = 0, _FIRST_ROWS
    while start < len(row_ids):
        part = table.take(row_ids.slice(start, count), columns=columns)
        spend(part.nbytes)
        yield part
        start += part.num_rows
        fitting = part.num_rows * _PART_BYTES // max(part.nbytes, 1)
        most = looked_up_max if fitting < len(row_ids) - start else fitting
        count = max(1, min(fitting, count * _GROWTH, most))


def fill_absent(change: GraphChange, view: View, keys: KeyCache) -> GraphChange:
    """A change whose rows have the committed values of all columns that their source lacks."""
    if not any(each.absent for each in change.values()):
        return change
    committed, spend = CommittedState(view, keys, {}), _Budget().spend
    return {
        type_key: _fill_type(each, committed, spend) if each.absent else each
        for type_key, each in change.items()
    }


def _fill_type(change: TypeChange, committed: CommittedState, spend: SpendBytes) -> TypeChange:
    type_key = change.shape.type_key
    none = NO_EDGE_COPIES if type_key.kind is TypeKind.EDGE else NO_COPIES
    copies = committed.find_copies(type_key, change.written, none)
    table = committed.view.open_table(type_key)
    fill = partial(_fill_new, committed.view, change)
    parts = with_committed_values(
        change.rows, change.absent, table, copies, spend=spend, fill_new=fill
    )
    rows = pa.concat_tables([change.rows.slice(0, 0), *parts])
    return replace(change, rows=rows, known_copies=copies, absent={})


def _fill_new(view: View, change: TypeChange, rows: pa.Table, absent: AbsentRows) -> pa.Table:
    """Rows with the defaults of the columns that new ones among them lack."""
    type_ = view.types[change.shape.type_key]
    return DefaultValues.from_type(type_, change.shape, change.now).fill_rows(rows, absent)


class _Budget:
    """The bytes of committed values that one load holds in memory."""

    def __init__(self) -> None:
        self._spent = 0

    def spend(self, size: int) -> None:
        """Count more bytes; too many in all are refused."""
        self._spent += size
        if self._spent > KEPT_BYTES_MAX:
            raise ResourceLimitError(
                "the size of the values that one load keeps, in bytes",
                limit=KEPT_BYTES_MAX,
                actual=self._spent,
                hint="split the input into several loads, or load it with engine='spark'",
            )


def with_committed_values(
    rows: pa.Table,
    absent: AbsentRows,
    table: Table,
    copies: pa.Table,
    *,
    spend: SpendBytes,
    fill_new: FillRows,
) -> Iterator[pa.Table]:
    """Rows in parts, with the committed values of the columns that each row lacks.

    `absent` has a mask per column, and `copies` the ids and row ids of those that are committed.
    The other rows are new: what they lack is filled by the caller, or stays null.
    """
    places = pc.index_in(
        combine_column(rows[ID_COLUMN]), value_set=combine_column(copies[ID_COLUMN])
    )
    matched = np.flatnonzero(np.asarray(places.is_valid()))
    row_ids = combine_column(copies[ROW_ID]).take(places.drop_null())
    start = read = 0
    for part in read_values(table, row_ids, list(absent), spend=spend):
        read += part.num_rows
        end = rows.num_rows if read == len(matched) else int(matched[read - 1]) + 1
        found = matched[read - part.num_rows : read] - start
        masks = {column: is_absent[start:end] for column, is_absent in absent.items()}
        filled = _fill_rows(rows.slice(start, end - start), masks, part, found)
        is_new = np.ones(end - start, np.bool_)
        is_new[found] = False
        yield fill_new(filled, {column: mask & is_new for column, mask in masks.items()})
        start = end
    if start < rows.num_rows:
        yield fill_new(rows.slice(start), {column: mask[start:] for column, mask in absent.items()})


def _fill_rows(rows: pa.Table, absent: AbsentRows, values: pa.Table, found: _Positions) -> pa.Table:
    """Rows with the values of some of them put where they are absent."""
    for column, is_absent in absent.items():
        own, kept = rows[column], values[column]
        taken = np.arange(len(own))
        taken[found] = np.where(is_absent[found], len(own) + np.arange(len(found)), found)
        both = pa.concat_arrays([combine_column(own), combine_column(kept).cast(own.type)])
        index = rows.schema.get_field_index(column)
        rows = rows.set_column(index, rows.schema.field(index), both.take(pa.array(taken)))
    return rows

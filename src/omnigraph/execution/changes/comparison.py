"""Which rows of two tables differ, column by column; vectors and blobs last, and only if needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.changes.equality import Mask, compare_columns
from omnigraph.execution.changes.pairing import ColumnPair
from omnigraph.storage.blobs import is_blob
from omnigraph.storage.table import Table

# Rows of which a heavy column is in memory at once: a vector is kilobytes, a blob may be megabytes.
VECTORS_AT_ONCE: Final = 4096
BLOBS_AT_ONCE: Final = 64


def compare_rows(old: pa.Table, new: pa.Table, columns: Sequence[ColumnPair]) -> Mask:
    """The rows of two aligned tables that differ in any of some columns.

    A column without an old side differs where it holds a value.
    """
    found = np.zeros(new.num_rows, np.bool_)
    for pair in columns:
        if pair.old is None:
            found |= new[pair.new].is_valid().to_numpy()
        else:
            found |= compare_columns(old[pair.old], new[pair.new])
    return found


def compare_stored_rows(
    old: tuple[Table, pa.Array],
    new: tuple[Table, pa.Array],
    columns: Sequence[ColumnPair],
    *,
    known: Mask | None = None,
) -> Mask:
    """The same of rows by their row ids: light columns first, heavy ones where those are equal.

    `known` are the rows whose light columns were found to differ already, if somebody looked.
    """
    light = [pair for pair in columns if not pair.is_heavy]
    rows_max = max(len(new[1]), 1)
    found = (
        _compare_in_batches(old, new, light, rows_max=rows_max) if known is None else known.copy()
    )
    for pair in columns:
        open_ = np.flatnonzero(~found)
        if pair.is_heavy and len(open_):
            places = pa.array(open_)
            left, right = (old[0], old[1].take(places)), (new[0], new[1].take(places))
            found[open_] = _compare_in_batches(
                left, right, [pair], rows_max=_rows_max_of(pair, new[0])
            )
    return found


def _compare_in_batches(
    old: tuple[Table, pa.Array],
    new: tuple[Table, pa.Array],
    columns: Sequence[ColumnPair],
    *,
    rows_max: int,
) -> Mask:
    if not columns or not len(new[1]):
        return np.zeros(len(new[1]), np.bool_)
    known = [pair.old for pair in columns if pair.old is not None]
    parts = []
    for start in range(0, len(new[1]), rows_max):
        theirs = new[0].take(new[1][start : start + rows_max], columns=[p.new for p in columns])
        ours = old[0].take(old[1][start : start + rows_max], columns=known) if known else theirs
        parts.append(compare_rows(ours, theirs, columns))
    return np.concatenate(parts)


def _rows_max_of(pair: ColumnPair, table: Table) -> int:
    return BLOBS_AT_ONCE if is_blob(table.schema.field(pair.new)) else VECTORS_AT_ONCE

"""Which rows of two tables differ, column by column; vectors and blobs last, and only if needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.type_pairs import ColumnPair
from omnigraph.rows.value_conversion import convert_values
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.storage.tables.table_reader import Table

# Rows of which a heavy column is in memory at once: a vector is kilobytes, a blob may be megabytes.
VECTORS_AT_ONCE: Final = 4096
BLOBS_AT_ONCE: Final = 64
Mask: TypeAlias = npt.NDArray[np.bool_]

# Numbers are compared as bits, so that zeros keep their signs.
_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


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

    `known` are the rows whose light columns were found to differ already, if they were compared.
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


def compare_columns(left: pa.ChunkedArray | pa.Array, right: pa.ChunkedArray | pa.Array) -> Mask:
    """A mask of the rows in which two columns of one length differ.

    Values of another type are compared as those of the right column: what it cannot hold differs.
    """
    ours, theirs = _combine_chunks(left), _combine_chunks(right)
    assert len(ours) == len(theirs), f"{len(ours)} and {len(theirs)} rows"
    is_there = _to_mask(ours.is_valid())
    found: Mask = np.not_equal(is_there, _to_mask(theirs.is_valid()))
    if ours.type != theirs.type:
        ours = convert_values(ours, theirs.type)
        found |= is_there & _to_mask(ours.is_null())
    both = np.flatnonzero(is_there & ~found)
    if len(both):
        found[both] = _compare_values(ours.take(pa.array(both)), theirs.take(pa.array(both)))
    return found


def _compare_values(left: pa.Array, right: pa.Array) -> Mask:
    """The same for columns without nulls."""
    kind = left.type
    if pa.types.is_fixed_size_list(kind):
        elements = compare_columns(pc.list_flatten(left), pc.list_flatten(right))
        by_row: Mask = np.logical_or.reduce(elements.reshape(len(left), -1), axis=1)
        return by_row
    if pa.types.is_list(kind):
        return _compare_lists(left, right)
    if kind in _BITS:
        return _compare_numbers(left, right)
    return _to_mask(pc.not_equal(left, right))


def _compare_numbers(left: pa.Array, right: pa.Array) -> Mask:
    bits = _BITS[left.type]
    found = _to_mask(pc.not_equal(left.view(bits), right.view(bits)))
    return found & ~(_to_mask(pc.is_nan(left)) & _to_mask(pc.is_nan(right)))


def _compare_lists(left: pa.Array, right: pa.Array) -> Mask:
    found = _to_mask(pc.not_equal(pc.list_value_length(left), pc.list_value_length(right)))
    alike = np.flatnonzero(~found)
    ours, theirs = left.take(pa.array(alike)), right.take(pa.array(alike))
    elements = compare_columns(pc.list_flatten(ours), pc.list_flatten(theirs))
    rows = pc.list_parent_indices(ours).to_numpy()[elements]
    found[alike[rows]] = True
    return found


def _combine_chunks(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _to_mask(values: pa.Array) -> Mask:
    found: Mask = values.to_numpy(zero_copy_only=False).astype(np.bool_)
    return found

"""Which rows of two columns of one type do not hold the same value.

A null is not an empty text, lists are compared element by element, a NaN is the same as any other,
and both zeros are not.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask: TypeAlias = npt.NDArray[np.bool_]

# Numbers are compared as bits, so that zeros keep their signs.
_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def compare_columns(left: pa.ChunkedArray | pa.Array, right: pa.ChunkedArray | pa.Array) -> Mask:
    """A mask of the rows in which two columns of equal type and length differ."""
    ours, theirs = _combine_chunks(left), _combine_chunks(right)
    assert ours.type == theirs.type, f"{ours.type} and {theirs.type}"
    assert len(ours) == len(theirs), f"{len(ours)} and {len(theirs)} rows"
    is_there = _to_mask(ours.is_valid())
    found: Mask = np.not_equal(is_there, _to_mask(theirs.is_valid()))
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

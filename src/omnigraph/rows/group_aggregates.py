"""Groups of rows and their aggregates.

Sums are exact and rounded once, so that neither the order of rows nor the files they lie in can
change an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.ast import AggregateFunction
from omnigraph.rows.comparison import Values, flatten_chunks, to_comparable, to_numpy
from omnigraph.rows.exact_sums import sum_floats, sum_integers
from omnigraph.rows.row_order import (
    Codes,
    RowIndices,
    compute_order_codes,
    encode_floats,
    encode_ordered_bytes,
)

# A table of all combinations of keys may be this many times larger than the rows, or this large.
RADIX_ROWS: Final = 4
RADIX_MAX: Final = 2**20


@dataclass(frozen=True, slots=True)
class Groups:
    """The group of each row, and the first row of each group."""

    of_row: RowIndices
    first_rows: RowIndices

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.first_rows)


def make_single_group(rows: int) -> Groups:
    """All rows in one group, which is there even without any row."""
    return Groups(np.zeros(rows, np.int64), np.zeros(1, np.int64))


def group_rows(keys: Sequence[Values], rows: int) -> Groups:
    """Rows with equal keys together; null is a key, and so is NaN. Without rows, no groups."""
    return group_by_codes([encode_group_keys(key) for key in keys], rows)


def group_by_codes(keys: Sequence[Codes], rows: int) -> Groups:
    """Rows with equal codes together; codes are integers from zero."""
    room = max(RADIX_ROWS * rows, RADIX_MAX)
    of_row: RowIndices = np.zeros(rows, np.int64)
    size = 1
    for key in keys:
        codes, count = key, int(key.max(initial=-1)) + 1
        if size * count > room:
            # Numbered anew, so that a product of many keys stays within 64 bits.
            of_row, size = _renumber_codes(of_row, size, room)
            codes, count = _renumber_codes(key, count, room)
        of_row = of_row * count + codes if size > 1 else codes.astype(np.int64, copy=False)
        size *= count
    if size > room:
        of_row, size = _renumber_codes(of_row, size, room)
    return _build_groups(of_row, size)


def encode_group_keys(key: Values) -> RowIndices:
    """Small integers that are equal exactly for equal keys."""
    key = to_comparable(key)
    if pa.types.is_floating(key.type):
        codes = encode_floats(to_numpy(key.cast(pa.float64())))
        key = pa.array(codes, mask=to_numpy(key.is_null()))
    elif pa.types.is_nested(key.type):
        key = encode_ordered_bytes(flatten_chunks(key))
    # Numbers from zero without gaps, in the order of first appearance.
    encoded = flatten_chunks(key).dictionary_encode(null_encoding="encode")
    return to_numpy(encoded.indices).astype(np.int64)


def aggregate_groups(function: AggregateFunction, values: Values, groups: Groups) -> pa.Array:
    """An aggregate of the values that are not null in each group; all but a count may be null."""
    of_known = groups.of_row
    if values.null_count:
        of_known = of_known[to_numpy(values.is_valid())]
    counts = np.bincount(of_known, minlength=groups.count)
    match function:
        case AggregateFunction.COUNT:
            return pa.array(counts, pa.int64())
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return _select_extremes(function, values, groups)
        case AggregateFunction.SUM | AggregateFunction.AVG:
            known = flatten_chunks(values).drop_null()
            divisors = np.maximum(counts, 1) if function is AggregateFunction.AVG else None
            sums = _sum_groups(known, of_known, groups.count, divisors)
            return pa.array(sums, pa.float64(), mask=counts == 0)
        case _:
            raise AssertionError(f"{function} needs all rows of a group")


def with_one_zero(values: Values) -> Values:
    """Both zeros as the same: they are equal, and which one a group has depends on its rows."""
    return (
        pc.add(values, pa.scalar(0, values.type)) if pa.types.is_floating(values.type) else values
    )


# ---- keys ----


def _renumber_codes(codes: Codes, size: int, room: int) -> tuple[RowIndices, int]:
    """The same codes, all below a size, without gaps, and how many there are."""
    if size <= room:
        is_there = np.zeros(size, np.bool_)
        is_there[codes] = True
        numbers = np.cumsum(is_there)
        return (numbers - 1).take(codes), int(numbers[-1]) if size else 0
    known, places = np.unique(codes, return_inverse=True)
    return places.astype(np.int64, copy=False), len(known)


def _build_groups(of_row: RowIndices, size: int) -> Groups:
    """The groups of codes below a size that may have gaps."""
    first_rows = np.full(size, -1, np.int64)
    # The last assignment to a place wins: that of its first row.
    first_rows[of_row[::-1]] = np.arange(len(of_row))[::-1]
    is_there = first_rows >= 0
    if is_there.all():
        return Groups(of_row, first_rows)
    return Groups((np.cumsum(is_there) - 1).take(of_row), first_rows[is_there])


# ---- aggregates ----


def _select_extremes(function: AggregateFunction, values: Values, groups: Groups) -> pa.Array:
    """The least or greatest values of groups that have any."""
    is_known = to_numpy(values.is_valid())
    codes, of_known = compute_order_codes(values)[is_known], groups.of_row[is_known]
    chosen = np.full(groups.count, -1, np.int64)
    if function is AggregateFunction.MIN:
        best = np.full(groups.count, np.iinfo(codes.dtype).max, codes.dtype)
        np.minimum.at(best, of_known, codes)
    else:
        best = np.full(groups.count, np.iinfo(codes.dtype).min, codes.dtype)
        np.maximum.at(best, of_known, codes)
    is_best = codes == best.take(of_known)
    chosen[of_known[is_best]] = np.flatnonzero(is_known)[is_best]
    return with_one_zero(flatten_chunks(values).take(pa.array(chosen, mask=chosen < 0)))


def _sum_groups(
    known: pa.Array, groups: RowIndices, count: int, divisors: RowIndices | None
) -> npt.NDArray[np.float64]:
    numbers = to_numpy(known)
    if pa.types.is_floating(known.type):
        return sum_floats(numbers.astype(np.float64), groups, count, divisors)
    return sum_integers(numbers, groups, count, divisors)

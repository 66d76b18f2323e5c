"""Aggregates that need all rows of a group at once: of distinct values, in an order, by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.ast import AggregateFunction
from omnigraph.query.typed_tree import PLAIN_AGGREGATES, AggregateValue, Value
from omnigraph.rows.comparison import Values, flatten_chunks, to_numpy
from omnigraph.rows.exact_sums import sum_floats
from omnigraph.rows.group_aggregates import (
    Groups,
    aggregate_groups,
    encode_group_keys,
    group_by_codes,
    with_one_zero,
)
from omnigraph.rows.row_order import (
    Codes,
    RowIndices,
    SortKey,
    ValuesKey,
    compute_order_codes,
    sort_row_indices,
)

_LIMB_BITS: Final = 32
_LIMB_MASK: Final = np.int64(2**_LIMB_BITS - 1)
_HALF: Final = 2**31
_HALFWAY: Final = 0.5


def is_whole_aggregate(call: AggregateValue) -> bool:
    """Whether an aggregate needs all rows of a group at once."""
    return call.is_distinct or call.function not in PLAIN_AGGREGATES


def read_fraction(value: Value) -> float | None:
    """What `percentile` is given; nothing is at a fraction that is not from 0 to 1."""
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


@dataclass(frozen=True, slots=True)
class GroupedValues:
    """The argument of an aggregate at each row, with the group of the row.

    `order` are the sort keys of the rows, and `fraction` is that of `percentile`; null is None.
    """

    values: Values
    groups: Groups
    order: Sequence[SortKey] = ()
    fraction: float | None = None

    def find_known(self) -> RowIndices:
        """The rows that have a value."""
        return np.flatnonzero(to_numpy(self.values.is_valid()))

    def sort_rows(self, places: RowIndices) -> RowIndices:
        """Some rows, those of a group together and in their order."""
        codes = [_CodesKey(self.groups.of_row.take(places))]
        keys = [_SelectedKey(each, places) for each in self.order]
        return places.take(sort_row_indices([*codes, *keys], len(places)))


def aggregate_whole_groups(call: AggregateValue, rows: GroupedValues) -> pa.Array:
    """An aggregate of each group."""
    values, groups = rows.values, rows.groups
    match call.function:
        case AggregateFunction.COLLECT:
            return _collect_values(call, rows)
        case AggregateFunction.MIN_BY | AggregateFunction.MAX_BY:
            return _choose_first(rows)
        case AggregateFunction.MEDIAN | AggregateFunction.PERCENTILE:
            is_median = call.function is AggregateFunction.MEDIAN
            return _compute_percentiles(rows, _HALFWAY if is_median else rows.fraction)
        case AggregateFunction.VARIANCE | AggregateFunction.STDDEV:
            return _compute_variances(call.function, rows)
        case AggregateFunction.COUNT_IF:
            is_true = to_numpy(pc.fill_null(flatten_chunks(values), False))
            return pa.array(np.bincount(groups.of_row[is_true], minlength=groups.count))
        case AggregateFunction.EVERY | AggregateFunction.SOME:
            return _fold_truths(call.function, rows)
        case AggregateFunction.TOTAL:
            return _add_integers(rows)
        case AggregateFunction.MODE:
            return _find_modes(rows)
        case _ if call.is_distinct:
            places = _select_distinct(rows, rows.find_known())
            kept = Groups(groups.of_row.take(places), groups.first_rows)
            return aggregate_groups(call.function, values.take(pa.array(places)), kept)
        case _:
            return aggregate_groups(call.function, values, groups)


@dataclass(frozen=True, slots=True)
class _CodesKey:
    """Integers to sort by."""

    codes: Codes
    is_descending: bool = False

    def compute_codes(self, places: RowIndices | None) -> list[Codes]:
        return [self.codes if places is None else self.codes.take(places)]


@dataclass(frozen=True, slots=True)
class _SelectedKey:
    """A key of some of the rows."""

    key: SortKey
    rows: RowIndices

    @property
    def is_descending(self) -> bool:
        return self.key.is_descending

    def compute_codes(self, places: RowIndices | None) -> list[Codes]:
        return self.key.compute_codes(self.rows if places is None else self.rows.take(places))


# ---- values in an order ----


def _collect_values(call: AggregateValue, rows: GroupedValues) -> pa.Array:
    places = rows.sort_rows(rows.find_known())
    if call.is_distinct:
        places = _select_distinct(rows, places)
    of_row = rows.groups.of_row.take(places)
    counts = np.bincount(of_row, minlength=rows.groups.count)
    if call.limit is not None:
        starts = np.append(0, np.cumsum(counts))[:-1]
        places = places[np.arange(len(places)) - starts.take(of_row) < call.limit]
        counts = np.minimum(counts, call.limit)
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    values = with_one_zero(flatten_chunks(rows.values).take(pa.array(places)))
    return pa.ListArray.from_arrays(offsets, values)


def _select_distinct(rows: GroupedValues, places: RowIndices) -> RowIndices:
    """Of rows of one group with equal values, the first; the order stays."""
    codes = encode_group_keys(rows.values.take(pa.array(places)))
    same = group_by_codes([rows.groups.of_row.take(places), codes], len(places))
    # Groups come in the order of their codes, which is that of another group's values.
    return places.take(np.sort(same.first_rows))


def _choose_first(rows: GroupedValues) -> pa.Array:
    """The value of the first row of each group whose first key is known."""
    first = rows.order[0]
    assert isinstance(first, ValuesKey), "only values say which of them are null"
    places = rows.sort_rows(np.flatnonzero(to_numpy(first.values.is_valid())))
    of_row = rows.groups.of_row.take(places)
    chosen = np.full(rows.groups.count, -1, np.int64)
    # The last assignment to a place wins: that of its first row.
    chosen[of_row[::-1]] = places[::-1]
    return with_one_zero(flatten_chunks(rows.values).take(pa.array(chosen, mask=chosen < 0)))


def _find_modes(rows: GroupedValues) -> pa.Array:
    """The most frequent value of each group; of several, the least."""
    known = rows.find_known()
    values = flatten_chunks(rows.values).take(pa.array(known))
    of_row = rows.groups.of_row.take(known)
    same = group_by_codes([of_row, encode_group_keys(values)], len(known))
    counts = np.bincount(same.of_row, minlength=same.count)
    owners = of_row.take(same.first_rows)
    order = compute_order_codes(values).take(same.first_rows)
    best = np.lexsort((order, -counts, owners))[::-1]
    chosen = np.full(rows.groups.count, -1, np.int64)
    chosen[owners.take(best)] = same.first_rows.take(best)
    return with_one_zero(values.take(pa.array(chosen, mask=chosen < 0)))


# ---- numbers ----


def _compute_percentiles(rows: GroupedValues, fraction: float | None) -> pa.Array:
    """The value at a fraction of the way through the sorted ones of each group."""
    count = rows.groups.count
    if fraction is None:
        return pa.nulls(count, pa.float64())
    known = rows.find_known()
    values = flatten_chunks(rows.values).take(pa.array(known))
    of_row = rows.groups.of_row.take(known)
    numbers = _to_floats(values).take(np.lexsort((compute_order_codes(values), of_row)))
    sizes = np.bincount(of_row, minlength=count)
    starts = np.append(0, np.cumsum(sizes))[:-1]
    at = fraction * np.maximum(sizes - 1, 0)
    below = np.floor(at).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(sizes - 1, 0))
    if not len(numbers):
        return pa.nulls(count, pa.float64())
    last = len(numbers) - 1
    low = numbers.take(np.minimum(starts + below, last))
    high = numbers.take(np.minimum(starts + above, last))
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.where(above == below, low, low + (high - low) * (at - below))
    return pa.array(found + 0.0, mask=(sizes == 0) | ~np.isfinite(found))


def _compute_variances(function: AggregateFunction, rows: GroupedValues) -> pa.Array:
    """The mean square distance from the mean, of a sample; null of fewer than two values."""
    known = rows.find_known()
    numbers = _to_floats(flatten_chunks(rows.values).take(pa.array(known)))
    of_row, count = rows.groups.of_row.take(known), rows.groups.count
    sizes = np.bincount(of_row, minlength=count)
    means = sum_floats(numbers, of_row, count, np.maximum(sizes, 1))
    with np.errstate(invalid="ignore", over="ignore"):
        squares = (numbers - means.take(of_row)) ** 2
        found = sum_floats(squares, of_row, count, np.maximum(sizes - 1, 1))
        if function is AggregateFunction.STDDEV:
            found = np.sqrt(found)
    return pa.array(found, mask=(sizes <= 1) | ~np.isfinite(found))


def _to_floats(values: pa.Array) -> npt.NDArray[np.float64]:
    return to_numpy(values).astype(np.float64)


def _add_integers(rows: GroupedValues) -> pa.Array:
    """Exact sums; those beyond 64 bits are null."""
    known = rows.find_known()
    of_row, count = rows.groups.of_row.take(known), rows.groups.count
    values = to_numpy(flatten_chunks(rows.values).take(pa.array(known)))
    if values.dtype != np.uint64:
        values = values.astype(np.int64, copy=False)
    high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(high, of_row, (values >> values.dtype.type(_LIMB_BITS)).astype(np.int64))
    np.add.at(low, of_row, (values & values.dtype.type(_LIMB_MASK)).astype(np.int64))
    high += low >> _LIMB_BITS
    is_beyond = (high < -_HALF) | (high >= _HALF)
    sums = (high << _LIMB_BITS) | (low & _LIMB_MASK)
    is_empty = np.bincount(of_row, minlength=count) == 0
    return pa.array(sums, mask=is_beyond | is_empty)


def _fold_truths(function: AggregateFunction, rows: GroupedValues) -> pa.Array:
    """The conjunction or the disjunction of the truths of each group; null of no rows."""
    deciding = function is AggregateFunction.SOME
    values, groups = flatten_chunks(rows.values), rows.groups

    def has(is_kind: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (
            np.bincount(groups.of_row[is_kind], minlength=groups.count) > 0
        )
        return found

    is_valid = to_numpy(values.is_valid())
    truths = to_numpy(pc.fill_null(values, not deciding))
    is_decided = has(is_valid & (truths == deciding))
    is_unknown = has(~is_valid) | ~has(np.ones(len(values), np.bool_))
    return pa.array(np.where(is_decided, deciding, not deciding), mask=~is_decided & is_unknown)

"""Groups of rows and their aggregates.

Sums are exact and rounded once, so that neither the order of rows nor the files they lie in can
change an answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.exact import Values, flat, numpy_of, plain
from omnigraph.execution.order import Places, float_codes, floats_of_codes, ordered_bytes
from omnigraph.query.ast import AggregateFunction

_LOW_BITS = 32
_LOW_MASK = 2**_LOW_BITS - 1


@dataclass(frozen=True, slots=True)
class Groups:
    """The group of each row, and the first row of each group."""

    of_row: Places
    first_rows: Places

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.first_rows)


def one_group(rows: int) -> Groups:
    """All rows in one group, which is there even without any row."""
    return Groups(np.zeros(rows, np.int64), np.zeros(1, np.int64))


def grouped(keys: Sequence[Values], rows: int) -> Groups:
    """Rows with equal keys together; null is a key, and so is NaN. Without rows, no groups."""
    of_row: Places = np.zeros(rows, np.int64)
    for number, key in enumerate(keys):
        codes = _group_codes(key)
        if number:
            # Numbered anew after each key, so that the product stays within 64 bits.
            codes = _dense(pa.array(of_row * (codes.max(initial=0) + 1) + codes))
        of_row = codes
    first_rows: Places = np.zeros(of_row.max(initial=-1) + 1, np.int64)
    # The last assignment to a place wins: that of its first row.
    first_rows[of_row[::-1]] = np.arange(rows)[::-1]
    return Groups(of_row, first_rows)


def aggregated(function: AggregateFunction, values: Values, groups: Groups) -> pa.Array:
    """An aggregate of the values that are not null in each group; all but a count may be null."""
    of_known = groups.of_row
    if values.null_count:
        of_known = of_known[numpy_of(values.is_valid())]
    counts = np.bincount(of_known, minlength=groups.count)
    match function:
        case AggregateFunction.COUNT:
            return pa.array(counts, pa.int64())
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return _extremes(function, values, groups)
        case AggregateFunction.SUM | AggregateFunction.AVG:
            known = flat(values).drop_null()
            sums = _sums(known, of_known, counts)
            if function is AggregateFunction.AVG:
                sums = sums / np.maximum(counts, 1)
            return pa.array(sums, pa.float64(), mask=counts == 0)
        case _:
            assert_never(function)


# ---- keys ----


def _group_codes(key: Values) -> Places:
    """Small integers that are equal exactly for equal keys."""
    key = plain(key)
    if pa.types.is_floating(key.type):
        codes = float_codes(numpy_of(key.cast(pa.float64())))
        key = pa.array(codes, mask=numpy_of(key.is_null()))
    elif pa.types.is_nested(key.type):
        key = ordered_bytes(flat(key))
    return _dense(flat(key))


def _dense(values: pa.Array) -> Places:
    """Numbers from zero without gaps, in the order of first appearance."""
    return numpy_of(values.dictionary_encode(null_encoding="encode").indices).astype(np.int64)


# ---- aggregates ----


def _extremes(function: AggregateFunction, values: Values, groups: Groups) -> pa.Array:
    kind = values.type
    values = plain(values)
    is_float = pa.types.is_floating(kind)
    if is_float:
        # To Arrow, NaN is no value; among codes it is the greatest.
        codes = float_codes(numpy_of(values.cast(pa.float64())))
        values = pa.array(codes, mask=numpy_of(values.is_null()))
    table = pa.table({"group": groups.of_row, "value": values})
    found = table.group_by("group").aggregate([("value", function.value)])
    extremes = found[f"value_{function.value}"].combine_chunks()
    # A group without any row is not among them; the only such group is alone.
    places = np.full(groups.count, -1)
    places[found["group"].to_numpy()] = np.arange(len(found))
    chosen = extremes.take(pa.array(places, mask=places < 0))
    if not is_float:
        return chosen.cast(kind)
    numbers = floats_of_codes(numpy_of(chosen))
    return pa.array(numbers, mask=numpy_of(chosen.is_null())).cast(kind)


def _sums(
    known: pa.Array, groups: Places, counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    if not pa.types.is_floating(known.type):
        return _integer_sums(numpy_of(known), groups, len(counts))
    # Few groups have small numbers, which are sorted much faster.
    numbers = groups.astype(np.uint16) if len(counts) <= 2**16 else groups
    order = np.argsort(numbers, kind="stable")
    return _float_sums(numpy_of(known)[order].astype(np.float64), counts)


def _integer_sums(values: npt.NDArray[Any], groups: Places, count: int) -> npt.NDArray[np.float64]:
    if values.dtype != np.uint64:
        values = values.astype(np.int64)
    # Two halves: below 2**29 rows neither overflows, and nor does their sum where it is small.
    high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(high, groups, (values >> values.dtype.type(_LOW_BITS)).astype(np.int64))
    np.add.at(low, groups, (values & values.dtype.type(_LOW_MASK)).astype(np.int64))
    is_small = np.abs(high) < 2**29
    sums = np.where(is_small, (high << _LOW_BITS) + low, 0).astype(np.float64)
    for place in np.flatnonzero(~is_small):
        sums[place] = float((int(high[place]) << _LOW_BITS) + int(low[place]))
    return sums


def _float_sums(
    values: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The sums of consecutive runs of floats."""
    ends = np.cumsum(counts)
    starts = ends - counts
    sums = np.zeros(len(counts), np.float64)
    sums[counts == 1] = values[starts[counts == 1]]
    pairs = starts[counts == 2]
    with np.errstate(over="ignore", invalid="ignore"):
        # One addition rounds once.
        sums[counts == 2] = values[pairs] + values[pairs + 1]
    for place in np.flatnonzero(counts > 2):
        sums[place] = _float_sum(values[starts[place] : ends[place]].tolist())
    return sums


def _float_sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except ValueError:
        return math.nan
    except OverflowError:
        total = sum(map(Fraction, values), Fraction())
        try:
            return float(total)
        except OverflowError:
            return math.inf if total > 0 else -math.inf

"""Numbers of matches and sums of values at nodes or rows: exact integers that never wrap.

Every array comes with a bound of its magnitude. Where a bound says that a product or a sum might
leave 64 bits, it is computed in floats first, and refused if it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.optimizer.factor_trees import PartialAggregate, PartialKind
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.execution.sources.topology.topology_columns import (
    DenseColumn,
    NumberColumn,
    TextColumn,
)
from omnigraph.rows.row_order import decode_floats, encode_floats

Integers: TypeAlias = npt.NDArray[Any]  # Any: integers of any width, or Booleans as 0 and 1

# Float arithmetic is wrong by less than the room above this.
CHECKED_MAX: Final = 2**62
NARROW_MAX: Final = 2**31 - 1
SMALLEST: Final = np.iinfo(np.int64).min
GREATEST: Final = np.iinfo(np.int64).max
_SIGN_BIT = np.uint64(2**63)


class IntOverflowError(Exception):
    """A sum does not fit 64 bits."""


class CountOverflowError(IntOverflowError):
    """A number of matches does not fit 64 bits."""


@dataclass(frozen=True, slots=True)
class CheckedInts:
    """Integers that are added up, none of them beyond the bound."""

    values: Integers
    bound: int

    def take(self, places: RowIndices | DenseIds) -> CheckedInts:
        """The integers at some places."""
        return CheckedInts(self.values.take(places), self.bound)

    def cast_for_bound(self, bound: int) -> Integers:
        """The integers, wide enough for results up to a bound."""
        wanted = np.int32 if bound <= NARROW_MAX else np.int64
        return self.values.astype(wanted, copy=False)


@dataclass(frozen=True, slots=True)
class Weights:
    """What each node or row stands for: how often, and with which values; no counts means once.

    An extreme is meaningless where the count, or the number of known values, is zero.
    """

    counts: CheckedInts | None = None
    sums: Mapping[PartialAggregate, CheckedInts] = field(default_factory=dict)
    extremes: Mapping[PartialAggregate, npt.NDArray[np.int64]] = field(default_factory=dict)

    def take(self, places: RowIndices | DenseIds) -> Weights:
        """The weights at some places."""
        return Weights(
            None if self.counts is None else self.counts.take(places),
            {item: amount.take(places) for item, amount in self.sums.items()},
            {item: codes.take(places) for item, codes in self.extremes.items()},
        )

    def select_nonzero(self, places: RowIndices | DenseIds) -> Weights:
        """The weights at places where the count is not zero."""
        found = self.take(places)
        is_one = found.counts is not None and found.counts.bound == 1
        return Weights(None, found.sums, found.extremes) if is_one else found

    def expand_to(self, places: RowIndices | DenseIds, size: int) -> Weights:
        """The weights put at places among many others that stand for nothing."""

        def spread(amount: CheckedInts) -> CheckedInts:
            values = np.zeros(size, amount.values.dtype)
            values[places] = amount.values
            return CheckedInts(values, amount.bound)

        extremes: dict[PartialAggregate, npt.NDArray[np.int64]] = {}
        for item, codes in self.extremes.items():
            extremes[item] = np.full(size, identity_of(item), np.int64)
            extremes[item][places] = codes
        counts = self.counts or CheckedInts(np.ones(len(places), np.bool_), 1)
        sums = {item: spread(amount) for item, amount in self.sums.items()}
        return Weights(spread(counts), sums, extremes)

    def multiply(self, other: Weights) -> Weights:
        """The weights of pairs of independent parts."""
        counts = other.counts
        if self.counts is not None:
            with translate_overflow():
                counts = multiply_checked(self.counts, other.counts)
        sums = {item: multiply_checked(amount, other.counts) for item, amount in self.sums.items()}
        for item, amount in other.sums.items():
            sums[item] = multiply_checked(amount, self.counts)
        return Weights(counts, sums, {**self.extremes, **other.extremes})

    def apply_mask(self, mask: npt.NDArray[np.bool_] | None) -> Weights:
        """The same weights, and nothing where the mask is false."""
        if mask is None:
            return self
        return self.multiply(Weights(CheckedInts(mask, 1)))

    def without_unmatched(self) -> Weights:
        """The same weights, with no extreme where there is nothing."""
        if self.counts is None or not self.extremes:
            return self
        is_nothing = self.counts.values == 0
        extremes = {
            item: np.where(is_nothing, identity_of(item), codes)
            for item, codes in self.extremes.items()
        }
        return Weights(self.counts, self.sums, extremes)

    def sum_into(
        self,
        add: Callable[[CheckedInts], CheckedInts],
        choose: Callable[[PartialAggregate, npt.NDArray[np.int64]], npt.NDArray[np.int64]],
        count: Callable[[], CheckedInts],
    ) -> Weights:
        """The weights of others, to which each of these is added, or counted if it has no count."""
        cleaned = self.without_unmatched()
        with translate_overflow():
            counts = count() if self.counts is None else add(self.counts)
        return Weights(
            counts,
            {item: add(amount) for item, amount in cleaned.sums.items()},
            {item: choose(item, codes) for item, codes in cleaned.extremes.items()},
        )


def concatenate_weights(parts: Sequence[tuple[Weights, int]]) -> Weights:
    """The weights of rows one after the other, each with how many rows there are."""
    weights = [each for each, _ in parts]
    counts = None
    if any(each.counts is not None for each in weights):
        counts = _concatenate_ints(
            each.counts or CheckedInts(np.ones(rows, np.int64), 1) for each, rows in parts
        )
    return Weights(
        counts,
        {item: _concatenate_ints(each.sums[item] for each in weights) for item in weights[0].sums},
        {
            item: np.concatenate([each.extremes[item] for each in weights])
            for item in weights[0].extremes
        },
    )


def _concatenate_ints(amounts: Iterable[CheckedInts]) -> CheckedInts:
    known = list(amounts)
    bound = max(each.bound for each in known)
    return CheckedInts(np.concatenate([each.values for each in known]), bound)


@contextmanager
def translate_overflow() -> Iterator[None]:
    """What is too large here is a number of matches."""
    try:
        yield
    except IntOverflowError as failure:
        raise CountOverflowError from failure


def identity_of(item: PartialAggregate) -> int:
    """What changes no extreme."""
    return GREATEST if item.kind is PartialKind.MIN else SMALLEST


def multiply_checked(left: CheckedInts, right: CheckedInts | None) -> CheckedInts:
    """Both multiplied, place by place."""
    if right is None:
        return left
    bound = left.bound * right.bound
    if bound >= CHECKED_MAX:
        shadow = np.multiply(left.values, right.values, dtype=np.float64)
        bound = require_in_range(float(np.abs(shadow).max(initial=0.0)))
    return CheckedInts(left.cast_for_bound(bound) * right.cast_for_bound(bound), bound)


def require_in_range(magnitude: float) -> int:
    """A bound that a float gives; refused if it is beyond 64 bits."""
    if magnitude >= CHECKED_MAX:
        raise IntOverflowError
    # A float this large may be below what it stands for, by far less than this.
    return min(int(magnitude * (1 + 2**-20)) + 1, CHECKED_MAX)


def add_at(amount: CheckedInts, places: RowIndices, count: int, most: int) -> CheckedInts:
    """Amounts added up at places, at most so many at each."""
    bound = amount.bound * most
    if bound >= CHECKED_MAX:
        shadow = np.zeros(count, np.float64)
        np.add.at(shadow, places, np.abs(amount.values.astype(np.float64)))
        bound = require_in_range(float(shadow.max(initial=0.0)))
    sums = np.zeros(count, np.int64)
    np.add.at(sums, places, amount.values.astype(np.int64, copy=False))
    return CheckedInts(sums, bound)


def choose_at(
    item: PartialAggregate, codes: npt.NDArray[np.int64], places: RowIndices, count: int
) -> npt.NDArray[np.int64]:
    """The least or greatest code at each place."""
    found = np.full(count, identity_of(item), np.int64)
    choose = np.minimum if item.kind is PartialKind.MIN else np.maximum
    choose.at(found, places, codes)
    return found


def to_checked_ints(column: DenseColumn, at: DenseIds | None) -> CheckedInts:
    """Integers to be added up, with zero for nulls."""
    assert isinstance(column, NumberColumn)
    numbers = column.numbers
    bound = max(abs(int(numbers.min(initial=0))), abs(int(numbers.max(initial=0))))
    if bound >= CHECKED_MAX:
        raise IntOverflowError
    return CheckedInts(column.get_numbers(at).astype(np.int64, copy=False), bound)


def encode_order(column: DenseColumn, at: DenseIds | None) -> npt.NDArray[np.int64]:
    """Integers that compare as the values do; any for nulls."""
    if isinstance(column, TextColumn):
        codes = column.get_codes(at)
        if not len(column.texts):
            return np.zeros(len(codes), np.int64)
        # A null has the last code; callers mask it.
        return column.code_ranks.take(codes, mode="wrap").astype(np.int64)
    assert isinstance(column, NumberColumn)
    numbers = column.get_numbers(at)
    if numbers.dtype.kind == "f":
        return encode_floats(numbers.astype(np.float64))
    if numbers.dtype == np.uint64:
        return (numbers ^ _SIGN_BIT).view(np.int64)
    return numbers.astype(np.int64)


def decode_order(
    column: DenseColumn, codes: npt.NDArray[np.int64], is_null: npt.NDArray[np.bool_]
) -> pa.Array:
    """The values that codes stand for, of the type of the column."""
    if isinstance(column, TextColumn):
        if is_null.all():
            return pa.nulls(len(codes), column.kind)
        ranks = column.code_ranks
        by_rank = np.empty(len(ranks), np.int32)
        by_rank[ranks] = np.arange(len(by_rank), dtype=np.int32)
        places = by_rank.take(np.where(is_null, 0, codes))
        return column.dictionary.take(pa.array(places, mask=is_null)).cast(column.kind)
    assert isinstance(column, NumberColumn)
    codes = np.where(is_null, 0, codes)
    dtype = column.dtype
    if dtype.kind == "f":
        numbers = decode_floats(codes).astype(dtype)
    elif dtype == np.uint64:
        numbers = codes.view(np.uint64) ^ _SIGN_BIT
    else:
        numbers = codes.astype(dtype)
    found = pa.array(numbers, mask=is_null)
    return found if found.type == column.kind else found.view(column.kind)

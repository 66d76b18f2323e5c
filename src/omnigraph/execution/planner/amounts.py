"""Numbers of matches and sums of values at nodes or rows: exact integers that never wrap.

Every array comes with a bound of its magnitude. Where a bound says that a product or a sum might
leave 64 bits, it is computed in floats first, and refused if it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.planner.trees import Item, Kind
from omnigraph.execution.source import Numbers, Places

Integers: TypeAlias = npt.NDArray[Any]  # Any: integers of any width, or Booleans as 0 and 1

# Float arithmetic is wrong by less than the room above this.
AMOUNT_MAX: Final = 2**62
NARROW_MAX: Final = 2**31 - 1
SMALLEST: Final = np.iinfo(np.int64).min
GREATEST: Final = np.iinfo(np.int64).max


class AmountTooLarge(Exception):
    """A sum does not fit 64 bits."""


class CountTooLarge(AmountTooLarge):
    """A number of matches does not fit 64 bits."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Integers that are added up, none of them beyond the bound."""

    values: Integers
    bound: int

    def take(self, places: Places | Numbers) -> Amount:
        """The integers at some places."""
        return Amount(self.values.take(places), self.bound)

    def fitting(self, bound: int) -> Integers:
        """The integers, wide enough for results up to a bound."""
        wanted = np.int32 if bound <= NARROW_MAX else np.int64
        return self.values.astype(wanted, copy=False)


@dataclass(frozen=True, slots=True)
class Weights:
    """What each node or row stands for: how often, and with which values; no counts means once.

    An extreme is meaningless where the count, or the number of known values, is zero.
    """

    counts: Amount | None = None
    sums: Mapping[Item, Amount] = field(default_factory=dict)
    extremes: Mapping[Item, npt.NDArray[np.int64]] = field(default_factory=dict)

    def take(self, places: Places | Numbers) -> Weights:
        """The weights at some places."""
        return Weights(
            None if self.counts is None else self.counts.take(places),
            {item: amount.take(places) for item, amount in self.sums.items()},
            {item: codes.take(places) for item, codes in self.extremes.items()},
        )

    def nonzero(self, places: Places | Numbers) -> Weights:
        """The weights at places where the count is not zero."""
        found = self.take(places)
        is_one = found.counts is not None and found.counts.bound == 1
        return Weights(None, found.sums, found.extremes) if is_one else found

    def scattered(self, places: Places | Numbers, size: int) -> Weights:
        """The weights put at places among many others that stand for nothing."""

        def spread(amount: Amount) -> Amount:
            values = np.zeros(size, amount.values.dtype)
            values[places] = amount.values
            return Amount(values, amount.bound)

        extremes: dict[Item, npt.NDArray[np.int64]] = {}
        for item, codes in self.extremes.items():
            extremes[item] = np.full(size, nothing(item), np.int64)
            extremes[item][places] = codes
        counts = self.counts or Amount(np.ones(len(places), np.bool_), 1)
        sums = {item: spread(amount) for item, amount in self.sums.items()}
        return Weights(spread(counts), sums, extremes)

    def times(self, other: Weights) -> Weights:
        """The weights of pairs of independent parts."""
        counts = other.counts
        if self.counts is not None:
            with counting():
                counts = product(self.counts, other.counts)
        sums = {item: product(amount, other.counts) for item, amount in self.sums.items()}
        for item, amount in other.sums.items():
            sums[item] = product(amount, self.counts)
        return Weights(counts, sums, {**self.extremes, **other.extremes})

    def where(self, mask: npt.NDArray[np.bool_] | None) -> Weights:
        """The same weights, and nothing where the mask is false."""
        if mask is None:
            return self
        return self.times(Weights(Amount(mask, 1)))

    def without_strangers(self) -> Weights:
        """The same weights, with no extreme where there is nothing."""
        if self.counts is None or not self.extremes:
            return self
        is_nothing = self.counts.values == 0
        extremes = {
            item: np.where(is_nothing, nothing(item), codes)
            for item, codes in self.extremes.items()
        }
        return Weights(self.counts, self.sums, extremes)

    def summed(
        self,
        add: Callable[[Amount], Amount],
        choose: Callable[[Item, npt.NDArray[np.int64]], npt.NDArray[np.int64]],
        count: Callable[[], Amount],
    ) -> Weights:
        """The weights of others, to which each of these is added, or counted if it has no count."""
        cleaned = self.without_strangers()
        with counting():
            counts = count() if self.counts is None else add(self.counts)
        return Weights(
            counts,
            {item: add(amount) for item, amount in cleaned.sums.items()},
            {item: choose(item, codes) for item, codes in cleaned.extremes.items()},
        )


@contextmanager
def counting() -> Iterator[None]:
    """What is too large here is a number of matches."""
    try:
        yield
    except AmountTooLarge as failure:
        raise CountTooLarge from failure


def nothing(item: Item) -> int:
    """What changes no extreme."""
    return GREATEST if item.kind is Kind.MIN else SMALLEST


def product(left: Amount, right: Amount | None) -> Amount:
    """Both multiplied, place by place."""
    if right is None:
        return left
    bound = left.bound * right.bound
    if bound >= AMOUNT_MAX:
        shadow = np.multiply(left.values, right.values, dtype=np.float64)
        bound = checked(float(np.abs(shadow).max(initial=0.0)))
    return Amount(left.fitting(bound) * right.fitting(bound), bound)


def checked(magnitude: float) -> int:
    """A bound that a float gives; refused if it is beyond 64 bits."""
    if magnitude >= AMOUNT_MAX:
        raise AmountTooLarge
    # A float this large may be below what it stands for, by far less than this.
    return min(int(magnitude * (1 + 2**-20)) + 1, AMOUNT_MAX)


def added_at(amount: Amount, places: Places, count: int, most: int) -> Amount:
    """Amounts added up at places, at most so many at each."""
    bound = amount.bound * most
    if bound >= AMOUNT_MAX:
        shadow = np.zeros(count, np.float64)
        np.add.at(shadow, places, np.abs(amount.values.astype(np.float64)))
        bound = checked(float(shadow.max(initial=0.0)))
    sums = np.zeros(count, np.int64)
    np.add.at(sums, places, amount.values.astype(np.int64, copy=False))
    return Amount(sums, bound)


def chosen_at(
    item: Item, codes: npt.NDArray[np.int64], places: Places, count: int
) -> npt.NDArray[np.int64]:
    """The least or greatest code at each place."""
    found = np.full(count, nothing(item), np.int64)
    choose = np.minimum if item.kind is Kind.MIN else np.maximum
    choose.at(found, places, codes)
    return found

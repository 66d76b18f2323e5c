"""Rows with weights to groups with aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.groups import Groups, grouped_codes
from omnigraph.execution.planner.aggregation import Aggregation
from omnigraph.execution.planner.amounts import (
    AmountTooLarge,
    added_at,
    chosen_at,
    counting,
)
from omnigraph.execution.planner.rows import Rows
from omnigraph.execution.planner.trees import Item, Kind
from omnigraph.execution.planner.values import values_of_codes
from omnigraph.execution.reading import Reading
from omnigraph.execution.sums import float_sums, integer_sums
from omnigraph.execution.tail import Grouped
from omnigraph.execution.tail.keys import key_codes
from omnigraph.execution.topology import DenseColumn, NumberColumn, TextColumn, TopologySource
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.typed import AggregateValue, PropertyValue

_Floats: TypeAlias = npt.NDArray[np.float64]
_Codes: TypeAlias = npt.NDArray[Any]  # Any: integers of any width

# Whole numbers up to here are exact floats, and their halves multiply exactly.
_FLOAT_EXACT: Final = 2**53
_SPLITTER: Final = 2.0**27 + 1
_FLOAT_SAFE: Final = 2.0**900
# Integers in so small a range are their own codes.
_RANGE_MAX: Final = 2**20


class Grouping:
    """Collects rows of one aggregate, and groups them."""

    def __init__(self, wanted: Aggregation, determined: frozenset[str], reading: Reading) -> None:
        assert isinstance(reading.source, TopologySource)
        self._wanted = wanted
        self._reading = reading
        self._source = reading.source
        # What a group is told apart by: a variable, or else properties of one.
        self._numbered = sorted(wanted.identified - determined)
        self._coded = [
            key
            for key in wanted.keys
            if isinstance(key, PropertyValue)
            and key.variable not in wanted.identified
            and key.variable not in determined
        ]

    def compressed(self, rows: Rows) -> Rows:
        """The same rows with those together that cannot be told apart by any key."""
        if self._wanted.floats or rows.count <= 1:
            return rows
        self._reading.budget.check()
        numbers = [rows.batch.nodes[name] for name in sorted(rows.batch.nodes)]
        groups = grouped_codes(numbers, rows.count)
        return rows.together(groups)

    def grouped(self, rows: Rows, *, is_unique: bool) -> Grouped:
        """The groups; rows that are unique are groups by themselves."""
        groups = self._groups(rows.batch, is_unique=is_unique)
        firsts = Batch(1)
        if self._wanted.keys:
            firsts = rows.batch if groups is None else rows.batch.take(groups.first_rows)
        found = _Aggregates(rows, groups, self._source, self._reading)
        aggregates = {
            column.name: found.value(column.value)
            for column in self._wanted.columns
            if isinstance(column.value, AggregateValue)
        }
        return Grouped(self._wanted.columns, firsts, aggregates)

    def _groups(self, batch: Batch, *, is_unique: bool) -> Groups | None:
        """The groups of rows, or None if every row is one."""
        if not self._wanted.keys:
            return Groups(np.zeros(batch.num_rows, np.int64), np.zeros(1, np.int64))
        if is_unique:
            return None
        codes: list[_Codes] = [batch.nodes[name] for name in self._numbered]
        codes += [self._codes(key, batch) for key in self._coded]
        return grouped_codes(codes, batch.num_rows)

    def _codes(self, key: PropertyValue, batch: Batch) -> _Codes:
        """Integers from zero that are equal exactly for equal values."""
        numbers = batch.nodes[key.variable]
        column = self._source.nodes(self._reading.nodes_of[key.variable]).column(key.property)
        if isinstance(column, TextColumn):
            return column.codes_at(numbers) + 1
        if isinstance(column, NumberColumn) and column.dtype.kind in "iu":
            least, greatest = int(column.numbers.min(initial=0)), int(column.numbers.max(initial=0))
            if greatest - least < _RANGE_MAX:
                codes = (column.numbers_at(numbers) - least).astype(np.int64) + 1
                nulls = column.nulls_at(numbers)
                return codes if nulls is None else codes * ~nulls
        return key_codes(key, batch, self._reading)


@dataclass(frozen=True, slots=True)
class _Aggregates:
    rows: Rows
    groups: Groups | None
    source: TopologySource
    reading: Reading

    def value(self, call: AggregateValue) -> pa.Array:
        """An aggregate of each group."""
        argument = call.argument
        if not isinstance(argument, PropertyValue):
            return pa.array(self._counts(None), pa.int64())
        known = self._counts(Item(Kind.KNOWN, argument))
        match call.function:
            case AggregateFunction.COUNT:
                return pa.array(known, pa.int64())
            case AggregateFunction.SUM | AggregateFunction.AVG:
                is_mean = call.function is AggregateFunction.AVG
                sums = self._sums(argument, np.maximum(known, 1) if is_mean else None)
                return pa.array(sums, pa.float64(), mask=known == 0)
            case AggregateFunction.MIN | AggregateFunction.MAX:
                item = Item(Kind(call.function.value), argument)
                codes = self.rows.weights.extremes[item]
                if self.groups is not None:
                    codes = chosen_at(item, codes, self.groups.of_row, self.groups.count)
                return values_of_codes(self._column(argument), codes, known == 0)
            case _:
                assert_never(call.function)

    def _counts(self, item: Item | None) -> npt.NDArray[np.int64]:
        """How many matches, or how many of them with a known value, each group has."""
        weights, groups = self.rows.weights, self.groups
        amount = weights.counts if item is None else weights.sums.get(item, weights.counts)
        if groups is None:
            count = self.rows.batch.num_rows
            return np.ones(count, np.int64) if amount is None else amount.values.astype(np.int64)
        if amount is None:
            return np.bincount(groups.of_row, minlength=groups.count)
        with counting():
            most = max(len(groups.of_row), 1)
            return added_at(amount, groups.of_row, groups.count, most).values

    def _sums(self, argument: PropertyValue, divisors: npt.NDArray[np.int64] | None) -> _Floats:
        """The sums of the groups, or their means."""
        amount = self.rows.weights.sums.get(Item(Kind.SUM, argument))
        if amount is None:
            return self._float_sums(argument, divisors)
        places, count = self._places(len(amount.values))
        return integer_sums(amount.values, places, count, divisors)

    def _places(self, rows: int) -> tuple[npt.NDArray[np.int64], int]:
        """The group of each row, and how many there are."""
        if self.groups is None:
            return np.arange(rows), rows
        return self.groups.of_row, self.groups.count

    # ---- floats, which are only added up over rows ----

    def _float_sums(
        self, argument: PropertyValue, divisors: npt.NDArray[np.int64] | None
    ) -> _Floats:
        column = self._column(argument)
        assert isinstance(column, NumberColumn)
        numbers = self.rows.batch.nodes[argument.variable]
        values = column.numbers_at(numbers).astype(np.float64)
        nulls = column.nulls_at(numbers)
        if nulls is not None:
            values = np.where(nulls, 0.0, values)
        counts = self.rows.weights.counts
        places, count = self._places(len(values))
        parts = [values] if counts is None else list(_products(counts.values, values))
        together = np.concatenate([places] * len(parts))
        return float_sums(np.concatenate(parts), together, count, divisors)

    def _column(self, value: PropertyValue) -> DenseColumn:
        type_name = self.reading.nodes_of[value.variable]
        return self.source.nodes(type_name).column(value.property)


def _products(counts: _Codes, values: _Floats) -> Iterator[_Floats]:
    """Floats whose sums are those of values, each of them taken so many times."""
    is_finite = np.isfinite(values)
    sizes = np.abs(values[is_finite & (values != 0)])
    is_far = sizes.max(initial=1.0) > _FLOAT_SAFE or sizes.min(initial=1.0) < 1 / _FLOAT_SAFE
    if is_far or int(counts.max(initial=0)) > _FLOAT_EXACT:
        raise AmountTooLarge
    whole = counts.astype(np.float64)
    product = whole * values
    yield product
    with np.errstate(invalid="ignore"):
        high_count, low_count = _halves(whole)
        high, low = _halves(values)
        rest = low_count * low - (
            ((product - high_count * high) - low_count * high) - high_count * low
        )
    yield np.where(is_finite, rest, 0.0)


def _halves(values: _Floats) -> tuple[_Floats, _Floats]:
    """Two floats of half the digits, whose sum is the value."""
    scaled = values * _SPLITTER
    high = scaled - (scaled - values)
    return high, values - high

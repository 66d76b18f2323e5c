"""Rows with weights to groups with aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.checked_ints import (
    IntOverflowError,
    add_at,
    choose_at,
    decode_order,
    translate_overflow,
)
from omnigraph.execution.operators.group_operator import GroupedRows
from omnigraph.execution.operators.row_keys import compute_key_codes
from omnigraph.execution.operators.weighted_rows import WeightedRows
from omnigraph.execution.optimizer.aggregation_plan import Aggregation
from omnigraph.execution.optimizer.factor_trees import PartialAggregate, PartialKind
from omnigraph.execution.sources.topology.topology_columns import (
    DenseColumn,
    NumberColumn,
    TextColumn,
)
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.typed_tree import AggregateValue, PropertyValue
from omnigraph.rows.exact_sums import sum_floats, sum_integers
from omnigraph.rows.group_aggregates import Groups, group_by_codes

_Floats: TypeAlias = npt.NDArray[np.float64]
_Codes: TypeAlias = npt.NDArray[Any]  # Any: integers of any width

# Whole numbers up to here are exact floats, and their halves multiply exactly.
_FLOAT_EXACT: Final = 2**53
_SPLITTER: Final = 2.0**27 + 1
_FLOAT_SAFE: Final = 2.0**900
# Integers in so small a range are their own codes.
_RANGE_MAX: Final = 2**20


class GroupAggregator:
    """Collects rows of one aggregate, and groups them."""

    def __init__(
        self, wanted: Aggregation, determined: frozenset[str], reading: ExecutionContext
    ) -> None:
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

    def compress(self, rows: WeightedRows) -> WeightedRows:
        """The same rows with those together that cannot be told apart by any key."""
        if self._wanted.floats or rows.count <= 1:
            return rows
        self._reading.budget.check_interrupts()
        numbers = [rows.batch.nodes[name] for name in sorted(rows.batch.nodes)]
        groups = group_by_codes(numbers, rows.count)
        return rows.merge_groups(groups)

    def group_rows(self, rows: WeightedRows, *, is_unique: bool) -> GroupedRows:
        """The groups; rows that are unique are groups by themselves."""
        groups = self._find_groups(rows.batch, is_unique=is_unique)
        firsts = Batch(1)
        if self._wanted.keys:
            firsts = rows.batch if groups is None else rows.batch.take(groups.first_rows)
        found = _Aggregates(rows, groups, self._source, self._reading)
        aggregates = {
            column.name: found.compute_aggregate(column.value)
            for column in self._wanted.columns
            if isinstance(column.value, AggregateValue)
        }
        return GroupedRows(self._wanted.columns, firsts, aggregates)

    def _find_groups(self, batch: Batch, *, is_unique: bool) -> Groups | None:
        """The groups of rows, or None if every row is one."""
        if not self._wanted.keys:
            return Groups(np.zeros(batch.num_rows, np.int64), np.zeros(1, np.int64))
        if is_unique:
            return None
        codes: list[_Codes] = [batch.nodes[name] for name in self._numbered]
        codes += [self._encode_key(key, batch) for key in self._coded]
        return group_by_codes(codes, batch.num_rows)

    def _encode_key(self, key: PropertyValue, batch: Batch) -> _Codes:
        """Integers from zero that are equal exactly for equal values."""
        numbers = batch.nodes[key.variable]
        column = self._source.get_nodes(self._reading.nodes_of[key.variable]).get_column(
            key.property
        )
        if isinstance(column, TextColumn):
            return column.get_codes(numbers) + 1
        if isinstance(column, NumberColumn) and column.dtype.kind in "iu":
            least, greatest = int(column.numbers.min(initial=0)), int(column.numbers.max(initial=0))
            if greatest - least < _RANGE_MAX:
                codes = (column.get_numbers(numbers) - least).astype(np.int64) + 1
                nulls = column.get_nulls(numbers)
                return codes if nulls is None else codes * ~nulls
        return compute_key_codes(key, batch, self._reading)


@dataclass(frozen=True, slots=True)
class _Aggregates:
    rows: WeightedRows
    groups: Groups | None
    source: TopologySource
    context: ExecutionContext

    def compute_aggregate(self, call: AggregateValue) -> pa.Array:
        """An aggregate of each group."""
        argument = call.argument
        if not isinstance(argument, PropertyValue):
            return pa.array(self._compute_counts(None), pa.int64())
        known = self._compute_counts(PartialAggregate(PartialKind.KNOWN, argument))
        match call.function:
            case AggregateFunction.COUNT:
                return pa.array(known, pa.int64())
            case AggregateFunction.SUM | AggregateFunction.AVG:
                is_mean = call.function is AggregateFunction.AVG
                sums = self._compute_sums(argument, np.maximum(known, 1) if is_mean else None)
                return pa.array(sums, pa.float64(), mask=known == 0)
            case AggregateFunction.MIN | AggregateFunction.MAX:
                item = PartialAggregate(PartialKind(call.function.value), argument)
                codes = self.rows.weights.extremes[item]
                if self.groups is not None:
                    codes = choose_at(item, codes, self.groups.of_row, self.groups.count)
                return decode_order(self._get_column(argument), codes, known == 0)
            case _:
                assert_never(call.function)

    def _compute_counts(self, item: PartialAggregate | None) -> npt.NDArray[np.int64]:
        """How many matches, or how many of them with a known value, each group has."""
        weights, groups = self.rows.weights, self.groups
        amount = weights.counts if item is None else weights.sums.get(item, weights.counts)
        if groups is None:
            count = self.rows.batch.num_rows
            return np.ones(count, np.int64) if amount is None else amount.values.astype(np.int64)
        if amount is None:
            return np.bincount(groups.of_row, minlength=groups.count)
        with translate_overflow():
            most = max(len(groups.of_row), 1)
            return add_at(amount, groups.of_row, groups.count, most).values

    def _compute_sums(
        self, argument: PropertyValue, divisors: npt.NDArray[np.int64] | None
    ) -> _Floats:
        """The sums of the groups, or their means."""
        amount = self.rows.weights.sums.get(PartialAggregate(PartialKind.SUM, argument))
        if amount is None:
            return self._compute_float_sums(argument, divisors)
        places, count = self._find_row_groups(len(amount.values))
        return sum_integers(amount.values, places, count, divisors)

    def _find_row_groups(self, rows: int) -> tuple[npt.NDArray[np.int64], int]:
        """The group of each row, and how many there are."""
        if self.groups is None:
            return np.arange(rows), rows
        return self.groups.of_row, self.groups.count

    # ---- floats, which are only added up over rows ----

    def _compute_float_sums(
        self, argument: PropertyValue, divisors: npt.NDArray[np.int64] | None
    ) -> _Floats:
        column = self._get_column(argument)
        assert isinstance(column, NumberColumn)
        numbers = self.rows.batch.nodes[argument.variable]
        values = column.get_numbers(numbers).astype(np.float64)
        nulls = column.get_nulls(numbers)
        if nulls is not None:
            values = np.where(nulls, 0.0, values)
        counts = self.rows.weights.counts
        places, count = self._find_row_groups(len(values))
        parts = [values] if counts is None else list(_multiply_exactly(counts.values, values))
        together = np.concatenate([places] * len(parts))
        return sum_floats(np.concatenate(parts), together, count, divisors)

    def _get_column(self, value: PropertyValue) -> DenseColumn:
        type_name = self.context.nodes_of[value.variable]
        return self.source.get_nodes(type_name).get_column(value.property)


def _multiply_exactly(counts: _Codes, values: _Floats) -> Iterator[_Floats]:
    """Floats whose sums are those of values, each of them taken so many times."""
    is_finite = np.isfinite(values)
    sizes = np.abs(values[is_finite & (values != 0)])
    is_far = sizes.max(initial=1.0) > _FLOAT_SAFE or sizes.min(initial=1.0) < 1 / _FLOAT_SAFE
    if is_far or int(counts.max(initial=0)) > _FLOAT_EXACT:
        raise IntOverflowError
    whole = counts.astype(np.float64)
    product = whole * values
    yield product
    with np.errstate(invalid="ignore"):
        high_count, low_count = _split_halves(whole)
        high, low = _split_halves(values)
        rest = low_count * low - (
            ((product - high_count * high) - low_count * high) - high_count * low
        )
    yield np.where(is_finite, rest, 0.0)


def _split_halves(values: _Floats) -> tuple[_Floats, _Floats]:
    """Two floats of half the digits, whose sum is the value."""
    scaled = values * _SPLITTER
    high = scaled - (scaled - values)
    return high, values - high

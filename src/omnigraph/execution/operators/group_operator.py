"""Rows to groups, and their aggregates: from the values of rows, or from what rows stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.batch import (
    Batch,
    merge_groups,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.checked_ints import (
    IntOverflowError,
    Weights,
    add_at,
    choose_at,
    decode_order,
    translate_overflow,
)
from omnigraph.execution.operators.row_keys import RowKey, compute_key_codes, evaluate_rows
from omnigraph.execution.optimizer.aggregation_plan import Aggregation
from omnigraph.execution.optimizer.factor_trees import PartialAggregate, PartialKind
from omnigraph.execution.sources.topology.topology_columns import DenseColumn, NumberColumn
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.typed_reads import Column
from omnigraph.query.typed_tree import (
    AggregateValue,
    Expr,
    NodeValue,
    PropertyValue,
    SystemValue,
    is_never_null,
)
from omnigraph.rows.comparison import Values
from omnigraph.rows.evaluator import GroupColumns, evaluate_column, evaluate_constant, is_constant
from omnigraph.rows.exact_sums import sum_floats, sum_integers
from omnigraph.rows.group_aggregates import (
    Groups,
    aggregate_groups,
    group_by_codes,
    make_single_group,
    with_one_zero,
)
from omnigraph.rows.row_order import Codes, RowIndices, SortKey, ValuesKey
from omnigraph.rows.whole_aggregates import (
    GroupedValues,
    aggregate_whole_groups,
    is_whole_aggregate,
    read_fraction,
)

_Floats: TypeAlias = npt.NDArray[np.float64]

# For a row: its group, and a code and a value at a time.
_ROW_BYTES: Final = 24
# Whole numbers up to here are exact floats, and their halves multiply exactly.
_FLOAT_EXACT: Final = 2**53
_SPLITTER: Final = 2.0**27 + 1
_FLOAT_SAFE: Final = 2.0**900


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Groups: a row of the pattern for each, which has its keys, and its aggregates by column."""

    columns: tuple[Column, ...]
    first_rows: Batch
    aggregates: Mapping[str, pa.Array]

    @property
    def num_rows(self) -> int:
        """How many groups there are."""
        return self.first_rows.num_rows

    def get_key(self, name: str) -> Expr:
        """What a key column is computed from, at the first row of each group."""
        return next(column.value for column in self.columns if column.name == name)

    def take(self, places: RowIndices) -> GroupedRows:
        """Some groups, in the order of the places."""
        chosen = pa.array(places)
        return GroupedRows(
            self.columns,
            self.first_rows.take(places),
            {name: values.take(chosen) for name, values in self.aggregates.items()},
        )


def evaluate_groups(expr: Expr, groups: GroupedRows, context: ExecutionContext) -> Values:
    """The value of an expression over the columns of groups, at each of them."""

    def get_column(name: str) -> Values:
        if name in groups.aggregates:
            return groups.aggregates[name]
        return with_one_zero(evaluate_rows(groups.get_key(name), groups.first_rows, context))

    return evaluate_column(expr, GroupColumns(groups.num_rows, get_column), context.params)


class GroupAggregator:
    """Groups rows with weights, for one aggregate."""

    def __init__(
        self, wanted: Aggregation, determined: frozenset[str], context: ExecutionContext
    ) -> None:
        assert isinstance(context.source, TopologySource)
        self._wanted = wanted
        self._context = context
        self._source = context.source
        # What distinguishes groups: a variable, or else properties of one.
        self._numbered = sorted(wanted.identified - determined)
        self._coded = [
            key
            for key in wanted.keys
            if isinstance(key, PropertyValue)
            and key.variable not in wanted.identified
            and key.variable not in determined
        ]

    def compress(self, rows: Batch) -> Batch:
        """The same rows with those together that no key distinguishes."""
        if self._wanted.floats or rows.num_rows <= 1:
            return rows
        self._context.budget.check_interrupts()
        numbers = [rows.nodes[name] for name in sorted(rows.nodes)]
        return merge_groups(rows, group_by_codes(numbers, rows.num_rows))

    def group_rows(self, rows: Batch, *, is_unique: bool) -> GroupedRows:
        """The groups; rows that are unique are groups by themselves."""
        groups = self._find_groups(rows, is_unique=is_unique)
        aggregates = _WeightedAggregates(rows, groups, self._source, self._context)
        has_keys = bool(self._wanted.keys)
        return _build_groups(
            rows, groups, self._wanted.columns, aggregates.compute_aggregate, has_keys=has_keys
        )

    def _find_groups(self, batch: Batch, *, is_unique: bool) -> Groups | None:
        """The groups of rows, or None if every row is one."""
        if not self._wanted.keys:
            return make_single_group(batch.num_rows)
        if is_unique:
            return None
        codes: list[Codes] = [batch.nodes[name] for name in self._numbered]
        codes += [compute_key_codes(key, batch, self._context) for key in self._coded]
        return group_by_codes(codes, batch.num_rows)


def group_rows(batch: Batch, columns: Sequence[Column], context: ExecutionContext) -> GroupedRows:
    """The groups of rows with equal keys; without any key, all rows are one group."""
    keys = [each.value for each in columns if not isinstance(each.value, AggregateValue)]
    with context.budget.reserve((len(keys) + 1) * batch.num_rows * _ROW_BYTES):
        groups = make_single_group(batch.num_rows)
        if keys:
            codes = [compute_key_codes(key, batch, context) for key in keys]
            groups = group_by_codes(codes, batch.num_rows)
        compute = partial(compute_aggregate, batch=batch, groups=groups, context=context)
        return _build_groups(batch, groups, tuple(columns), compute, has_keys=bool(keys))


def _build_groups(
    batch: Batch,
    groups: Groups | None,
    columns: tuple[Column, ...],
    compute: Callable[[AggregateValue], pa.Array],
    *,
    has_keys: bool,
) -> GroupedRows:
    """The first row of each group with its aggregates; no groups means that each row is one."""
    firsts = Batch(1)
    if has_keys:
        firsts = replace(batch, outer=None, weights=None)
        firsts = firsts if groups is None else firsts.take(groups.first_rows)
    aggregates = {
        column.name: compute(column.value)
        for column in columns
        if isinstance(column.value, AggregateValue)
    }
    return GroupedRows(columns, firsts, aggregates)


def compute_aggregate(
    call: AggregateValue, *, batch: Batch, groups: Groups, context: ExecutionContext
) -> pa.Array:
    """An aggregate of each group, from the values of its rows."""
    context.budget.check_interrupts()
    if is_whole_aggregate(call):
        return _compute_whole_aggregate(call, batch, groups, context)
    if call.function is AggregateFunction.COUNT and is_never_null(call.argument):
        return pa.array(np.bincount(groups.of_row, minlength=groups.count), pa.int64())
    return aggregate_groups(call.function, evaluate_rows(call.argument, batch, context), groups)


def _compute_whole_aggregate(
    call: AggregateValue, batch: Batch, groups: Groups, context: ExecutionContext
) -> pa.Array:
    """An aggregate that needs all rows of a group at once."""
    argument = call.argument
    is_entity = isinstance(argument, NodeValue | SystemValue) and is_never_null(argument)
    if is_entity and call.function is AggregateFunction.COUNT:
        # Entities are distinct exactly if their numbers are; other aggregates return a value.
        values: Values = pa.array(compute_key_codes(argument, batch, context))
    else:
        values = evaluate_rows(argument, batch, context)
    fraction = None
    if call.fraction is not None:
        fraction = read_fraction(evaluate_constant(call.fraction, context.params))
    order = tuple(_iter_order_keys(call, batch, context))
    rows = GroupedValues(values, groups, order, fraction)
    with context.budget.reserve((len(order) + 2) * batch.num_rows * _ROW_BYTES):
        found = aggregate_whole_groups(call, rows)
    if call.function is AggregateFunction.COLLECT:
        # Held as long as the query: it is its result.
        context.budget.allocate(found.nbytes)
    return found


def _iter_order_keys(
    call: AggregateValue, batch: Batch, context: ExecutionContext
) -> Iterator[SortKey]:
    is_chosen = call.is_ordered and call.function is not AggregateFunction.COLLECT
    for place, (key, is_descending) in enumerate(zip(call.order, call.is_descending, strict=True)):
        if is_chosen and not place:
            # Rows without it are left out, which codes alone do not say.
            yield ValuesKey(evaluate_rows(key, batch, context), is_descending)
        elif not is_constant(key):
            yield RowKey(key, batch, context, is_descending)


@dataclass(frozen=True, slots=True)
class _WeightedAggregates:
    """Aggregates from what each row stands for."""

    rows: Batch
    groups: Groups | None
    source: TopologySource
    context: ExecutionContext

    @property
    def weights(self) -> Weights:
        """What the rows stand for."""
        return self.rows.weights or Weights()

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
                codes = self.weights.extremes[item]
                if self.groups is not None:
                    codes = choose_at(item, codes, self.groups.of_row, self.groups.count)
                return decode_order(self._get_column(argument), codes, known == 0)
            case _:
                raise AssertionError(f"{call.function} needs all rows of a group")

    def _compute_counts(self, item: PartialAggregate | None) -> npt.NDArray[np.int64]:
        """How many matches, or how many of them with a known value, each group has."""
        weights, groups = self.weights, self.groups
        amount = weights.counts if item is None else weights.sums.get(item, weights.counts)
        if groups is None:
            count = self.rows.num_rows
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
        amount = self.weights.sums.get(PartialAggregate(PartialKind.SUM, argument))
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
        numbers = self.rows.nodes[argument.variable]
        values = column.get_numbers(numbers).astype(np.float64)
        nulls = column.get_nulls(numbers)
        if nulls is not None:
            values = np.where(nulls, 0.0, values)
        counts = self.weights.counts
        places, count = self._find_row_groups(len(values))
        parts = [values] if counts is None else list(_multiply_exactly(counts.values, values))
        together = np.concatenate([places] * len(parts))
        return sum_floats(np.concatenate(parts), together, count, divisors)

    def _get_column(self, value: PropertyValue) -> DenseColumn:
        type_name = self.context.nodes_of[value.variable]
        return self.source.get_nodes(type_name).get_column(value.property)


def _multiply_exactly(counts: Codes, values: _Floats) -> Iterator[_Floats]:
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

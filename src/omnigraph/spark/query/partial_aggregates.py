"""Aggregates in two steps: of some rows at a time, then of what those gave.

Between them a sum is a list of floats that add up to it exactly, so that it is rounded once,
whatever the rows of a task are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.ast import AggregateFunction, CompareOp
from omnigraph.query.typed_tree import Expr, Value, is_never_null
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import compare_constant, flatten_chunks, to_numpy
from omnigraph.rows.evaluator import Params, evaluate_column
from omnigraph.rows.exact_sums import sum_floats
from omnigraph.rows.group_aggregates import (
    Groups,
    aggregate_groups,
    group_rows,
    make_single_group,
    with_one_zero,
)
from omnigraph.schema.property_types import PropertyType
from omnigraph.spark.query.column_layout import Field, FrameRows, Layout
from omnigraph.spark.spark_types import from_wire, to_wire

_Floats: TypeAlias = npt.NDArray[np.float64]
_Indices: TypeAlias = npt.NDArray[np.int64]

_MANTISSA_BITS: Final = 53
_INTEGER_BITS: Final = 62
_HALF_BITS: Final = 31
_PARTS_MAX: Final = 4
_EXPONENT_MAX: Final = 900
_PARTS_TYPE: Final = pa.list_(pa.float64())


@dataclass(frozen=True, slots=True)
class GroupKey:
    """An expression to group by; the fields of a bare node go with its id."""

    value: Expr
    field: Field
    # The columns that go with it, and where they are kept.
    carried: tuple[tuple[Field, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate: its argument, or None to count rows, and the columns of its parts."""

    function: AggregateFunction
    argument: Expr | None
    count: Field
    values: Field

    @property
    def is_sum(self) -> bool:
        """Whether it is a sum, maybe divided by a count."""
        return self.function in (AggregateFunction.SUM, AggregateFunction.AVG)

    @property
    def fields(self) -> Iterator[Field]:
        """The columns that its parts are in."""
        if self.is_sum or self.function is AggregateFunction.COUNT:
            yield self.count
        if self.function is not AggregateFunction.COUNT:
            yield self.values


def make_measure(function: AggregateFunction, argument: Expr | None, number: int) -> Measure:
    """An aggregate, with columns of its own."""
    kind = pa.int64()
    if function in (AggregateFunction.SUM, AggregateFunction.AVG):
        kind = _PARTS_TYPE
    elif argument is not None and isinstance(argument.type, PropertyType):
        kind = arrow_type_of(argument.type)
    count = Field(f"a{number}c", pa.int64())
    return Measure(function, argument, count, Field(f"a{number}v", kind))


@dataclass(frozen=True)
class PartialAggregation:
    """From rows to groups with the parts of their aggregates."""

    layout: Layout
    params: Params
    keys: tuple[GroupKey, ...]
    measures: tuple[Measure, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of a group."""
        return (
            *(field for key in self.keys for field in (key.field, *(f for f, _ in key.carried))),
            *(field for measure in self.measures for field in measure.fields),
        )

    def run(self, table: pa.Table) -> pa.Table:
        """The groups of some rows."""
        rows = FrameRows(table, self.layout)
        keys = [with_one_zero(evaluate_column(key.value, rows, self.params)) for key in self.keys]
        groups = group_rows(keys, rows.num_rows) if keys else make_single_group(rows.num_rows)
        firsts = pa.array(groups.first_rows)
        found: dict[str, pa.Array] = {}
        for key, values in zip(self.keys, keys, strict=True):
            found[key.field.column] = to_wire(values.take(firsts))
            for field, column in key.carried:
                found[field.column] = flatten_chunks(table[column].take(firsts))
        for measure in self.measures:
            found |= self._compute_parts(measure, rows, groups)
        return pa.table(found)

    def _compute_parts(
        self, measure: Measure, rows: FrameRows, groups: Groups
    ) -> dict[str, pa.Array]:
        counts = pa.array(np.bincount(groups.of_row, minlength=groups.count), pa.int64())
        is_counted = measure.argument is None or is_never_null(measure.argument)
        if is_counted and measure.function is AggregateFunction.COUNT:
            return {measure.count.column: counts}
        assert measure.argument is not None
        values = evaluate_column(measure.argument, rows, self.params)
        if not measure.is_sum:
            found = aggregate_groups(measure.function, values, groups)
            return {next(measure.fields).column: to_wire(found)}
        of_known = groups.of_row
        if values.null_count:
            of_known = of_known[to_numpy(values.is_valid())]
        known = to_numpy(flatten_chunks(values).drop_null())
        counts = pa.array(np.bincount(of_known, minlength=groups.count), pa.int64())
        parts = split_exactly(known, of_known, groups.count)
        return {measure.count.column: counts, measure.values.column: parts}


@dataclass(frozen=True)
class FinalAggregation:
    """From parts of groups to groups with their aggregates, as `PartialAggregation` says."""

    partial: PartialAggregation

    def combine_groups(self, table: pa.Table) -> tuple[pa.Table, Mapping[int, pa.Array]]:
        """A row of parts for each group, for its keys, and the values of each measure."""
        keys = [from_wire(table[key.field.column], key.field.kind) for key in self.partial.keys]
        groups = group_rows(keys, table.num_rows) if keys else make_single_group(table.num_rows)
        found = {
            number: _combine_measure(measure, table, groups)
            for number, measure in enumerate(self.partial.measures)
        }
        firsts = table.take(pa.array(groups.first_rows)) if keys else table.slice(0, 0)
        return firsts, found


@dataclass(frozen=True)
class GroupFilter:
    """The keys of groups whose aggregate compares with a value, or of those where it does not."""

    combined: FinalAggregation
    op: CompareOp
    value: Value
    is_passing: bool

    def run(self, table: pa.Table) -> pa.Table:
        """The keys of all groups of a table, in which each group is whole."""
        firsts, found = self.combined.combine_groups(table)
        passes = to_numpy(compare_constant(self.op, found[0], self.value))
        kept = firsts.filter(pa.array(passes == self.is_passing))
        return kept.select([key.field.column for key in self.combined.partial.keys])


def _combine_measure(measure: Measure, table: pa.Table, groups: Groups) -> pa.Array:
    counts = np.zeros(groups.count, np.int64)
    if measure.is_sum or measure.function is AggregateFunction.COUNT:
        np.add.at(counts, groups.of_row, to_numpy(table[measure.count.column]))
    if measure.function is AggregateFunction.COUNT:
        return pa.array(counts)
    values = from_wire(table[measure.values.column], measure.values.kind)
    if not measure.is_sum:
        return aggregate_groups(measure.function, values, groups)
    lengths = to_numpy(values.value_lengths()) if len(values) else np.zeros(0, np.int64)
    divisors = np.maximum(counts, 1) if measure.function is AggregateFunction.AVG else None
    of_part = np.repeat(groups.of_row, lengths)
    sums = sum_floats(to_numpy(values.flatten()), of_part, groups.count, divisors)
    return pa.array(sums, pa.float64(), mask=counts == 0)


# ---- exact parts of sums ----


def split_exactly(numbers: npt.NDArray[Any], groups: _Indices, count: int) -> pa.Array:
    """For each group a few floats whose sum is exactly that of its numbers."""
    if numbers.dtype.kind in "iu":
        found = list(_split_integers(numbers, groups, count))
    else:
        found = list(_split_floats(numbers.astype(np.float64), groups, count))
    places = np.concatenate([each for each, _ in found])
    values = np.concatenate([each for _, each in found])
    is_kept = values != 0
    places, values = places[is_kept], values[is_kept]
    values = values.take(np.argsort(places, kind="stable"))
    ends = np.append(0, np.cumsum(np.bincount(places, minlength=count)))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(values))


_Parts: TypeAlias = tuple[_Indices, _Floats]


def _split_integers(numbers: npt.NDArray[Any], groups: _Indices, count: int) -> Iterator[_Parts]:
    wide = numbers if numbers.dtype == np.uint64 else numbers.astype(np.int64)
    half = wide.dtype.type(_HALF_BITS + 1)
    low = (wide & wide.dtype.type(2**32 - 1)).astype(np.int64)
    for part, scale in ((wide >> half).astype(np.int64), 2.0**32), (low, 1.0):
        yield from _split_halves(_sum_by_group(part, groups, count), scale)


def _split_floats(numbers: _Floats, groups: _Indices, count: int) -> Iterator[_Parts]:
    is_finite = np.isfinite(numbers)
    yield groups[~is_finite], numbers[~is_finite]
    groups, rest = groups[is_finite], numbers[is_finite]
    exponents = np.frexp(rest[rest != 0])[1]
    if not len(exponents):
        return
    lowest, highest = int(exponents.min()) - _MANTISSA_BITS, int(exponents.max())
    # Parts of so many bits do not overflow, however many rows are added.
    bits = _INTEGER_BITS - len(rest).bit_length()
    parts = -(-(highest - lowest) // bits)
    if parts > _PARTS_MAX or max(highest, -lowest) > _EXPONENT_MAX:
        yield groups, rest
        return
    for part in reversed(range(parts)):
        scale = 2.0 ** (lowest + part * bits)
        whole = np.rint(rest * (1 / scale))
        rest = rest - whole * scale
        yield from _split_halves(_sum_by_group(whole.astype(np.int64), groups, count), scale)


def _sum_by_group(numbers: _Indices, groups: _Indices, count: int) -> _Indices:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, numbers)
    return sums


def _split_halves(sums: _Indices, scale: float) -> Iterator[_Parts]:
    """Integers times a power of two, as pairs of floats that hold them exactly."""
    places = np.arange(len(sums))
    high = sums >> np.int64(_HALF_BITS)
    low = sums & np.int64(2**_HALF_BITS - 1)
    yield places, high.astype(np.float64) * (scale * 2.0**_HALF_BITS)
    yield places, low.astype(np.float64) * scale

"""Comparison by exact value: no number is rounded because another one has another type.

Constants are moved into the domain of the column they are compared with, so that every test of a
column is a plain one of its own type, in memory as in a filter that a table evaluates. NaN is
unequal to everything and has no order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.ast import CompareOp
from omnigraph.query.typed_tree import Value
from omnigraph.schema.property_values import round_to_f32

Values: TypeAlias = pa.Array | pa.ChunkedArray
_Flags: TypeAlias = npt.NDArray[np.bool_]
_KERNELS: Final[dict[CompareOp, Callable[..., Any]]] = {  # Any: pyarrow is untyped
    CompareOp.EQ: pc.equal,
    CompareOp.NE: pc.not_equal,
    CompareOp.LT: pc.less,
    CompareOp.LE: pc.less_equal,
    CompareOp.GT: pc.greater,
    CompareOp.GE: pc.greater_equal,
}
NUMPY_COMPARISONS: Final[dict[CompareOp, Callable[..., _Flags]]] = {
    CompareOp.EQ: np.equal,
    CompareOp.NE: np.not_equal,
    CompareOp.LT: np.less,
    CompareOp.LE: np.less_equal,
    CompareOp.GT: np.greater,
    CompareOp.GE: np.greater_equal,
}
MIRRORED: Final = {
    CompareOp.EQ: CompareOp.EQ,
    CompareOp.NE: CompareOp.NE,
    CompareOp.LT: CompareOp.GT,
    CompareOp.LE: CompareOp.GE,
    CompareOp.GT: CompareOp.LT,
    CompareOp.GE: CompareOp.LE,
}

# What is called between two pieces of work that are short, and raises when a request must stop.
Poll: TypeAlias = Callable[[], None]

# Beyond every integer type, and still an integer.
_HUGE = 2**70
# Constants of a list that are worked on between two polls: about 20 milliseconds.
_ITEMS_PER_POLL: Final = 2**17


def skip_poll() -> None:
    """The poll of work that nothing stops."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison with a constant of the column's own type."""

    op: CompareOp
    value: bool | int | float | str


def to_comparable(values: Values) -> Values:
    """Values as they are compared: dates, times and durations as the integers they are."""
    kind = comparable_type_of(values.type)
    return values if kind == values.type else values.cast(kind)


def comparable_type_of(kind: pa.DataType) -> pa.DataType:
    """The type of `plain` values."""
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_date64(kind) or pa.types.is_duration(kind) else kind


def fit_constant(op: CompareOp, constant: Value, kind: pa.DataType) -> Comparison | bool:
    """What a comparison with a constant means for a column; a bool is it for every value."""
    assert constant is not None
    assert not isinstance(constant, tuple)
    kind = comparable_type_of(kind)
    if isinstance(constant, bool | str):
        return Comparison(op, constant)
    if math.isnan(constant):
        return op is CompareOp.NE
    if pa.types.is_floating(kind):
        return _fit_float(op, constant, is_single=pa.types.is_float32(kind))
    return _fit_integer(op, constant, kind)


def compare_constant(op: CompareOp, values: Values, constant: Value) -> Values:
    """Each value compared with a constant that is not null; nulls stay null."""
    test = fit_constant(op, constant, values.type)
    values = to_comparable(values)
    if isinstance(test, bool):
        return pc.if_else(values.is_valid(), pa.scalar(test), pa.scalar(None, pa.bool_()))
    return _KERNELS[test.op](values, pa.scalar(test.value, values.type))


def compare_values(op: CompareOp, left: Values, right: Values) -> Values:
    """Pairs of values compared; null where one of them is."""
    left, right = to_comparable(left), to_comparable(right)
    if left.type == right.type:
        return _KERNELS[op](left, right)
    if pa.types.is_floating(left.type) and pa.types.is_floating(right.type):
        return _KERNELS[op](left.cast(pa.float64()), right.cast(pa.float64()))
    if _numeric_rank_of(left.type) > _numeric_rank_of(right.type):
        left, right, op = right, left, MIRRORED[op]
    if _numeric_rank_of(right.type) == 0:
        return _KERNELS[op](left.cast(pa.int64()), right.cast(pa.int64()))
    return _compare_mixed(op, left, right)


def to_numpy(values: Values) -> npt.NDArray[Any]:
    """Numbers or Booleans as a numpy array, with zero or false in the place of nulls."""
    known = flatten_chunks(values)
    if known.null_count:
        known = known.fill_null(False if pa.types.is_boolean(known.type) else 0)
    found: npt.NDArray[Any] = known.to_numpy(zero_copy_only=False)
    return found


def flatten_chunks(values: Values) -> pa.Array:
    """All values in one array."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _fit_integer(op: CompareOp, constant: int | float, kind: pa.DataType) -> Comparison | bool:
    if isinstance(constant, float) and math.isinf(constant):
        constant = int(math.copysign(_HUGE, constant))
    low, high = _integer_bounds_of(kind)
    match op:
        case CompareOp.EQ | CompareOp.NE:
            is_possible = constant == math.floor(constant) and low <= constant <= high
            return Comparison(op, int(constant)) if is_possible else op is CompareOp.NE
        case CompareOp.LT | CompareOp.GE:
            bound, is_less = math.ceil(constant), op is CompareOp.LT
            if low < bound <= high:
                return Comparison(op, bound)
            return is_less == (bound > high)
        case CompareOp.LE | CompareOp.GT:
            bound, is_less = math.floor(constant), op is CompareOp.LE
            if low <= bound < high:
                return Comparison(op, bound)
            return is_less == (bound >= high)
        case _:
            assert_never(op)


def _fit_float(op: CompareOp, constant: int | float, *, is_single: bool) -> Comparison | bool:
    nearest = round_to_f32(float(constant)) if is_single else float(constant)
    if nearest == constant:
        return Comparison(op, nearest)
    is_above = nearest > constant
    match op:
        case CompareOp.EQ | CompareOp.NE:
            return op is CompareOp.NE
        case CompareOp.LT | CompareOp.LE:
            return Comparison(CompareOp.LT if is_above else CompareOp.LE, nearest)
        case CompareOp.GT | CompareOp.GE:
            return Comparison(CompareOp.GE if is_above else CompareOp.GT, nearest)
        case _:
            assert_never(op)


def _numeric_rank_of(kind: pa.DataType) -> int:
    """Which numbers go on the right side of a mixed comparison: floats before U64."""
    return 2 if pa.types.is_floating(kind) else 1 if pa.types.is_uint64(kind) else 0


def _integer_bounds_of(kind: pa.DataType) -> tuple[int, int]:
    assert pa.types.is_integer(kind), kind
    if pa.types.is_signed_integer(kind):
        return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    return 0, 2**kind.bit_width - 1


def _compare_mixed(op: CompareOp, left: Values, right: Values) -> pa.Array:
    """An integer with a float, or a signed integer with a U64."""
    is_known = to_numpy(pc.and_(left.is_valid(), right.is_valid()))
    if pa.types.is_floating(right.type):
        less, equal, unordered = _compare_with_float(left, to_numpy(right.cast(pa.float64())))
    else:
        less, equal = _compare_with_unsigned(to_numpy(left.cast(pa.int64())), to_numpy(right))
        unordered = np.zeros(len(less), np.bool_)
    found = {
        CompareOp.EQ: equal,
        CompareOp.NE: ~equal,
        CompareOp.LT: less,
        CompareOp.LE: less | equal,
        CompareOp.GT: ~(less | equal | unordered),
        CompareOp.GE: ~(less | unordered),
    }[op]
    return pa.array(found, pa.bool_(), mask=~is_known)


def _compare_with_float(
    left: Values, numbers: npt.NDArray[np.float64]
) -> tuple[_Flags, _Flags, _Flags]:
    whole = pa.uint64() if pa.types.is_uint64(left.type) else pa.int64()
    integers = to_numpy(left.cast(whole))
    low, high = _integer_bounds_of(whole)
    floors = np.floor(numbers)
    unordered = np.isnan(numbers)
    # Both bounds are powers of two or zero, so that as floats they are exact.
    above, below = numbers >= float(high + 1), numbers < float(low)
    is_inside = ~(above | below | unordered)
    rounded = np.where(is_inside, floors, 0).astype(integers.dtype)
    is_at = is_inside & (integers == rounded)
    less = above | (is_inside & (integers < rounded)) | (is_at & (numbers > floors))
    return less, is_at & (numbers == floors), unordered


def _compare_with_unsigned(
    left: npt.NDArray[np.int64], right: npt.NDArray[np.uint64]
) -> tuple[_Flags, _Flags]:
    is_negative = left < 0
    magnitudes = left.astype(np.uint64)
    return is_negative | (magnitudes < right), ~is_negative & (magnitudes == right)


def is_in_constants(values: Values, wanted: pa.Array, poll: Poll = skip_poll) -> Values:
    """Which values are among constants that they can hold; nulls stay null."""
    values, wanted = to_comparable(values), with_both_zeros(wanted)
    # Constants are hashed by each call: more of them in one would take too long between two polls.
    found = pc.is_in(values, value_set=wanted.slice(0, _ITEMS_PER_POLL))
    for start in range(_ITEMS_PER_POLL, len(wanted), _ITEMS_PER_POLL):
        poll()
        part = wanted.slice(start, _ITEMS_PER_POLL)
        found = pc.or_(found, pc.is_in(values, value_set=part))
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.bool_()))


def collect_matchable(
    items: Sequence[Value], kind: pa.DataType, poll: Poll = skip_poll
) -> pa.Array:
    """The constants that a column of a type can hold, as values of that (plain) type."""
    kind, parts = comparable_type_of(kind), []
    for start in range(0, len(items), _ITEMS_PER_POLL):
        poll()
        part = items[start : start + _ITEMS_PER_POLL]
        plain = _convert_plain_items(part, kind)
        parts.append(pa.array(_iter_fitting(part, kind), kind) if plain is None else plain)
    return pa.concat_arrays(parts) if parts else pa.array([], kind)


def find_few_distinct(values: pa.Array, *, count_max: int, poll: Poll) -> pa.Array | None:
    """The values without repetitions; None if there are more than so many."""
    found = values.slice(0, _ITEMS_PER_POLL).unique()
    for start in range(_ITEMS_PER_POLL, len(values), _ITEMS_PER_POLL):
        if len(found) > count_max:
            break
        poll()
        found = pa.concat_arrays([found, values.slice(start, _ITEMS_PER_POLL)]).unique()
    return found if len(found) <= count_max else None


def _convert_plain_items(items: Sequence[Value], kind: pa.DataType) -> pa.Array | None:
    """The same, without a look at each item; None if the items are of several types."""
    types = set(map(type, items))
    if types in ({str}, {bool}):
        return pa.array(items, kind)
    if types == {float} and pa.types.is_floating(kind):
        numbers = np.array(items, np.float64)
        with np.errstate(over="ignore"):
            nearest = numbers.astype(kind.to_pandas_dtype())
        return pa.array(nearest[nearest == numbers])
    if types == {int} and pa.types.is_integer(kind):
        integers = np.array(items)
        if integers.dtype != np.int64:
            # Some do not fit 64 bits with a sign.
            return None
        low, high = _integer_bounds_of(kind)
        return pa.array(integers[(integers >= low) & (integers <= high)]).cast(kind)
    return None


def _iter_fitting(items: Iterable[Value], kind: pa.DataType) -> Iterator[bool | int | float | str]:
    for item in items:
        if item is not None:
            test = fit_constant(CompareOp.EQ, item, kind)
            if isinstance(test, Comparison):
                yield test.value


def is_constant_in(item: Value, items: Value) -> bool:
    """Whether a constant is in a constant list; neither is null."""
    assert isinstance(items, tuple)
    return any(item == each for each in items)


def is_in_lists(item: Value | Values, lists: Values) -> pa.Array:
    """Which lists hold a constant, or the value of their row; null where either is null."""
    together = flatten_chunks(lists)
    starts = together.offsets.to_numpy()
    elements = together.values.slice(starts[0], starts[-1] - starts[0])
    rows = np.repeat(np.arange(len(together)), np.diff(starts))
    is_known = together.is_valid()
    if isinstance(item, pa.Array | pa.ChunkedArray):
        is_known = pc.and_(is_known, flatten_chunks(item.is_valid()))
        equal = compare_values(CompareOp.EQ, elements, flatten_chunks(item).take(pa.array(rows)))
    else:
        equal = compare_constant(CompareOp.EQ, elements, item)
    found = np.zeros(len(together), np.bool_)
    found[rows[to_numpy(equal)]] = True
    return pa.array(found, pa.bool_(), mask=~to_numpy(is_known))


def with_both_zeros(wanted: pa.Array) -> pa.Array:
    """Values to look for: a zero among floats stands for both, which differ in look-ups."""
    if not pa.types.is_floating(wanted.type) or not pc.any(pc.equal(wanted, 0.0)).as_py():
        return wanted
    zeros = pa.array([0.0, math.copysign(0.0, -1)], wanted.type)
    return pa.concat_arrays([wanted, zeros])

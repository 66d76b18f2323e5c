"""Arithmetic and functions of numbers: integers as 64 bits with a sign, all others as floats.

What does not fit is null: a result outside I64, a float that is not finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.kernels.function_call import (
    FunctionCall,
    Kernel,
    Mask,
    Numbers,
    make_column,
)

_OPERATORS: Final[dict[str, Callable[..., Numbers]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
}
# Two integers of 64 bits wrap by a multiple of this many.
_WRAP_HALF: Final = 2.0**63
_I64_MIN_SIZE: Final = np.uint64(2**63)
_POWERS: Final = np.array([float(f"1e{power}") for power in range(309)])
_DIGITS_MAX: Final = 308
_INTEGER_DIGITS_MAX: Final = 19
# The mean radius of the Earth in kilometres.
_EARTH_RADIUS_KM: Final = 6371.0088


def _compute_arithmetic(call: FunctionCall) -> pa.Array:
    left, right = call.read_numbers(0), call.read_numbers(1)
    return _build_arithmetic(call, left, right, _OPERATORS[call.function])


def _compute_minus(call: FunctionCall) -> pa.Array:
    number = call.read_numbers(0)
    return _build_arithmetic(call, np.zeros(1, number.dtype), number, np.subtract)


def _build_arithmetic(
    call: FunctionCall, left: Numbers, right: Numbers, operate: Callable[..., Numbers]
) -> pa.Array:
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        return _build_floats(call, operate, left, right)
    # The last 64 bits are exact; a float shows whether there were more.
    wrapped = operate(left.astype(np.int64), right.astype(np.int64))
    about = operate(left.astype(np.float64), right.astype(np.float64))
    about -= wrapped
    return call.build_numbers(wrapped, np.abs(about) >= _WRAP_HALF)


def _build_floats(
    call: FunctionCall, operate: Callable[..., Numbers], *numbers: Numbers
) -> pa.Array:
    with np.errstate(all="ignore"):
        found = operate(*(each.astype(np.float64) for each in numbers))
    return call.build_numbers(found, ~np.isfinite(found))


def _divide(call: FunctionCall) -> pa.Array:
    return _build_floats(call, np.divide, call.read_numbers(0), call.read_numbers(1))


def _divide_whole(call: FunctionCall) -> pa.Array:
    """The quotient of integers, cut toward zero."""
    left, right = call.read_numbers(0), call.read_numbers(1)
    sizes, by = _find_sizes(left), _find_sizes(right)
    is_negative = _is_below_zero(left) != _is_below_zero(right)
    return _build_signed(call, sizes // np.maximum(by, 1), is_negative, by == 0)


def _find_remainder(call: FunctionCall) -> pa.Array:
    """What a division leaves, with the sign of what is divided."""
    left, right = call.read_numbers(0), call.read_numbers(1)
    by = _find_sizes(right)
    rest = _find_sizes(left) % np.maximum(by, 1)
    return _build_signed(call, rest, _is_below_zero(left), by == 0)


def _find_sizes(numbers: Numbers) -> Numbers:
    """Integers without their signs, as uint64: the least I64 has no opposite."""
    if numbers.dtype == np.uint64:
        return numbers
    return np.where(numbers < 0, -numbers, numbers).view(np.uint64)


def _is_below_zero(numbers: Numbers) -> Mask:
    found: Mask = np.zeros(1, np.bool_) if numbers.dtype == np.uint64 else numbers < 0
    return found


def _build_signed(
    call: FunctionCall, sizes: Numbers, is_negative: Mask, is_fault: Mask
) -> pa.Array:
    limit = np.where(is_negative, _I64_MIN_SIZE, _I64_MIN_SIZE - np.uint64(1))
    signed = np.where(is_negative, np.uint64(0) - sizes, sizes).view(np.int64)
    return call.build_numbers(signed, is_fault | (sizes > limit))


def _find_size(call: FunctionCall) -> pa.Array:
    number = call.read_numbers(0)
    if number.dtype.kind == "f":
        return _build_floats(call, np.abs, number)
    return _build_signed(call, _find_sizes(number), np.zeros(1, np.bool_), np.zeros(1, np.bool_))


def _find_sign(call: FunctionCall) -> pa.Array:
    number = call.read_numbers(0)
    signs = np.sign(number)
    is_fault = np.isnan(signs) if number.dtype.kind == "f" else None
    return call.build_numbers(np.nan_to_num(signs).astype(np.int64), is_fault)


def _cut(cut: Callable[..., Numbers]) -> Kernel:
    def compute(call: FunctionCall) -> pa.Array:
        number = call.read_numbers(0)
        if number.dtype.kind == "f":
            return _build_floats(call, cut, number)
        return _build_integers(call, number)

    return compute


def _build_integers(call: FunctionCall, numbers: Numbers) -> pa.Array:
    is_negative = _is_below_zero(numbers)
    return _build_signed(call, _find_sizes(numbers), is_negative, np.zeros(1, np.bool_))


def _round(call: FunctionCall) -> pa.Array:
    """The nearest number of so many decimal digits; a half goes away from zero."""
    number = call.read_numbers(0)
    digits = call.read_places(1) if len(call.arguments) > 1 else np.zeros(1, np.int64)
    digits = np.clip(digits, -_DIGITS_MAX, _DIGITS_MAX)
    if number.dtype.kind == "f":
        return _build_floats(call, _round_floats, number, digits)
    places = np.clip(-digits, 0, _INTEGER_DIGITS_MAX).astype(np.uint64)
    unit = np.uint64(10) ** places
    sizes = _find_sizes(number)
    rest = sizes % unit
    sizes = sizes - rest + np.where(rest >= unit - rest, unit * (rest > 0), 0).astype(np.uint64)
    # Beyond 19 digits nothing is left of any integer.
    sizes = np.where(-digits > _INTEGER_DIGITS_MAX, np.uint64(0), sizes)
    return _build_signed(call, sizes, _is_below_zero(number), np.zeros(1, np.bool_))


def _round_floats(numbers: Numbers, digits: Numbers) -> Numbers:
    power = _POWERS[np.abs(digits).astype(np.int64)]
    scaled = np.where(digits >= 0, numbers * power, numbers / power)
    whole = np.trunc(scaled)
    whole = whole + np.where(np.abs(scaled - whole) >= 0.5, np.sign(scaled), 0.0)
    found = np.where(digits >= 0, whole / power, whole * power)
    # So large a number has no such digits.
    return np.where(np.isfinite(scaled), found, numbers)


def _apply_arrow(function: Callable[..., Any]) -> Kernel:
    """A function of floats: those of Arrow are those of the C library, on every machine."""

    def compute(call: FunctionCall) -> pa.Array:
        numbers = [pa.array(_read_floats(call, place)) for place in range(len(call.arguments))]
        most = max(map(len, numbers))
        found = function(
            *(make_column(each[0], most) if len(each) == 1 else each for each in numbers)
        )
        values = to_numpy(found)
        return call.build_numbers(values, ~np.isfinite(values))

    return compute


def _read_floats(call: FunctionCall, place: int) -> Numbers:
    return call.read_numbers(place).astype(np.float64)


def _find_distance(*degrees: pa.Array) -> pa.Array:
    """The length of a great circle between two places on a sphere."""
    north, east, to_north, to_east = (pc.multiply(each, np.pi / 180) for each in degrees)
    rise = pc.sin(pc.divide(pc.subtract(to_north, north), 2.0))
    turn = pc.sin(pc.divide(pc.subtract(to_east, east), 2.0))
    across = pc.multiply(pc.cos(north), pc.cos(to_north))
    part = pc.add(pc.multiply(rise, rise), pc.multiply(across, pc.multiply(turn, turn)))
    half = pc.asin(pc.sqrt(pc.min_element_wise(part, 1.0)))
    return pc.multiply(half, 2 * _EARTH_RADIUS_KM)


NUMBER_KERNELS: Final[dict[str, Kernel]] = {
    "+": _compute_arithmetic,
    "-": _compute_arithmetic,
    "*": _compute_arithmetic,
    "/": _divide,
    "%": _find_remainder,
    "mod": _find_remainder,
    "div": _divide_whole,
    "minus": _compute_minus,
    "abs": _find_size,
    "sign": _find_sign,
    "floor": _cut(np.floor),
    "ceil": _cut(np.ceil),
    "round": _round,
    "sqrt": _apply_arrow(pc.sqrt),
    "exp": _apply_arrow(pc.exp),
    "ln": _apply_arrow(pc.ln),
    "log10": _apply_arrow(pc.log10),
    "pow": _apply_arrow(pc.power),
    "haversine": _apply_arrow(_find_distance),
}

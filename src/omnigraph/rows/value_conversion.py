"""Values of a property as another type keeps them, without a loss.

Every value makes the way there and back: one that does not return as it was is null.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import Values, flatten_chunks
from omnigraph.rows.kernels.conversion_kernels import CONVERSION_KERNELS
from omnigraph.rows.kernels.function_call import FunctionCall

# The integers that a float type holds without gaps.
_EXACT_MAX: Final = {pa.float32(): 2**24, pa.float64(): 2**53}
_BITS_MAX: Final = {pa.int32(): 31, pa.int64(): 63, pa.uint32(): 32, pa.uint64(): 64}
_UNSIGNED: Final = "^(0|[1-9][0-9]{0,19})$"
# Every integer of 20 digits.
_DIGITS: Final = pa.decimal128(21)


def convert_values(values: Values, target: pa.DataType) -> pa.Array:
    """Values of another type; null where one does not survive the way there and back."""
    column = flatten_chunks(values)
    if column.type == target:
        return column
    made = _make_values(column, target)
    back = _make_values(made, column.type)
    return _keep_where(pc.equal(back, column), made)


def _make_values(values: pa.Array, target: pa.DataType) -> pa.Array:
    """The nearest values of a type; null where there is none."""
    source = values.type
    if pa.types.is_string(target):
        return _call("text", values, target)
    if pa.types.is_string(source):
        return _read_texts(values, target)
    if pa.types.is_temporal(target):
        return _call("date" if pa.types.is_date32(target) else "datetime", values, target)
    return _make_numbers(values, target)


def _read_texts(texts: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(target):
        return _call("bool", texts, target)
    if pa.types.is_temporal(target):
        return _call("date" if pa.types.is_date32(target) else "datetime", texts, target)
    if pa.types.is_floating(target):
        return _make_numbers(_call("float", texts, pa.float64()), target)
    if pa.types.is_uint64(target):
        digits = _keep_where(pc.match_substring_regex(texts, _UNSIGNED), texts).cast(_DIGITS)
        is_fit = pc.less(digits, pa.scalar(2**64, _DIGITS))
        return _keep_where(is_fit, digits).cast(target)
    return _make_numbers(_call("int", texts, pa.int64()), target)


def _make_numbers(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Numbers of another type, as far as it can hold them."""
    source = values.type
    if source == target:
        return values
    if pa.types.is_floating(target):
        if pa.types.is_integer(source) and 2 ** _BITS_MAX[source] > _EXACT_MAX[target]:
            values = _keep_where(_are_within(values, _EXACT_MAX[target]), values)
        return values.cast(target, safe=False)
    if pa.types.is_floating(source):
        low = 0.0 if pa.types.is_unsigned_integer(target) else -(2.0 ** _BITS_MAX[target])
        is_fit = pc.and_(
            pc.greater_equal(values, pa.scalar(low, source)),
            pc.less(values, pa.scalar(2.0 ** _BITS_MAX[target], source)),
        )
        return pc.trunc(_keep_where(is_fit, values)).cast(target)
    made = values.cast(target, safe=False)
    # A number that wraps around has another sign, or does not come back.
    return _keep_where(pc.equal(_are_negative(made), _are_negative(values)), made)


def _are_within(values: pa.Array, limit: int) -> pa.Array:
    """Which integers are at most as far from zero as a limit, which their type holds."""
    is_low = pc.less_equal(values, pa.scalar(limit, values.type))
    if pa.types.is_unsigned_integer(values.type):
        return is_low
    return pc.and_(is_low, pc.greater_equal(values, pa.scalar(-limit, values.type)))


def _are_negative(values: pa.Array) -> pa.Array:
    return pc.less(values, pa.scalar(0, values.type))


def _keep_where(mask: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(pc.fill_null(mask, fill_value=False), values, pa.scalar(None, values.type))


def _call(function: str, values: pa.Array, result: pa.DataType) -> pa.Array:
    call = FunctionCall(function, (values,), len(values), result, poll=lambda: None)
    return CONVERSION_KERNELS[function](call)

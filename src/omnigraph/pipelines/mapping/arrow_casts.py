"""Casts of Arrow columns with the results of Spark: the values, and which of them have none.

A text is read as Spark reads it: blanks around it do not count. A text of an odd form, such as a
number with a hexadecimal fraction, is not judged here: then the whole mapping is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import UncompiledValueError

# The names of types in casts, which are names of functions too.
CAST_NAMES: Final[Mapping[str, pa.DataType]] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
# What Spark takes for blank around a text.
_BLANKS: Final = "".join(map(chr, range(0x21))) + "\x7f"
_INTEGER: Final = r"^[+-]?[0-9]+$"
_FLOAT: Final = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
# So many digits always fit into 64 bits.
_DIGITS_MAX: Final = 18
# Signs of which the other numbers are made that Java reads: 1d, NaN, Infinity, 0x1p3.
_MAYBE_FLOAT: Final = (
    r"(?i)^[+-]?(?:0x[0-9a-f.p+-]*|[0-9.]+(?:e[+-]?[0-9]+)?[fd]?|nan|inf|infinity)[fd]?$"
)
_DAY: Final = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$"
_MAYBE_DAY: Final = r"^[+-]?[0-9]"
_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")


class Casted(NamedTuple):
    """Values, and a mask of those for which there is none; None if there are all."""

    values: pa.Array
    failed: pa.Array | None


def is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of a type are cast to another one here."""
    if source.equals(target) or pa.types.is_string(source):
        return True
    if pa.types.is_signed_integer(source):
        return not (pa.types.is_boolean(target) or pa.types.is_date32(target))
    if pa.types.is_float32(source):
        return bool(pa.types.is_float64(target))
    return bool(pa.types.is_boolean(source) and pa.types.is_string(target))


def cast_values(values: pa.Array, target: pa.DataType) -> Casted:
    """Values of a castable type as another one."""
    if values.type.equals(target):
        return Casted(values, None)
    if pa.types.is_string(values.type):
        return _cast_texts(values, target)
    if pa.types.is_signed_integer(values.type) and pa.types.is_signed_integer(target):
        return _cast_integers(values, target)
    return Casted(values.cast(target, safe=False), None)


def _cast_integers(values: pa.Array, target: pa.DataType) -> Casted:
    if target.bit_width >= values.type.bit_width:
        return Casted(values.cast(target), None)
    bound = 2 ** (target.bit_width - 1)
    fits = pc.and_(
        pc.greater_equal(values, pa.scalar(-bound, values.type)),
        pc.less(values, pa.scalar(bound, values.type)),
    )
    return _mark_failed_nulls(pc.if_else(fits, values, None).cast(target), values)


def _cast_texts(texts: pa.Array, target: pa.DataType) -> Casted:
    if pa.types.is_signed_integer(target):
        return _cast_integer_texts(texts, target)
    if pa.types.is_floating(target):
        return _cast_float_texts(texts, target)
    if pa.types.is_boolean(target):
        words = pc.ascii_lower(pc.utf8_trim(texts, _BLANKS))
        is_true = pc.is_in(words, value_set=pa.array(_TRUE))
        is_known = pc.or_(is_true, pc.is_in(words, value_set=pa.array(_FALSE)))
        return _mark_failed_nulls(pc.if_else(is_known, is_true, None), texts)
    return _cast_day_texts(texts)


def _cast_integer_texts(texts: pa.Array, target: pa.DataType) -> Casted:
    try:
        # Arrow reads fewer texts than Spark, and each of them in the same way, but for 0x10.
        if not pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
            return Casted(texts.cast(target), None)
    except pa.ArrowInvalid:
        pass
    trimmed = pc.utf8_trim(texts, _BLANKS)
    digits = pc.if_else(pc.match_substring_regex(trimmed, _INTEGER), trimmed, None)
    plain = pc.replace_substring_regex(digits, r"^\+?(-?)0*([0-9])", r"\1\2")
    if pc.any(pc.greater(pc.utf8_length(plain), _DIGITS_MAX)).as_py():
        raise UncompiledValueError("a number of many digits")
    return _mark_failed_nulls(_cast_integers(plain.cast(pa.int64()), target).values, texts)


def _cast_or_none(texts: pa.Array, target: pa.DataType) -> pa.Array | None:
    try:
        return texts.cast(target)
    except pa.ArrowInvalid:
        return None


def _cast_float_texts(texts: pa.Array, target: pa.DataType) -> Casted:
    found = _cast_or_none(texts, target)
    # Of the texts that Arrow reads, Spark reads all in the same way, but for those without digits.
    if found is not None and pc.all(pc.is_finite(found)).as_py() is not False:
        return Casted(found, None)
    trimmed = pc.utf8_trim(texts, _BLANKS)
    is_plain = pc.match_substring_regex(trimmed, _FLOAT)
    is_odd = pc.and_(pc.match_substring_regex(trimmed, _MAYBE_FLOAT), pc.invert(is_plain))
    if pc.any(is_odd).as_py():
        raise UncompiledValueError("a number of an odd form")
    plain = pc.if_else(is_plain, trimmed, None)
    return _mark_failed_nulls(_cast_plain_floats(plain, target), texts)


def _cast_plain_floats(texts: pa.Array, target: pa.DataType) -> pa.Array:
    found = _cast_or_none(texts, target)
    # Arrow writes no plus, and has no numbers beyond the largest.
    if found is None:
        found = _cast_or_none(pc.replace_substring_regex(texts, r"^\+", ""), target)
    if found is None:
        raise UncompiledValueError("a number of an odd form")
    return found


def _cast_day_texts(texts: pa.Array) -> Casted:
    trimmed = pc.utf8_trim(texts, _BLANKS)
    is_plain = pc.match_substring_regex(trimmed, _DAY)
    is_odd = pc.and_(pc.match_substring_regex(trimmed, _MAYBE_DAY), pc.invert(is_plain))
    if pc.any(is_odd).as_py():
        raise UncompiledValueError("a day of an odd form")
    plain = pc.if_else(is_plain, trimmed, None)
    found = _cast_or_none(plain, pa.date32())
    if found is None:
        # Some day is not in the calendar.
        distinct = plain.dictionary_encode()
        days = [_parse_day(text) for text in distinct.dictionary.to_pylist()]
        found = pa.array(days, pa.date32()).take(distinct.indices)
    return _mark_failed_nulls(found, texts)


def _parse_day(text: str) -> date | None:
    try:
        return date(*map(int, re.split("-", text)))
    except ValueError:
        return None


def _mark_failed_nulls(values: pa.Array, texts: pa.Array) -> Casted:
    """Values that failed where they are null and what they were made of is not."""
    if values.null_count == texts.null_count:
        return Casted(values, None)
    return Casted(values, pc.and_(values.is_null(), texts.is_valid()))

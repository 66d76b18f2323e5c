"""Single values of records, JSON or native Python, as properties keep them: exact and in words.

A Date is its epoch day, a DateTime its epoch millisecond, a list or vector a list, a blob bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias, assert_never

from omnigraph.diagnostics.shown import readable, shown
from omnigraph.schema import values
from omnigraph.schema.types import (
    FLOATS,
    INTEGER_RANGES,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)

# Any: a value as JSON or a caller gives it, and as a column takes it.
Read: TypeAlias = Callable[[Any], Any]

BLOB_PREFIX = "base64:"
PRECISION_HINT = (
    "round instants to milliseconds, or load with the dialect 'compatible', which cuts digits off"
)
TEMPORAL_RANGES = {
    Scalar.DATE: (values.DATE_MIN, values.DATE_MAX),
    Scalar.DATETIME: (values.DATETIME_MIN, values.DATETIME_MAX),
}
_BOUNDS = INTEGER_RANGES | TEMPORAL_RANGES
_TYPES: dict[Scalar, tuple[type, ...]] = {
    **dict.fromkeys(INTEGER_RANGES, (int,)),
    **dict.fromkeys(TEMPORAL_RANGES, (int, str)),
    **dict.fromkeys(FLOATS, (int, float, Decimal)),
    Scalar.STRING: (str,),
    Scalar.BLOB: (str, bytes),
    Scalar.BOOL: (bool,),
}


class Misfit(ValueError):
    """A value that its property cannot hold; the message says why, the hint what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def value_reader(type_: PropertyType, *, is_strict: bool) -> Read:
    """What reads the values of a property; a value that does not fit raises `Misfit`.

    Not strict, a value of a wrong type becomes null, and lists may hold nulls.
    """
    match type_.value:
        case ScalarType(scalar):
            return _scalar_reader(scalar, is_lenient=not is_strict)
        case EnumType():
            return _scalar_reader(Scalar.STRING, is_lenient=not is_strict)
        case VectorType(dimension):
            return _vector_reader(dimension, str(type_))
        case ListType(element):
            return _list_reader(element, str(type_), is_lenient=not is_strict)
    assert_never(type_.value)


def arrow_name(scalar: Scalar) -> str:
    """What messages call a base type: its name in Arrow where it has one."""
    return scalar.replace("I", "Int").replace("U", "UInt").replace("F", "Float")


def spelled(value: object) -> str:
    """A value as messages show it: short, on one line."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    try:
        return shown(repr(value) if isinstance(value, str | bytes) else str(value))
    except ValueError:
        return "an integer of thousands of digits"


def require_text(text: str) -> str:
    """The same text, or `Misfit` when it holds half of a surrogate pair, which is no character."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as failure:
            raise Misfit(f"surrogates not allowed at character {failure.start}") from failure
    return text


def decoded_blob(text: str) -> bytes:
    """The bytes of a managed blob."""
    if not text.startswith(BLOB_PREFIX):
        raise Misfit(
            f"a blob must be base64 text; an external URI is not allowed, got {spelled(text)}"
        )
    try:
        return base64.b64decode(text[len(BLOB_PREFIX) :], validate=True)
    except (binascii.Error, ValueError) as failure:
        raise Misfit(f"invalid base64: {failure}") from failure


def _scalar_reader(scalar: Scalar, *, is_lenient: bool) -> Read:
    types = _TYPES[scalar]
    is_nullable_misfit = is_lenient and scalar not in TEMPORAL_RANGES
    store = _store(scalar, is_lenient=is_lenient)

    def read(value: Any) -> Any:
        if value is None:
            return None
        if type(value) not in types:
            value = _plain(value)
            if type(value) not in types:
                if is_nullable_misfit:
                    return None
                raise Misfit(f"expects {arrow_name(scalar)}, got {spelled(value)}")
        return store(value)

    return read


def _list_reader(element: Scalar, name: str, *, is_lenient: bool) -> Read:
    read_element = _scalar_reader(element, is_lenient=is_lenient)

    def read(value: Any) -> Any:
        if value is None:
            return None
        items = _items(value, name)
        if not is_lenient and None in items:
            raise Misfit("null is not allowed as an element")
        return [read_element(item) for item in items]

    return read


def _vector_reader(dimension: int, name: str) -> Read:
    read_element = _scalar_reader(Scalar.F32, is_lenient=False)

    def read(value: Any) -> Any:
        if value is None:
            return None
        items = _items(value, name)
        if None in items:
            raise Misfit("null is not allowed as an element")
        if len(items) != dimension:
            raise Misfit(f"expects {dimension} numbers, got {len(items)}")
        return [read_element(item) for item in items]

    return read


def _items(value: Any, name: str) -> list[Any]:
    items = _plain(value)
    if isinstance(items, list | tuple):
        return list(items)
    raise Misfit(f"expects {name}, got {spelled(items)}")


def _plain(value: Any) -> Any:
    """What NumPy holds as plain Python, and dates as texts."""
    to_list = getattr(value, "tolist", None)
    plain = value if to_list is None else to_list()
    return plain.isoformat() if isinstance(plain, date) else plain


def _store(scalar: Scalar, *, is_lenient: bool) -> Read:
    if scalar in FLOATS:
        return _f32 if scalar is Scalar.F32 else _f64
    if scalar is Scalar.STRING:
        return require_text
    if scalar is Scalar.BOOL:
        return bool
    if scalar is Scalar.BLOB:
        return lambda value: value if isinstance(value, bytes) else decoded_blob(value)
    low, high = _BOUNDS[scalar]
    parse = _PARSERS.get(scalar)

    def read(value: Any) -> int:
        if parse is not None and isinstance(value, str):
            value = parse(value, is_lenient)
        if not low <= value <= high:
            raise Misfit(f"{spelled(value)} exceeds {arrow_name(scalar)} range")
        return int(value)

    return read


def _date(text: str, _is_lenient: bool) -> int:
    try:
        return values.parse_date(text)
    except values.ValueTextError as failure:
        raise Misfit(readable(str(failure))) from failure


def _datetime(text: str, is_lenient: bool) -> int:
    try:
        return values.parse_datetime(text, is_strict=not is_lenient)
    except values.ValueTextError as failure:
        hint = PRECISION_HINT if _is_only_too_precise(text, is_lenient) else None
        raise Misfit(readable(str(failure)), hint=hint) from failure


def _is_only_too_precise(text: str, is_lenient: bool) -> bool:
    try:
        values.parse_datetime(text)
    except values.ValueTextError:
        return False
    return not is_lenient


_PARSERS: dict[Scalar, Callable[[str, bool], int]] = {
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
}


def _f64(value: Any) -> float:
    return _finite(_float(value), value, Scalar.F64)


def _f32(value: Any) -> float:
    return _finite(values.round_to_f32(_float(value)), value, Scalar.F32)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _finite(number: float, value: Any, scalar: Scalar) -> float:
    if not math.isfinite(number):
        raise Misfit(f"{spelled(value)} {values.float_problem(_plain(value), scalar)}")
    return number

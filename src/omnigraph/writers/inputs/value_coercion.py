"""Single values of records, JSON or native Python, as properties keep them: exact and in words.

A Date is its epoch day, a DateTime its epoch millisecond, a list or vector a list, a blob bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias, assert_never

from omnigraph.lang.quoting import sanitize_message, sanitize_text
from omnigraph.schema import property_values
from omnigraph.schema.property_types import (
    FLOATS,
    INTEGER_RANGES,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
    arrow_name_of,
)

# Any: a value as JSON or a caller gives it, and as a column takes it.
CoerceValue: TypeAlias = Callable[[Any], Any]

PRECISION_HINT = (
    "round instants to milliseconds, or load with the dialect 'compatible', which cuts digits off"
)
TEMPORAL_RANGES = {
    Scalar.DATE: (property_values.DATE_MIN, property_values.DATE_MAX),
    Scalar.DATETIME: (property_values.DATETIME_MIN, property_values.DATETIME_MAX),
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


class MisfitError(ValueError):
    """A value that its property cannot hold; the message says why, the hint what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def make_coercer(type_: PropertyType, *, is_strict: bool) -> CoerceValue:
    """What reads the values of a property; a value that does not fit raises `MisfitError`.

    Not strict, a value of a wrong type becomes null, and lists may hold nulls.
    """
    match type_.value:
        case ScalarType(scalar):
            return _make_scalar_coercer(scalar, is_lenient=not is_strict)
        case EnumType():
            return _make_scalar_coercer(Scalar.STRING, is_lenient=not is_strict)
        case VectorType(dimension):
            return _make_vector_coercer(dimension, str(type_))
        case ListType(element):
            return _make_list_coercer(element, str(type_), is_lenient=not is_strict)
    assert_never(type_.value)


def format_value(value: object) -> str:
    """A value as messages show it: short, on one line."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    try:
        return sanitize_text(repr(value) if isinstance(value, str | bytes) else str(value))
    except ValueError:
        return "an integer of thousands of digits"


def require_text(text: str) -> str:
    """The same text; half of a surrogate pair, which is not a character, raises `MisfitError`."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as failure:
            raise MisfitError(f"surrogates not allowed at character {failure.start}") from failure
    return text


def decode_blob(text: str) -> bytes:
    """The bytes of a managed blob."""
    try:
        return property_values.decode_blob(text)
    except property_values.ExternalBlobTextError as failure:
        raise MisfitError(f"{failure}, got {format_value(text)}") from failure
    except property_values.ValueTextError as failure:
        raise MisfitError(str(failure)) from failure


def _make_scalar_coercer(scalar: Scalar, *, is_lenient: bool) -> CoerceValue:
    types = _TYPES[scalar]
    is_nullable_misfit = is_lenient and scalar not in TEMPORAL_RANGES
    store = _make_store_coercer(scalar, is_lenient=is_lenient)

    def read(value: Any) -> Any:
        if value is None:
            return None
        if type(value) not in types:
            value = _to_plain_value(value)
            if type(value) not in types:
                if is_nullable_misfit:
                    return None
                raise MisfitError(f"expects {arrow_name_of(scalar)}, got {format_value(value)}")
        return store(value)

    return read


def _make_list_coercer(element: Scalar, name: str, *, is_lenient: bool) -> CoerceValue:
    read_element = _make_scalar_coercer(element, is_lenient=is_lenient)

    def read(value: Any) -> Any:
        if value is None:
            return None
        items = _require_items(value, name)
        if not is_lenient and None in items:
            raise MisfitError("null is not allowed as an element")
        return [read_element(item) for item in items]

    return read


def _make_vector_coercer(dimension: int, name: str) -> CoerceValue:
    read_element = _make_scalar_coercer(Scalar.F32, is_lenient=False)

    def read(value: Any) -> Any:
        if value is None:
            return None
        items = _require_items(value, name)
        if None in items:
            raise MisfitError("null is not allowed as an element")
        if len(items) != dimension:
            raise MisfitError(f"expects {dimension} numbers, got {len(items)}")
        return [read_element(item) for item in items]

    return read


def _require_items(value: Any, name: str) -> list[Any]:
    items = _to_plain_value(value)
    if isinstance(items, list | tuple):
        return list(items)
    raise MisfitError(f"expects {name}, got {format_value(items)}")


def _to_plain_value(value: Any) -> Any:
    """What NumPy holds as plain Python, and dates as texts."""
    to_list = getattr(value, "tolist", None)
    plain = value if to_list is None else to_list()
    return plain.isoformat() if isinstance(plain, date) else plain


def _make_store_coercer(scalar: Scalar, *, is_lenient: bool) -> CoerceValue:
    if scalar in FLOATS:
        return partial(_coerce_float, scalar)
    if scalar is Scalar.STRING:
        return require_text
    if scalar is Scalar.BOOL:
        return bool
    if scalar is Scalar.BLOB:
        return lambda value: value if isinstance(value, bytes) else decode_blob(value)
    low, high = _BOUNDS[scalar]
    parse = _PARSERS.get(scalar)

    def read(value: Any) -> int:
        if parse is not None and isinstance(value, str):
            value = parse(value, is_lenient)
        if not low <= value <= high:
            raise MisfitError(f"{format_value(value)} exceeds {arrow_name_of(scalar)} range")
        return int(value)

    return read


def _parse_date(text: str, _is_lenient: bool) -> int:
    try:
        return property_values.parse_date(text)
    except property_values.ValueTextError as failure:
        raise MisfitError(sanitize_message(str(failure))) from failure


def _parse_datetime(text: str, is_lenient: bool) -> int:
    try:
        return property_values.parse_datetime(text, is_strict=not is_lenient)
    except property_values.ValueTextError as failure:
        hint = PRECISION_HINT if _is_only_too_precise(text, is_lenient) else None
        raise MisfitError(sanitize_message(str(failure)), hint=hint) from failure


def _is_only_too_precise(text: str, is_lenient: bool) -> bool:
    try:
        property_values.parse_datetime(text)
    except property_values.ValueTextError:
        return False
    return not is_lenient


_PARSERS: dict[Scalar, Callable[[str, bool], int]] = {
    Scalar.DATE: _parse_date,
    Scalar.DATETIME: _parse_datetime,
}


def _coerce_float(scalar: Scalar, value: Any) -> float:
    try:
        return property_values.coerce_number(value, scalar)
    except property_values.InvalidNumberError as misfit:
        raise MisfitError(f"{format_value(value)} {misfit}") from misfit

"""Supplied parameters to values of their declared types.

Every required parameter is demanded and every value checked, used or not, before anything runs.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from functools import partial
from typing import Any, Final, Protocol

from omnigraph.errors import ParameterError, UnknownParameterError
from omnigraph.lang.lexer import Mode
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.query.typed_tree import NOW_NAME, Parameter, Value
from omnigraph.schema.property_types import (
    INTEGER_RANGES,
    NUMERIC,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)
from omnigraph.schema.property_values import (
    InvalidNumberError,
    ValueTextError,
    coerce_number,
    encode_blob,
    parse_date,
    parse_datetime,
)

# The reference has no greater integers, also of type U64.
REFERENCE_INTEGER_MAX = 2**63 - 1
SAFE_INTEGER_MAX = 2**53 - 1
_DECIMAL = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_SHOWN_MAX = 40
# A name this near to a parameter that is left out was meant for it.
_SIMILARITY_MIN = 0.7
# Items of a list that are read between two looks at the budget: 10 milliseconds, one by one.
_ITEMS_PER_POLL: Final = 2**13
# What an item of a list takes besides its text, bound and while it is looked for among the rows:
# its place in the list and in a column, and its place in a table of hashes.
ITEM_BYTES: Final = 64


class ParameterMode(StrEnum):
    """How numbers arrive: standard JSON, or through JavaScript, where all are doubles."""

    STANDARD = "standard"
    JAVASCRIPT = "javascript"


class BindingBudget(Protocol):
    """What a request may use, as far as binding asks for it."""

    def check_interrupts(self) -> None:
        """Raise if the request must stop."""

    def allocate(self, nbytes: int) -> None:
        """Hold memory until the request ends; raises if it cannot have so much."""


class _Unbounded:
    def check_interrupts(self) -> None:
        pass

    def allocate(self, nbytes: int) -> None:
        pass


def bind_parameters(
    parameters: Sequence[Parameter],
    supplied: object,
    *,
    mode: ParameterMode = ParameterMode.STANDARD,
    strictness: Mode = Mode.LENIENT,
    is_partial: bool = False,
    budget: BindingBudget | None = None,
) -> dict[str, Value]:
    """The value of every declared parameter; raises `ParameterError` naming the first bad one.

    `supplied` is a mapping from names without `$`, or None. Undeclared names are ignored, but
    their values must be plain, and none may look like a declared parameter that is left out.
    Strict refuses DateTime digits beyond milliseconds. Of a partial binding, which is only to be
    explained, what is left out is null, or 0.
    """
    given = _as_mapping(supplied)
    reader = _ParameterCoercion(mode, strictness, budget or _Unbounded())
    declared = {parameter.name for parameter in parameters}
    bound = {
        each.name: _make_default(each)
        if is_partial and each.name not in given
        else _bind_parameter(each, given, declared, reader)
        for each in parameters
    }
    for name in given:
        if name not in declared:
            _refuse_extra(name, given[name], reader)
    _refuse_misspelt(declared, given)
    return bound


def _make_default(parameter: Parameter) -> Value:
    if parameter.default is not None:
        return parameter.default.value
    # The bound of a text search must be a number even to be planned.
    is_number = parameter.type.scalar in NUMERIC and not parameter.type.is_nullable
    return 0 if is_number else None


def require_declared(declared: Collection[str], supplied: Mapping[str, object] | None) -> None:
    """Refuse the first name that a query does not declare."""
    for name in supplied or {}:
        if name not in declared and name != NOW_NAME:
            missing = [each for each in declared if each not in (supplied or {})]
            raise UnknownParameterError(
                name, sorted(declared), hint=_suggest_parameter(name, missing)
            )


def _refuse_misspelt(declared: Collection[str], given: Mapping[str, object]) -> None:
    """Refuse a name that was meant for a parameter that may be left out."""
    missing = [each for each in declared if each not in given]
    for name in given:
        if name not in declared and missing and _is_similar(name, missing):
            raise UnknownParameterError(
                name, sorted(declared), hint=_suggest_parameter(name, missing)
            )


def _is_similar(name: str, names: Collection[str]) -> bool:
    return bool(get_close_matches(name.removeprefix("$"), names, n=1, cutoff=_SIMILARITY_MIN))


def _suggest_parameter(name: str, declared: Collection[str]) -> str | None:
    plain = name.removeprefix("$")
    if plain in declared:
        return f"write '{plain}' without $"
    return suggest_similar(plain, declared)


_PARAMS_HINT: Final = 'write {"name": value}, with names without $'


def _as_mapping(supplied: object) -> Mapping[str, object]:
    if supplied is None:
        return {}
    if not isinstance(supplied, Mapping):
        raise ParameterError(
            f"params must be a JSON object, got {_describe_value(supplied)}", hint=_PARAMS_HINT
        )
    for name in supplied:
        if not isinstance(name, str):
            raise ParameterError(
                f"the name of a parameter is a text, got {_describe_value(name)}", hint=_PARAMS_HINT
            )
    return supplied


def _bind_parameter(
    parameter: Parameter,
    given: Mapping[str, object],
    declared: set[str],
    reader: _ParameterCoercion,
) -> Value:
    name, type_ = parameter.name, parameter.type
    if name not in given and parameter.default is not None:
        return parameter.default.value
    if given.get(name) is None:
        if type_.is_nullable:
            return None
        if name in given:
            raise ParameterError(
                f"null is not accepted for non-nullable parameter '{name}' ({type_})",
                hint=f"supply a value, or declare it as {type_}?",
            )
        raise ParameterError(
            f"parameter '{name}' not provided; it is required ({type_})",
            hint=_suggest_supplied(name, given, declared),
        )
    try:
        return reader.coerce_value(type_, given[name])
    except _InvalidValueError as refusal:
        raise ParameterError(f"parameter '{name}': {refusal}", hint=refusal.hint) from refusal


def _suggest_supplied(name: str, given: Mapping[str, object], declared: set[str]) -> str | None:
    if f"${name}" in given:
        return f"write '{name}' without $"
    close = [each for each in given if each not in declared and suggest_similar(each, [name])]
    return f"'{close[0]}' is not declared; did you mean '{name}'?" if close else None


def _refuse_extra(name: str, value: object, reader: _ParameterCoercion) -> None:
    if name == NOW_NAME:
        raise ParameterError(f"parameter '{name}' is reserved for now() and cannot be supplied")
    try:
        reader.require_acceptable(value)
    except _InvalidValueError as refusal:
        raise ParameterError(
            f"parameter '{name}': {refusal}", hint=refusal.hint or "the query does not declare it"
        ) from refusal


# ---- values ----


class _InvalidValueError(Exception):
    """A value that does not fit, with what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class _ParameterCoercion:
    """Reads supplied values at their declared types."""

    def __init__(self, mode: ParameterMode, strictness: Mode, budget: BindingBudget) -> None:
        self._budget = budget
        self._is_javascript = mode is ParameterMode.JAVASCRIPT
        self._is_strict = strictness is Mode.STRICT
        self._integer_max = REFERENCE_INTEGER_MAX if self._is_strict else 2**64 - 1

    def coerce_value(self, type_: PropertyType, value: object) -> Value:
        """A value of a type."""
        match type_.value:
            case ScalarType(scalar):
                return self._scalar_coercion_of(scalar)(value)
            case EnumType():
                return _require_text("String", value)
            case ListType(element):
                return self._coerce_items(type_.value, value, element)
            case VectorType(dimension):
                vector = self._coerce_items(type_.value, value, Scalar.F32)
                if len(vector) != dimension:
                    raise _InvalidValueError(f"expected {dimension} numbers, got {len(vector)}")
                return vector

    def require_acceptable(self, value: object, *, is_item: bool = False) -> None:
        """Refuse a value that no parameter could have."""
        match value:
            case None | bool() | str() | bytes():
                pass
            case int():
                self._coerce_integer(Scalar.I64, value)
            case float():
                _coerce_float(Scalar.F64, value)
            case list() | tuple() if not is_item:
                for _, part in self._split_items(value):
                    for item in part:
                        self.require_acceptable(item, is_item=True)
            case _:
                raise _InvalidValueError(f"{_describe_value(value)} is not accepted as a value")

    def _coerce_items(self, type_: ValueType, value: object, scalar: Scalar) -> tuple[Value, ...]:
        if not isinstance(value, list | tuple):
            raise _InvalidValueError(f"expected {type_}, got {_describe_value(value)}")
        read = self._scalar_coercion_of(scalar)
        self._budget.allocate(ITEM_BYTES * len(value))
        items: list[Value] = []
        for start, part in self._split_items(value):
            plain = self._coerce_plain_items(scalar, part)
            items += _coerce_each(part, read, first=start + 1) if plain is None else plain
        return tuple(items)

    def _split_items(self, value: Sequence[object]) -> Iterator[tuple[int, Sequence[object]]]:
        """The items of a list, and the place of the first of them, as long as there is time."""
        for start in range(0, len(value), _ITEMS_PER_POLL):
            self._budget.check_interrupts()
            yield start, value[start : start + _ITEMS_PER_POLL]

    def _coerce_plain_items(self, scalar: Scalar, items: Any) -> Sequence[Value] | None:
        """Items that can be read together, none of them in Python; None when each has to be."""
        # Any: what types the items have is what is asked here.
        types = set(map(type, items))
        found: Sequence[Value] | None = None
        match scalar:
            case Scalar.STRING if types == {str}:
                self._budget.allocate(sum(map(len, items)))
                found = items
            case Scalar.BOOL if types == {bool}:
                found = items
            case Scalar.F32 | Scalar.F64 if types <= {int, float}:
                found = _coerce_floats("f" if scalar is Scalar.F32 else "d", items)
            case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64 if types == {int}:
                low, high = INTEGER_RANGES[scalar]
                most = SAFE_INTEGER_MAX if self._is_javascript else self._integer_max
                is_within = max(low, -most) <= min(items) and max(items) <= min(high, most)
                found = items if is_within else None
            case _:
                pass
        return found

    def _scalar_coercion_of(self, scalar: Scalar) -> Callable[[object], Value]:
        match scalar:
            case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
                return partial(self._coerce_integer, scalar)
            case Scalar.F32 | Scalar.F64:
                return partial(_coerce_float, scalar)
            case Scalar.BOOL:
                return _require_boolean
            case Scalar.DATE:
                return _coerce_date
            case Scalar.DATETIME:
                return self._coerce_datetime
            case Scalar.STRING:
                return partial(_require_text, str(scalar))
            case Scalar.BLOB:
                return _coerce_blob
            case Scalar.DURATION:
                raise AssertionError("no parameter is declared so")

    def _coerce_integer(self, scalar: Scalar, value: object) -> int:
        number = self._coerce_whole_number(scalar, value)
        if scalar is Scalar.U64 and number > self._integer_max:
            limit = self._integer_max
            raise _InvalidValueError(
                f"{_format_value(number)} exceeds current engine range ({limit})"
            )
        return int(_coerce_finite(number, scalar))

    def _coerce_whole_number(self, scalar: Scalar, value: object) -> int:
        if isinstance(value, str):
            if _DECIMAL.fullmatch(value) is None:
                raise _InvalidValueError(f"expected {scalar}, got the text {_format_value(value)}")
            return int(value)
        if isinstance(value, float) and self._is_javascript and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise _InvalidValueError(f"expected {scalar}, got {_describe_value(value)}")
        if self._is_javascript and abs(value) > SAFE_INTEGER_MAX:
            raise _InvalidValueError(
                f"{_format_value(value)} is beyond the integers JavaScript keeps exact",
                hint="pass it as a decimal string",
            )
        return value

    def _coerce_datetime(self, value: object) -> int:
        text = _require_text("DateTime", value)
        try:
            return parse_datetime(text, is_strict=self._is_strict)
        except ValueTextError as failure:
            raise _InvalidValueError(
                str(failure), hint="write it like 2024-05-06T07:08:09Z"
            ) from failure


def _coerce_each(
    items: Sequence[object], read: Callable[[object], Value], *, first: int
) -> Iterator[Value]:
    for number, item in enumerate(items, first):
        try:
            if item is None:
                raise _InvalidValueError("null is not accepted inside a list")
            yield read(item)
        except _InvalidValueError as refusal:
            raise _InvalidValueError(f"item {number}: {refusal}", hint=refusal.hint) from refusal


def _coerce_floats(code: str, numbers: Sequence[float]) -> Sequence[float] | None:
    """Numbers as floats of a type, or None when one of them does not fit."""
    try:
        kept = array(code, numbers)
    except OverflowError:
        return None
    return kept if all(map(math.isfinite, kept)) else None


def _require_text(type_name: str, value: object) -> str:
    if isinstance(value, bytes):
        raise _InvalidValueError(
            f"expected {type_name} (a string), got bytes",
            hint="decode them to a text, or declare the parameter as Blob",
        )
    if not isinstance(value, str):
        raise _InvalidValueError(f"expected {type_name} (a string), got {_describe_value(value)}")
    return value


def _coerce_blob(value: object) -> str:
    if isinstance(value, bytes):
        return encode_blob(value)
    return _require_text("Blob", value)


def _require_boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise _InvalidValueError(f"expected Bool, got {_describe_value(value)}")
    return value


def _coerce_date(value: object) -> int:
    try:
        return parse_date(_require_text("Date", value))
    except ValueTextError as failure:
        raise _InvalidValueError(str(failure), hint="write it like 2024-05-06") from failure


def _coerce_float(scalar: Scalar, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _InvalidValueError(f"expected {scalar}, got {_describe_value(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise _InvalidValueError(f"{value} is not a finite number")
    return _coerce_finite(value, scalar)


def _coerce_finite(value: int | float, scalar: Scalar) -> int | float:
    try:
        return coerce_number(value, scalar)
    except InvalidNumberError as misfit:
        raise _InvalidValueError(f"{_format_value(value)} {misfit}") from misfit


# ---- messages ----


def _describe_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return _format_value(value)
        case str():
            return f"the text {_format_value(value)}"
        case bytes():
            return "bytes"
        case list() | tuple():
            return "an array"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def _format_value(value: float | str) -> str:
    if isinstance(value, int) and abs(value) >= 10**_SHOWN_MAX:
        return "an integer of too many digits"
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"

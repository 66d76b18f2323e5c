"""Which types the values of a property can be brought to without a loss.

Values of two types that are stored alike stay where they are. A wider type holds every value of a
narrower one; F64 holds integers up to 2**53. Any other conversion may lose values, so all of them
have to survive it and the way back.
"""

from __future__ import annotations

from typing import Final

from omnigraph.schema.catalog import Property
from omnigraph.schema.property_types import (
    INTEGERS,
    NUMERIC,
    EnumType,
    Scalar,
    ScalarType,
    ValueType,
)

_WIDER: Final = {
    Scalar.I32: frozenset({Scalar.I64, Scalar.F64}),
    Scalar.U32: frozenset({Scalar.I64, Scalar.U64, Scalar.F64}),
    Scalar.I64: frozenset({Scalar.F64}),
    Scalar.U64: frozenset({Scalar.F64}),
    Scalar.F32: frozenset({Scalar.F64}),
}
# Integers of these types may lie beyond those that F64 holds exactly.
_LONG: Final = frozenset({Scalar.I64, Scalar.U64})
_SPELLED: Final = NUMERIC | {Scalar.BOOL, Scalar.DATE, Scalar.DATETIME}
_TIMES: Final = frozenset({Scalar.DATE, Scalar.DATETIME})


def are_stored_alike(old: ValueType, new: ValueType) -> bool:
    """Whether values of both types lie in one column: enums and Strings are texts."""
    return _find_stored_form(old) == _find_stored_form(new)


def is_filled(old: Property, new: Property) -> bool:
    """Whether nulls of a property get its default, because it becomes required."""
    return (
        old.type.is_nullable
        and not new.type.is_nullable
        and new.default is not None
        and are_stored_alike(old.type.value, new.type.value)
    )


def is_widening(old: ValueType, new: ValueType) -> bool:
    """Whether a type holds the values of another one, long integers in F64 aside."""
    match old, new:
        case ScalarType(before), ScalarType(after):
            return after in _WIDER.get(before, ())
        case _:
            return False


def may_lose_values(old: ValueType, new: ValueType) -> bool:
    """Whether a wider type lacks some values of the narrower one."""
    return isinstance(old, ScalarType) and old.scalar in _LONG and new == ScalarType(Scalar.F64)


def can_convert(old: ValueType, new: ValueType) -> bool:
    """Whether values of a type can be made of those of another one."""
    match old, new:
        case ScalarType(before), ScalarType(after):
            kinds = {before, after}
            if Scalar.STRING in kinds:
                return bool((kinds - {Scalar.STRING}) & _SPELLED)
            return before != after and (kinds <= NUMERIC or kinds <= _TIMES)
        case _:
            return False


def keeps_ids(old: ValueType, new: ValueType) -> bool:
    """Whether the id of an entity stays if its key is converted: integers are spelled alike."""
    match old, new:
        case ScalarType(before), ScalarType(after):
            return {before, after} <= INTEGERS
        case _:
            return False


def _find_stored_form(value: ValueType) -> ValueType:
    return ScalarType(Scalar.STRING) if isinstance(value, EnumType) else value

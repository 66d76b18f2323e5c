"""Which constraint fits which property type."""

from __future__ import annotations

from typing import assert_never

from omnigraph.schema.catalog import ConstraintKind
from omnigraph.schema.types import EnumType, ListType, PropertyType, Scalar, ScalarType, VectorType


def find_type_mismatch(constraint: ConstraintKind, type_: PropertyType) -> str | None:
    """Why a constraint does not fit a type, or None when it does."""
    match constraint:
        case ConstraintKind.KEY:
            if type_.is_nullable:
                return f"a nullable property ({type_}) cannot be part of a key"
            return _find_shape_mismatch(type_, "be part of a key", takes_vectors=False)
        case ConstraintKind.UNIQUE:
            return _find_shape_mismatch(type_, "be unique", takes_vectors=False)
        case ConstraintKind.INDEX:
            return _find_shape_mismatch(type_, "be indexed", takes_vectors=True)
        case ConstraintKind.RANGE:
            return None if type_.is_numeric else f"@range needs a number, not {type_}"
        case ConstraintKind.CHECK:
            is_text = isinstance(type_.value, EnumType) or type_.value == ScalarType(Scalar.STRING)
            return None if is_text else f"@check needs a String or an enum, not {type_}"
        case _:
            assert_never(constraint)


def _find_shape_mismatch(type_: PropertyType, what: str, *, takes_vectors: bool) -> str | None:
    match type_.value:
        case ListType():
            return f"a list ({type_}) cannot {what}"
        case VectorType() if not takes_vectors:
            return f"a vector ({type_}) cannot {what}"
        case ScalarType(Scalar.BLOB):
            return f"a Blob cannot {what}"
        case _:
            return None

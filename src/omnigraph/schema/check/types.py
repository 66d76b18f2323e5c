"""Written types to property types."""

from __future__ import annotations

from typing import assert_never

from omnigraph.diagnostics import Collector
from omnigraph.schema import ast
from omnigraph.schema.types import (
    VECTOR_DIMENSION_MAX,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)


def resolve_type(syntax: ast.TypeSyntax, collector: Collector) -> PropertyType | None:
    """The type a text means, or None when it is refused."""
    value = _resolve_value_type(syntax, collector)
    return PropertyType(value, syntax.is_nullable) if value else None


def _resolve_value_type(syntax: ast.TypeSyntax, collector: Collector) -> ValueType | None:
    match syntax.core:
        case ast.ScalarSyntax(scalar):
            return ScalarType(scalar)
        case ast.ListSyntax(Scalar.BLOB):
            collector.report_error("S002", syntax.span, "list of Blob is not supported")
            return None
        case ast.ListSyntax(element):
            return ListType(element)
        case ast.VectorSyntax(dimension):
            if 1 <= dimension <= VECTOR_DIMENSION_MAX:
                return VectorType(dimension)
            message = f"a vector dimension is between 1 and {VECTOR_DIMENSION_MAX}"
            collector.report_error("S002", syntax.span, message)
            return None
        case ast.EnumSyntax(values):
            return _resolve_enum(values, collector)
        case _ as unreachable:
            assert_never(unreachable)


def _resolve_enum(values: tuple[ast.Name, ...], collector: Collector) -> EnumType | None:
    seen: set[str] = set()
    for value in values:
        if value.text in seen:
            message = f"duplicate enum value '{value.text}'"
            collector.report_error("S002", value.span, message, hint="list every value once")
        seen.add(value.text)
    return EnumType(tuple(sorted(seen))) if len(seen) == len(values) else None

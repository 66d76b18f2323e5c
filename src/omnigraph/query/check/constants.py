"""Constants: expressions over literals, parameters and `now()`, and how they fit properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.diagnostics import Span, sanitize_text
from omnigraph.query import ast, typed
from omnigraph.query.check.comparisons import element_of, scalar_of
from omnigraph.query.check.context import CheckContext
from omnigraph.query.check.expressions import LeafExpr, check_expression
from omnigraph.query.check.literals import are_compatible, is_empty_list, refuse_variable
from omnigraph.schema.types import (
    NUMERIC,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)
from omnigraph.schema.values import InvalidNumberError, coerce_number


@dataclass(frozen=True, slots=True)
class Target:
    """The property that gets a constant, and how messages name it."""

    name: str
    type: PropertyType


class InvalidLiteralError(ValueError):
    """A literal that a type cannot hold."""


def check_constant(context: CheckContext, expr: ast.Expr) -> typed.Expr | None:
    """An expression that reads no entity."""

    def leaf(leaf_expr: LeafExpr) -> None:
        _refuse_in_constant(context, leaf_expr)

    return check_expression(context, expr, leaf)


def code_of(value: typed.Expr) -> str:
    """The code of a constant that does not fit: T3 for literals, T7 for everything else."""
    return "T3" if isinstance(value, typed.Constant | typed.ListOf) else "T7"


def coerce_assigned(
    context: CheckContext, value: typed.Expr, target: Target, span: Span
) -> typed.Expr | None:
    """A constant as it is stored in a property."""
    try:
        stored = _coerce_constant(value, target.type)
    except InvalidLiteralError as misfit:
        context.report_error(code_of(value), span, f"'{target.name}': {misfit}")
        return None
    if stored is None:
        hint = "pass it as a parameter" if target.type.is_blob else None
        context.report_error(
            code_of(value),
            span,
            f"cannot assign {value.type} to '{target.name}', which is {target.type}",
            hint=hint,
        )
    return stored


def check_enum_member(context: CheckContext, value: typed.Expr, target: Target, span: Span) -> bool:
    """Whether a String literal is in the set of an enum property; reports it if not."""
    enum = target.type.value
    if not isinstance(enum, EnumType) or not isinstance(value, typed.Constant):
        return True
    word = value.value
    if not isinstance(word, str) or word in enum.values:
        return True
    context.report_error(
        "T3",
        span,
        f"'{sanitize_text(word)}' is not a value of '{target.name}': {enum}",
        hint=context.suggest_similar(word, enum.values),
    )
    return False


def _coerce_constant(value: typed.Expr, type_: PropertyType) -> typed.Expr | None:
    match type_.value:
        case ScalarType(scalar=Scalar.BLOB):
            is_fit = isinstance(value, typed.ParameterValue)
            return value if is_fit and scalar_of(value) in (Scalar.STRING, Scalar.BLOB) else None
        case ListType(element):
            return _coerce_list(value, element)
        case VectorType(dimension):
            return as_vector(value, dimension)
        case _:
            return _coerce_scalar(value, type_)


def _coerce_scalar(value: typed.Expr, type_: PropertyType) -> typed.Expr | None:
    scalar = type_.scalar
    if scalar is None or not are_compatible(scalar_of(value), scalar):
        return None
    if not isinstance(value, typed.Constant):
        return value
    return typed.Constant(_coerce_value(value.value, scalar), type_.as_nullable(False))


def _coerce_list(value: typed.Expr, element: Scalar) -> typed.Expr | None:
    type_ = PropertyType(ListType(element))
    if is_empty_list(value):
        return typed.Constant((), type_)
    if not are_compatible(element_of(value), element):
        return None
    match value:
        case typed.Constant(tuple(items)):
            return typed.Constant(tuple(_coerce_value(item, element) for item in items), type_)
        case typed.ListOf(items):
            return typed.ListOf(_coerce_items(items, element), type_)
        case _:
            return value


def as_vector(value: typed.Expr, dimension: int) -> typed.Expr | None:
    """A constant as a vector; None if it has another type, `Misfit` if its numbers do not fit."""
    type_ = PropertyType(VectorType(dimension))
    match value:
        case typed.Constant(tuple(items)) | typed.ListOf(items):
            if items and element_of(value) not in NUMERIC:
                return None
            if len(items) != dimension:
                raise InvalidLiteralError(f"{type_} needs {dimension} numbers, got {len(items)}")
    match value:
        case typed.Constant(tuple(items)):
            return typed.Constant(tuple(_coerce_value(item, Scalar.F32) for item in items), type_)
        case typed.ListOf(items):
            return typed.ListOf(_coerce_items(items, Scalar.F32), type_)
        case _:
            if isinstance(value.type, typed.NodeObject) or value.type.value != type_.value:
                return None
            return value


def _coerce_items(items: Sequence[typed.Expr], scalar: Scalar) -> tuple[typed.Expr, ...]:
    return tuple(
        typed.Constant(_coerce_value(item.value, scalar), PropertyType(ScalarType(scalar)))
        if isinstance(item, typed.Constant)
        else item
        for item in items
    )


def _coerce_value(value: typed.Value, scalar: Scalar) -> typed.Value:
    if scalar not in NUMERIC or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        return coerce_number(value, scalar)
    except InvalidNumberError as misfit:
        raise InvalidLiteralError(f"{value} {misfit}") from misfit


def _refuse_in_constant(context: CheckContext, leaf: LeafExpr) -> None:
    match leaf:
        case ast.Variable(name, span):
            refuse_variable(context, name, span)
        case ast.PropertyAccess() | ast.SystemAccess() | ast.SystemField() | ast.Identifier():
            context.report_error(
                "T45",
                leaf.span,
                f"a constant is needed, got '{context.source_text_of(leaf.span)}'",
                hint="a constant is built from literals, parameters and now()",
            )
        case _:
            context.report_error(
                "T44", leaf.span, "an aggregate, search or rank call cannot stand in a constant"
            )

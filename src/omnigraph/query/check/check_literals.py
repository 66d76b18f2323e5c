"""Literals: their natural types, and their conversion to the type they are compared with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import assert_never

from omnigraph.lang.source_text import Span
from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.schema.property_types import (
    FLOATS,
    INTEGER_RANGES,
    INTEGERS,
    NUMERIC,
    ListType,
    PropertyType,
    Scalar,
    make_scalar_type,
)
from omnigraph.schema.property_values import (
    InvalidNumberError,
    ValueTextError,
    coerce_number,
    parse_date,
    parse_datetime,
)

# Bound once: to look a member up in its enum takes Python longer than to compare it.
_BLOB = Scalar.BLOB
_I64 = make_scalar_type(Scalar.I64)
_U64 = make_scalar_type(Scalar.U64)
_I64_MIN, _I64_MAX = INTEGER_RANGES[Scalar.I64]
LiteralValue = typed_tree.Constant | typed_tree.ListOf


def check_literal(context: CheckContext, literal: ast.Literal) -> LiteralValue | None:
    """The value of a literal at its natural type; a list with parameters stays a list of items."""
    match literal:
        case ast.IntegerLiteral(value):
            return typed_tree.Constant(value, _I64 if value <= _I64_MAX else _U64)
        case ast.FloatLiteral():
            return _check_float(context, literal)
        case ast.StringLiteral(text):
            return typed_tree.Constant(text, typed_tree.STRING)
        case ast.BooleanLiteral(is_true):
            return typed_tree.Constant(is_true, typed_tree.BOOL)
        case ast.DateLiteral(text, span):
            return _check_date(context, text, span)
        case ast.DateTimeLiteral(text, span):
            return _check_datetime(context, text, span)
        case ast.ListLiteral():
            return _check_list(context, literal)
        case _:
            assert_never(literal)


def find_parameter_value(context: CheckContext, name: str) -> typed_tree.ParameterValue | None:
    """A declared parameter, or None when its declaration is wrong."""
    type_ = context.parameters[name]
    return None if type_ is None else typed_tree.ParameterValue(name, type_)


def refuse_variable(context: CheckContext, name: str, span: Span) -> None:
    """Report a variable where only a parameter can stand."""
    if name in context.records:
        hint = f"write for $row in ${name} {{ … }}, and in it the fields of a record, as $row.name"
        context.report_error("T128", span, f"'${name}' is a list of records", hint=hint)
        return
    if name in context.value_variables:
        hint = f"compare it after the braces: $v.name = ${name}"
        message = f"'${name}' is not a parameter, and only a constant can stand here"
        context.report_error("T14", span, message, hint=hint)
        return
    context.report_error(
        "T14",
        span,
        f"'${name}' is not a declared parameter",
        hint=context.suggest_similar(name, context.parameters),
    )


def make_list_type(element: Scalar) -> PropertyType:
    """The type of a list that is never null."""
    return PropertyType(ListType(element))


def is_empty_list(value: typed_tree.Expr) -> bool:
    """Whether this is the literal `[]`, which fits every element type."""
    return isinstance(value, typed_tree.Constant) and value.value == ()


def scalar_of(value: typed_tree.Expr) -> Scalar | None:
    """The base type of a scalar expression; None for lists, vectors and nodes."""
    type_ = value.type
    return None if isinstance(type_, typed_tree.NodeObject) else type_.scalar


def are_compatible(left: Scalar | None, right: Scalar | None) -> bool:
    """Whether values of two base types can be compared: the same type, or both numbers."""
    if left is None or right is None or left is _BLOB or right is _BLOB:
        return False
    return left is right or (left in NUMERIC and right in NUMERIC)


def coerce_literal(value: typed_tree.Expr, scalar: Scalar | None) -> typed_tree.Expr:
    """A literal (or the literals of a list) at the base type it is compared with.

    A decimal literal is rounded for a 32-bit property; every other number is converted only where
    this changes nothing, because comparisons are exact. What is not a literal stays as it is.
    """
    if scalar is None or scalar_of(value) is scalar:
        return value
    match value:
        case typed_tree.Constant(tuple(items), type_) if isinstance(type_.value, ListType):
            constants = [
                _coerce_for_comparison(item, type_.value.element, scalar) for item in items
            ]
            is_uniform = all(constant.type.scalar is scalar for constant in constants)
            element = scalar if is_uniform else type_.value.element
            return typed_tree.Constant(
                tuple(constant.value for constant in constants), make_list_type(element)
            )
        case typed_tree.Constant(plain, type_) if type_.scalar is not None:
            return _coerce_for_comparison(plain, type_.scalar, scalar)
        case typed_tree.ListOf(items, type_):
            compared = tuple(coerce_literal(item, scalar) for item in items)
            common = _find_common_scalar(
                each.type.scalar for each in compared if isinstance(each.type, PropertyType)
            )
            return typed_tree.ListOf(compared, type_ if common is None else make_list_type(common))
        case _:
            return value


def _coerce_for_comparison(
    value: typed_tree.Value, natural: Scalar, scalar: Scalar
) -> typed_tree.Constant:
    unchanged = typed_tree.Constant(value, make_scalar_type(natural))
    if scalar not in NUMERIC or natural not in NUMERIC or isinstance(value, bool):
        return unchanged
    assert isinstance(value, int | float)
    try:
        kept = coerce_number(value, scalar)
    except InvalidNumberError:
        return unchanged
    is_kept = kept == value or natural in FLOATS
    return typed_tree.Constant(kept, make_scalar_type(scalar)) if is_kept else unchanged


def _check_float(context: CheckContext, literal: ast.FloatLiteral) -> typed_tree.Constant | None:
    value = float(literal.text)
    if not math.isfinite(value):
        context.report_error("T3", literal.span, "the number is too large for F64")
        return None
    return typed_tree.Constant(value, typed_tree.F64)


def _check_date(context: CheckContext, text: str, span: Span) -> typed_tree.Constant | None:
    try:
        return typed_tree.Constant(parse_date(text), make_scalar_type(Scalar.DATE))
    except ValueTextError as failure:
        context.report_error("T3", span, str(failure), hint='a date is written "YYYY-MM-DD"')
        return None


def _check_datetime(context: CheckContext, text: str, span: Span) -> typed_tree.Constant | None:
    try:
        return typed_tree.Constant(parse_datetime(text, is_strict=True), typed_tree.DATETIME)
    except ValueTextError as failure:
        try:
            value = parse_datetime(text)
        except ValueTextError as malformed:
            hint = 'a timestamp is written "YYYY-MM-DDTHH:MM:SSZ"'
            context.report_error("T3", span, str(malformed), hint=hint)
            return None
        message = str(failure) if context.is_strict else "digits beyond milliseconds are cut off"
        context.report_deprecated(("T3", "L316"), span, message)
        return typed_tree.Constant(value, typed_tree.DATETIME)


def _check_list(context: CheckContext, literal: ast.ListLiteral) -> LiteralValue | None:
    items = [_check_item(context, item) for item in literal.items]
    known = [item for item in items if item is not None]
    if len(known) < len(items):
        return None
    element = _find_common_scalar({item.type.scalar for item in known})
    if element is Scalar.I64 and Scalar.U64 in {item.type.scalar for item in known}:
        element = _find_common_integer(known)
    if element is None:
        kinds = dict.fromkeys(str(item.type) for item in known)
        context.report_error(
            "T103", literal.span, f"list items have no common type: {', '.join(list(kinds)[:4])}"
        )
        return None
    context.collector.poll()
    values = tuple(known if element not in FLOATS else (_widen_item(i, element) for i in known))
    if all(isinstance(value, typed_tree.Constant) for value in values):
        plain = tuple(value.value for value in values if isinstance(value, typed_tree.Constant))
        return typed_tree.Constant(plain, make_list_type(element))
    return typed_tree.ListOf(values, make_list_type(element))


def _check_item(
    context: CheckContext, item: ast.Expr
) -> typed_tree.Constant | typed_tree.ParameterValue | None:
    context.collector.poll()
    if isinstance(item, ast.Variable):
        return _check_parameter_item(context, item.name, item.span)
    if isinstance(item, ast.ListLiteral):
        context.report_error("T103", item.span, "a list cannot hold lists")
        return None
    if isinstance(item, ast.Minus):
        positive = _check_item(context, item.operand)
        return None if positive is None else build_negative(context, positive, item.span)
    if isinstance(item, ast.Literal):
        value = check_literal(context, item)
        assert not isinstance(value, typed_tree.ListOf)
        return value
    context.report_error("T45", item.span, "a list holds literals and parameters only")
    return None


def build_negative(
    context: CheckContext, value: typed_tree.Expr, span: Span
) -> typed_tree.Constant | None:
    """The literal with the other sign."""
    match value:
        case typed_tree.Constant(int() as number) if scalar_of(value) in INTEGERS:
            if -number < _I64_MIN:
                context.report_error("T3", span, f"integer is less than {_I64_MIN}")
                return None
            return typed_tree.Constant(-number, _I64 if -number <= _I64_MAX else _U64)
        case typed_tree.Constant(float() as number, type_):
            return typed_tree.Constant(-number, type_)
        case _:
            context.report_error("T110", span, f"'-' needs a number; got {value.type}")
            return None


def _check_parameter_item(
    context: CheckContext, name: str, span: Span
) -> typed_tree.ParameterValue | None:
    if name not in context.parameters:
        refuse_variable(context, name, span)
        return None
    parameter = find_parameter_value(context, name)
    if parameter is not None and (parameter.type.scalar is None or parameter.type.is_blob):
        context.report_error("T103", span, f"a list cannot hold a {parameter.type.value}")
        return None
    return parameter


def _find_common_scalar(scalars: Iterable[Scalar | None]) -> Scalar | None:
    distinct = set(scalars)
    if not distinct:
        return Scalar.STRING
    if len(distinct) == 1:
        return distinct.pop()
    if not distinct <= NUMERIC:
        return None
    return Scalar.F64 if distinct & FLOATS else Scalar.I64


def _find_common_integer(
    items: Iterable[typed_tree.Constant | typed_tree.ParameterValue],
) -> Scalar | None:
    """The type of integers of which some are U64: I64 if one may be below zero."""
    constants = [each.value for each in items if isinstance(each, typed_tree.Constant)]
    numbers = [each for each in constants if isinstance(each, int)]
    declared = {each.type.scalar for each in items if isinstance(each, typed_tree.ParameterValue)}
    if min(numbers, default=0) >= 0 and declared <= {Scalar.U32, Scalar.U64}:
        return Scalar.U64
    return Scalar.I64 if max(numbers, default=0) <= _I64_MAX else None


def _widen_item(
    item: typed_tree.Constant | typed_tree.ParameterValue, element: Scalar
) -> typed_tree.Constant | typed_tree.ParameterValue:
    if isinstance(item, typed_tree.Constant) and isinstance(item.value, int):
        return typed_tree.Constant(float(item.value), make_scalar_type(element))
    return item


def check_row_count(
    context: CheckContext, word: str, count: int | ast.Variable | None
) -> typed_tree.RowCount | None:
    """A number of rows: a literal, or a parameter with an integer."""
    if count is None or isinstance(count, int):
        return count
    value = None
    if count.name in context.parameters:
        value = find_parameter_value(context, count.name)
        if value is None or value.type.scalar in INTEGERS:
            return value
    got = f"${count.name} is not a parameter" if value is None else f"got {value.type}"
    context.report_error(
        "T121", count.span, f"'{word}' needs an integer or a parameter with one; {got}"
    )
    return None

"""Expressions: operators over leaves, where each position says which leaves it takes.

Literals, parameters and `now()` mean the same everywhere. Every other leaf (a variable, a property,
a bare word, a call) is handed to the `Leaf` of the position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never, get_args

from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.source_text import Span
from omnigraph.lang.tree_nodes import tree_node
from omnigraph.query import ast, typed_tree
from omnigraph.query.check import check_operators
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_functions import (
    NULL,
    check_arithmetic,
    check_call,
    check_case,
    check_minus,
)
from omnigraph.query.check.check_literals import (
    are_compatible,
    check_literal,
    find_parameter_value,
    is_empty_list,
    refuse_variable,
    scalar_of,
)
from omnigraph.query.check.check_operators import element_of
from omnigraph.query.check.check_type_tests import check_type_test
from omnigraph.query.check.variable_scope import Scope, check_property, check_system, check_variable
from omnigraph.query.query_dialect_hints import WORD_HINTS
from omnigraph.schema.property_types import (
    NUMERIC,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)
from omnigraph.schema.property_values import InvalidNumberError, coerce_number

LeafExpr = (
    ast.Variable
    | ast.PropertyAccess
    | ast.SystemAccess
    | ast.SystemField
    | ast.Identifier
    | ast.TextPredicate
    | ast.RankCall
    | ast.AggregateCall
    | ast.BlockValue
    | ast.TypeTest
)
Leaf = Callable[[LeafExpr], typed_tree.Expr | None]
Operator = (
    ast.Comparison | ast.TextTest | ast.Membership | ast.NullTest | ast.And | ast.Or | ast.Not
)
# `isinstance` with a union is slow.
_NUMBERS = (int, float)
_LITERALS = frozenset(get_args(ast.Literal))
_OPERATORS = frozenset(get_args(Operator))
_COMPUTATIONS = frozenset(get_args(ast.Computation))


def check_expression(context: CheckContext, expr: ast.Expr, leaf: Leaf) -> typed_tree.Expr | None:
    """The typed form of an expression, or None when something in it is wrong and reported."""
    context.collector.poll()
    kind = type(expr)
    if kind in _LITERALS:
        return check_literal(context, expr)  # type: ignore[arg-type]  # by its table
    if kind in _OPERATORS:
        return _check_operator(context, expr, leaf)  # type: ignore[arg-type]  # by its table
    if isinstance(expr, ast.Variable) and expr.name in context.parameters:
        return find_parameter_value(context, expr.name)
    if kind in _COMPUTATIONS:
        return _check_computation(context, expr, leaf)  # type: ignore[arg-type]  # by its table
    if isinstance(expr, ast.NullLiteral):
        return NULL
    if isinstance(expr, ast.AllRows):
        return typed_tree.EVERY_ROW
    if isinstance(expr, ast.Now):
        return typed_tree.NowValue()
    return leaf(expr)  # type: ignore[arg-type]  # all that is left


def _check_operator(context: CheckContext, expr: Operator, leaf: Leaf) -> typed_tree.Expr | None:
    def check(operand: ast.Expr) -> typed_tree.Expr | None:
        return check_expression(context, operand, leaf)

    match expr:
        case ast.Comparison(_, left, right):
            return check_operators.check_comparison(context, expr, check(left), check(right))
        case ast.TextTest(_, left, right):
            return check_operators.check_text_test(context, expr, check(left), check(right))
        case ast.Membership(item, items):
            return check_operators.check_membership(context, expr, check(item), check(items))
        case ast.NullTest(operand):
            return check_operators.check_null_test(context, expr, check(operand))
        case ast.Not(operand):
            return check_operators.check_negation(context, (check(operand), operand.span))
        case ast.And(operands) | ast.Or(operands):
            word = "and" if isinstance(expr, ast.And) else "or"
            checked = [(check(operand), operand.span) for operand in operands]
            return check_operators.check_logical(context, word, checked)
        case _:
            assert_never(expr)


def _check_computation(
    context: CheckContext, expr: ast.Computation, leaf: Leaf
) -> typed_tree.Expr | None:
    def check(operand: ast.Expr) -> typed_tree.Expr | None:
        return check_expression(context, operand, leaf)

    match expr:
        case ast.FunctionCall(_, arguments, options):
            named = {each.name.text: check(each.value) for each in options}
            return check_call(context, expr, [check(each) for each in arguments], named)
        case ast.Minus(operand):
            return check_minus(context, expr, check(operand))
        case ast.Arithmetic(_, left, right):
            return check_arithmetic(context, expr, check(left), check(right))
        case ast.Case(branches, otherwise, span):
            checked = [
                ((check(test), test.span), (check(value), value.span)) for test, value in branches
            ]
            last = (NULL, span) if otherwise is None else (check(otherwise), otherwise.span)
            return check_case(context, checked, last, span)
        case _:
            assert_never(expr)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The code and message for a leaf that a position does not take."""

    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class LeafRules:
    """What a position over bound variables says to bare words and to calls."""

    word: Refusal
    aggregate: Refusal
    predicate: Refusal
    rank: Refusal
    # Whether a score is a value here.
    takes_scores: bool = False

    def find_refusal(self, call: ast.AggregateCall | ast.TextPredicate | ast.RankCall) -> Refusal:
        """What the position says to a call."""
        if isinstance(call, ast.AggregateCall):
            return self.aggregate
        return self.predicate if isinstance(call, ast.TextPredicate) else self.rank


def leaf_of(context: CheckContext, scope: Scope, position: LeafRules) -> Leaf:
    """The leaves of a position that reads bound variables and refuses the rest."""

    def leaf(expr: LeafExpr) -> typed_tree.Expr | None:
        match expr:
            case ast.Variable():
                return check_variable(context, scope, expr)
            case ast.PropertyAccess():
                return check_property(context, scope, expr)
            case ast.SystemAccess():
                return check_system(context, scope, expr)
            case ast.SystemField(name, span):
                message = f"'@{name}' needs a variable in front"
                context.report_error("T6", span, message, hint=f"write '$v.@{name}'")
            case ast.Identifier(name, span):
                refusal = position.word
                hint = WORD_HINTS.get(name) or refusal.hint
                context.report_error(refusal.code, span, f"'{name}' {refusal.message}", hint=hint)
            case ast.AggregateCall() | ast.TextPredicate() | ast.Nearest() | ast.Bm25() | ast.Rrf():
                return _check_leaf_call(context, scope, position, expr)
            case ast.BlockValue():
                return context.check_block(context, scope, expr)
            case ast.TypeTest():
                return check_type_test(context, scope, expr)
            case _:
                assert_never(expr)
        return None

    return leaf


def _check_leaf_call(
    context: CheckContext,
    scope: Scope,
    position: LeafRules,
    call: ast.AggregateCall | ast.TextPredicate | ast.RankCall,
) -> typed_tree.Expr | None:
    """A text predicate or a score as a value; in strict mode, and elsewhere, none of them is."""
    if not context.is_strict:
        if isinstance(call, ast.TextPredicate):
            return context.check_predicate(context, scope, call)
        if position.takes_scores and isinstance(call, ast.Nearest | ast.Bm25):
            return context.check_score(context, scope, call)
    refuse_leaf(context, position.find_refusal(call), call)
    return None


def refuse_leaf(context: CheckContext, refusal: Refusal, expr: LeafExpr) -> None:
    """Report a leaf that its position does not take."""
    context.report_error(refusal.code, expr.span, refusal.message, hint=refusal.hint)


@tree_node(frozen=True, slots=True)
class Target:
    """The property that gets a constant, and how messages name it."""

    name: str
    type: PropertyType


class InvalidLiteralError(ValueError):
    """A literal that a type cannot hold."""


def check_constant(context: CheckContext, expr: ast.Expr) -> typed_tree.Expr | None:
    """An expression that reads no entity."""
    return check_expression(context, expr, make_constant_leaf(context))


def make_constant_leaf(context: CheckContext) -> Leaf:
    """The leaves of a constant: there are none."""

    def leaf(leaf_expr: LeafExpr) -> None:
        _refuse_in_constant(context, leaf_expr)

    return leaf


def code_of(value: typed_tree.Expr) -> str:
    """The code of a constant that does not fit: T3 for literals, T7 for everything else."""
    return "T3" if isinstance(value, typed_tree.Constant | typed_tree.ListOf) else "T7"


def coerce_assigned(
    context: CheckContext, value: typed_tree.Expr, target: Target, span: Span
) -> typed_tree.Expr | None:
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


def check_enum_member(
    context: CheckContext, value: typed_tree.Expr, target: Target, span: Span
) -> bool:
    """Whether a String literal is in the set of an enum property; reports it if not."""
    enum = target.type.value
    if not isinstance(enum, EnumType) or not isinstance(value, typed_tree.Constant):
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


def _coerce_constant(value: typed_tree.Expr, type_: PropertyType) -> typed_tree.Expr | None:
    match type_.value:
        case ScalarType(scalar=Scalar.BLOB):
            is_fit = isinstance(value, typed_tree.ParameterValue)
            return value if is_fit and scalar_of(value) in (Scalar.STRING, Scalar.BLOB) else None
        case ListType(element):
            return _coerce_list(value, element)
        case VectorType(dimension):
            return as_vector(value, dimension)
        case _:
            return _coerce_scalar(value, type_)


def _coerce_scalar(value: typed_tree.Expr, type_: PropertyType) -> typed_tree.Expr | None:
    scalar = type_.scalar
    if scalar is None or not are_compatible(scalar_of(value), scalar):
        return None
    if not isinstance(value, typed_tree.Constant):
        return value
    return typed_tree.Constant(_coerce_value(value.value, scalar), type_.as_nullable(False))


def _coerce_list(value: typed_tree.Expr, element: Scalar) -> typed_tree.Expr | None:
    type_ = PropertyType(ListType(element))
    if is_empty_list(value):
        return typed_tree.Constant((), type_)
    if not are_compatible(element_of(value), element):
        return None
    match value:
        case typed_tree.Constant(tuple(items)):
            return typed_tree.Constant(tuple(_coerce_value(item, element) for item in items), type_)
        case typed_tree.ListOf(items):
            return typed_tree.ListOf(_coerce_items(items, element), type_)
        case _:
            return value


def as_vector(value: typed_tree.Expr, dimension: int) -> typed_tree.Expr | None:
    """A constant as a vector; None if it has another type. Wrong numbers raise an error."""
    type_ = PropertyType(VectorType(dimension))
    match value:
        case typed_tree.Constant(tuple(items)) | typed_tree.ListOf(items):
            if items and element_of(value) not in NUMERIC:
                return None
            if len(items) != dimension:
                raise InvalidLiteralError(f"{type_} needs {dimension} numbers, got {len(items)}")
    match value:
        case typed_tree.Constant(tuple(items)):
            return typed_tree.Constant(
                tuple(_coerce_value(item, Scalar.F32) for item in items), type_
            )
        case typed_tree.ListOf(items):
            return typed_tree.ListOf(_coerce_items(items, Scalar.F32), type_)
        case _:
            if isinstance(value.type, typed_tree.NodeObject) or value.type.value != type_.value:
                return None
            return value


def _coerce_items(items: Sequence[typed_tree.Expr], scalar: Scalar) -> tuple[typed_tree.Expr, ...]:
    return tuple(
        typed_tree.Constant(_coerce_value(item.value, scalar), PropertyType(ScalarType(scalar)))
        if isinstance(item, typed_tree.Constant)
        else item
        for item in items
    )


def _coerce_value(value: typed_tree.Value, scalar: Scalar) -> typed_tree.Value:
    if scalar not in NUMERIC or isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return value
    try:
        return coerce_number(value, scalar)
    except InvalidNumberError as misfit:
        raise InvalidLiteralError(f"{value} {misfit}") from misfit


def _refuse_in_constant(context: CheckContext, leaf: LeafExpr) -> None:
    match leaf:
        case ast.Variable(name, span):
            refuse_variable(context, name, span)
        case (
            ast.PropertyAccess()
            | ast.SystemAccess()
            | ast.SystemField()
            | ast.Identifier()
            | ast.TypeTest()
        ):
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

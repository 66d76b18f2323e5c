"""Expressions: operators over leaves, where each position says which leaves it takes.

Literals, parameters and `now()` mean the same everywhere. Every other leaf (a variable, a property,
a bare word, a call) is handed to the `Leaf` of the position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from omnigraph.query import ast, typed
from omnigraph.query.check import comparisons
from omnigraph.query.check.access import check_property, check_system, check_variable
from omnigraph.query.check.context import CheckContext
from omnigraph.query.check.literals import check_literal, find_parameter_value
from omnigraph.query.check.scope import Scope
from omnigraph.query.habits import WORD_HINTS

LeafExpr = (
    ast.Variable
    | ast.PropertyAccess
    | ast.SystemAccess
    | ast.SystemField
    | ast.Identifier
    | ast.TextPredicate
    | ast.RankCall
    | ast.AggregateCall
)
Leaf = Callable[[LeafExpr], typed.Expr | None]
Operator = (
    ast.Comparison | ast.TextTest | ast.Membership | ast.NullTest | ast.And | ast.Or | ast.Not
)


def check_expression(context: CheckContext, expr: ast.Expr, leaf: Leaf) -> typed.Expr | None:
    """The typed form of an expression, or None when something in it is wrong and reported."""
    context.collector.poll()
    if isinstance(expr, ast.Variable) and expr.name in context.parameters:
        return find_parameter_value(context, expr.name)
    if isinstance(expr, ast.Now):
        return typed.NowValue()
    if isinstance(expr, ast.Literal):
        return check_literal(context, expr)
    if isinstance(expr, Operator):
        return _check_operator(context, expr, leaf)
    return leaf(expr)


def _check_operator(context: CheckContext, expr: Operator, leaf: Leaf) -> typed.Expr | None:
    def check(operand: ast.Expr) -> typed.Expr | None:
        return check_expression(context, operand, leaf)

    match expr:
        case ast.Comparison(_, left, right):
            return comparisons.check_comparison(context, expr, check(left), check(right))
        case ast.TextTest(_, left, right):
            return comparisons.check_text_test(context, expr, check(left), check(right))
        case ast.Membership(item, items):
            return comparisons.check_membership(context, expr, check(item), check(items))
        case ast.NullTest(operand):
            return comparisons.check_null_test(context, expr, check(operand))
        case ast.Not(operand):
            return comparisons.check_negation(context, (check(operand), operand.span))
        case ast.And(operands) | ast.Or(operands):
            word = "and" if isinstance(expr, ast.And) else "or"
            checked = [(check(operand), operand.span) for operand in operands]
            return comparisons.check_logical(context, word, checked)
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


def leaf_of(context: CheckContext, scope: Scope, position: LeafRules) -> Leaf:
    """The leaves of a position that reads bound variables and refuses the rest."""

    def leaf(expr: LeafExpr) -> typed.Expr | None:
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
            case ast.AggregateCall():
                refuse_leaf(context, position.aggregate, expr)
            case ast.TextPredicate():
                refuse_leaf(context, position.predicate, expr)
            case ast.Nearest() | ast.Bm25() | ast.Rrf():
                refuse_leaf(context, position.rank, expr)
            case _:
                assert_never(expr)
        return None

    return leaf


def refuse_leaf(context: CheckContext, refusal: Refusal, expr: LeafExpr) -> None:
    """Report a leaf that its position does not take."""
    context.report_error(refusal.code, expr.span, refusal.message, hint=refusal.hint)

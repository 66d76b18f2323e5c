"""Text predicates and rank calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import (
    InvalidLiteralError,
    Leaf,
    LeafExpr,
    as_vector,
    check_expression,
)
from omnigraph.query.check.check_literals import scalar_of
from omnigraph.query.check.variable_scope import Scope, check_node_property
from omnigraph.schema.property_types import INTEGERS, Scalar, VectorType

# Edit budgets and fusion constants are unsigned 32-bit numbers.
_OPTION_MAX = 2**32 - 1

_PREDICATE_CODES = {
    ast.TextFunction.SEARCH: "T19",
    ast.TextFunction.FUZZY: "T19",
    ast.TextFunction.MATCH_TEXT: "T20",
}


@dataclass(frozen=True, slots=True)
class _Call:
    """A search or rank call: its name and the code of wrong arguments."""

    name: str
    code: str


def check_predicate(
    context: CheckContext, scope: Scope, predicate: ast.TextPredicate
) -> typed_tree.TextMatch | None:
    """`search`, `match_text` or `fuzzy`."""
    call = _Call(f"{predicate.function}()", _PREDICATE_CODES[predicate.function])
    target = _check_text_target(context, scope, predicate.target, call)
    query = _check_text_query(context, predicate.query, call)
    edits = None
    if predicate.edits is not None:
        edits = _check_option(context, predicate.edits, call, minimum=0)
        if edits is None:
            return None
    if target is None or query is None:
        return None
    return typed_tree.TextMatch(predicate.function, target.variable, target.property, query, edits)


def check_rank(context: CheckContext, scope: Scope, call: ast.RankCall) -> typed_tree.Score | None:
    """`nearest`, `bm25` or `rrf`."""
    match call:
        case ast.Nearest():
            return _check_nearest(context, scope, call)
        case ast.Bm25():
            return _check_bm25(context, scope, call)
        case ast.Rrf():
            return _check_rrf(context, scope, call)
        case _:
            assert_never(call)


def _check_nearest(
    context: CheckContext, scope: Scope, call: ast.Nearest
) -> typed_tree.NearestScore | None:
    target = _check_vector_target(context, scope, call.target)
    query = _check_argument(context, call.query, _Call("nearest()", "T15"))
    if target is None or query is None:
        return None
    assert isinstance(target.type.value, VectorType)
    if scalar_of(query) is Scalar.STRING:
        return typed_tree.NearestScore(target.variable, target.property, query)
    try:
        vector = as_vector(query, target.type.value.dimension)
        problem = f" needs a String or a {target.type.value}, got {query.type}"
    except InvalidLiteralError as misfit:
        vector, problem = None, f": {misfit}"
    if vector is None:
        context.report_error("T15", call.query.span, f"nearest() on '{target.property}'{problem}")
        return None
    return typed_tree.NearestScore(target.variable, target.property, vector)


def _check_vector_target(
    context: CheckContext, scope: Scope, access: ast.PropertyAccess | ast.SystemAccess
) -> typed_tree.PropertyValue | None:
    if isinstance(access, ast.SystemAccess):
        field = access.name
        context.report_error(
            "T15", field.span, f"nearest() needs a Vector property, not '@{field.text}'"
        )
        return None
    target = check_node_property(context, scope, access, code="T15")
    if target is None or isinstance(target.type.value, VectorType):
        return target
    context.report_error(
        "T15",
        access.property.span,
        f"nearest() needs a Vector property; '{target.property}' is {target.type}",
    )
    return None


def _check_bm25(context: CheckContext, scope: Scope, call: ast.Bm25) -> typed_tree.Bm25Score | None:
    described = _Call("bm25()", "T20")
    target = _check_text_target(context, scope, call.target, described)
    query = _check_text_query(context, call.query, described)
    if target is None or query is None:
        return None
    return typed_tree.Bm25Score(target.variable, target.property, query)


def _check_rrf(context: CheckContext, scope: Scope, call: ast.Rrf) -> typed_tree.RrfScore | None:
    first, second = (check_rank(context, scope, arm) for arm in (call.first, call.second))
    k = None
    if call.k is not None:
        k = _check_option(context, call.k, _Call("rrf()", "T21"), minimum=1)
        if k is None:
            return None
    if first is None or second is None:
        return None
    assert not isinstance(first, typed_tree.RrfScore)
    assert not isinstance(second, typed_tree.RrfScore)
    if first.variable != second.variable:
        context.report_error(
            "P005",
            call.second.span,
            f"the arms of rrf() rank '${first.variable}' and '${second.variable}'",
            hint="both arms must rank the same variable",
        )
        return None
    return typed_tree.RrfScore(first, second, k)


def _check_text_target(
    context: CheckContext, scope: Scope, target: ast.Expr, call: _Call
) -> typed_tree.PropertyValue | None:
    if not isinstance(target, ast.PropertyAccess):
        context.report_error(
            call.code, target.span, f"{call.name} needs a String property of a node"
        )
        return None
    found = check_node_property(context, scope, target)
    if found is None:
        return None
    if found.type.scalar is not Scalar.STRING:
        context.report_error(
            call.code,
            target.property.span,
            f"{call.name} needs a String property; '{found.property}' is {found.type}",
        )
        return None
    return found


def _check_text_query(
    context: CheckContext, query: ast.Expr, call: _Call
) -> typed_tree.Expr | None:
    value = _check_argument(context, query, call)
    if value is not None and scalar_of(value) is not Scalar.STRING:
        context.report_error(
            call.code, query.span, f"{call.name} needs a String to look for, got {value.type}"
        )
        return None
    return value


def _check_option(
    context: CheckContext, option: ast.Expr, call: _Call, *, minimum: int
) -> typed_tree.Expr | None:
    value = _check_argument(context, option, call)
    if value is None:
        return None
    is_integer = scalar_of(value) in INTEGERS
    if isinstance(value, typed_tree.Constant) and isinstance(value.value, int) and is_integer:
        is_integer = minimum <= value.value <= _OPTION_MAX
    if not is_integer:
        context.report_error(
            call.code,
            option.span,
            f"{call.name} needs an integer from {minimum} to {_OPTION_MAX} here",
        )
        return None
    return value


def _check_argument(context: CheckContext, expr: ast.Expr, call: _Call) -> typed_tree.Expr | None:
    return check_expression(context, expr, _make_argument_leaf(context, call))


def _make_argument_leaf(context: CheckContext, call: _Call) -> Leaf:
    def leaf(expr: LeafExpr) -> None:
        hint = None
        if isinstance(expr, ast.Variable):
            hint = context.suggest_similar(expr.name, context.parameters)
        context.report_error(
            call.code, expr.span, f"{call.name} takes a literal or a parameter here", hint=hint
        )

    return leaf

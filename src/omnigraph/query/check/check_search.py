"""Text predicates and rank calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import check_expression
from omnigraph.query.check.check_literals import scalar_of
from omnigraph.query.check.check_nearest import check_nearest, make_argument_leaf
from omnigraph.query.check.variable_scope import Scope, check_node_property
from omnigraph.query.tree_walk import variables_of
from omnigraph.schema.property_types import INTEGERS, PropertyType, Scalar

# Edit budgets and fusion constants are unsigned 32-bit numbers.
_OPTION_MAX = 2**32 - 1
_ARMS_MAX = 8

_PREDICATE_CODES = {
    **dict.fromkeys(ast.TextFunction, "T19"),
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
    """`search`, `phrase` and the like: null where the text is."""
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
    _warn_of_quotes(context, predicate, query)
    is_nullable = target.type.is_nullable or _may_be_null(query)
    type_ = typed_tree.BOOL.as_nullable(is_nullable)
    return typed_tree.TextMatch(
        predicate.function, target.variable, target.property, query, edits, type_
    )


def _may_be_null(query: typed_tree.Expr) -> bool:
    return isinstance(query.type, PropertyType) and query.type.is_nullable


def _warn_of_quotes(
    context: CheckContext, predicate: ast.TextPredicate, query: typed_tree.Expr
) -> None:
    """Warn of a text in quotes, which only `phrase` takes as a phrase."""
    is_quoted = isinstance(query, typed_tree.Constant) and '"' in str(query.value)
    if is_quoted and predicate.function is not ast.TextFunction.PHRASE:
        context.collector.report_warning(
            "L326",
            predicate.query.span,
            f"quotes mean nothing to {predicate.function}()",
            hint="write phrase(…) for words in their sequence",
        )


def check_rank(context: CheckContext, scope: Scope, call: ast.RankCall) -> typed_tree.Score | None:
    """`nearest`, `bm25` or `rrf`."""
    match call:
        case ast.Nearest():
            return check_nearest(context, scope, call)
        case ast.Bm25():
            return _check_bm25(context, scope, call)
        case ast.Rrf():
            return _check_rrf(context, scope, call)
        case _:
            assert_never(call)


def _check_bm25(context: CheckContext, scope: Scope, call: ast.Bm25) -> typed_tree.Bm25Score | None:
    described = _Call("bm25()", "T20")
    target = _check_text_target(context, scope, call.target, described)
    query = _check_text_query(context, call.query, described)
    if target is None or query is None:
        return None
    return typed_tree.Bm25Score(target.variable, target.property, query)


def _check_rrf(context: CheckContext, scope: Scope, call: ast.Rrf) -> typed_tree.RrfScore | None:
    if len(call.arms) > _ARMS_MAX:
        message = f"rrf() takes 2 to {_ARMS_MAX} arms, got {len(call.arms)}"
        context.report_error("T21", call.span, message)
        return None
    checked = [check_rank(context, scope, arm) for arm in call.arms]
    k = None
    if call.k is not None:
        k = _check_option(context, call.k, _Call("rrf()", "T21"), minimum=1)
        if k is None:
            return None
    arms = [
        each for each in checked if isinstance(each, typed_tree.NearestScore | typed_tree.Bm25Score)
    ]
    if len(arms) < len(checked):
        return None
    for arm, syntax in zip(arms, call.arms, strict=True):
        if arm.variable != arms[0].variable:
            context.report_error(
                "P005",
                syntax.span,
                f"the arms of rrf() rank '${arms[0].variable}' and '${arm.variable}'",
                hint="all arms must rank the same variable",
            )
            return None
        if variables_of(arm.query):
            message = "an arm of rrf() is near to a literal or a parameter"
            context.report_error("T21", syntax.query.span, message)
            return None
    return typed_tree.RrfScore(tuple(arms), k)


def check_score(
    context: CheckContext, scope: Scope, call: ast.Nearest | ast.Bm25
) -> typed_tree.Expr | None:
    """A score as a value, which a clause of the pattern around it binds."""
    score = check_rank(context, scope, call)
    if score is None:
        return None
    assert not isinstance(score, typed_tree.RrfScore)
    name = context.make_anonymous_name()
    value = typed_tree.ScoreValue(score)
    scope.bind_hidden(typed_reads.Let(name, value))
    return typed_tree.BoundValue(name, value.type)


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
    return check_expression(context, expr, make_argument_leaf(context, call.name, call.code))

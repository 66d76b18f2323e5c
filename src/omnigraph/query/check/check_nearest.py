"""`nearest`: which vectors it is about, what they are to be near to, and its options."""

from __future__ import annotations

from typing import Final

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
from omnigraph.query.check.variable_scope import (
    Scope,
    check_node_property,
    check_property,
    check_variable,
)
from omnigraph.query.tree_walk import variables_of
from omnigraph.schema.property_types import Scalar, VectorType

_METRIC: Final = "metric"


def check_nearest(
    context: CheckContext, scope: Scope, call: ast.Nearest
) -> typed_tree.NearestScore | None:
    """`nearest(p, v, metric: m)`."""
    target = _check_vector_target(context, scope, call.target)
    query = check_expression(context, call.query, _make_query_leaf(context, scope))
    metric = _check_options(context, call)
    if target is None or query is None or metric is None:
        return None
    assert isinstance(target.type.value, VectorType)
    if scalar_of(query) is Scalar.STRING:
        if not variables_of(query):
            return typed_tree.NearestScore(target.variable, target.property, query, metric)
        message = "nearest() takes a text that is a literal or a parameter"
        context.report_error("T15", call.query.span, message)
        return None
    try:
        vector = as_vector(query, target.type.value.dimension)
        problem = f" needs a String or a {target.type.value}, got {query.type}"
    except InvalidLiteralError as misfit:
        vector, problem = None, f": {misfit}"
    if vector is None:
        context.report_error("T15", call.query.span, f"nearest() on '{target.property}'{problem}")
        return None
    return typed_tree.NearestScore(target.variable, target.property, vector, metric)


def _check_options(context: CheckContext, call: ast.Nearest) -> ast.Metric | None:
    """The metric; None if an option is wrong."""
    metric: ast.Metric | None = ast.Metric.L2
    names: set[str] = set()
    for option in call.options:
        name = option.name.text
        if name != _METRIC or name in names:
            problem = "is given twice" if name in names else "is not an option"
            hint = context.suggest_similar(name, [_METRIC])
            context.report_error(
                "T111", option.name.span, f"'{name}' {problem} of nearest()", hint=hint
            )
            return None
        names.add(name)
        metric = _read_metric(context, option.value)
    return metric


def _read_metric(context: CheckContext, value: ast.Expr) -> ast.Metric | None:
    known = [str(each) for each in ast.Metric]
    if isinstance(value, ast.StringLiteral) and value.value in known:
        return ast.Metric(value.value)
    shown = ", ".join(f'"{each}"' for each in known)
    word = value.value if isinstance(value, ast.StringLiteral) else ""
    context.report_error(
        "T129",
        value.span,
        f"the metric of nearest() is one of {shown}",
        hint=context.suggest_similar(word, known),
    )
    return None


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


def _make_query_leaf(context: CheckContext, scope: Scope) -> Leaf:
    """What a vector may be near to: beside constants, what a row has."""
    refuse = make_argument_leaf(context, "nearest()", "T15")

    def leaf(expr: LeafExpr) -> typed_tree.Expr | None:
        if context.is_strict:
            return refuse(expr)
        match expr:
            case ast.Variable(name) if scope.peek(name) is not None:
                return check_variable(context, scope, expr)
            case ast.PropertyAccess(variable) if scope.peek(variable.name) is not None:
                return check_property(context, scope, expr)
            case _:
                return refuse(expr)

    return leaf


def make_argument_leaf(context: CheckContext, name: str, code: str) -> Leaf:
    """The leaves of an argument that is the same at every row: there are none."""

    def leaf(expr: LeafExpr) -> None:
        hint = None
        if isinstance(expr, ast.Variable):
            hint = context.suggest_similar(expr.name, context.parameters)
        context.report_error(
            code, expr.span, f"{name} takes a literal or a parameter here", hint=hint
        )

    return leaf

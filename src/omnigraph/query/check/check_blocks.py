"""Blocks in expressions: `exists { … }`, `count { … }`, `collect(e) { … }`."""

from __future__ import annotations

from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_aggregates import check_aggregate_call
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import LeafRules, Refusal, check_expression, leaf_of
from omnigraph.query.check.check_patterns import check_pattern
from omnigraph.query.check.variable_scope import Scope
from omnigraph.schema.property_types import PropertyType

_ARGUMENT = LeafRules(
    word=Refusal("T7", "is not a value here", "quote a text, or write '$v.name' for a property"),
    aggregate=Refusal("T8", "an aggregate cannot take an aggregate"),
    predicate=Refusal("T8", "an aggregate cannot take a search predicate"),
    rank=Refusal("T32", "a rank call cannot stand inside an aggregate"),
)
_COUNTED = typed_tree.AggregateValue(
    ast.AggregateFunction.COUNT, typed_tree.EVERY_ROW, typed_tree.I64
)


def check_block_value(
    context: CheckContext, scope: Scope, block: ast.BlockValue
) -> typed_tree.Expr | None:
    """The value of a block for each row; a clause of the pattern around it binds it."""
    errors_before = context.errors
    pattern, inner = check_pattern(context, block.clauses, scope)
    context.block_variables.update(inner.own)
    value = _check_value(context, inner, block)
    if context.errors > errors_before:
        return None
    type_ = typed_tree.BOOL if value is None else value.type
    assert isinstance(type_, PropertyType), "aggregates of a block take no nodes"
    name = context.make_anonymous_name()
    scope.bind_hidden(typed_reads.BlockColumn(inner.attach_hidden(pattern), name, value))
    return typed_tree.BoundValue(name, type_)


def _check_value(
    context: CheckContext, inner: Scope, block: ast.BlockValue
) -> typed_tree.AggregateValue | None:
    """What is computed from the matches; None if it is whether there is one."""
    call = block.call
    if call is None:
        if block.function in (None, ast.AggregateFunction.COUNT):
            return None if block.function is None else _COUNTED
        context.report_error("T8", block.span, f"{block.function} needs an argument over a block")
        return None

    def check(expr: ast.Expr) -> typed_tree.Expr | None:
        return check_expression(context, expr, leaf_of(context, inner, _ARGUMENT))

    return check_aggregate_call(context, call, check)

"""The conditions of `having`: about what a result has, or about aggregates of the same rows."""

from __future__ import annotations

from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_aggregates import bind_to_groups, is_row_reader
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import (
    LeafExpr,
    LeafRules,
    Refusal,
    check_expression,
    leaf_of,
    refuse_leaf,
)
from omnigraph.query.check.check_operators import check_boolean
from omnigraph.query.check.check_returns import ReturnItem, ReturnItems, check_aggregate
from omnigraph.query.check.variable_scope import Scope

_AGGREGATE = Refusal(
    "T125",
    "an aggregate can be tested only where one is returned",
    "return an aggregate, or filter in 'match'",
)
_SCORE = Refusal("T125", "a score cannot be tested in 'having'")
_RULES = LeafRules(
    word=Refusal("T125", "is not the name of anything that is returned"),
    aggregate=_AGGREGATE,
    predicate=Refusal("T125", "a search predicate cannot stand in 'having'", "use it in 'match'"),
    rank=_SCORE,
)


def check_having(
    context: CheckContext, scope: Scope, body: ast.ReadBody, items: ReturnItems
) -> tuple[typed_tree.Expr, ...]:
    """The conditions, in terms of columns if the query aggregates, and else of rows."""
    by_name = {item.name: item for item in reversed(items.all) if item.name is not None}
    read_row = leaf_of(context, scope, _RULES)

    def leaf(expr: LeafExpr) -> typed_tree.Expr | None:
        match expr:
            case ast.Identifier(name) if name in by_name:
                return _read_item(context, by_name[name], expr, is_column=items.is_aggregated)
            case ast.AggregateCall() if items.is_aggregated:
                return check_aggregate(context, scope, expr, items.index_by_alias())
            case _:
                return read_row(expr)

    found: list[typed_tree.Expr] = []
    for condition in body.having:
        value = check_expression(context, condition, leaf)
        value = check_boolean(context, (value, condition.span), "a condition of 'having'")
        if value is not None and items.is_aggregated:
            value = _bind_condition(context, condition, value, items)
        if value is not None:
            found.append(value)
    return tuple(found)


def _read_item(
    context: CheckContext, item: ReturnItem, alias: ast.Identifier, *, is_column: bool
) -> typed_tree.Expr | None:
    if item.is_score:
        refuse_leaf(context, _SCORE, alias)
        return None
    if item.value is None or item.name is None:
        return None
    return typed_tree.ColumnValue(item.name, item.value.type) if is_column else item.value


def _bind_condition(
    context: CheckContext, condition: ast.Expr, value: typed_tree.Expr, items: ReturnItems
) -> typed_tree.Expr | None:
    bound = bind_to_groups(value, items.index_by_value())
    if not is_row_reader(bound):
        return bound
    text = context.source_text_of(condition.span)
    context.report_error(
        "T125",
        condition.span,
        f"'{text}' reads what is neither returned nor an aggregate",
        hint="return it, or filter in 'match'",
    )
    return None

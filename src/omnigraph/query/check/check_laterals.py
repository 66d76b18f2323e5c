"""Lateral blocks, `optional { … }` and `each { … }`: their tails, and what they export."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.source_text import Span
from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import LeafRules, Refusal, check_expression, leaf_of
from omnigraph.query.check.check_literals import check_row_count
from omnigraph.query.check.check_operators import check_boolean
from omnigraph.query.check.check_order import (
    check_rank_direction,
    check_rank_limit,
    is_sortable,
)
from omnigraph.query.check.variable_scope import NodeVariable, Scope
from omnigraph.query.tree_walk import variables_of

_KEY = LeafRules(
    word=Refusal("T42", "is not a value here", "write '$v.name' for a property"),
    aggregate=Refusal("T42", "an aggregate cannot order the matches of a block"),
    predicate=Refusal("T42", "a search predicate cannot be an order key"),
    rank=Refusal("T42", "rrf() cannot order the matches of a block", "order by one of its arms"),
    takes_scores=True,
)
_CONDITION = replace(
    _KEY,
    aggregate=Refusal("T125", "an aggregate cannot test the matches of a block"),
    rank=Refusal("T125", "rrf() cannot test the matches of a block"),
)
# Conditions that are null, and so not true, where something that they read is null.
_STRICT = (
    typed_tree.Compare,
    typed_tree.Member,
    typed_tree.Substring,
    typed_tree.Prefix,
    typed_tree.TextMatch,
)


def check_lateral(
    context: CheckContext,
    scopes: tuple[Scope, Scope],
    pattern: typed_reads.Pattern,
    block: ast.LateralBlock,
) -> typed_reads.LateralBlock | None:
    """A block after its clauses; its variables can be seen in the outer one of its scopes."""
    outer, inner = scopes
    errors_before = context.errors
    keys = [_check_key(context, inner, each) for each in block.order]
    leading = keys[0] if keys else None
    if leading is not None and isinstance(block.order[0].value, ast.Nearest | ast.Bm25):
        # What has no score is not among the best.
        has_score = typed_tree.IsNull(leading.value, is_negated=True)
        pattern = inner.attach_hidden(pattern)
        pattern = replace(pattern, clauses=(*pattern.clauses, typed_reads.Condition(has_score)))
    if block.having:
        conditions = [_check_condition(context, inner, each) for each in block.having]
        known_ones = (typed_reads.Condition(each) for each in conditions if each is not None)
        pattern = inner.attach_hidden(pattern)
        pattern = replace(pattern, clauses=(*pattern.clauses, *known_ones))
    limit = check_row_count(context, "limit", block.limit)
    offset = check_row_count(context, "offset", block.offset)
    for key in block.order[:1]:
        if isinstance(key.value, ast.Nearest | ast.Bm25):
            has_limit = block.limit is not None
            check_rank_limit(context, key.value, key, has_limit=has_limit)
    is_cut = block.limit is not None or block.offset is not None
    if not block.is_optional and not (is_cut or block.order or block.having):
        context.collector.report_warning(
            "L321",
            block.span,
            "'each' without a limit is the same as its clauses alone",
            hint="add a tail, as in: each { … } order { $v.name } limit 3",
        )
    outer.add_exports(inner, is_optional=block.is_optional)
    if block.is_optional:
        # Beside nulls an expression may have a value, as coalesce() does: it has to be bound.
        lets = (typed_reads.Let(*each) for each in inner.list_named_values())
        pattern = replace(pattern, clauses=(*pattern.clauses, *lets))
    pattern = inner.attach_hidden(pattern)
    if context.errors > errors_before:
        return None
    known = tuple(key for key in keys if key is not None)
    return typed_reads.LateralBlock(pattern, block.is_optional, known, limit, offset)


def _check_condition(
    context: CheckContext, inner: Scope, condition: ast.Expr
) -> typed_tree.Expr | None:
    value = check_expression(context, condition, leaf_of(context, inner, _CONDITION))
    return check_boolean(context, (value, condition.span), "a condition of 'having'")


def _check_key(
    context: CheckContext, inner: Scope, key: ast.OrderKey
) -> typed_reads.OrderKey | None:
    value = check_expression(context, key.value, leaf_of(context, inner, _KEY))
    if value is None or not is_sortable(context, key, value):
        return None
    if isinstance(value, typed_tree.NodeValue):
        value = typed_tree.SystemValue(value.variable, typed_tree.SystemName.ID)
    is_best_first = check_rank_direction(context, key)
    return typed_reads.OrderKey(value, is_best_first or key.direction is ast.Direction.DESC)


def require_bound(scope: Scope, name: str) -> tuple[typed_tree.Expr, ...]:
    """What a binding asks of a variable that may be null: that it is a node."""
    match scope.peek(name):
        case NodeVariable(_, str(type_name), is_nullable=True):
            kind = typed_tree.NodeObject(type_name, is_nullable=True)
            return (typed_tree.IsNull(typed_tree.NodeValue(name, kind), is_negated=True),)
        case _:
            return ()


def warn_of_pointless_optional(
    context: CheckContext, scope: Scope, clause: typed_reads.Clause | None, span: Span
) -> None:
    """Warn of a clause that no row holds for whose optional block has no match."""
    match clause:
        case typed_reads.Condition(value):
            parts = value.operands if isinstance(value, typed_tree.AllOf) else (value,)
            names = frozenset().union(
                *(variables_of(each) for each in parts if isinstance(each, _STRICT))
            )
        case (
            typed_reads.Traversal(source=source, target=target)
            | typed_reads.PathMatch(source=source, target=target)
        ):
            names = frozenset({source, target})
        case _:
            return
    lost = sorted(name for name in names & scope.exported.keys() if scope.own[name].is_nullable)
    if lost:
        context.collector.report_warning(
            "L323",
            span,
            f"this drops the rows whose '${lost[0]}' is null, so 'optional' changes nothing",
            hint="move it into the block that binds the variable, or write 'each'",
        )

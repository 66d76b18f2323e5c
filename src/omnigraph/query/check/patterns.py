"""Blocks of clauses: `match { … }` and the blocks inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from omnigraph.query import ast, typed
from omnigraph.query.check.aggregates import check_aggregate_type
from omnigraph.query.check.anchors import check_anchors
from omnigraph.query.check.bindings import check_binding, collect_declared_types
from omnigraph.query.check.comparisons import check_boolean, check_logical, scalar_of
from omnigraph.query.check.context import CheckContext
from omnigraph.query.check.expressions import LeafRules, Refusal, check_expression, leaf_of
from omnigraph.query.check.literals import (
    are_compatible,
    check_literal,
    coerce_literal,
    find_parameter_value,
)
from omnigraph.query.check.rereading import resolve_ambiguities
from omnigraph.query.check.scope import Scope
from omnigraph.query.check.search import check_predicate
from omnigraph.query.check.traversals import CheckedTraversal, check_traversal
from omnigraph.schema.types import PropertyType, Scalar, make_scalar_type

_JOINED_HINT = "a block is a clause of its own: write what follows it as another clause"
_RANK_HINT = "rank calls belong in 'order'"
_FILTER = LeafRules(
    word=Refusal("T7", "is not a value here", "quote a text, or write '$v.name' for a property"),
    aggregate=Refusal(
        "T7", "an aggregate cannot stand in a filter", "compare a block: 'count { … } > 2'"
    ),
    predicate=Refusal(
        "T38", "a search predicate must be a whole condition, alone or joined by 'and'"
    ),
    rank=Refusal("T7", "a rank call is not a condition", _RANK_HINT),
)
_BLOCK_ARGUMENT = LeafRules(
    word=_FILTER.word,
    aggregate=Refusal("T8", "an aggregate cannot take an aggregate"),
    predicate=Refusal("T8", "an aggregate cannot take a search predicate"),
    rank=Refusal("T32", "a rank call cannot stand inside an aggregate", _RANK_HINT),
)


def check_pattern(
    context: CheckContext, clauses: Sequence[ast.Clause], outer: Scope | None = None
) -> tuple[typed.Pattern, Scope]:
    """The checked clauses of a block and the variables it leaves behind."""
    meant = resolve_ambiguities(context, clauses)
    scope = Scope(collect_declared_types(context, meant), outer)
    checked: list[typed.Clause | None] = []
    walks: dict[int, CheckedTraversal] = {}
    for index, clause in enumerate(meant):
        context.collector.poll()
        if isinstance(clause, ast.Traversal):
            walks[index] = check_traversal(context, scope, clause)
            checked.append(walks[index].typed)
        else:
            checked.append(_check_clause(context, scope, clause))
    scans = check_anchors(context, scope, walks)
    return typed.Pattern(
        _arrange_clauses(checked, scans), scope.list_nodes(), scope.list_edges()
    ), scope


def _arrange_clauses(
    checked: Sequence[typed.Clause | None], scans: dict[int, typed.Binding]
) -> tuple[typed.Clause, ...]:
    """The clauses in order, implicit scans put in, repeated bindings of a variable made one."""
    conditions: dict[str, list[typed.Expr]] = {}
    places: dict[int, typed.Binding] = {}
    arranged: list[typed.Clause] = []
    for index, clause in enumerate(checked):
        if index in scans:
            arranged.append(scans[index])
        if isinstance(clause, typed.Binding):
            if clause.variable not in conditions:
                places[len(arranged)] = clause
                arranged.append(clause)
            conditions.setdefault(clause.variable, []).extend(clause.conditions)
        elif clause is not None:
            arranged.append(clause)
    for place, binding in places.items():
        arranged[place] = replace(binding, conditions=tuple(conditions[binding.variable]))
    return tuple(arranged)


def _check_clause(
    context: CheckContext,
    scope: Scope,
    clause: ast.Binding | ast.Filter | ast.NotBlock | ast.ExistsBlock | ast.AggregateBlock,
) -> typed.Clause | None:
    match clause:
        case ast.Binding():
            return check_binding(context, scope, clause)
        case ast.Filter():
            condition = _check_filter(context, scope, clause.condition)
            return typed.Condition(condition) if condition is not None else None
        case ast.NotBlock():
            pattern, _ = _check_block(context, scope, clause)
            return typed.ExistsBlock(pattern, is_negated=True)
        case ast.ExistsBlock():
            pattern, _ = _check_block(context, scope, clause)
            return typed.ExistsBlock(pattern, is_negated=False)
        case ast.AggregateBlock():
            return _check_aggregate_block(context, scope, clause)
        case _:
            assert_never(clause)


# ---- filters ----


def _check_filter(context: CheckContext, scope: Scope, condition: ast.Expr) -> typed.Expr | None:
    """A condition; only its conjuncts may be search predicates."""
    conjuncts = _split_conjuncts(condition)
    checked = [(_check_conjunct(context, scope, each), each.span) for each in conjuncts]
    if len(checked) == 1:
        return check_boolean(context, checked[0], "a filter")
    return check_logical(context, "and", checked)


def _split_conjuncts(condition: ast.Expr) -> list[ast.Expr]:
    if not isinstance(condition, ast.And):
        return [condition]
    return [conjunct for operand in condition.operands for conjunct in _split_conjuncts(operand)]


def _check_conjunct(context: CheckContext, scope: Scope, conjunct: ast.Expr) -> typed.Expr | None:
    match conjunct:
        case ast.TextPredicate() as predicate:
            return check_predicate(context, scope, predicate)
        case ast.Comparison(
            ast.CompareOp.EQ, ast.TextPredicate() as predicate, ast.BooleanLiteral(value=True)
        ):
            return check_predicate(context, scope, predicate)
        case _:
            return check_expression(context, conjunct, leaf_of(context, scope, _FILTER))


# ---- blocks ----


def _check_block(
    context: CheckContext, scope: Scope, block: ast.NotBlock | ast.ExistsBlock | ast.AggregateBlock
) -> tuple[typed.Pattern, Scope]:
    errors_before = context.errors
    pattern, inner = check_pattern(context, block.clauses, scope)
    context.block_variables.update(inner.own)
    # A wrong clause may be the one that was meant to mention the outer variable.
    if not inner.mentions_outer and context.errors == errors_before:
        code = "T9" if isinstance(block, ast.NotBlock) else "T39"
        context.report_error(
            code,
            block.span,
            "the block mentions no variable bound before it",
            hint="its own clauses must use one; a block nested in it does not count",
        )
    return pattern, inner


def _check_aggregate_block(
    context: CheckContext, scope: Scope, block: ast.AggregateBlock
) -> typed.AggregateBlock | None:
    pattern, inner = _check_block(context, scope, block)
    argument, type_ = None, None
    if block.argument is not None:
        leaf = leaf_of(context, inner, _BLOCK_ARGUMENT)
        argument = check_expression(context, block.argument, leaf)
        type_ = check_aggregate_type(context, block.function, argument, block.argument.span)
    elif block.function is ast.AggregateFunction.COUNT:
        type_ = make_scalar_type(Scalar.I64)
    else:
        context.report_error("T8", block.span, f"{block.function} needs an argument over a block")
    value = _check_bound(context, block, type_)
    if type_ is None or value is None:
        return None
    return typed.AggregateBlock(pattern, block.function, argument, block.op, value)


def _check_bound(
    context: CheckContext, block: ast.AggregateBlock, type_: PropertyType | None
) -> typed.Expr | None:
    """The right side of a block: one literal, parameter or `now()` of a fitting type."""
    bound = block.value
    value: typed.Expr | None
    if isinstance(bound, ast.Variable) and bound.name in context.parameters:
        value = find_parameter_value(context, bound.name)
    elif isinstance(bound, ast.Now):
        value = typed.NowValue()
    elif isinstance(bound, ast.Literal):
        value = check_literal(context, bound)
    else:
        context.report_error(
            "T40",
            bound.span,
            "a block can only be compared with a literal, a parameter or now()",
            hint=_JOINED_HINT if isinstance(bound, ast.And | ast.Or) else None,
        )
        return None
    if value is None or type_ is None:
        return None
    if not are_compatible(type_.scalar, scalar_of(value)):
        context.report_error(
            "T40",
            bound.span,
            f"{block.function} over this block is {type_}; it cannot be compared with {value.type}",
        )
        return None
    return coerce_literal(value, type_.scalar)

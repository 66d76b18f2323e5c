"""Evaluates what no row and no parameter can change."""

from __future__ import annotations

import operator as python_operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from omnigraph.query.ast import CompareOp
from omnigraph.query.logical_plan import CompareBlock, Expand, Filter, Operator, ReadPlan, Scan
from omnigraph.query.tree_walk import (
    Chain,
    iter_subexpressions,
    map_chains,
    map_expression,
)
from omnigraph.query.typed_tree import (
    BOOL,
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expr,
    IsNull,
    Negation,
    PropertyValue,
    TextMatch,
    Value,
)
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.property_types import PropertyType

_TRUE = Constant(True, BOOL)
_FALSE = Constant(False, BOOL)
_NULL = Constant(None, BOOL.as_nullable())
# Any: checked comparisons only ever meet values of one kind.
_COMPARE: dict[CompareOp, Callable[[Any, Any], bool]] = {
    CompareOp.EQ: python_operator.eq,
    CompareOp.NE: python_operator.ne,
    CompareOp.LT: python_operator.lt,
    CompareOp.LE: python_operator.le,
    CompareOp.GT: python_operator.gt,
    CompareOp.GE: python_operator.ge,
}


def fold_constants(plan: ReadPlan, _catalog: Catalog) -> ReadPlan:
    """Fold constant parts of conditions, and drop conditions that are always true."""
    return replace(plan, root=map_chains(plan.root, _fold_chain))


def fold_conditions(conditions: Iterable[Expr]) -> tuple[Expr, ...]:
    """Conditions with their constant parts folded, without those that are always true."""
    folded = [
        each if _is_plain_test(each) else map_expression(each, _fold_expression)
        for each in conditions
    ]
    return tuple(each for each in folded if not isinstance(each, Constant) or each != _TRUE)


def _is_plain_test(expr: Expr) -> bool:
    """Whether an expression compares what a row has with a constant: most conditions do."""
    return (
        isinstance(expr, Compare)
        and isinstance(expr.left, PropertyValue)
        and isinstance(expr.right, Constant)
    )


def _fold_chain(chain: Chain) -> Iterator[Operator]:
    for operator in chain:
        match operator:
            case Filter():
                for condition in fold_conditions([operator.condition]):
                    yield replace(operator, condition=condition)
            case Scan() | Expand() if operator.conditions:
                yield replace(operator, conditions=fold_conditions(operator.conditions))
            case CompareBlock():
                yield replace(operator, value=map_expression(operator.value, _fold_expression))
            case _:
                yield operator


def _fold_expression(expr: Expr) -> Expr:
    match expr:
        case Compare(op, Constant(left), Constant(right)):
            return _to_constant(_compare_values(op, left, right))
        case IsNull():
            return _fold_null_test(expr)
        case Negation(Constant(value)):
            return _NULL if value is None else _to_constant(not value)
        case Negation(Negation(operand)):
            return operand
        case AllOf():
            return _fold_operands(expr, neutral=_TRUE, absorbing=_FALSE)
        case AnyOf():
            return _fold_operands(expr, neutral=_FALSE, absorbing=_TRUE)
        case _:
            return expr


def _to_constant(value: bool | None) -> Constant:
    return _NULL if value is None else _TRUE if value else _FALSE


def _compare_values(op: CompareOp, left: Value, right: Value) -> bool | None:
    if left is None or right is None:
        return None
    return _COMPARE[op](left, right)


def _fold_null_test(expr: IsNull) -> Expr:
    operand = expr.operand
    if isinstance(operand, Constant):
        return _to_constant((operand.value is None) != expr.is_negated)
    if isinstance(operand.type, PropertyType) and not operand.type.is_nullable:
        return _to_constant(expr.is_negated)
    return expr


def _fold_operands(expr: AllOf | AnyOf, *, neutral: Constant, absorbing: Constant) -> Expr:
    operands = tuple(each for each in _flatten_operands(expr) if each != neutral)
    # A text predicate stays: its bad options are an error even where no row is tested.
    if absorbing in operands and not any(map(_has_text_match, operands)):
        return absorbing
    if not operands:
        return neutral
    return operands[0] if len(operands) == 1 else replace(expr, operands=operands)


def _has_text_match(expr: Expr) -> bool:
    return any(isinstance(part, TextMatch) for part in iter_subexpressions(expr))


def _flatten_operands(expr: AllOf | AnyOf) -> Iterable[Expr]:
    for operand in expr.operands:
        if type(operand) is type(expr):
            yield from operand.operands
        else:
            yield operand

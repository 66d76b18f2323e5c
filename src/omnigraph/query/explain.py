"""A plan as rows people can read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from omnigraph.query.plan import (
    Aggregate,
    CompareBlock,
    Exists,
    Expand,
    Filter,
    Limit,
    Operator,
    Outer,
    Project,
    Rank,
    ReadPlan,
    Scan,
    Sort,
    Unit,
)
from omnigraph.query.typed import (
    AggregateValue,
    AllOf,
    AnyOf,
    Bm25Score,
    Column,
    ColumnValue,
    Compare,
    Constant,
    EdgeStep,
    Expr,
    IsNull,
    ListOf,
    Member,
    NearestScore,
    Negation,
    NodeValue,
    NowValue,
    ParameterValue,
    Prefix,
    PropertyValue,
    RrfScore,
    Substring,
    SystemValue,
    TextMatch,
    Value,
)
from omnigraph.query.walk import chain_of, child_expressions
from omnigraph.schema.types import ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.values import format_date, format_datetime, shortest_f32
from omnigraph.syntax.printing import quote

_MAIN = "plan"
_WORDS: dict[type[Expr], str] = {
    Member: "in",
    Substring: "contains",
    Prefix: "starts_with",
    AllOf: "and",
    AnyOf: "or",
}
_COMPOUND = (Compare, Member, Substring, Prefix, IsNull, AllOf, AnyOf, Negation)


@dataclass(frozen=True, slots=True)
class ExplainRow:
    """An operator: its tree (the plan or a block), how deep it stands, its name and details."""

    tree: str
    depth: int
    node: str
    detail: str


def explain(plan: ReadPlan) -> tuple[ExplainRow, ...]:
    """The operators of a plan from the result down, then those of its blocks."""
    rows: list[ExplainRow] = []
    trees = deque([(_MAIN, plan.root)])
    blocks = 0
    while trees:
        tree, root = trees.popleft()
        for depth, operator in enumerate(reversed(chain_of(root))):
            detail = operator_text(operator)
            if isinstance(operator, Exists | CompareBlock):
                blocks += 1
                name = f"block {blocks}"
                trees.append((name, operator.block))
                detail = f"{name}{detail}"
            rows.append(ExplainRow(tree, depth, type(operator).__name__, detail))
    return tuple(rows)


# ---- operators ----


def operator_text(operator: Operator) -> str:
    """The details of an operator on one line."""
    match operator:
        case Unit() | Outer():
            return ""
        case Scan() | Expand():
            return _binding_text(operator)
        case Filter():
            return expr_text(operator.condition)
        case Exists() | CompareBlock():
            return _block_text(operator)
        case Rank():
            window = "" if operator.window is None else f" window {operator.window}"
            return expr_text(operator.score) + window
        case Aggregate() | Project():
            return ", ".join(map(_column_text, operator.columns))
        case Sort():
            return ", ".join(
                expr_text(key.value) + (" desc" if key.is_descending else "")
                for key in operator.keys
            )
        case Limit():
            return str(operator.count)
        case _:
            assert_never(operator)


def _binding_text(operator: Scan | Expand) -> str:
    match operator:
        case Scan():
            parts = [f"${operator.variable}: {operator.type_name}"]
        case Expand():
            parts = [f"${operator.source} {_edges_text(operator)} ${operator.target}"]
            if operator.target_is_bound:
                parts.append("closing")
            else:
                parts[0] += f": {operator.target_type}"
    if operator.conditions:
        parts.append("where " + _joined(" and ", operator.conditions))
    if operator.properties:
        parts.append("reads " + ", ".join(operator.properties))
    return "; ".join(parts)


def _edges_text(expand: Expand) -> str:
    steps = " | ".join(_step_text(step, expand) for step in expand.steps) or "nothing"
    edge = f"${expand.edge_variable}: " if expand.edge_variable else ""
    is_single = (expand.minimum, expand.maximum) == (1, 1)
    bounds = "" if is_single else f" {{{expand.minimum},{expand.maximum}}}"
    return f"[{edge}{steps}{bounds}]"


def _step_text(step: EdgeStep, expand: Expand) -> str:
    if expand.is_undirected:
        return f"<{step.edge_type}>"
    return f"<-{step.edge_type}" if step.is_reversed else f"{step.edge_type}->"


def _block_text(operator: Exists | CompareBlock) -> str:
    if isinstance(operator, Exists):
        return " has no row" if operator.is_negated else " has a row"
    argument = "" if operator.argument is None else f"({expr_text(operator.argument)})"
    return f": {operator.function}{argument} {operator.op} {expr_text(operator.value)}"


def _column_text(column: Column) -> str:
    return f"{expr_text(column.value)} as {column.name}"


# ---- expressions ----


def expr_text(expr: Expr) -> str:
    """A typed expression, much as the language spells it."""
    children = tuple(child_expressions(expr))
    match expr:
        case Compare():
            return _joined(f" {expr.op} ", children)
        case Member() | Substring() | Prefix() | AllOf() | AnyOf():
            return _joined(f" {_WORDS[type(expr)]} ", children)
        case Negation():
            return f"not {_joined('', children)}"
        case IsNull():
            return f"{_joined('', children)} is {'not ' if expr.is_negated else ''}null"
        case ListOf():
            return f"[{', '.join(map(expr_text, children))}]"
        case TextMatch() | AggregateValue():
            return _call(expr.function, expr, children)
        case NearestScore() | Bm25Score() | RrfScore():
            return _call(type(expr).__name__.removesuffix("Score").lower(), expr, children)
        case _:
            return _leaf_text(expr)


def _joined(separator: str, operands: Iterable[Expr]) -> str:
    return separator.join(
        f"({expr_text(each)})" if isinstance(each, _COMPOUND) else expr_text(each)
        for each in operands
    )


def _call(name: str, expr: Expr, arguments: Sequence[Expr]) -> str:
    texts = list(map(expr_text, arguments))
    if isinstance(expr, TextMatch | NearestScore | Bm25Score):
        texts.insert(0, f"${expr.variable}.{expr.property}")
    return f"{name}({', '.join(texts)})"


def _leaf_text(
    expr: Constant
    | ParameterValue
    | NowValue
    | PropertyValue
    | SystemValue
    | NodeValue
    | ColumnValue,
) -> str:
    match expr:
        case Constant(value, type_):
            return _value_text(value, _item_scalar(type_))
        case ParameterValue(name):
            return f"${name}"
        case NowValue():
            return "now()"
        case PropertyValue(variable, name):
            return f"${variable}.{name}"
        case SystemValue(variable, field):
            return f"${variable}.@{field}"
        case NodeValue(variable):
            return f"${variable}"
        case ColumnValue(name):
            return name
        case _:
            assert_never(expr)


def _item_scalar(type_: PropertyType) -> Scalar | None:
    match type_.value:
        case ListType(element):
            return element
        case VectorType():
            return Scalar.F32
        case _:
            return type_.scalar


def _value_text(value: Value, scalar: Scalar | None) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return quote(value)
        case tuple():
            return f"[{', '.join(_value_text(item, scalar) for item in value)}]"
        case int() if scalar is Scalar.DATE:
            return f'date("{format_date(value)}")'
        case int() if scalar is Scalar.DATETIME:
            return f'datetime("{format_datetime(value)}")'
        case float() if scalar is Scalar.F32:
            return str(shortest_f32(value))
        case _:
            return str(value)

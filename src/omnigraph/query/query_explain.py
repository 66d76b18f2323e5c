"""A plan as rows that people can read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from omnigraph.lang.text_printer import quote_string
from omnigraph.query.ast import HOPS_MAX, EdgeWay, Metric
from omnigraph.query.logical_plan import (
    Aggregate,
    BlockColumn,
    CompareBlock,
    Exists,
    Expand,
    Extend,
    Filter,
    Having,
    Lateral,
    Limit,
    Operator,
    Outer,
    ParameterLimit,
    PathExpand,
    Project,
    Rank,
    ReadPlan,
    Scan,
    Sort,
    StageRows,
    TableFunction,
    Unit,
    Unnest,
)
from omnigraph.query.tree_walk import BLOCKS, chain_of, iter_children
from omnigraph.query.typed_reads import Column, EdgeStep, OrderKey
from omnigraph.query.typed_tree import (
    STAGE_PREFIX,
    AggregateValue,
    AllOf,
    AnyOf,
    Bm25Score,
    BoundValue,
    ColumnValue,
    Compare,
    Constant,
    EdgeValue,
    Expr,
    FunctionValue,
    GuardTest,
    IsNull,
    ListOf,
    Member,
    NearestScore,
    Negation,
    NodeValue,
    NowValue,
    ParameterValue,
    PathPart,
    PathValue,
    Prefix,
    PropertyValue,
    RowCount,
    RrfScore,
    ScoreValue,
    Substring,
    SystemValue,
    TextMatch,
    TypeGuard,
    Value,
)
from omnigraph.schema.property_types import ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.property_values import compute_shortest_f32, format_date, format_datetime

_MAIN = "plan"
_WORDS: dict[type[Expr], str] = {
    Member: "in",
    Substring: "contains",
    Prefix: "starts_with",
    AllOf: "and",
    AnyOf: "or",
}
_OPERATORS = frozenset({"+", "-", "*", "/", "%"})
_COMPOUND = (Compare, Member, Substring, Prefix, IsNull, AllOf, AnyOf, Negation)


@dataclass(frozen=True, slots=True)
class ExplainRow:
    """An operator: its tree (the plan or a block), how deep it stands, its name and details."""

    tree: str
    depth: int
    node: str
    detail: str


def explain_plan(plan: ReadPlan) -> tuple[ExplainRow, ...]:
    """The operators of a plan from the result down, then those of its blocks."""
    rows: list[ExplainRow] = []
    trees = deque([(_MAIN, plan.root)])
    blocks = stages = 0
    while trees:
        tree, root = trees.popleft()
        for depth, operator in enumerate(reversed(chain_of(root))):
            detail = format_operator(operator)
            if isinstance(operator, BLOCKS):
                blocks += 1
                name = f"block {blocks}"
                trees.append((name, operator.block))
                detail = f"{name}{detail}"
            elif isinstance(operator, StageRows):
                names = [f"stage {stages + place}" for place, _ in enumerate(operator.plans, 1)]
                stages += len(names)
                trees.extend(zip(names, (each.root for each in operator.plans), strict=True))
                detail = f"{_format_terms(operator, names)}: {detail}"
            rows.append(ExplainRow(tree, depth, type(operator).__name__, detail))
    return tuple(rows)


def _format_terms(stage: StageRows, names: Sequence[str]) -> str:
    words = [
        f"{operator} {name}" for operator, name in zip(stage.operators, names[1:], strict=True)
    ]
    return " ".join((names[0], *words))


# ---- operators ----


def _format_leaf_rows(stage: Unit | Outer | StageRows) -> str:
    """What the rows of a leaf bind."""
    if not isinstance(stage, StageRows):
        return ""
    names = (f"${each.variable}" for each in stage.entities)
    return ", ".join((*names, *map(format_expression, stage.values)))


def format_operator(operator: Operator) -> str:
    """The details of an operator on one line."""
    match operator:
        case Unit() | Outer() | StageRows():
            return _format_leaf_rows(operator)
        case Scan() | Expand() | Unnest() | TableFunction() | Extend() | PathExpand():
            return _format_binding(operator)
        case Filter():
            return format_expression(operator.condition)
        case Having():
            return _join_operands(" and ", operator.conditions)
        case Exists() | CompareBlock() | Lateral() | BlockColumn():
            return _format_block(operator)
        case Rank():
            window = "" if operator.window is None else f" window {operator.window}"
            return format_expression(operator.score) + window
        case Aggregate() | Project():
            return ", ".join(map(_format_column, operator.columns))
        case Sort():
            return _format_keys(operator.keys)
        case Limit() | ParameterLimit():
            return _format_limit(operator)
        case _:
            assert_never(operator)


def _format_keys(keys: Iterable[OrderKey]) -> str:
    return ", ".join(
        format_expression(key.value) + (" desc" if key.is_descending else "") for key in keys
    )


def _format_limit(limit: Limit | ParameterLimit) -> str:
    parts = [] if limit.count is None else [_format_count(limit.count)]
    parts += [f"offset {_format_count(limit.offset)}"] if limit.offset else []
    parts += [] if limit.after is None else [f"after ${limit.after}"]
    return " ".join(parts)


def _format_count(count: RowCount) -> str:
    return str(count) if isinstance(count, int) else format_expression(count)


def _format_binding(
    operator: Scan | Expand | Unnest | TableFunction | Extend | PathExpand,
) -> str:
    match operator:
        case TableFunction():
            return _format_table(operator)
        case PathExpand():
            return _format_path(operator)
        case Unnest(variable=variable, position=position, items=items):
            names = f"${variable}" if position is None else f"${variable}, ${position}"
            return f"{names} in {format_expression(items)}"
        case Extend(variable=variable, value=value):
            return f"${variable} = {format_expression(value)}"
        case Scan():
            parts = [f"${operator.variable}: {operator.type_name}"]
        case Expand():
            parts = [f"${operator.source} {_format_edges(operator)} ${operator.target}"]
            if operator.target_is_bound:
                parts.append("closing")
            else:
                parts[0] += f": {operator.target_type}"
    if operator.conditions:
        parts.append("where " + _join_operands(" and ", operator.conditions))
    if operator.properties:
        parts.append("reads " + ", ".join(operator.properties))
    return "; ".join(parts)


_WAYS = {EdgeWay.FORWARD: "{}", EdgeWay.BACKWARD: "^{}", EdgeWay.BOTH: "<{}>"}


def _format_table(operator: TableFunction) -> str:
    call = operator.call
    names = ", ".join(f"${each.name}" for each in operator.variables)
    edges = " | ".join(_WAYS[each.way].format(each.edge_type) for each in call.edges)
    options = [f"nodes: {' | '.join(call.node_types)}", f"edges: {edges}"]
    options += [f"weight: {call.weight}"] if call.weight is not None else []
    for name, value in zip(call.options, call.values, strict=True):
        options.append(f"{name}: {format_expression(value)}")
    joined = "".join(f"; joins ${name}" for name in operator.joined)
    return f"{names} in {call.function}({', '.join(options)}){joined}"


def _format_path(path: PathExpand) -> str:
    names: dict[str, str] = {}
    for each in path.steps:
        name = each.edge_type
        shown = f"<-{name}" if each.is_reversed else f"{name}->"
        names[name] = f"<{name}>" if name in names else shown
    selector = f"{path.selector} " if path.is_all else ""
    steps = " | ".join(names.values()) or "nothing"
    edges = f"[{steps}{_format_bounds(path)}]"
    target = f"${path.target}" + ("" if path.target_is_bound else f": {path.target_type}")
    return f"${path.variable} = {selector}${path.source} {edges} {target}"


def _format_bounds(operator: Expand | PathExpand) -> str:
    if (operator.minimum, operator.maximum) == (1, 1):
        return ""
    most = "" if operator.maximum == HOPS_MAX else operator.maximum
    return f" {{{operator.minimum},{most}}}"


def _format_edges(expand: Expand) -> str:
    steps = " | ".join(_format_step(step, expand) for step in expand.steps) or "nothing"
    edge = f"${expand.edge_variable}: " if expand.edge_variable else ""
    return f"[{edge}{steps}{_format_bounds(expand)}]"


def _format_step(step: EdgeStep, expand: Expand) -> str:
    if expand.is_undirected:
        return f"<{step.edge_type}>"
    return f"<-{step.edge_type}" if step.is_reversed else f"{step.edge_type}->"


def _format_block(operator: Exists | CompareBlock | Lateral | BlockColumn) -> str:
    if isinstance(operator, Lateral):
        return _format_lateral(operator)
    if isinstance(operator, BlockColumn):
        value = "has a row" if operator.value is None else format_expression(operator.value)
        return f": ${operator.variable} = {value}"
    if isinstance(operator, Exists):
        return " has no row" if operator.is_negated else " has a row"
    argument = "" if operator.argument is None else f"({format_expression(operator.argument)})"
    return f": {operator.function}{argument} {operator.op} {format_expression(operator.value)}"


def _format_lateral(operator: Lateral) -> str:
    kind = " optional" if operator.is_optional else " each"
    order = f"; order {_format_keys(operator.keys)}" if operator.keys else ""
    limit = "" if operator.limit is None else f"; limit {_format_count(operator.limit)}"
    offset = f"; offset {_format_count(operator.offset)}" if operator.offset else ""
    return f"{kind}{order}{limit}{offset}"


def _format_column(column: Column) -> str:
    return f"{format_expression(column.value)} as {column.name}"


# ---- expressions ----


def format_expression(expr: Expr) -> str:
    """A typed expression, much as the language spells it."""
    children = tuple(iter_children(expr))
    match expr:
        case Compare():
            return _join_operands(f" {expr.op} ", children)
        case Member() | Substring() | Prefix() | AllOf() | AnyOf():
            return _join_operands(f" {_WORDS[type(expr)]} ", children)
        case Negation():
            return f"not {_join_operands('', children)}"
        case IsNull():
            return f"{_join_operands('', children)} is {'not ' if expr.is_negated else ''}null"
        case FunctionValue():
            return _format_function(expr, children)
        case ListOf():
            return f"[{', '.join(map(format_expression, children))}]"
        case AggregateValue():
            return _format_aggregate(expr)
        case TextMatch():
            return _format_call(expr.function, expr, children)
        case NearestScore() | Bm25Score() | RrfScore() | ScoreValue():
            score = expr.score if isinstance(expr, ScoreValue) else expr
            name = type(score).__name__.removesuffix("Score").lower()
            return _format_call(name, score, tuple(iter_children(score)))
        case _:
            return _format_leaf(expr)


def format_guard(guard: TypeGuard) -> str:
    """Which nodes of a type are seen."""
    return f"({guard.type_name} where {format_expression(guard.condition)})"


def _join_operands(separator: str, operands: Iterable[Expr]) -> str:
    return separator.join(
        f"({format_expression(each)})" if isinstance(each, _COMPOUND) else format_expression(each)
        for each in operands
    )


def _format_call(name: str, expr: Expr, arguments: Sequence[Expr]) -> str:
    texts = list(map(format_expression, arguments))
    if isinstance(expr, TextMatch | NearestScore | Bm25Score):
        texts.insert(0, f"${expr.variable}.{expr.property}")
    if isinstance(expr, NearestScore) and expr.metric is not Metric.L2:
        texts.append(f'metric: "{expr.metric}"')
    return f"{name}({', '.join(texts)})"


def _format_function(expr: FunctionValue, arguments: Sequence[Expr]) -> str:
    if expr.function in _OPERATORS:
        return f"({f' {expr.function} '.join(map(format_expression, arguments))})"
    return _format_call(expr.function, expr, arguments)


def _format_aggregate(call: AggregateValue) -> str:
    inner = ("distinct " if call.is_distinct else "") + format_expression(call.argument)
    if call.fraction is not None:
        inner += f", {format_expression(call.fraction)}"
    if call.order:
        directions = zip(call.order, call.is_descending, strict=True)
        keys = [format_expression(key) + (" desc" if desc else "") for key, desc in directions]
        inner += f" order {', '.join(keys)}"
    if call.limit is not None:
        inner += f" limit {call.limit}"
    return f"{call.function}({inner})"


def _format_leaf(
    expr: Constant
    | GuardTest
    | ParameterValue
    | NowValue
    | PropertyValue
    | SystemValue
    | NodeValue
    | PathValue
    | EdgeValue
    | BoundValue
    | ColumnValue,
) -> str:
    match expr:
        case Constant(value, type_):
            return _format_value(value, _item_scalar_of(type_))
        case GuardTest(guards=guards):
            return " and ".join(map(format_guard, guards))
        case ParameterValue(name):
            return f"${name}"
        case NowValue():
            return "now()"
        case PropertyValue(variable, name):
            is_value = variable.startswith(STAGE_PREFIX)
            return f"${name}" if is_value else f"${variable}.{name}"
        case SystemValue(variable, field):
            return f"${variable}.@{field}"
        case NodeValue(variable) | EdgeValue(variable) | BoundValue(variable):
            return f"${variable}"
        case PathValue(variable, type_):
            is_whole = type_.part is PathPart.WHOLE
            return f"${variable}" if is_whole else f"{type_.part}(${variable})"
        case ColumnValue(name):
            return name
        case _:
            assert_never(expr)


def _item_scalar_of(type_: PropertyType) -> Scalar | None:
    match type_.value:
        case ListType(element):
            return element
        case VectorType():
            return Scalar.F32
        case _:
            return type_.scalar


def _format_value(value: Value, scalar: Scalar | None) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return quote_string(value)
        case tuple():
            return f"[{', '.join(_format_value(item, scalar) for item in value)}]"
        case int() if scalar is Scalar.DATE:
            return f'date("{format_date(value)}")'
        case int() if scalar is Scalar.DATETIME:
            return f'datetime("{format_datetime(value)}")'
        case float() if scalar is Scalar.F32:
            return str(compute_shortest_f32(value))
        case _:
            return str(value)

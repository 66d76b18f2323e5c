"""Stages of a read: what `with` carries on, and the columns of reads that are combined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_functions import find_common_type
from omnigraph.query.check.check_pages import refuse_page
from omnigraph.query.check.check_reads import (
    CheckedRead,
    ReadStart,
    check_match,
    check_result,
)
from omnigraph.query.check.check_returns import ReturnItem
from omnigraph.query.check.variable_scope import (
    Bound,
    EdgeVariable,
    NodeVariable,
    Scope,
    ValueVariable,
    check_reserved,
)
from omnigraph.query.typed_reads import edge_type_column_of
from omnigraph.query.typed_tree import NodeObject, PropertyValue, SystemName
from omnigraph.schema.ast import Name
from omnigraph.schema.property_types import PropertyType

# By column of a stage: the edge whose id it has, or None if it has the type of one.
_EdgeColumns = Mapping[str, EdgeVariable | None]


def check_read(context: CheckContext, body: ast.ReadBody) -> CheckedRead:
    """A read with all that it starts from."""
    start = check_input(context, body.input)
    matched = check_match(context, body.clauses, start)
    checked = check_result(context, body, start, matched, body.projections)
    report_unused(context, body.input, start)
    return checked


def check_input(context: CheckContext, source: ast.ReadBody | ast.SetOperation | None) -> ReadStart:
    """What a read starts from."""
    match source:
        case None:
            return ReadStart()
        case ast.ReadBody():
            return _check_with(context, source)
        case ast.SetOperation():
            return _check_combined(context, source)
        case _:
            assert_never(source)


def report_unused(
    context: CheckContext, source: ast.ReadBody | ast.SetOperation | None, start: ReadStart
) -> None:
    """Warn of values that a stage carries on for nothing; group keys decide what rows there are."""
    if not isinstance(source, ast.ReadBody) or source.is_distinct or start.scope is None:
        return
    if context.errors:
        # What is wrong may be what was meant to use it.
        return
    has_groups = any(_is_aggregate(item.value) for item in source.projections)
    ordered = {key.value.name for key in source.order if isinstance(key.value, ast.Identifier)}
    for item in source.projections:
        name = None if item.alias is None else item.alias.text
        if name is None or name in start.scope.used or name in ordered or source.having:
            continue
        is_value = isinstance(start.scope.own.get(name), ValueVariable)
        if is_value and (not has_groups or _is_aggregate(item.value)):
            context.collector.report_warning(
                "L322", item.span, f"'${name}' is not used after 'with'", hint="leave it out"
            )


def _is_aggregate(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.AggregateCall)


# ---- with ----


def _check_with(context: CheckContext, body: ast.ReadBody) -> ReadStart:
    """A stage that ends in `with`: its rows, and the variables that they carry on."""
    refuse_page(context, body)
    start = check_input(context, body.input)
    matched = check_match(context, body.clauses, start)
    scope = matched[1]
    edges: dict[str, EdgeVariable | None] = {}
    projections = [each for item in body.projections for each in _split_edge(scope, item, edges)]
    checked = check_result(context, body, start, matched, projections)
    report_unused(context, body.input, start)
    variable = context.make_stage_name()
    bound = [each for item in checked.items.all for each in _name_item(item, edges, variable)]
    for item in checked.items.all:
        _check_name(context, scope, item, edges)
    nodes = {each.name: each.type_name for each in bound if isinstance(each, NodeVariable)}
    seen = frozenset(scope.iter_names()) | scope.list_dropped()
    carried = Scope(nodes, dropped=seen - {each.name for each in bound})
    for each in bound:
        carried.bind(each)
    return ReadStart(_build_stage([checked.read], (), variable, bound), carried)


def _split_edge(
    scope: Scope, item: ast.Projection, edges: dict[str, EdgeVariable | None]
) -> Iterator[ast.Projection]:
    """An item; in the place of an edge stand its id, and its type if that may differ."""
    variable = item.value
    bound = scope.find(variable.name) if isinstance(variable, ast.Variable) else None
    if not isinstance(bound, EdgeVariable):
        yield item
        return
    assert isinstance(variable, ast.Variable)
    name = variable.name if item.alias is None else item.alias.text
    edges[name] = EdgeVariable(name, bound.edge_types, bound.is_nullable)
    fields = {name: SystemName.ID}
    if len(bound.edge_types or ()) != 1:
        edges[edge_type_column_of(name)] = None
        fields[edge_type_column_of(name)] = SystemName.TYPE
    for column, field in fields.items():
        value = ast.SystemAccess(variable, Name(field, variable.span), item.span)
        yield ast.Projection(value, Name(column, item.span), item.span)


def _name_item(item: ReturnItem, edges: _EdgeColumns, variable: str) -> Iterator[Bound]:
    """The variable that an item carries on."""
    if item.name is None:
        return
    if item.name in edges:
        edge = edges[item.name]
        if edge is not None:
            yield edge
        return
    match item.value:
        case typed_tree.NodeValue(type=NodeObject(type_name, is_nullable)):
            yield NodeVariable(item.name, type_name, is_nullable)
        case None:
            yield ValueVariable(item.name, None)
        case value:
            # The name of what cannot be carried on is known, and that is reported.
            type_ = value.type
            found = None
            if isinstance(type_, PropertyType):
                found = PropertyValue(variable, item.name, type_)
            yield ValueVariable(item.name, found)


def _check_name(context: CheckContext, scope: Scope, item: ReturnItem, edges: _EdgeColumns) -> None:
    """What is carried on has a name of its own, which no parameter and no other variable has."""
    source, alias = item.syntax.value, item.syntax.alias
    if isinstance(item.value, typed_tree.PathValue):
        message = "a path cannot be carried by 'with'"
        context.report_error("T118", source.span, message, hint="carry its length, or its ends")
    if isinstance(item.value, typed_tree.AggregateValue) and isinstance(
        item.value.type, NodeObject
    ):
        message = f"'with' cannot carry what {item.value.function}() makes of nodes"
        context.report_error("T8", source.span, message, hint="carry their ids: '$v.@id'")
    if alias is None:
        if not isinstance(source, ast.Variable):
            context.report_error(
                "T43", source.span, "what 'with' carries needs a name", hint="add 'as name'"
            )
        elif source.name in context.parameters:
            message = f"'${source.name}' is a parameter: it can be read everywhere"
            context.report_error("T106", source.span, message, hint="leave it out")
        return
    name, span = alias.text, alias.span
    check_reserved(context, ast.Variable(name, span))
    if name in context.parameters:
        context.report_error("T106", span, f"'${name}' is a parameter", hint="give another name")
    if isinstance(source, ast.SystemAccess) and name in edges:
        source = source.variable
    is_same = isinstance(source, ast.Variable) and source.name == name
    if scope.peek(name) is not None and not is_same:
        message = f"'${name}' is bound already; what 'with' carries needs a name of its own"
        context.report_error("T101", span, message)


def _build_stage(
    reads: Sequence[typed_reads.Read],
    operators: tuple[ast.SetOperator, ...],
    variable: str,
    bound: Sequence[Bound],
) -> typed_reads.Stage:
    entities: list[typed_reads.CarriedEntity] = []
    values: list[PropertyValue] = []
    for each in bound:
        match each:
            case NodeVariable(name, str(type_name), is_nullable):
                entities.append(
                    typed_reads.CarriedEntity(name, (type_name,), is_nullable=is_nullable)
                )
            case EdgeVariable(name, tuple(types), is_nullable):
                entities.append(
                    typed_reads.CarriedEntity(name, types, is_edge=True, is_nullable=is_nullable)
                )
            case ValueVariable(_, PropertyValue() as value):
                values.append(value)
            case _:
                pass
    return typed_reads.Stage(tuple(reads), operators, variable, tuple(entities), tuple(values))


# ---- combined reads ----


def _check_combined(context: CheckContext, operation: ast.SetOperation) -> ReadStart:
    """Reads whose rows are combined: the columns of all of them."""
    for term in operation.terms:
        refuse_page(context, term)
    for term in operation.terms:
        if term.is_graph:
            message = "reads are combined by their rows, and a graph has none"
            context.report_error("T121", term.return_span, message, hint="leave 'graph' out")
    checked = [check_read(context, term) for term in operation.terms]
    variable = context.make_stage_name()
    names = [item.name for item in checked[0].items.all]
    for term, each in zip(operation.terms[1:], checked[1:], strict=True):
        own = [item.name for item in each.items.all]
        if own != names and None not in (*own, *names):
            context.report_error(
                "T119",
                term.return_span,
                f"the columns are {_format_names(own)}, but those of the first read are "
                f"{_format_names(names)}",
                hint="name them alike with 'as', in one order",
            )
            return ReadStart(None, Scope({}), tuple(_build_item(name, None) for name in own))
    bound = [
        _combine_columns(context, [each.items.all[place] for each in checked], variable)
        for place in range(len(names))
    ]
    reads = [each.read for each in checked]
    known = [each for each in bound if each is not None]
    stage = _build_stage(reads, operation.operators, variable, known)
    items = tuple(map(_build_item, names, bound))
    return ReadStart(stage, Scope({}), items)


def _combine_columns(
    context: CheckContext, items: Sequence[ReturnItem], variable: str
) -> NodeVariable | ValueVariable | None:
    """A column of all reads, unless one of its items is wrong."""
    name, values = items[0].name, [item.value for item in items if item.value is not None]
    if name is None or len(values) < len(items):
        return None
    nodes = [value.type for value in values if isinstance(value, typed_tree.NodeValue)]
    if len(nodes) == len(values) and len({each.type_name for each in nodes}) == 1:
        is_nullable = any(each.is_nullable for each in nodes)
        return NodeVariable(name, nodes[0].type_name, is_nullable)
    common = find_common_type(values)
    if common is None:
        shown = ", ".join(dict.fromkeys(str(value.type) for value in values))
        span = items[-1].syntax.span
        message = f"column '{name}' has no type that holds all its values: {shown}"
        context.report_error("T119", span, message)
        return None
    return ValueVariable(name, PropertyValue(variable, name, common))


def _build_item(name: str | None, column: NodeVariable | ValueVariable | None) -> ReturnItem:
    """A column of combined reads as something that is returned."""
    shown = name or ""
    syntax = ast.Projection(ast.Variable(shown), Name(shown))
    match column:
        case NodeVariable(own, str(type_name), is_nullable):
            node = NodeObject(type_name, is_nullable)
            return ReturnItem(name, typed_tree.NodeValue(own, node), syntax)
        case ValueVariable(_, value):
            return ReturnItem(name, value, syntax)
        case _:
            return ReturnItem(name, None, syntax)


def _format_names(names: Sequence[str | None]) -> str:
    return ", ".join(f"'{name}'" for name in names)

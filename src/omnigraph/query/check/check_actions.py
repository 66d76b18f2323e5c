"""Statements that match a pattern and write what its rows say."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_assignments import (
    ENDS,
    check_assignments,
    check_complete,
    find_type,
    refuse_assigned_keys,
    require_key,
)
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import LeafRules, Refusal, leaf_of
from omnigraph.query.check.check_reads import check_match
from omnigraph.query.check.check_stages import check_input, report_unused
from omnigraph.query.check.variable_scope import (
    EdgeVariable,
    Entity,
    NodeVariable,
    Scope,
    ValueVariable,
    find_bound,
)
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.query.typed_tree import SystemName, column_name_of, value_column_of
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.type_sets import is_type_set

_ReadLeaf = typed_tree.PropertyValue | typed_tree.SystemValue | typed_tree.BoundValue
_VALUE = LeafRules(
    word=Refusal("T102", "is not a value here", "write '$v.name' for a property"),
    aggregate=Refusal("T44", "an aggregate cannot stand in a value that is written"),
    predicate=Refusal("T44", "a search predicate cannot stand in a value that is written"),
    rank=Refusal("T44", "a rank call cannot stand in a value that is written"),
)


def check_pattern_write(
    context: CheckContext, write: ast.PatternWrite, parameters: tuple[typed_tree.Parameter, ...]
) -> typed_tree.PatternWrite | None:
    """The pattern, its actions, and what these read of it."""
    errors_before = context.errors
    before = check_input(context, write.input)
    pattern, scope = check_match(context, write.clauses, before)
    actions = [found for each in write.actions for found in _check_action(context, scope, each)]
    report_unused(context, write.input, before)
    if context.errors > errors_before:
        return None
    columns = tuple(_collect_columns(actions).values()) or (
        typed_reads.Column("row", typed_tree.EVERY_ROW, typed_tree.BOOL),
    )
    return typed_tree.PatternWrite(
        typed_reads.Read(
            "match", parameters, scope.attach_hidden(pattern), columns, input=before.stage
        ),
        tuple(actions),
    )


def _check_action(
    context: CheckContext, scope: Scope, action: ast.Action
) -> Iterable[typed_tree.Action]:
    match action:
        case ast.UpdateVariable():
            updated = _check_update(context, scope, action)
            return () if updated is None else (updated,)
        case ast.DeleteVariables(variables):
            bound = [_find_entity(context, scope, each) for each in variables]
            return [
                typed_tree.DeleteBound(each.name, *_types_of(each))
                for each in bound
                if each is not None
            ]
        case ast.Insert():
            written = _check_write(context, scope, action)
            return () if written is None else (written,)


def _find_entity(context: CheckContext, scope: Scope, variable: ast.Variable) -> Entity | None:
    """The variable of a node or an edge that a clause binds."""
    if variable.name in context.parameters and scope.find(variable.name) is None:
        context.report_error(
            "T124",
            variable.span,
            f"'${variable.name}' is a parameter, not a node or an edge",
            hint="bind a node by its key in 'match': $v: Type { key: $parameter }",
        )
        return None
    bound = find_bound(context, scope, variable, "T102")
    if isinstance(bound, ValueVariable):
        message = f"'${variable.name}' is a value, not a node or an edge"
        context.report_error("T124", variable.span, message)
        return None
    if isinstance(bound, NodeVariable) and is_type_set(bound.type_name or ""):
        message = f"'${variable.name}' may be of several types, and a write is of one"
        hint = "bind one type, or one after the other"
        context.report_error("T124", variable.span, message, hint=hint)
        return None
    return bound


def _types_of(bound: Entity) -> tuple[tuple[str, ...], bool]:
    if isinstance(bound, EdgeVariable):
        return bound.edge_types or (), True
    return (() if bound.type_name is None else (bound.type_name,)), False


def _check_update(
    context: CheckContext, scope: Scope, update: ast.UpdateVariable
) -> typed_tree.UpdateBound | None:
    bound = _find_entity(context, scope, update.variable)
    if bound is None:
        return None
    names, is_edge = _types_of(bound)
    types = context.catalog.edges if is_edge else context.catalog.nodes
    assignments: tuple[typed_tree.Assign, ...] = ()
    for name in names:
        assignments = _check_bound_values(context, scope, update, types[name])
    return typed_tree.UpdateBound(bound.name, names, is_edge, assignments)


def _check_bound_values(
    context: CheckContext,
    scope: Scope,
    update: ast.UpdateVariable,
    type_: NodeType | EdgeType,
) -> tuple[typed_tree.Assign, ...]:
    refuse_assigned_keys(context, update.assignments, type_)
    leaf = leaf_of(context, scope, _VALUE)
    return check_assignments(context, update.assignments, type_, leaf=leaf, may_compute_key=True)


def _check_write(
    context: CheckContext, scope: Scope, write: ast.Insert
) -> typed_tree.WriteEach | None:
    target = find_type(context, write.type_name)
    if target is None:
        return None
    require_key(context, write, target)
    ends = ENDS if isinstance(target, EdgeType) else {}
    errors_before = context.errors
    values = check_assignments(
        context,
        write.assignments,
        target,
        ends=ends,
        leaf=leaf_of(context, scope, _VALUE),
        may_compute_key=True,
    )
    check_complete(context, write, target, needed=tuple(ends))
    if context.errors > errors_before:
        return None
    given = {each.property: each.value for each in values}
    properties = tuple(each for each in values if each.property not in ends)
    both = (given["from"], given["to"]) if ends else None
    return typed_tree.WriteEach(target.name, both, properties, write.verb)


# ---- what the actions read ----


def _collect_columns(actions: Iterable[typed_tree.Action]) -> dict[str, typed_reads.Column]:
    found: dict[str, typed_reads.Column] = {}
    for action in actions:
        for leaf in _iter_leaves(action):
            column = _column_of(leaf)
            found[column] = typed_reads.Column(column, leaf, leaf.type, alias=column)
    return found


def _column_of(leaf: _ReadLeaf) -> str:
    match leaf:
        case typed_tree.PropertyValue(variable, name) | typed_tree.SystemValue(variable, name):
            return column_name_of(variable, name)
        case typed_tree.BoundValue(variable):
            return value_column_of(variable)


def _iter_leaves(action: typed_tree.Action) -> Iterable[_ReadLeaf]:
    if not isinstance(action, typed_tree.WriteEach):
        yield typed_tree.SystemValue(action.variable, SystemName.ID)
        if action.is_edge and len(action.types) > 1:
            yield typed_tree.SystemValue(action.variable, SystemName.TYPE)
    for expr in _iter_values(action):
        for part in iter_subexpressions(expr):
            if isinstance(part, _ReadLeaf):
                yield part


def _iter_values(action: typed_tree.Action) -> Iterable[typed_tree.Expr]:
    match action:
        case typed_tree.WriteEach(_, ends, assignments):
            yield from (*(ends or ()), *(each.value for each in assignments))
        case typed_tree.UpdateBound():
            yield from (each.value for each in action.assignments)
        case typed_tree.DeleteBound():
            pass

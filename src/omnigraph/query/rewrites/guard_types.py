"""Hides what the reader of a plan may not see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, TypeVar

from omnigraph.query.logical_plan import (
    Expand,
    Operator,
    PathExpand,
    ReadPlan,
    Scan,
    TableFunction,
)
from omnigraph.query.tree_walk import Chain, map_chains, rename_variables
from omnigraph.query.typed_tree import (
    BOOL,
    ROW,
    DeleteNodes,
    Expr,
    GuardTest,
    Mutation,
    Statement,
    TypeGuard,
    UpdateNodes,
)
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.type_sets import is_type_set, list_member_types

_Guards: TypeAlias = Mapping[str, TypeGuard]
_Binding = TypeVar("_Binding", Scan, Expand)


def guard_types(plan: ReadPlan, _catalog: Catalog) -> ReadPlan:
    """Let a plan read the subgraph that its guards leave.

    Every variable is bound by a scan, a traversal, a path or a table, so an edge between two
    variables is one between nodes that are seen. What an operator meets on its way has no variable:
    there the guards are a field of it.
    """
    if not plan.guards:
        return plan
    guards = {each.type_name: each for each in plan.guards}

    def guard_chain(chain: Chain) -> Iterator[Operator]:
        return (_guard_operator(each, guards) for each in chain)

    return replace(plan, root=map_chains(plan.root, guard_chain))


def _guard_operator(operator: Operator, guards: _Guards) -> Operator:
    match operator:
        case Scan(variable=variable, type_name=type_name):
            return _add_condition(operator, build_guard_condition(variable, type_name, guards))
        case Expand():
            return _guard_traversal(operator, guards)
        case PathExpand(type=type_):
            return replace(operator, guards=_select_guards(type_.node_types, guards))
        case TableFunction(call=call):
            return replace(operator, guards=_select_guards(call.node_types, guards))
        case _:
            return operator


def _guard_traversal(operator: Expand, guards: _Guards) -> Expand:
    # The work of a selection counts all edges at a node.
    if operator.maximum > 1 or operator.is_selection:
        # A traversal may be walked from its other end.
        ends = (operator.source_type, operator.target_type)
        types = dict.fromkeys(name for end in ends for name in list_member_types(end))
        operator = replace(operator, guards=_select_guards(types, guards))
    if operator.target_is_bound:
        return operator
    condition = build_guard_condition(operator.target, operator.target_type, guards)
    return _add_condition(operator, condition)


def _add_condition(operator: _Binding, condition: Expr | None) -> _Binding:
    if condition is None or condition in operator.conditions:
        return operator
    return replace(operator, conditions=(condition, *operator.conditions))


def build_guard_condition(variable: str, type_name: str, guards: _Guards) -> Expr | None:
    """Whether the reader sees the node of a variable; None if he sees all of its type."""
    own = _select_guards(list_member_types(type_name), guards)
    if not own:
        return None
    if is_type_set(type_name):
        return GuardTest(variable, own, BOOL)
    return rename_variables(own[0].condition, lambda _: variable)


def _select_guards(types: Iterable[str], guards: _Guards) -> tuple[TypeGuard, ...]:
    return tuple(guards[name] for name in types if name in guards)


def guard_statements(mutation: Mutation, own: Iterable[TypeGuard]) -> Mutation:
    """Let updates and deletes by conditions touch only nodes that the writer sees."""
    guards = {each.type_name: each for each in own}

    def guard_statement(statement: Statement) -> Statement:
        if not isinstance(statement, UpdateNodes | DeleteNodes):
            return statement
        condition = build_guard_condition(ROW, statement.type_name, guards)
        if condition is None:
            return statement
        return replace(statement, conditions=(*statement.conditions, condition))

    return replace(mutation, statements=tuple(map(guard_statement, mutation.statements)))

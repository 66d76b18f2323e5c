"""Where the pattern of a plan ends, the steps after it, and what a plan reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from omnigraph.query import logical_plan as plans
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.tree_walk import (
    BLOCKS,
    STAGES,
    bound_variables_of,
    chain_of,
    expressions_of,
    iter_subexpressions,
    link_chain,
    variables_of,
)
from omnigraph.query.typed_tree import (
    AggregateValue,
    Expr,
    ScoreValue,
    TextMatch,
    is_never_null,
)
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.type_sets import is_type_set, list_member_types

ResultStep: TypeAlias = plans.Aggregate | plans.Having | plans.Sort | plans.Limit | plans.Project


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The pattern of a plan, and the steps that make its rows a result, in their order."""

    pattern: plans.Operator
    steps: tuple[ResultStep, ...]

    @property
    def rows_max(self) -> int | None:
        """How many rows of the pattern are enough, if any so many are."""
        first = self.steps[0]
        return first.end if isinstance(first, plans.Limit) else None

    @property
    def needed(self) -> frozenset[str]:
        """The variables that the steps read."""
        return frozenset().union(
            *map(_collect_variables, chain.from_iterable(map(expressions_of, self.steps)))
        )


def split_plan(root: plans.Operator) -> SplitPlan:
    """The two parts of a plan."""
    steps: list[ResultStep] = []
    while isinstance(root, ResultStep):
        steps.append(root)
        root = root.input
    return SplitPlan(root, tuple(reversed(steps)))


def _collect_variables(expr: Expr) -> frozenset[str]:
    match expr:
        case AggregateValue(AggregateFunction.COUNT, argument, is_distinct=False) if is_never_null(
            argument
        ):
            # To count it is to count rows.
            return frozenset()
        case _:
            return variables_of(expr)


def split_laterals(pattern: plans.Operator) -> tuple[plans.Operator, tuple[plans.Operator, ...]]:
    """The operators of a pattern up to its first lateral block or value, and the others."""
    chain_ = chain_of(pattern)
    for place, operator in enumerate(chain_):
        if isinstance(operator, STAGES):
            return link_chain(chain_[:place]), chain_[place:]
    return pattern, ()


def iter_operators(root: plans.Operator) -> Iterator[plans.Operator]:
    """The operators of a plan, of its blocks and of its stages."""
    for operator in chain_of(root):
        yield operator
        if isinstance(operator, plans.StageRows):
            for stage in operator.plans:
                yield from iter_operators(stage.root)
        if isinstance(operator, BLOCKS):
            yield from iter_operators(operator.block)


@dataclass(frozen=True, slots=True)
class VariableTypes:
    """The type of each node variable, and the types of each edge variable, of a plan.

    Variables of blocks and stages are among them; no two variables of a plan have the same name.
    Rows of a stage have a type of their own, with the name of their variable. Those of optional
    blocks are `nullable`: a row may lack them.
    """

    nodes: dict[str, str]
    edges: dict[str, tuple[str, ...]]
    nullable: frozenset[str] = frozenset()


def variable_types_of(root: plans.Operator) -> VariableTypes:
    """The variables of a plan and its blocks, with their types."""
    found = VariableTypes({}, {})
    nullable: set[str] = set()
    for operator in iter_operators(root):
        match operator:
            case plans.StageRows():
                found.nodes[operator.variable] = operator.variable
                nullable |= {each.variable for each in operator.entities if each.is_nullable}
                for each in operator.entities:
                    if each.is_edge:
                        found.edges[each.variable] = each.types
                    else:
                        (found.nodes[each.variable],) = each.types
            case plans.Scan(variable=variable, type_name=type_name):
                found.nodes[variable] = type_name
            case plans.Expand() | plans.PathExpand():
                found.nodes[operator.source] = operator.source_type
                found.nodes[operator.target] = operator.target_type
                if isinstance(operator, plans.Expand) and operator.edge_variable is not None:
                    types = tuple(step.edge_type for step in operator.steps)
                    found.edges[operator.edge_variable] = types
            case plans.TableFunction():
                own = {each.name: each.type for each in operator.variables}
                found.nodes.update((n, t) for n, t in own.items() if isinstance(t, str))
            case plans.Lateral(is_optional=True):
                nullable |= bound_variables_of(operator)
            case _:
                pass
    return replace(found, nullable=frozenset(nullable))


def read_types_of(root: plans.Operator) -> frozenset[TypeKey]:
    """The types that a plan and its blocks read."""
    return frozenset(chain.from_iterable(map(_iter_types, iter_operators(root))))


def _iter_types(operator: plans.Operator) -> Iterator[TypeKey]:
    match operator:
        case plans.Scan():
            yield from _iter_members(operator.type_name)
        case plans.Expand():
            yield from _iter_members(operator.source_type)
            yield from _iter_members(operator.target_type)
            for step in operator.steps:
                yield TypeKey(TypeKind.EDGE, step.edge_type)
        case plans.TableFunction(call=call):
            yield from (TypeKey(TypeKind.NODE, name) for name in call.node_types)
            yield from (TypeKey(TypeKind.EDGE, each.edge_type) for each in call.edges)
        case plans.PathExpand(type=type_):
            yield from (TypeKey(TypeKind.NODE, name) for name in type_.node_types)
            yield from (TypeKey(TypeKind.EDGE, name) for name in type_.edge_types)
        case _:
            pass


def _iter_members(type_name: str) -> Iterator[TypeKey]:
    for name in list_member_types(type_name):
        yield TypeKey(TypeKind.NODE, name)


def collect_text_matches(root: plans.Operator) -> tuple[TextMatch, ...]:
    """The text predicates of a plan and its blocks."""
    return tuple(
        part
        for operator in iter_operators(root)
        for expr in expressions_of(operator)
        for part in iter_subexpressions(expr)
        if isinstance(part, TextMatch)
    )


def has_score(root: plans.Operator) -> bool:
    """Whether a plan scores rows, for their order or as values."""
    return any(
        isinstance(operator, plans.Rank)
        or (isinstance(operator, plans.Extend) and isinstance(operator.value, ScoreValue))
        for operator in iter_operators(root)
    )


def find_single_scan(root: plans.Operator) -> plans.Scan | None:
    """The scan of a pattern that consists of one, with all conditions on its rows."""
    leaf, *operators = chain_of(split_plan(root).pattern)
    if isinstance(leaf, plans.StageRows):
        return None
    filters = [each.condition for each in operators if isinstance(each, plans.Filter)]
    scans = [each for each in operators if isinstance(each, plans.Scan)]
    if len(scans) != 1 or len(filters) + 1 < len(operators) or is_type_set(scans[0].type_name):
        return None
    # A filter below the scan reads no row.
    return replace(scans[0], conditions=(*scans[0].conditions, *filters))

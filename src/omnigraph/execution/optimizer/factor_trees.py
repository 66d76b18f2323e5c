"""Trees of variables that are never enumerated: what hangs from the variables that are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph.execution.optimizer.pattern_graph import Link, PatternGraph, Variable
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.typed_tree import (
    AggregateValue,
    Constant,
    NodeValue,
    PropertyValue,
    SystemValue,
)
from omnigraph.rows.whole_aggregates import is_whole_aggregate


class PartialKind(StrEnum):
    """What of a value is carried from the node that has it to the rows that need it."""

    KNOWN = "known"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class PartialAggregate:
    """A value of a variable, carried along with the number of matches."""

    kind: PartialKind
    value: PropertyValue


@dataclass(frozen=True, slots=True)
class FactorBranch:
    """A plain traversal from a variable to a tree of others."""

    link: Link
    tree: FactorTree


@dataclass(frozen=True, slots=True)
class FactorTree:
    """A variable with what hangs from it; `items` are the values of the variable itself."""

    variable: Variable
    branches: tuple[FactorBranch, ...] = ()
    items: tuple[PartialAggregate, ...] = ()

    @property
    def is_bare(self) -> bool:
        """Whether each node of the type matches it once, with nothing to carry."""
        return self.variable.is_free and not self.branches and not self.items

    @property
    def is_plain(self) -> bool:
        """Whether it asks nothing beyond the conditions of its variable."""
        return not self.branches and not self.items


def build_factor_tree(
    graph: PatternGraph,
    variable: Variable,
    core: Collection[str],
    items: Iterable[PartialAggregate] = (),
) -> FactorTree:
    """A variable of the core with all that hangs from it; its own conditions hold already."""
    bare = replace(variable, conditions=(), blocks=())
    return _grow_tree(graph, bare, frozenset(core), tuple(items))


def _grow_tree(
    graph: PatternGraph,
    variable: Variable,
    seen: frozenset[str],
    items: tuple[PartialAggregate, ...],
) -> FactorTree:
    branches = tuple(
        FactorBranch(
            link,
            _grow_tree(graph, graph.variables[link.target], seen | {variable.name}, items),
        )
        for link in graph.links_of[variable.name]
        if link.target not in seen and link.target != variable.name
    )
    own = tuple(item for item in items if item.value.variable == variable.name)
    return FactorTree(variable, branches, own)


def items_of(call: AggregateValue) -> tuple[PartialAggregate, ...] | None:
    """What has to be carried for an aggregate; None if it is not a number."""
    argument = call.argument
    if is_whole_aggregate(call):
        return None
    match call.function, argument:
        case AggregateFunction.COUNT, NodeValue() | SystemValue() | Constant():
            return ()
        case _, PropertyValue():
            pass
        case _:
            return None
    known = PartialAggregate(PartialKind.KNOWN, argument)
    match call.function:
        case AggregateFunction.COUNT:
            return (known,)
        case AggregateFunction.SUM | AggregateFunction.AVG:
            return (PartialAggregate(PartialKind.SUM, argument), known)
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return (PartialAggregate(PartialKind(call.function.value), argument), known)
        case _:
            raise AssertionError(f"{call.function} needs all rows of a group")

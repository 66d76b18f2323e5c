"""Logical plans to physical ones: what is enumerated in which order, and what only hangs.

A plan is looked at once. Its order is chosen from the statistics of the first snapshot it runs on,
and again when the graph has grown out of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from omnigraph.execution.planner.aggregation import Aggregation, Deferred, aggregation, deferred
from omnigraph.execution.planner.blocks import BlockTrees
from omnigraph.execution.planner.choice import VARIABLES_MAX, Choice, choose
from omnigraph.execution.planner.core import Core, CoreStep
from omnigraph.execution.planner.graph import Link, PatternGraph, pattern_graph
from omnigraph.execution.planner.projection import Projection, projection
from omnigraph.execution.planner.statistics import Statistics
from omnigraph.execution.planner.trees import Item, hanging_tree
from omnigraph.execution.tail import Step, split
from omnigraph.query.assemble import Node, Parts, Test, assemble
from omnigraph.query.plan import (
    Aggregate,
    Expand,
    Limit,
    Operator,
    Project,
    Rank,
    ReadPlan,
    Unit,
)
from omnigraph.query.walk import bound_variables, chain_of, used_variables
from omnigraph.schema.catalog import Catalog

# A graph that has grown or shrunk this many times may need another order.
DRIFT: int = 4


@dataclass(frozen=True)
class Logical:
    """What a plan asks for, whatever the snapshot."""

    plan: ReadPlan
    pattern: Operator
    rank: Rank | None
    steps: tuple[Step, ...]
    graph: PatternGraph
    aggregation: Aggregation | None
    # The variables, also of edges, that something after the pattern reads.
    needed: frozenset[str]
    # How many rows of the pattern are enough, if any so many are.
    rows_max: int | None
    # How a few rows become the result, if nothing is left to do but that.
    projection: Projection | None
    block_trees: BlockTrees = field(default_factory=dict)

    @cached_property
    def components(self) -> list[frozenset[str]]:
        """The variables in groups that traversals connect."""
        return self.graph.components(self.graph.variables)


@dataclass(frozen=True, slots=True)
class Physical:
    """How a plan runs on whole types: components, of which the first has what is needed."""

    cores: tuple[Core, ...]
    choices: tuple[Choice, ...]
    deferred: Deferred
    sizes: tuple[tuple[str, int], ...]


def logical(plan: ReadPlan, catalog: Catalog) -> Logical:
    """What a plan asks for."""
    parts = split(plan.root)
    pattern, rank = parts.pattern, None
    if isinstance(pattern, Rank):
        rank = pattern
        pattern = rank.input
    graph = pattern_graph(pattern, catalog)
    steps = parts.steps
    first = steps[0]
    wanted = None
    if isinstance(first, Aggregate) and rank is None:
        wanted = aggregation(first, graph, catalog)
    needed = parts.needed if rank is None else parts.needed | used_variables(rank)
    rows_max = parts.rows_max if rank is None else None
    return Logical(
        plan,
        pattern,
        rank,
        steps,
        graph,
        wanted,
        needed,
        rows_max,
        _projection(steps, graph, catalog) if rank is None else None,
    )


def _projection(steps: Sequence[Step], graph: PatternGraph, catalog: Catalog) -> Projection | None:
    match steps:
        case [Project(columns=columns)] | [Limit(), Project(columns=columns)]:
            types = {name: each.type_name for name, each in graph.variables.items()}
            return projection(columns, types, catalog)
        case _:
            return None


def is_weighable(query: Logical) -> bool:
    """Whether rows can be enumerated here: the order is free, and one component has all needs."""
    graph = query.graph
    if graph.is_selecting or not 0 < len(graph.variables) <= VARIABLES_MAX:
        return False
    own = [_component_of(query, used_variables(test)) for test in graph.tests]
    if None in own:
        return False
    return len({_component_of(query, {name}) for name in _wanted(query)} - {None}) <= 1


def physical(query: Logical, statistics: Statistics) -> Physical:
    """The cheapest way to run a plan on whole types."""
    graph, wanted = query.graph, query.aggregation
    later = Deferred(())
    if wanted is not None:
        later = deferred(wanted, graph, statistics)
    needed = (_wanted(query) | graph.entangled) - later.variables
    items = () if wanted is None else wanted.items
    components = sorted(query.components, key=lambda each: not each & _wanted(query))
    choices = tuple(
        choose(
            graph,
            statistics,
            needed=needed & component,
            among=component - later.variables,
            is_hanging=True,
        )
        for component in components
    )
    kept = _read_after(query) - later.variables
    cores = tuple(_core(graph, choice, later, items=items, kept=kept) for choice in choices)
    types = sorted({each.type_name for each in graph.variables.values()})
    sizes = tuple((name, statistics.size(name)) for name in types)
    return Physical(cores, choices, later, sizes)


def is_outdated(known: Physical, statistics: Statistics) -> bool:
    """Whether types are much larger or smaller than when an order was chosen.

    So is one that relies on nodes that others determine, and do no longer.
    """
    return any(
        not size / DRIFT <= statistics.size(name) <= size * DRIFT for name, size in known.sizes
    ) or not all(statistics.is_functional(link) for link in known.deferred.links)


@dataclass(frozen=True, slots=True)
class Ordered:
    """A pattern in the order in which it is matched, for any source."""

    pattern: Operator
    choices: tuple[Choice, ...] = ()


def reordered(query: Logical, statistics: Statistics) -> Ordered:
    """The pattern of a plan in the cheapest order."""
    graph = query.graph
    if graph.is_selecting or not 0 < len(graph.variables) <= VARIABLES_MAX:
        return Ordered(query.pattern)
    choices = [
        choose(graph, statistics, needed=(), among=component, is_hanging=False)
        for component in query.components
    ]
    choices.sort(key=lambda choice: choice.rows[0])
    tests: list[Test] = [*graph.guards, *graph.tests]
    tests += (block for each in graph.variables.values() for block in each.blocks)
    links = [link for choice in choices for link in choice.links]
    pattern = _assembled(graph, [choice.start for choice in choices], links, tests)
    return Ordered(pattern, tuple(choices))


def _assembled(
    graph: PatternGraph, starts: Iterable[str], links: Iterable[Link], tests: Iterable[Test]
) -> Operator:
    traversals = [link.expand for link in links]
    names = {end for each in traversals for end in (each.source, each.target)}
    ordered = dict.fromkeys((*starts, *sorted(names)))
    nodes = [
        Node(name, graph.variables[name].type_name, graph.variables[name].conditions)
        for name in ordered
    ]
    return assemble(Unit(), Parts(tuple(nodes), tuple(traversals), tuple(tests)))


def _core(
    graph: PatternGraph,
    choice: Choice,
    later: Deferred,
    *,
    items: Collection[Item],
    kept: frozenset[str],
) -> Core:
    tests = [
        test
        for test in graph.tests
        if used_variables(test) & graph.variables.keys() & choice.core
        or used_variables(test) & {link.expand.edge_variable for link in choice.links}
    ]
    _, scan, *operators = chain_of(_assembled(graph, [choice.start], choice.links, tests))
    assert bound_variables(scan) == {choice.start}
    steps: list[CoreStep] = []
    for operator in reversed(operators):
        steps.append(_step(graph, operator, kept))
        kept = kept | used_variables(operator)
    hidden = choice.core | later.variables
    trees = {
        name: hanging_tree(graph, graph.variables[name], hidden, items) for name in choice.core
    }
    return Core(graph.variables[choice.start], tuple(reversed(steps)), trees)


def _step(graph: PatternGraph, operator: Operator, kept: frozenset[str]) -> CoreStep:
    if not isinstance(operator, Expand) or operator.target_is_bound:
        return CoreStep(operator, None, kept, is_plain=False, is_bounded=False)
    is_bounded = (
        len(operator.steps) == 1
        and operator.edge_variable is None
        and not operator.is_selection
        and operator.source_type == operator.target_type
    )
    is_plain = Link(0, operator).is_plain
    return CoreStep(operator, graph.variables[operator.target], kept, is_plain, is_bounded)


def _wanted(query: Logical) -> frozenset[str]:
    """The node variables that rows must have."""
    if query.aggregation is not None:
        return query.aggregation.needed
    edges = {
        link.expand.edge_variable: link.source
        for link in query.graph.links
        if link.expand.edge_variable is not None
    }
    return frozenset(edges.get(name, name) for name in query.needed)


def _read_after(query: Logical) -> frozenset[str]:
    """The variables, also of edges, that are read of rows."""
    return query.needed if query.aggregation is None else query.aggregation.needed


def _component_of(query: Logical, names: Collection[str]) -> int | None:
    """The only component that variables, also of edges, are in."""
    ends = {
        link.expand.edge_variable: link.source
        for link in query.graph.links
        if link.expand.edge_variable is not None
    }
    nodes = {ends.get(name, name) for name in names}
    for place, component in enumerate(query.components):
        if nodes <= component:
            return place
    return None

"""Logical plans to physical ones: what is enumerated in which order, and what only hangs.

A plan is examined once. Its order is chosen from the statistics of the first snapshot it runs on,
and again when the graph has grown out of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from omnigraph.execution.operators.enumerate_operator import EnumerationPlan, EnumerationStep
from omnigraph.execution.operators.factorize_operator import BlockTrees
from omnigraph.execution.operators.graph_projection import GraphProjection
from omnigraph.execution.operators.project_operator import Projection, build_projection
from omnigraph.execution.optimizer.aggregation_plan import (
    Aggregation,
    DeferredVariables,
    find_deferred,
    plan_aggregation,
)
from omnigraph.execution.optimizer.factor_trees import PartialAggregate, build_factor_tree
from omnigraph.execution.optimizer.graph_statistics import Statistics
from omnigraph.execution.optimizer.join_order import VARIABLES_MAX, JoinOrder, choose_join_order
from omnigraph.execution.optimizer.pattern_graph import Link, PatternGraph, build_pattern_graph
from omnigraph.execution.optimizer.plan_split import (
    ResultStep,
    VariableTypes,
    collect_text_matches,
    find_single_scan,
    has_score,
    iter_operators,
    read_types_of,
    split_laterals,
    split_plan,
    variable_types_of,
)
from omnigraph.query.logical_plan import (
    Aggregate,
    Expand,
    Operator,
    Project,
    Rank,
    ReadPlan,
    Scan,
    StageRows,
    TableFunction,
    Unit,
)
from omnigraph.query.pattern_assembly import PatternNode, PatternParts, Test, assemble_pattern
from omnigraph.query.tree_walk import (
    bound_variables_of,
    chain_of,
    link_chain,
    used_variables_of,
)
from omnigraph.query.typed_reads import Column
from omnigraph.query.typed_tree import AggregateValue, ColumnValue, TextMatch
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.type_sets import is_type_set

# A graph that has grown or shrunk this many times may need another order.
DRIFT: int = 4


@dataclass(frozen=True)
class AnalyzedPlan:
    """What a plan asks for, whatever the snapshot."""

    plan: ReadPlan
    pattern: Operator
    rank: Rank | None
    # Whether this plan, or one of a stage, ranks.
    is_ranked: bool
    steps: tuple[ResultStep, ...]
    # The pattern up to its first lateral block, and the operators from there on.
    graph: PatternGraph
    laterals: tuple[Operator, ...]
    aggregation: Aggregation | None
    # The variables, also of edges, that something after the pattern reads.
    needed: frozenset[str]
    # How many rows of the pattern are enough, if any so many are.
    rows_max: int | None
    columns: tuple[Column, ...]
    projection: Projection | GraphProjection
    # What the pattern starts from, if not from nothing.
    stage: StageRows | None
    # The pattern, if it is one scan, and the types and text predicates of the whole plan.
    scan: Scan | None
    types: frozenset[TypeKey]
    text_matches: tuple[TextMatch, ...]
    # Whether it computes tables of whole types.
    has_tables: bool
    variables: VariableTypes
    block_trees: BlockTrees = field(default_factory=dict)

    @cached_property
    def components(self) -> list[frozenset[str]]:
        """The variables in groups that traversals connect."""
        return self.graph.find_components(self.graph.variables)

    @cached_property
    def has_type_sets(self) -> bool:
        """Whether a node may be of several types."""
        return any(map(is_type_set, self.variables.nodes.values()))


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """How a plan runs on whole types: components, of which the first has what is needed."""

    enumerations: tuple[EnumerationPlan, ...]
    join_orders: tuple[JoinOrder, ...]
    deferred: DeferredVariables
    sizes: tuple[tuple[str, int], ...]


def analyze_plan(plan: ReadPlan, catalog: Catalog) -> AnalyzedPlan:
    """What a plan asks for."""
    parts = split_plan(plan.root)
    pattern, rank = parts.pattern, None
    if isinstance(pattern, Rank):
        rank = pattern
        pattern = rank.input
    base, laterals = split_laterals(pattern)
    graph = build_pattern_graph(base, catalog)
    steps = parts.steps
    first = steps[0]
    wanted = None
    if isinstance(first, Aggregate) and rank is None and not laterals:
        wanted = plan_aggregation(first, graph, catalog)
    needed = parts.needed if rank is None else parts.needed | used_variables_of(rank)
    rows_max = parts.rows_max if rank is None and not plan.has_total else None
    columns = _find_columns(steps)
    leaf = chain_of(pattern)[0]
    return AnalyzedPlan(
        plan,
        pattern,
        rank,
        has_score(plan.root),
        steps,
        graph,
        laterals,
        wanted,
        needed,
        rows_max,
        columns,
        GraphProjection(columns) if plan.is_graph else build_projection(columns, catalog),
        leaf if isinstance(leaf, StageRows) else None,
        find_single_scan(plan.root),
        read_types_of(plan.root),
        collect_text_matches(plan.root),
        any(isinstance(each, TableFunction) for each in iter_operators(plan.root)),
        variable_types_of(plan.root),
    )


def _find_columns(steps: Sequence[ResultStep]) -> tuple[Column, ...]:
    """The columns of the result; those that show keys of groups as what the keys are."""
    grouped = next((step.columns for step in steps if isinstance(step, Aggregate)), ())
    keys = {each.name: each.value for each in grouped if not isinstance(each.value, AggregateValue)}
    last = next(step for step in reversed(steps) if isinstance(step, Project | Aggregate))
    return tuple(
        replace(each, value=keys.get(each.value.name, each.value))
        if isinstance(each.value, ColumnValue)
        else each
        for each in last.columns
    )


def is_factorizable(query: AnalyzedPlan) -> bool:
    """Whether rows can be enumerated here: the order is free, and one component has all needs."""
    graph = query.graph
    if query.stage is not None or query.laterals or not _is_free(graph):
        return False
    own = [_component_of(query, used_variables_of(test)) for test in graph.tests]
    if None in own:
        return False
    return (
        len({_component_of(query, {name}) for name in _collect_row_variables(query)} - {None}) <= 1
    )


def _is_free(graph: PatternGraph) -> bool:
    """Whether any order will do, and is worth a search."""
    return not graph.is_selecting and 0 < len(graph.variables) <= VARIABLES_MAX


def build_physical_plan(query: AnalyzedPlan, statistics: Statistics) -> PhysicalPlan:
    """The cheapest way to run a plan on whole types."""
    graph, wanted = query.graph, query.aggregation
    later = DeferredVariables(())
    if wanted is not None:
        later = find_deferred(wanted, graph, statistics)
    needed = (_collect_row_variables(query) | graph.entangled) - later.variables
    items = () if wanted is None else wanted.items
    components = sorted(query.components, key=lambda each: not each & _collect_row_variables(query))
    choices = tuple(
        choose_join_order(
            graph,
            statistics,
            needed=needed & component,
            among=component - later.variables,
            is_hanging=True,
        )
        for component in components
    )
    kept = _collect_read_variables(query) - later.variables
    cores = tuple(
        _build_enumeration(graph, choice, later, items=items, kept=kept) for choice in choices
    )
    types = sorted({each.type_name for each in graph.variables.values()})
    sizes = tuple((name, statistics.count_nodes(name)) for name in types)
    return PhysicalPlan(cores, choices, later, sizes)


def is_outdated(known: PhysicalPlan, statistics: Statistics) -> bool:
    """Whether types are much larger or smaller than when an order was chosen.

    So is one that relies on nodes that others determine, and do no longer.
    """
    return any(
        not size / DRIFT <= statistics.count_nodes(name) <= size * DRIFT
        for name, size in known.sizes
    ) or not all(statistics.is_functional(link) for link in known.deferred.links)


@dataclass(frozen=True, slots=True)
class OrderedPattern:
    """A pattern in the order in which it is matched, for any source."""

    pattern: Operator
    join_orders: tuple[JoinOrder, ...] = ()


def reorder_pattern(query: AnalyzedPlan, statistics: Statistics) -> OrderedPattern:
    """The pattern of a plan in the cheapest order."""
    graph = query.graph
    if query.stage is not None or not _is_free(graph):
        # The rows of a stage come first, as few as they are.
        return OrderedPattern(query.pattern)
    choices = [
        choose_join_order(graph, statistics, needed=(), among=component, is_hanging=False)
        for component in query.components
    ]
    choices.sort(key=lambda choice: choice.rows[0])
    tests: list[Test] = [*graph.guards, *graph.tests]
    tests += (block for each in graph.variables.values() for block in each.blocks)
    links = [link for choice in choices for link in choice.links]
    pattern = _assemble_operators(graph, [choice.start for choice in choices], links, tests)
    pattern = link_chain((*chain_of(pattern), *query.laterals))
    return OrderedPattern(pattern, tuple(choices))


def _assemble_operators(
    graph: PatternGraph, starts: Iterable[str], links: Iterable[Link], tests: Iterable[Test]
) -> Operator:
    traversals = [link.expand for link in links]
    names = {end for each in traversals for end in (each.source, each.target)}
    ordered = dict.fromkeys((*starts, *sorted(names)))
    nodes = [
        PatternNode(name, graph.variables[name].type_name, graph.variables[name].conditions)
        for name in ordered
    ]
    return assemble_pattern(Unit(), PatternParts(tuple(nodes), tuple(traversals), tuple(tests)))


def _build_enumeration(
    graph: PatternGraph,
    choice: JoinOrder,
    later: DeferredVariables,
    *,
    items: Collection[PartialAggregate],
    kept: frozenset[str],
) -> EnumerationPlan:
    tests = [
        test
        for test in graph.tests
        if used_variables_of(test) & graph.variables.keys() & choice.core
        or used_variables_of(test) & {link.expand.edge_variable for link in choice.links}
    ]
    _, scan, *operators = chain_of(_assemble_operators(graph, [choice.start], choice.links, tests))
    assert bound_variables_of(scan) == {choice.start}
    steps: list[EnumerationStep] = []
    for operator in reversed(operators):
        steps.append(_build_step(graph, operator, kept))
        kept = kept | used_variables_of(operator)
    hidden = choice.core | later.variables
    trees = {
        name: build_factor_tree(graph, graph.variables[name], hidden, items) for name in choice.core
    }
    return EnumerationPlan(graph.variables[choice.start], tuple(reversed(steps)), trees)


def _build_step(graph: PatternGraph, operator: Operator, kept: frozenset[str]) -> EnumerationStep:
    if not isinstance(operator, Expand) or operator.target_is_bound:
        return EnumerationStep(operator, None, kept, is_plain=False, is_bounded=False)
    is_bounded = (
        len(operator.steps) == 1
        and operator.edge_variable is None
        and not operator.is_selection
        and operator.source_type == operator.target_type
    )
    is_plain = Link(0, operator).is_plain
    return EnumerationStep(operator, graph.variables[operator.target], kept, is_plain, is_bounded)


def _collect_row_variables(query: AnalyzedPlan) -> frozenset[str]:
    """The node variables that rows must have."""
    if query.aggregation is not None:
        return query.aggregation.needed
    edges = {
        link.expand.edge_variable: link.source
        for link in query.graph.links
        if link.expand.edge_variable is not None
    }
    return frozenset(edges.get(name, name) for name in query.needed)


def _collect_read_variables(query: AnalyzedPlan) -> frozenset[str]:
    """The variables, also of edges, that are read of rows."""
    return query.needed if query.aggregation is None else query.aggregation.needed


def _component_of(query: AnalyzedPlan, names: Collection[str]) -> int | None:
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

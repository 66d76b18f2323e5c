"""What an aggregate needs of a pattern: which variables, and which values of others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from omnigraph.execution.optimizer.factor_trees import PartialAggregate, PartialKind, items_of
from omnigraph.execution.optimizer.graph_statistics import Statistics
from omnigraph.execution.optimizer.pattern_graph import Link, PatternGraph
from omnigraph.query.logical_plan import Aggregate
from omnigraph.query.typed_reads import Column
from omnigraph.query.typed_tree import (
    AggregateValue,
    Expr,
    NodeValue,
    PropertyValue,
    SystemName,
    SystemValue,
)
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.property_types import FLOATS


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate over the weights of rows.

    `identified` are the variables that the keys identify by themselves. `floats` are values whose
    sums are only exact over rows; their variables are enumerated.
    """

    columns: tuple[Column, ...]
    keys: tuple[PropertyValue | SystemValue | NodeValue, ...]
    identified: frozenset[str]
    items: tuple[PartialAggregate, ...]
    floats: tuple[PropertyValue, ...]

    @property
    def needed(self) -> frozenset[str]:
        """The variables that must be enumerated."""
        return frozenset(value.variable for value in (*self.keys, *self.floats))


def plan_aggregation(
    operator: Aggregate, graph: PatternGraph, catalog: Catalog
) -> Aggregation | None:
    """What an aggregate needs; None if it reads edges, or more than a property."""
    keys = []
    calls = []
    for column in operator.columns:
        match column.value:
            case AggregateValue():
                calls.append(column.value)
            case PropertyValue() | SystemValue() | NodeValue():
                keys.append(column.value)
            case _:
                return None
    items = list(_collect_items(calls))
    used = {each.value.variable if isinstance(each, PartialAggregate) else None for each in items}
    used |= {key.variable for key in keys}
    if not used <= graph.variables.keys():
        return None
    known = [each for each in items if each is not None]
    return Aggregation(
        operator.columns,
        tuple(keys),
        frozenset(_find_identified(keys, graph, catalog)),
        tuple(dict.fromkeys(each for each in known if not _is_float_sum(each))),
        tuple(dict.fromkeys(each.value for each in known if _is_float_sum(each))),
    )


@dataclass(frozen=True, slots=True)
class DeferredVariables:
    """Variables that follow from others: each with the traversal that leads to it, in order."""

    links: tuple[Link, ...]

    @property
    def variables(self) -> frozenset[str]:
        """Which ones they are."""
        return frozenset(link.target for link in self.links)


def find_deferred(
    wanted: Aggregation, graph: PatternGraph, statistics: Statistics
) -> DeferredVariables:
    """The variables that need not be enumerated, as every row has exactly one node for them."""
    ways = {name: _find_determined(name, graph, statistics) for name in sorted(wanted.identified)}
    roots: list[str] = []
    known: dict[str, Link] = {}
    # The one that determines most comes first; two may determine each other.
    for name in sorted(ways, key=lambda each: -len(ways[each])):
        if name not in known:
            roots.append(name)
            known = {**ways[name], **known}
    busy = {item.value.variable for item in wanted.items} | graph.entangled | set(roots)
    busy |= {value.variable for value in wanted.floats}
    links = _strip_leaves(known, busy, graph)
    return DeferredVariables(tuple(_select_connected(links, wanted.identified)))


def _strip_leaves(known: dict[str, Link], busy: Collection[str], graph: PatternGraph) -> list[Link]:
    """The ways to leaves that nothing else is asked of, and then to what is a leaf without them."""
    left = {name: list(graph.links_of[name]) for name in graph.variables}
    found: list[Link] = []
    is_done = False
    while not is_done:
        is_done = True
        gone = {link.target for link in found}
        for name in sorted(known.keys() - set(busy) - gone):
            way, links = known[name], left[name]
            is_leaf = len(links) == 1 and links[0].index == way.index
            if is_leaf and graph.variables[name].is_free:
                found.append(way)
                left[way.source] = [each for each in left[way.source] if each.index != way.index]
                is_done = False
    return list(reversed(found))


def _select_connected(links: Iterable[Link], known: Iterable[str]) -> Iterator[Link]:
    """The traversals that start where a row, or another traversal before, has a node."""
    reached = set(known)
    for link in links:
        if link.source in reached:
            reached.add(link.target)
            yield link


def _find_determined(root: str, graph: PatternGraph, statistics: Statistics) -> dict[str, Link]:
    """The variables that one determines, with the traversal by which each is reached."""
    found: dict[str, Link] = {}
    waiting = [root]
    while waiting:
        for link in graph.links_of[waiting.pop()]:
            is_new = link.target not in found and link.target != root
            if is_new and link.is_plain and statistics.is_functional(link):
                found[link.target] = link
                waiting.append(link.target)
    return found


def _collect_items(calls: Iterable[AggregateValue]) -> Iterator[PartialAggregate | None]:
    for call in calls:
        items = items_of(call)
        if items is None:
            yield None
        else:
            yield from items


def _is_float_sum(item: PartialAggregate) -> bool:
    return item.kind is PartialKind.SUM and item.value.type.scalar in FLOATS


def _find_identified(keys: Iterable[Expr], graph: PatternGraph, catalog: Catalog) -> Iterator[str]:
    properties: dict[str, set[str]] = {}
    for key in keys:
        match key:
            case NodeValue(variable) | SystemValue(variable, SystemName.ID):
                yield variable
            case PropertyValue(variable, name):
                properties.setdefault(variable, set()).add(name)
            case _:
                pass
    for variable, names in properties.items():
        if variable in graph.variables:
            key_names = catalog.nodes[graph.variables[variable].type_name].key
            if key_names is not None and names.issuperset(key_names):
                yield variable

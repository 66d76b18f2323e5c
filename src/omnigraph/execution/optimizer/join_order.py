"""Where to start matching a pattern, and in which order to go on.

Every variable is tried as the start. Costs are in units of one gathered number: a sum over all
edges takes half a unit for each, single look-ups three, a closing traversal eight for a row. The
whole plan counts: the start with the fewest nodes is often not the cheapest.

In a tree, what is met on the way is mostly part of the answer. In a cycle, the closing traversal
drops most of it, and an order may meet a thousand times what another one meets. So cycles are
also tried from several first traversals, and with the degrees that hubs really have.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from omnigraph.execution.optimizer.graph_statistics import TEST_SHARE, Statistics
from omnigraph.execution.optimizer.pattern_graph import Link, PatternGraph
from omnigraph.query.tree_walk import used_variables_of

# To try all starts takes the square of this; larger patterns are matched as they are written.
VARIABLES_MAX: Final = 64
# Of a start in a cycle, the traversals that are tried as the first: those that grow least.
_FIRSTS_MAX: Final = 4
_SINGLE_COST: Final = 3.0
_EDGE_COST: Final = 0.5
_CLOSING_COST: Final = 8.0
_NODE_COST: Final = 0.1


@dataclass(frozen=True, slots=True)
class JoinOrder:
    """An order of enumeration: a start, then traversals; all other variables hang."""

    start: str
    core: frozenset[str]
    links: tuple[Link, ...]
    cost: float
    # About how many nodes there are to start from, and rows after the start and each traversal.
    starts: float
    rows: tuple[float, ...]

    def is_identified_by(self, variables: Collection[str]) -> bool:
        """Whether no two rows have the same nodes in some variables."""
        has_edges = any(link.expand.edge_variable is not None for link in self.links)
        return self.core.issubset(variables) and not has_edges


def choose_join_order(
    graph: PatternGraph,
    statistics: Statistics,
    *,
    needed: Collection[str],
    among: Iterable[str],
    is_hanging: bool,
) -> JoinOrder:
    """The cheapest order in which the needed variables, all connected, are enumerated."""
    names = frozenset(among)
    if len(names) > VARIABLES_MAX:
        return JoinOrder(min(names), names, (), math.inf, math.inf, (math.inf,))
    # A core is stripped of leaves only, and a cycle has none: it is as cyclic as the whole.
    is_cyclic = _is_cyclic(graph, names)
    choices = []
    for start in sorted(names):
        core = graph.find_core({*needed, start}) & names if is_hanging else names
        for first in _list_first_links(graph, statistics, start, core) if is_cyclic else (None,):
            simulation = _CostSimulation(graph, statistics, core, is_cyclic=is_cyclic)
            choices.append(simulation.run(start, first))
    return min(choices, key=lambda each: each.cost)


def _is_cyclic(graph: PatternGraph, names: frozenset[str]) -> bool:
    """Whether there are more traversals between connected variables than a tree of them has."""
    if len(graph.links) < len(names):
        return False
    return sum(link.source in names and link.target in names for link in graph.links) >= len(names)


def _list_first_links(
    graph: PatternGraph, statistics: Statistics, start: str, core: frozenset[str]
) -> Iterable[Link | None]:
    """The traversals to begin with at a start; None if it is the only variable."""
    links = [each for each in graph.links_of[start] if each.target in core - {start}]
    links.sort(key=lambda link: (_estimate_link_growth(graph, statistics, link), link.index))
    return links[:_FIRSTS_MAX] or [None]


def _estimate_link_growth(graph: PatternGraph, statistics: Statistics, link: Link) -> float:
    """How many nodes that will do a traversal leads to from one, on average."""
    return statistics.estimate_degree(link) * statistics.estimate_share(
        graph.variables[link.target]
    )


class _CostSimulation:
    def __init__(
        self,
        graph: PatternGraph,
        statistics: Statistics,
        core: frozenset[str],
        *,
        is_cyclic: bool,
    ) -> None:
        self._graph = graph
        self._statistics = statistics
        self._core = core
        self._is_cyclic = is_cyclic
        self._bound: set[str] = set()
        self._links: list[Link] = []
        self._cost = 0.0
        self._rows = 1.0
        self._estimates: list[float] = []
        # What it takes to weigh whole types through a traversal, from a variable.
        self._whole: dict[tuple[int, str], float] = {}

    def run(self, start: str, first: Link | None = None) -> JoinOrder:
        variable = self._graph.variables[start]
        self._rows = self._statistics.estimate_matches(variable)
        self._cost = self._rows + _NODE_COST * (
            0 if variable.is_free else self._statistics.count_nodes(variable.type_name)
        )
        self._bind(start)
        if first is not None:
            self._expand(first)
        while (link := self._choose_next()) is not None:
            self._expand(link)
        return JoinOrder(
            start,
            self._core,
            tuple(self._links),
            self._cost,
            self._statistics.estimate_matches(variable),
            tuple(self._estimates),
        )

    def _choose_next(self) -> Link | None:
        """The traversal to one more variable that makes the fewest rows."""
        reachable = [
            link
            for name in sorted(self._bound)
            for link in self._graph.links_of[name]
            if link.target in self._core and link.target not in self._bound
        ]
        return min(
            reachable, key=lambda link: (self._estimate_growth(link), link.index), default=None
        )

    def _estimate_growth(self, link: Link) -> float:
        """How many rows a traversal makes of one."""
        return self._estimate_degree(link) * self._statistics.estimate_share(
            self._graph.variables[link.target]
        )

    def _estimate_degree(self, link: Link) -> float:
        """To how many nodes a traversal leads from a row."""
        degree = self._statistics.estimate_degree(link)
        if not self._is_cyclic:
            return degree
        return min(
            degree * self._estimate_affinity(link),
            self._statistics.count_nodes(link.expand.target_type),
        )

    def _estimate_affinity(self, link: Link) -> float:
        """How many times more nodes a row leads to than any node: rows meet hubs more often."""
        return max(
            (
                self._statistics.estimate_affinity(link, each.orient_from(link.source))
                for each in self._links
                if link.source in (each.source, each.target) and each.index != link.index
            ),
            default=1.0,
        )

    def _expand(self, link: Link) -> None:
        self._cost += self._rows * (1 + self._estimate_degree(link))
        self._rows *= self._estimate_growth(link)
        self._links.append(link)
        self._bind(link.target)

    def _bind(self, name: str) -> None:
        self._bound.add(name)
        for link in self._graph.links_of[name]:
            if link.target not in self._core:
                self._cost += self._estimate_factor_cost(link, self._rows, name)
                self._rows *= min(_estimate_link_growth(self._graph, self._statistics, link), 1.0)
        self._estimates.append(self._rows)
        for link in self._graph.links_of[name]:
            if link.target in self._bound and all(link.index != each.index for each in self._links):
                self._close(link)
        for test in self._graph.tests:
            used = used_variables_of(test) & self._graph.variables.keys()
            if name in used and used <= self._bound:
                self._cost += self._rows
                self._rows *= TEST_SHARE

    def _close(self, link: Link) -> None:
        self._cost += _CLOSING_COST * self._rows
        share = self._statistics.estimate_degree(link) / self._statistics.count_nodes(
            link.expand.target_type
        )
        if self._is_cyclic:
            share *= self._estimate_affinity(link) * self._estimate_affinity(
                link.orient_from(link.target)
            )
        self._rows *= min(share, 1.0)
        self._links.append(link)
        self._estimates.append(self._rows)

    def _estimate_factor_cost(self, link: Link, rows: float, parent: str) -> float:
        """What it takes to weigh the nodes of rows by what a traversal leads to."""
        variable = self._graph.variables[link.target]
        others = [each for each in self._graph.links_of[link.target] if each.target != parent]
        if variable.is_free and not others:
            return rows
        met = rows * self._statistics.estimate_degree(link)
        single = _SINGLE_COST * met + sum(
            self._estimate_factor_cost(each, met, link.target) for each in others
        )
        whole = self._whole.get((link.index, parent))
        if whole is None:
            size = self._statistics.count_nodes(variable.type_name)
            edges = min(
                _EDGE_COST * self._statistics.count_edges(link),
                _SINGLE_COST * self._estimate_back_edges(link),
            )
            below = sum(self._estimate_factor_cost(each, size, link.target) for each in others)
            whole = self._whole[link.index, parent] = edges + size + below
        return min(single, whole)

    def _estimate_back_edges(self, link: Link) -> float:
        """How many edges lead back from the nodes that satisfy what is asked of them."""
        return self._statistics.estimate_share(self._graph.variables[link.target]) * (
            self._statistics.count_edges(link)
        )

"""Where to start matching a pattern, and in which order to go on.

Every variable is tried as the start. Costs are in units of one gathered number: a sum over all
edges takes half a unit for each, single look-ups three, a closing traversal eight for a row. The
whole plan counts: the start with the fewest nodes is often not the cheapest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from omnigraph.execution.planner.graph import Link, PatternGraph
from omnigraph.execution.planner.statistics import TEST_SHARE, Statistics
from omnigraph.query.walk import used_variables

# To try all starts takes the square of this; larger patterns are matched as they are written.
VARIABLES_MAX: Final = 64
_SINGLE_COST: Final = 3.0
_EDGE_COST: Final = 0.5
_CLOSING_COST: Final = 8.0
_NODE_COST: Final = 0.1


@dataclass(frozen=True, slots=True)
class Choice:
    """An order of enumeration: a start, then traversals; all other variables hang."""

    start: str
    core: frozenset[str]
    links: tuple[Link, ...]
    cost: float
    # About how many nodes there are to start from, and rows when each variable is bound.
    starts: float
    rows: tuple[float, ...]

    def is_told_by(self, variables: Collection[str]) -> bool:
        """Whether no two rows have the same nodes in some variables."""
        has_edges = any(link.expand.edge_variable is not None for link in self.links)
        return self.core.issubset(variables) and not has_edges


def choose(
    graph: PatternGraph,
    statistics: Statistics,
    *,
    needed: Collection[str],
    among: Iterable[str],
    is_hanging: bool,
) -> Choice:
    """The cheapest order in which the needed variables, all connected, are enumerated."""
    names = frozenset(among)
    if len(names) > VARIABLES_MAX:
        return Choice(min(names), names, (), math.inf, math.inf, (math.inf,))
    choices = []
    for start in sorted(names):
        core = graph.core({*needed, start}) & names if is_hanging else names
        choices.append(_Simulation(graph, statistics, core).run(start))
    return min(choices, key=lambda each: each.cost)


class _Simulation:
    def __init__(self, graph: PatternGraph, statistics: Statistics, core: frozenset[str]) -> None:
        self._graph = graph
        self._statistics = statistics
        self._core = core
        self._bound: set[str] = set()
        self._links: list[Link] = []
        self._cost = 0.0
        self._rows = 1.0
        self._estimates: list[float] = []
        # What it takes to weigh whole types through a traversal, from a variable.
        self._whole: dict[tuple[int, str], float] = {}

    def run(self, start: str) -> Choice:
        variable = self._graph.variables[start]
        self._rows = self._statistics.found(variable)
        self._cost = self._rows + _NODE_COST * (
            0 if variable.is_free else self._statistics.size(variable.type_name)
        )
        self._bind(start)
        while (link := self._next()) is not None:
            self._expand(link)
        return Choice(
            start,
            self._core,
            tuple(self._links),
            self._cost,
            self._statistics.found(variable),
            tuple(self._estimates),
        )

    def _next(self) -> Link | None:
        """The traversal to one more variable that makes the fewest rows."""
        reachable = [
            link
            for name in sorted(self._bound)
            for link in self._graph.links_of[name]
            if link.target in self._core and link.target not in self._bound
        ]
        return min(reachable, key=lambda link: (self._growth(link), link.place), default=None)

    def _growth(self, link: Link) -> float:
        share = self._statistics.share(self._graph.variables[link.target])
        return self._statistics.degree(link) * share

    def _expand(self, link: Link) -> None:
        self._cost += self._rows * (1 + self._statistics.degree(link))
        self._rows *= self._growth(link)
        self._links.append(link)
        self._bind(link.target)

    def _bind(self, name: str) -> None:
        self._bound.add(name)
        for link in self._graph.links_of[name]:
            if link.target not in self._core:
                self._cost += self._hanging_cost(link, self._rows, name)
                self._rows *= min(self._growth(link), 1.0)
            elif link.target in self._bound:
                self._close(link)
        for test in self._graph.tests:
            used = used_variables(test) & self._graph.variables.keys()
            if name in used and used <= self._bound:
                self._cost += self._rows
                self._rows *= TEST_SHARE
        self._estimates.append(self._rows)

    def _close(self, link: Link) -> None:
        if any(link.place == each.place for each in self._links):
            return
        self._cost += _CLOSING_COST * self._rows
        share = self._statistics.degree(link) / self._statistics.size(link.expand.target_type)
        self._rows *= min(share, 1.0)
        self._links.append(link)

    def _hanging_cost(self, link: Link, rows: float, parent: str) -> float:
        """What it takes to weigh the nodes of rows by what a traversal leads to."""
        variable = self._graph.variables[link.target]
        others = [each for each in self._graph.links_of[link.target] if each.target != parent]
        if variable.is_free and not others:
            return rows
        met = rows * self._statistics.degree(link)
        single = _SINGLE_COST * met + sum(
            self._hanging_cost(each, met, link.target) for each in others
        )
        whole = self._whole.get((link.place, parent))
        if whole is None:
            size = self._statistics.size(variable.type_name)
            edges = min(_EDGE_COST * self._statistics.edges(link), _SINGLE_COST * self._back(link))
            below = sum(self._hanging_cost(each, size, link.target) for each in others)
            whole = self._whole[link.place, parent] = edges + size + below
        return min(single, whole)

    def _back(self, link: Link) -> float:
        """How many edges lead back from the nodes that satisfy what is asked of them."""
        return self._statistics.share(self._graph.variables[link.target]) * (
            self._statistics.edges(link)
        )

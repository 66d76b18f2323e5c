"""Distances from many sources at once, in edges or by weight.

A state is a node as seen from one of the sources of a block: its number plus the place of the
source times the number of nodes. All states of a block are walked together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from omnigraph.execution.algorithms.edge_graph import Arcs, Floats, NodeNumbers
from omnigraph.execution.algorithms.graph_walks import (
    Places,
    find_distinct_states,
    iter_steps,
)
from omnigraph.execution.query_budget import Budget

# States of a block: so many that their arrays fit into memory at hand.
_STATES_MAX: Final = 2_000_000
# Of a state: its distance, a mark, and what a caller keeps of it.
_STATE_BYTES: Final = 40


class DistanceBlock(NamedTuple):
    """The distances from some sources: a row for each source, infinite where there is no way."""

    sources: NodeNumbers
    distances: Floats


class StateArcs(NamedTuple):
    """Arcs from states: the state each leads to, the place of its start, and its slot."""

    ends: Places
    places: Places
    slots: Places


@dataclass(frozen=True, slots=True)
class DistanceSearch:
    """Searches for the distances along arcs, whose weights are lengths if they are weighed."""

    arcs: Arcs
    is_weighted: bool
    budget: Budget
    maximum: float = np.inf

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return int(self.arcs.shape[0])

    def iter_blocks(self, sources: NodeNumbers) -> Iterator[DistanceBlock]:
        """The distances from sources, in their order, some sources at a time."""
        at_once = max(_STATES_MAX // max(self.size, 1), 1)
        for start in range(0, len(sources), at_once):
            own = sources[start : start + at_once]
            self.budget.require_memory(len(own) * self.size * _STATE_BYTES)
            states = np.arange(len(own)) * self.size + own
            find = self._find_lengths if self.is_weighted else self._find_hops
            yield DistanceBlock(own, find(states).reshape(len(own), self.size))

    def _find_hops(self, frontier: Places) -> Floats:
        """Breadth first, a level of all sources at a time."""
        found = np.full(len(frontier) * self.size, np.inf)
        marks = np.empty(len(found), np.int64)
        found[frontier] = 0
        level = 0
        while len(frontier) and level < self.maximum:
            level += 1
            reached = [np.zeros(0, np.int64)]
            for arcs in self.iter_arcs(frontier):
                new = arcs.ends[np.isinf(found.take(arcs.ends))]
                found[new] = level
                reached.append(find_distinct_states(new, marks))
            frontier = np.concatenate(reached)
        return found

    def _find_lengths(self, near: Places) -> Floats:
        """The nearest states first, in steps of the mean weight; a shorter way is walked again."""
        found = np.full(len(near) * self.size, np.inf)
        marks = np.empty(len(found), np.int64)
        found[near] = 0
        width = float(self.arcs.data.mean()) if len(self.arcs.data) else 1.0
        bound = width
        later: list[Places] = []
        while True:
            while len(near):
                changed = self._shorten_ways(found, near, marks)
                is_near = found.take(changed) < bound
                later.append(changed[~is_near])
                near = changed[is_near]
            far = find_distinct_states(np.concatenate(later), marks) if later else near
            far = far[found.take(far) >= bound]
            if not len(far):
                return found
            bound = max(float(found.take(far).min()) + width, np.nextafter(bound, np.inf))
            is_near = found.take(far) < bound
            near, later = far[is_near], [far[~is_near]]

    def _shorten_ways(self, found: Floats, states: Places, marks: Places) -> Places:
        """The states that arcs from some states give a shorter distance."""
        changed = [np.zeros(0, np.int64)]
        before = found.take(states)
        for arcs in self.iter_arcs(states):
            lower = before.take(arcs.places) + self.arcs.data.take(arcs.slots)
            is_less = (lower < found.take(arcs.ends)) & (lower <= self.maximum)
            ends = arcs.ends[is_less]
            np.minimum.at(found, ends, lower[is_less])
            changed.append(find_distinct_states(ends, marks))
        return find_distinct_states(np.concatenate(changed), marks)

    def iter_arcs(self, states: Places) -> Iterator[StateArcs]:
        """The arcs from some states."""
        nodes = states % self.size
        for places, slots in iter_steps(self.arcs, nodes, self.budget):
            ends = (states - nodes).take(places) + self.arcs.indices.take(slots)
            yield StateArcs(ends, places, slots)

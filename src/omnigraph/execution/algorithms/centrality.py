"""Betweenness and closeness: how shortest ways lead over, and to, each node."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.errors import ExecutionError
from omnigraph.execution.algorithms.distance_blocks import (
    DistanceBlock,
    DistanceSearch,
    StateArcs,
)
from omnigraph.execution.algorithms.edge_graph import EdgeGraph, Floats, NodeNumbers
from omnigraph.execution.algorithms.graph_walks import Places

# The fewest nodes with a way between two that leads over a third.
_NODES_MIN = 3


def sample_nodes(size: int, samples: int) -> NodeNumbers:
    """Every so-manieth node, so that there are at most so many; all if there are no more."""
    return np.arange(0, size, max(-(-size // samples), 1), dtype=np.int32)


def compute_closeness(graph: EdgeGraph, *, samples: int) -> Floats:
    """The inverse mean distance from the sources that reach a node, times their share."""
    sources = sample_nodes(graph.size, samples)
    search = DistanceSearch(graph.build_lengths(), graph.is_weighted, graph.budget)
    total, reaching = np.zeros(graph.size), np.zeros(graph.size)
    others = np.full(graph.size, float(len(sources)))
    others[sources] -= 1
    for block in search.iter_blocks(sources):
        is_reached = np.isfinite(block.distances)
        total += np.where(is_reached, block.distances, 0).sum(axis=0)
        reaching += is_reached.sum(axis=0)
    reaching[sources] -= 1
    is_far = (total > 0) & (others > 0)
    share: Floats = np.divide(reaching, others, out=np.zeros(graph.size), where=is_far)
    share *= np.divide(reaching, total, out=np.zeros(graph.size), where=is_far)
    return share


def compute_betweenness(graph: EdgeGraph, *, samples: int) -> Floats:
    """The share of the shortest ways between two other nodes that lead over each node.

    By Brandes: from each source the ways are counted level by level, and then shared out from the
    farthest level back. Of a sample, the mean over its sources stands for all.
    """
    size = graph.size
    arcs = graph.build_lengths()
    if graph.is_weighted and bool((arcs.data == 0).any()):
        raise ExecutionError(
            "betweenness needs weights above zero",
            hint="an edge of no length makes the number of shortest ways unlimited",
        )
    sources = sample_nodes(size, samples)
    search = DistanceSearch(arcs, graph.is_weighted, graph.budget)
    found = np.zeros(size)
    for block in search.iter_blocks(sources):
        found += _WayCounter(search, block).sum_shares()
    if size < _NODES_MIN:
        return found
    return found * (size / len(sources) / ((size - 1) * (size - 2)))


class _WayCounter:
    """The shortest ways from the sources of a block."""

    def __init__(self, search: DistanceSearch, block: DistanceBlock) -> None:
        self._search = search
        self._distances = block.distances.reshape(-1)
        self._starts = np.arange(len(block.sources)) * search.size + block.sources

    def sum_shares(self) -> Floats:
        """For each node the shares of the ways over it, from each source to each other node."""
        ways = np.zeros(len(self._distances))
        ways[self._starts] = 1
        levels: list[Places] = []
        for level in self._iter_levels():
            levels.append(level)
            for arcs in self._iter_tight(level):
                np.add.at(ways, arcs.ends, ways.take(level).take(arcs.places))
        shares = np.zeros(len(ways))
        for level in reversed(levels):
            own = np.zeros(len(level))
            for arcs in self._iter_tight(level):
                passed = (1 + shares.take(arcs.ends)) / ways.take(arcs.ends)
                own += np.bincount(arcs.places, weights=passed, minlength=len(level))
            shares[level] = own * ways.take(level)
        shares[self._starts] = 0
        sums: Floats = shares.reshape(-1, self._search.size).sum(axis=0)
        return sums

    def _iter_levels(self) -> Iterator[Places]:
        """The states that are reached, each after all states before it on a shortest way."""
        if not self._search.is_weighted:
            yield from self._iter_equal_distances()
            return
        waiting = np.zeros(len(self._distances), np.int32)
        reached = np.flatnonzero(np.isfinite(self._distances))
        for arcs in self._iter_tight(reached):
            np.add.at(waiting, arcs.ends, 1)
        level = self._starts
        while len(level):
            yield level
            following = [np.zeros(0, np.int64)]
            for arcs in self._iter_tight(level):
                np.subtract.at(waiting, arcs.ends, 1)
                following.append(arcs.ends[waiting.take(arcs.ends) == 0])
            level = np.unique(np.concatenate(following))

    def _iter_equal_distances(self) -> Iterator[Places]:
        reached = np.flatnonzero(np.isfinite(self._distances))
        lengths = self._distances.take(reached).astype(np.int32)
        order = np.argsort(lengths, kind="stable")
        yield from np.split(reached.take(order), np.cumsum(np.bincount(lengths))[:-1])

    def _iter_tight(self, states: Places) -> Iterator[StateArcs]:
        """The arcs from some states that are on a shortest way."""
        weights = self._search.arcs.data if self._search.is_weighted else None
        before = self._distances.take(states)
        for ends, places, slots in self._search.iter_arcs(states):
            lengths = 1.0 if weights is None else weights.take(slots)
            is_tight = before.take(places) + lengths == self._distances.take(ends)
            yield StateArcs(ends[is_tight], places[is_tight], slots[is_tight])

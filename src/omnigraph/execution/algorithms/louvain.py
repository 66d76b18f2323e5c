"""Communities by modularity, after Louvain: nodes move to the best community, in order.

Nodes move one after the other. To do so on arrays, some nodes that follow each other choose at
once, and as many of them move as choose what they would after those before them: all before the
first that has a neighbour in a community that one of them left or joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy import sparse

from omnigraph.execution.algorithms.connected_components import find_least_members
from omnigraph.execution.algorithms.edge_graph import Arcs, EdgeGraph, Floats, NodeNumbers
from omnigraph.execution.algorithms.graph_walks import Places, iter_steps
from omnigraph.execution.query_budget import Budget

# How many nodes choose at once: at least so many, and twice as many whenever all of them move.
_NODES_MIN: Final = 8
_NODES_MAX: Final = 4_096
_GAIN_MIN: Final = 1e-12


def find_louvain_communities(graph: EdgeGraph, *, rounds: int, resolution: float) -> NodeNumbers:
    """For each node the least one of its community."""
    edges = graph.build_undirected()
    labels: NodeNumbers = np.arange(graph.size, dtype=np.int32)
    while True:
        level = _Level(edges, resolution, graph.budget)
        for _ in range(rounds):
            if not level.move_all():
                break
        _, numbers = np.unique(level.labels, return_inverse=True)
        count = int(numbers.max(initial=-1)) + 1
        labels = numbers.astype(np.int32).take(labels)
        if count == edges.shape[0]:
            return find_least_members(labels)
        edges = _merge_nodes(edges, numbers, count)


def _merge_nodes(edges: Arcs, numbers: Places, count: int) -> Arcs:
    """The graph of communities: arcs between their nodes add up, those inside make a loop."""
    size = edges.shape[0]
    member = sparse.csr_array(
        (np.ones(size), numbers.astype(np.int32), np.arange(size + 1, dtype=np.int32)),
        shape=(size, count),
    )
    merged = (member.T.tocsr() @ (edges @ member)).tocsr()
    merged.sort_indices()
    return merged


class _Choices(NamedTuple):
    """What some nodes choose, and how many of them, from the first, may do so at once."""

    labels: NodeNumbers
    size: int


@dataclass
class _Level:
    """The nodes of one level with their communities, each of which is named by a node."""

    edges: Arcs
    resolution: float
    budget: Budget

    def __post_init__(self) -> None:
        size = self.edges.shape[0]
        self.labels: NodeNumbers = np.arange(size, dtype=np.int32)
        self._weights: Floats = np.asarray(self.edges.sum(axis=1)).reshape(-1)
        self._totals = self._weights.copy()
        self._whole = float(self._weights.sum())
        # Where each community was first left or joined by the nodes that choose at once.
        self._touched = np.full(size, size, np.int64)

    def move_all(self) -> bool:
        """Let every node choose once, in order; whether any moved."""
        size, start, at_once = len(self.labels), 0, _NODES_MIN
        is_moved = False
        while start < size and self._whole > 0:
            nodes = np.arange(start, min(start + at_once, size))
            chosen, count = self._choose(nodes)
            nodes, chosen = nodes[:count], chosen[:count]
            moving = np.flatnonzero(chosen != self.labels.take(nodes))
            if len(moving):
                is_moved = True
                self._move(nodes.take(moving), chosen.take(moving))
            start += count
            at_once = 2 * at_once if count == at_once else 2 * count
            at_once = min(max(at_once, _NODES_MIN), _NODES_MAX)
        return is_moved

    def _move(self, nodes: Places, chosen: NodeNumbers) -> None:
        # No two of them leave or join the same community.
        weights = self._weights.take(nodes)
        self._totals[self.labels.take(nodes)] -= weights
        self._totals[chosen] += weights
        self.labels[nodes] = chosen

    def _choose(self, nodes: Places) -> _Choices:
        own = self.labels.take(nodes)
        rows, labels, shared = self._sum_by_community(nodes, own)
        weights = self._weights.take(nodes)
        totals = self._totals.take(labels)
        is_own = labels == own.take(rows)
        totals[is_own] -= weights.take(rows[is_own])
        gains = shared - self.resolution * weights.take(rows) * totals / self._whole
        # A node stays where it is unless another community is better by more than rounding.
        gains[is_own] += _GAIN_MIN * weights.take(rows[is_own])
        starts = np.searchsorted(rows, np.arange(len(nodes)))
        most = np.maximum.reduceat(gains, starts)
        size = len(self.labels)
        best = np.minimum.reduceat(np.where(gains == most.take(rows), labels, size), starts)
        return _Choices(best.astype(np.int32), self._count_independent(own, best, rows, labels))

    def _sum_by_community(
        self, nodes: Places, own: NodeNumbers
    ) -> tuple[Places, NodeNumbers, Floats]:
        """For each node its own community and those next to it, with the weight of the edges."""
        size = len(self.labels)
        keys = [np.arange(len(nodes)) * size + own]
        values = [np.zeros(len(nodes))]
        for places, slots in iter_steps(self.edges, nodes, self.budget):
            ends = self.edges.indices.take(slots)
            is_other = ends != nodes.take(places)
            keys.append(places[is_other] * size + self.labels.take(ends[is_other]))
            values.append(self.edges.data.take(slots[is_other]))
        all_keys = np.concatenate(keys)
        order = np.argsort(all_keys, kind="stable")
        all_keys = all_keys.take(order)
        firsts = np.flatnonzero(np.append(True, all_keys[1:] != all_keys[:-1]))
        shared = np.add.reduceat(np.concatenate(values).take(order), firsts)
        rows, labels = np.divmod(all_keys.take(firsts), size)
        return rows, labels.astype(np.int32), shared

    def _count_independent(
        self, own: NodeNumbers, best: Places, rows: Places, labels: NodeNumbers
    ) -> int:
        """How many nodes choose before one that meets a community that another one changes."""
        moving = np.flatnonzero(best != own)
        if not len(moving):
            return len(own)
        changed = np.concatenate([own.take(moving), best.take(moving)])
        places = np.concatenate([moving, moving])
        np.minimum.at(self._touched, changed, places)
        conflicts = rows[self._touched.take(labels) < rows]
        self._touched[changed] = len(self.labels)
        return int(conflicts.min(initial=len(own)))

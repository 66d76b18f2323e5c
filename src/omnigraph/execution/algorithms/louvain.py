"""Communities by modularity, after Louvain: nodes move to the best community, in order.

Nodes move one after the other. To do so on arrays, nodes that follow each other choose together: on
the assumption that those before them choose as they did last. The first that then chooses otherwise
is right, as all before it were; so a few rounds settle most of them, and the others choose again.
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

# How many nodes choose together: twice as many when they settle soon, half as many when they do
# not settle within so many rounds.
_NODES_FIRST: Final = 64
_NODES_MIN: Final = 16
_NODES_MAX: Final = 8_192
_ROUNDS_SOON: Final = 4
_ROUNDS_MAX: Final = 10
# How much better another community has to be, of the weight of the node: more than rounding.
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


class _Block(NamedTuple):
    """Nodes that choose together, and their arcs to other nodes, by their places in the block."""

    first: int
    own: NodeNumbers
    places: Places
    ends: NodeNumbers
    weights: Floats


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

    def move_all(self) -> bool:
        """Let every node choose once, in order; whether any moved."""
        size, start, at_once = len(self.labels), 0, _NODES_FIRST
        is_moved = False
        while start < size and self._whole > 0:
            block = self._read_block(start, min(start + at_once, size))
            chosen, rounds = self._settle(block)
            is_moved |= self._move(block, chosen)
            start += len(chosen)
            if rounds <= _ROUNDS_SOON:
                at_once = min(2 * at_once, _NODES_MAX)
            elif len(chosen) < len(block.own):
                at_once = max(at_once // 2, _NODES_MIN)
        return is_moved

    def _read_block(self, first: int, last: int) -> _Block:
        nodes = np.arange(first, last)
        parts = list(iter_steps(self.edges, nodes, self.budget))
        places = np.concatenate([each.places for each in parts])
        slots = np.concatenate([each.slots for each in parts])
        ends = self.edges.indices.take(slots)
        is_other = ends != places + first
        weights = self.edges.data.take(slots[is_other])
        own = self.labels[first:last].copy()
        return _Block(first, own, places[is_other], ends[is_other], weights)

    def _move(self, block: _Block, chosen: NodeNumbers) -> bool:
        moving = np.flatnonzero(chosen != block.own[: len(chosen)])
        weights = self._weights.take(moving + block.first)
        np.subtract.at(self._totals, block.own.take(moving), weights)
        np.add.at(self._totals, chosen.take(moving), weights)
        self.labels[moving + block.first] = chosen.take(moving)
        return bool(len(moving))

    def _settle(self, block: _Block) -> tuple[NodeNumbers, int]:
        """What the first nodes of a block choose, those that settle, and in how many rounds."""
        chosen, settled = block.own.copy(), 0
        for number in range(1, _ROUNDS_MAX + 1):
            self.budget.check_interrupts()
            found = self._choose(block, chosen, settled)
            wrong = np.flatnonzero(found != chosen[settled:])
            chosen[settled:] = found
            if not len(wrong):
                return chosen, number
            settled += int(wrong[0]) + 1
            if settled == len(chosen):
                return chosen, number
        return chosen[:settled], _ROUNDS_MAX

    def _choose(self, block: _Block, chosen: NodeNumbers, since: int) -> NodeNumbers:
        """What nodes from a place on choose after those before them chose as is assumed."""
        rows, labels, shared = self._sum_by_community(block, chosen, since)
        own, weights = (
            block.own[since:],
            self._weights[block.first + since :][: len(chosen) - since],
        )
        is_own = labels == own.take(rows)
        row_weights = weights.take(rows)
        totals = self._totals.take(labels) + self._sum_changes(block, chosen, rows + since, labels)
        totals[is_own] -= row_weights[is_own]
        gains = shared - self.resolution * row_weights * totals / self._whole
        gains[is_own] += _GAIN_MIN * row_weights[is_own]
        starts = np.searchsorted(rows, np.arange(len(own)))
        most = np.maximum.reduceat(gains, starts)
        best = np.where(gains == most.take(rows), labels, len(self.labels))
        return np.minimum.reduceat(best, starts).astype(np.int32)

    def _sum_by_community(
        self, block: _Block, chosen: NodeNumbers, since: int
    ) -> tuple[Places, NodeNumbers, Floats]:
        """For each node its own community and those next to it, with the weight of the edges."""
        size, count = len(self.labels), len(chosen) - since
        start = int(np.searchsorted(block.places, since))
        places, ends = block.places[start:], block.ends[start:]
        seen = self.labels.take(ends)
        at = ends - block.first
        is_before = (at >= 0) & (at < places)
        seen[is_before] = chosen.take(at[is_before])
        keys = np.concatenate(
            [np.arange(count) * size + block.own[since:], (places - since) * size + seen]
        )
        values = np.concatenate([np.zeros(count), block.weights[start:]])
        order = np.argsort(keys, kind="stable")
        keys = keys.take(order)
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        rows, labels = np.divmod(keys.take(firsts), size)
        return rows, labels.astype(np.int32), np.add.reduceat(values.take(order), firsts)

    def _sum_changes(
        self, block: _Block, chosen: NodeNumbers, places: Places, labels: NodeNumbers
    ) -> Floats | float:
        """What nodes of the block before a place add to the weight of a community."""
        moving = np.flatnonzero(chosen != block.own)
        if not len(moving):
            return 0.0
        count = len(chosen)
        weights = self._weights.take(moving + block.first)
        keys = np.concatenate([block.own.take(moving), chosen.take(moving)]).astype(np.int64)
        keys = keys * count + np.concatenate([moving, moving])
        order = np.argsort(keys, kind="stable")
        keys = keys.take(order)
        sums = np.zeros(len(keys) + 1)
        np.cumsum(np.concatenate([-weights, weights]).take(order), out=sums[1:])
        first = labels.astype(np.int64) * count
        until = np.searchsorted(keys, first + places)
        found: Floats = sums.take(until) - sums.take(np.searchsorted(keys, first))
        return found

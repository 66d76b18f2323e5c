"""The edges at the nodes that were asked about, in one direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.execution.query_budget import Budget
from omnigraph.execution.sources.graph_source import (
    DenseIds,
    NeighbourEdges,
    Neighbours,
    RowIndices,
)

_NO_DENSE_IDS: Final[DenseIds] = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class EdgeList:
    """Edges as arrays side by side: where each starts, where it leads, and its number."""

    starts: DenseIds
    ends: DenseIds
    edges: DenseIds

    def merge_edges(self, other: EdgeList) -> EdgeList:
        """Both, ordered by start, then by end, then by edge."""
        starts = np.concatenate([self.starts, other.starts])
        ends = np.concatenate([self.ends, other.ends])
        edges = np.concatenate([self.edges, other.edges])
        order = np.lexsort((edges, ends, starts))
        return EdgeList(starts[order], ends[order], edges[order])

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.starts.nbytes + self.ends.nbytes + self.edges.nbytes

    def drop_duplicates(self) -> EdgeList:
        """Of ordered edges, the first of each pair of ends."""
        is_first = np.ones(len(self.starts), np.bool_)
        is_first[1:] = (np.diff(self.starts) != 0) | (np.diff(self.ends) != 0)
        return EdgeList(self.starts[is_first], self.ends[is_first], self.edges[is_first])


_NO_EDGES: Final = EdgeList(_NO_DENSE_IDS, _NO_DENSE_IDS, _NO_DENSE_IDS)


class LazyAdjacency:
    """Grows by whole nodes: a node either has all its edges here, or was never asked about."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._all = _NO_EDGES
        self._distinct: EdgeList | None = self._all
        self._is_known: npt.NDArray[np.bool_] = np.empty(0, np.bool_)
        self._is_whole = False

    def find_unknown(self, nodes: DenseIds) -> DenseIds:
        """The distinct nodes that were never asked about, ascending."""
        if self._is_whole or not len(nodes):
            return _NO_DENSE_IDS
        self._grow_known(int(nodes.max()) + 1)
        return np.unique(nodes[~self._is_known[nodes]])

    def add_edges(self, nodes: DenseIds, incident: EdgeList) -> None:
        """All edges at nodes that were unknown."""
        self._budget.require_memory(self._all.nbytes + incident.nbytes)
        self._is_known[nodes] = True
        self._replace_edges(self._all.merge_edges(incident))

    def set_all_edges(self, incident: EdgeList) -> None:
        """All edges at all nodes."""
        self._budget.require_memory(incident.nbytes)
        self._is_whole = True
        self._replace_edges(_NO_EDGES.merge_edges(incident))

    def expand_neighbours(self, nodes: DenseIds) -> Neighbours:
        """The distinct nodes next to each given one."""
        if self._distinct is None:
            self._budget.require_memory(self._all.nbytes)
            self._distinct = self._all.drop_duplicates()
            self._budget.allocate(self._distinct.nbytes)
        places, found = _find_slices(self._distinct.starts, nodes)
        return Neighbours(places, self._distinct.ends.take(found))

    def expand_edges(self, nodes: DenseIds) -> NeighbourEdges:
        """Every edge at each given node."""
        places, found = _find_slices(self._all.starts, nodes)
        return NeighbourEdges(places, self._all.ends.take(found), self._all.edges.take(found))

    def _replace_edges(self, incident: EdgeList) -> None:
        held = self._all.nbytes + (self._distinct.nbytes if self._distinct is not None else 0)
        self._budget.release(held)
        self._budget.allocate(incident.nbytes)
        self._all = incident
        self._distinct = None

    def _grow_known(self, length: int) -> None:
        known = len(self._is_known)
        if length > known:
            more = np.zeros(max(length, 2 * known) - known, np.bool_)
            self._is_known = np.concatenate([self._is_known, more])


def _find_slices(starts: DenseIds, nodes: DenseIds) -> tuple[RowIndices, RowIndices]:
    """For each edge at each node: the place of the node, and that of the edge among all."""
    first = np.searchsorted(starts, nodes, side="left")
    counts = np.searchsorted(starts, nodes, side="right") - first
    places = np.repeat(np.arange(len(nodes)), counts)
    before = np.cumsum(counts) - counts
    return places, np.arange(len(places)) + np.repeat(first - before, counts)

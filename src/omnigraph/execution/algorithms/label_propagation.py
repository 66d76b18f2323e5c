"""Communities by labels: each node takes the label that most of its neighbours have."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import sparse

from omnigraph.execution.algorithms.connected_components import find_least_members
from omnigraph.execution.algorithms.edge_graph import Arcs, EdgeGraph, NodeNumbers
from omnigraph.execution.algorithms.graph_walks import iter_rows

# Votes that are counted between two checks of the budget.
_VOTES: Final = 4_000_000


def find_communities_by_labels(graph: EdgeGraph, *, rounds: int) -> NodeNumbers:
    """For each node the least one of its community.

    All nodes choose at once, by the weight of the edges to the neighbours with each label, among
    them its own label once; of equal ones they choose the least.
    """
    size = graph.size
    votes = graph.build_undirected() + sparse.eye_array(size, format="csr")
    labels: NodeNumbers = np.arange(size, dtype=np.int32)
    for _ in range(rounds if size else 0):
        found = np.concatenate(
            [_choose_labels(votes[rows], labels, graph) for rows in iter_rows(votes.indptr, _VOTES)]
        )
        if np.array_equal(found, labels):
            break
        labels = found
    return find_least_members(labels)


def _choose_labels(votes: Arcs, labels: NodeNumbers, graph: EdgeGraph) -> NodeNumbers:
    """The label with most votes for each row, of equal ones the least; every row has a vote."""
    graph.budget.check_interrupts()
    graph.budget.require_memory(votes.data.nbytes + votes.indices.nbytes)
    size = len(labels)
    places = np.arange(size + 1, dtype=np.int32)
    given = votes @ sparse.csr_array((np.ones(size), labels, places), shape=(size, size))
    starts = given.indptr[:-1]
    most = np.repeat(np.maximum.reduceat(given.data, starts), np.diff(given.indptr))
    chosen = np.where(given.data == most, given.indices, size)
    return np.minimum.reduceat(chosen, starts).astype(np.int32)

"""Communities by labels: each node takes the label that most of its neighbours have."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from omnigraph.execution.algorithms.connected_components import find_least_members
from omnigraph.execution.algorithms.edge_graph import EdgeGraph, NodeNumbers


def find_communities_by_labels(graph: EdgeGraph, *, rounds: int) -> NodeNumbers:
    """For each node the least one of its community.

    All nodes choose at once, by the weight of the edges to the neighbours with each label, among
    them its own label once; of equal ones they choose the least.
    """
    size, budget = graph.size, graph.budget
    votes = graph.build_undirected() + sparse.eye_array(size, format="csr")
    labels: NodeNumbers = np.arange(size, dtype=np.int32)
    places = np.arange(size + 1, dtype=np.int32)
    for _ in range(rounds if size else 0):
        budget.check_interrupts()
        budget.require_memory(votes.data.nbytes + votes.indices.nbytes)
        given = votes @ sparse.csr_array((np.ones(size), labels, places), shape=(size, size))
        starts = given.indptr[:-1]
        most = np.repeat(np.maximum.reduceat(given.data, starts), np.diff(given.indptr))
        chosen = np.where(given.data == most, given.indices, size)
        found = np.minimum.reduceat(chosen, starts).astype(np.int32)
        if np.array_equal(found, labels):
            break
        labels = found
    return find_least_members(labels)

"""Connected components."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csgraph

from omnigraph.execution.algorithms.edge_graph import EdgeGraph, NodeNumbers


def find_components(graph: EdgeGraph, *, is_strong: bool) -> NodeNumbers:
    """For each node the least one of its component; in a strong one, all reach each other."""
    if not graph.size:
        return np.zeros(0, np.int32)
    kind = "strong" if is_strong else "weak"
    _, labels = csgraph.connected_components(graph.build_arcs(), directed=True, connection=kind)
    graph.budget.check_interrupts()
    return find_least_members(labels)


def find_least_members(labels: NodeNumbers) -> NodeNumbers:
    """For each node the least one with its label; labels are numbers from 0."""
    least = np.zeros(int(labels.max(initial=-1)) + 1, np.int32)
    backwards = np.arange(len(labels) - 1, -1, -1, dtype=np.int32)
    # The last one that is assigned stays: the first node with the label.
    least[labels[::-1]] = backwards
    return least.take(labels)

"""Core numbers: the largest k for which a node stays when nodes with fewer neighbours go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnigraph.execution.algorithms.edge_graph import EdgeGraph
from omnigraph.execution.algorithms.graph_walks import find_distinct_states, iter_steps


def compute_cores(graph: EdgeGraph) -> npt.NDArray[np.int64]:
    """The core number of each node of the graph without directions, loops and parallel edges.

    Nodes go in waves: all that have too few neighbours left, then those that lost enough by it.
    """
    simple = graph.build_simple()
    left = np.diff(simple.indptr).astype(np.int64)
    cores = np.full(graph.size, -1, np.int64)
    marks = np.empty(graph.size, np.int64)
    order = np.arange(graph.size)
    level = 0
    while len(order):
        level = max(level, int(left.take(order).min()))
        wave = order[left.take(order) <= level]
        while len(wave):
            cores[wave] = level
            reached = [np.zeros(0, np.int64)]
            for step in iter_steps(simple, wave, graph.budget):
                ends = simple.indices.take(step.slots)
                ends = ends[cores.take(ends) < 0]
                np.subtract.at(left, ends, 1)
                reached.append(find_distinct_states(ends.astype(np.int64), marks))
            found = np.concatenate(reached)
            found = found[left.take(found) <= level]
            wave = find_distinct_states(found, marks)
        order = order[cores.take(order) < 0]
    return cores

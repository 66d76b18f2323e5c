"""Degrees: how many nodes are next to each node, and the weight of its edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omnigraph.execution.algorithms.edge_graph import EdgeGraph, Floats


class Degrees(NamedTuple):
    """For each node its distinct targets and sources, and the weight of all its edges."""

    out: npt.NDArray[np.int64]
    into: npt.NDArray[np.int64]
    weight: Floats


def compute_degrees(graph: EdgeGraph) -> Degrees:
    """The degrees of all nodes; a node with an edge to itself is its own target and source."""
    arcs = graph.build_arcs()
    out = np.diff(arcs.indptr).astype(np.int64)
    into = np.bincount(arcs.indices, minlength=graph.size)
    edges = graph.build_undirected()
    weight = np.asarray(edges.sum(axis=1)).reshape(-1)
    return Degrees(out, into, weight)

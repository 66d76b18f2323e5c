"""Triangles: at each node, how many pairs of its neighbours are neighbours themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from omnigraph.execution.algorithms.edge_graph import Arcs, EdgeGraph, Floats
from omnigraph.execution.algorithms.graph_walks import iter_rows

# Paths of two edges that are formed between two checks of the budget.
_PATHS_AT_ONCE: Final = 1_000_000
_PATH_BYTES: Final = 12


class Triangles(NamedTuple):
    """For each node its triangles, and their share of the pairs of its neighbours."""

    counts: npt.NDArray[np.int64]
    clustering: Floats


def count_triangles(graph: EdgeGraph) -> Triangles:
    """The triangles of the graph without directions, loops and parallel edges.

    Each edge leads from its end with fewer neighbours, so that no node has many arcs: a triangle is
    then one path of two arcs from its first node to its last, beside the arc between them.
    """
    simple = graph.build_simple()
    degrees = np.diff(simple.indptr).astype(np.int64)
    graph.budget.check_interrupts()
    forward = _orient_by_degree(simple, degrees)
    graph.budget.check_interrupts()
    found = np.zeros(graph.size)
    backward = forward.T.tocsr()
    for rows, closed in _iter_closed_paths(forward, forward, graph):
        found[rows] += closed.sum(axis=1)
        found += closed.sum(axis=0)
    for rows, closed in _iter_closed_paths(backward, forward, graph):
        found[rows] += closed.sum(axis=1)
    pairs = degrees * (degrees - 1) / 2
    clustering = np.divide(found, pairs, out=np.zeros(graph.size), where=pairs > 0)
    return Triangles(found.astype(np.int64), clustering)


def _orient_by_degree(simple: Arcs, degrees: npt.NDArray[np.int64]) -> Arcs:
    """Each edge once, from its end with fewer neighbours, or else from the lesser one."""
    size = len(degrees)
    starts = np.repeat(np.arange(size), degrees)
    own, other = degrees.take(starts), degrees.take(simple.indices)
    is_kept = (own < other) | ((own == other) & (starts < simple.indices))
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(starts[is_kept], minlength=size), out=offsets[1:])
    ends = simple.indices[is_kept]
    return sparse.csr_array((np.ones(len(ends)), ends, offsets), shape=(size, size))


def _iter_closed_paths(first: Arcs, second: Arcs, graph: EdgeGraph) -> Iterator[tuple[slice, Arcs]]:
    """For some rows at a time, the paths by two matrices from node to node that an arc closes."""
    budget = graph.budget
    paths = np.zeros(graph.size + 1, np.int64)
    lengths = np.diff(second.indptr).take(first.indices)
    np.cumsum(lengths, out=(per_arc := np.zeros(len(lengths) + 1, np.int64))[1:])
    paths[:] = per_arc.take(first.indptr)
    for rows in iter_rows(paths, _PATHS_AT_ONCE):
        budget.check_interrupts()
        budget.require_memory(int(paths[rows.stop] - paths[rows.start]) * _PATH_BYTES)
        yield rows, (first[rows] @ second).multiply(second[rows]).tocsr()

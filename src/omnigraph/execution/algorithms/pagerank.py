"""PageRank by power iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.execution.algorithms.edge_graph import EdgeGraph, Floats, NodeNumbers


@dataclass(frozen=True, slots=True)
class PageRankOptions:
    """How far to follow edges, and when to stop; `sources` are where a walk starts again."""

    damping: float
    tolerance: float
    rounds: int
    sources: NodeNumbers | None = None


def compute_pagerank(graph: EdgeGraph, options: PageRankOptions) -> Floats:
    """The share of a random walk that each node has; what nodes without an edge have is spread."""
    if not graph.size:
        return np.zeros(0)
    incoming = graph.build_arcs(is_reversed=True)
    leaving = np.bincount(incoming.indices, weights=incoming.data, minlength=graph.size)
    is_open = leaving > 0
    share = np.divide(options.damping, leaving, out=np.zeros(graph.size), where=is_open)
    dangling = np.flatnonzero(~is_open)
    restart = _make_restart(options.sources, graph.size)
    score: Floats = restart
    for _ in range(options.rounds):
        graph.budget.check_interrupts()
        found = incoming @ (score * share)
        lost = options.damping * float(score.take(dangling).sum())
        found += (lost + 1 - options.damping) * restart
        change = float(np.abs(found - score).sum())
        score = found
        if change < options.tolerance:
            break
    shares: Floats = score / score.sum()
    return shares


def _make_restart(sources: NodeNumbers | None, size: int) -> Floats:
    if sources is None:
        return np.full(size, 1 / size)
    found = np.zeros(size)
    found[sources] = 1 / len(sources)
    return found

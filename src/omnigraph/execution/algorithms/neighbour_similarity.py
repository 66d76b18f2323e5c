"""Similarity: nodes with many neighbours in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from omnigraph.execution.algorithms.edge_graph import Arcs, EdgeGraph, Floats
from omnigraph.execution.algorithms.graph_walks import Places, iter_rows

# Pairs of arcs to a common neighbour that are met between two checks of the budget.
_PAIRS_AT_ONCE: Final = 1_000_000
# Of a pair of nodes with a common neighbour: what is sorted and compared.
_PAIR_BYTES: Final = 64
_KEY_BITS: Final = 32
_SCORE_BITS: Final = 2**_KEY_BITS - 1


@dataclass(frozen=True, slots=True)
class SimilarityOptions:
    """How pairs are scored, and which are kept: so many of each node, of at least some score."""

    is_overlap: bool
    count: int
    score_min: float


class SimilarPairs(NamedTuple):
    """Pairs of nodes, the best of each first node first."""

    nodes: Places
    others: Places
    scores: Floats


def find_similar(graph: EdgeGraph, options: SimilarityOptions) -> SimilarPairs:
    """For each node those that share most neighbours with it; of equal ones the least."""
    arcs = graph.build_arcs()
    arcs.data[:] = 1.0
    backward = arcs.T.tocsr()
    pairs = np.zeros(len(arcs.indices) + 1, np.int64)
    np.cumsum(np.diff(backward.indptr).take(arcs.indices), out=pairs[1:])
    before = pairs.take(arcs.indptr)
    found = [SimilarPairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for part in iter_rows(before, _PAIRS_AT_ONCE):
        graph.budget.check_interrupts()
        graph.budget.require_memory(int(before[part.stop] - before[part.start]) * _PAIR_BYTES)
        common = (arcs[part] @ backward).tocoo()
        rows, others = common.row.astype(np.int64) + part.start, common.col.astype(np.int64)
        found.append(_choose_best(rows, others, common.data, arcs, options))
    return SimilarPairs(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _choose_best(
    rows: Places,
    others: Places,
    common: Floats,
    arcs: Arcs,
    options: SimilarityOptions,
) -> SimilarPairs:
    is_pair = rows != others
    rows, others, common = rows[is_pair], others[is_pair], common[is_pair]
    degrees = np.diff(arcs.indptr).astype(np.float64)
    scores = _score(common, degrees.take(rows), degrees.take(others), options)
    is_kept = scores >= options.score_min
    is_kept &= _find_candidates(rows, scores, options.count)
    rows, others, scores = rows[is_kept], others[is_kept], scores[is_kept]
    order = np.lexsort((others, -scores, rows))
    rows, others, scores = rows.take(order), others.take(order), scores.take(order)
    within = np.arange(len(rows)) - np.searchsorted(rows, rows)
    is_best = within < options.count
    return SimilarPairs(rows[is_best], others[is_best], scores[is_best])


def _find_candidates(rows: Places, scores: Floats, count: int) -> npt.NDArray[np.bool_]:
    """Which pairs may be among the best of their node, by scores of half the precision.

    Integers that hold a node and a score are sorted many times faster than three columns; the bits
    of floats above zero are in the order of the floats.
    """
    keys = scores.astype(np.float32).view(np.uint32).astype(np.int64)
    np.subtract(_SCORE_BITS, keys, out=keys)
    keys |= rows << _KEY_BITS
    ordered = np.sort(keys)
    firsts = np.flatnonzero(np.diff(ordered >> _KEY_BITS, prepend=-1))
    lasts = np.append(firsts[1:], len(ordered))
    limits = ordered.take(np.minimum(firsts + count, lasts) - 1)
    least = np.zeros(int(rows.max(initial=-1)) + 1, np.int64)
    least[limits >> _KEY_BITS] = limits
    found: npt.NDArray[np.bool_] = keys <= least.take(rows)
    return found


def _score(
    common: Floats,
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    options: SimilarityOptions,
) -> Floats:
    """Of the neighbours of either node, or of those of the one with fewer, how many both have."""
    whole = np.minimum(left, right) if options.is_overlap else left + right - common
    return common / whole

"""Several hops from one node: breadth first, with a mark on every node that was reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from omnigraph.execution.budget import Budget
from omnigraph.execution.source import DenseIds
from omnigraph.execution.topology import Adjacency

# Sorting so small a part of all nodes is cheaper than to look through their marks.
_SORTED_SHARE: Final = 64


def find_within_hops(
    ways: Sequence[Adjacency], start: int, *, minimum: int, maximum: int, budget: Budget
) -> DenseIds:
    """The nodes whose shortest distance lies within the bounds; a loop at the start is one hop."""
    size = max(way.size for way in ways)
    is_seen = np.zeros(size, np.bool_)
    is_seen[start] = True
    frontier: DenseIds = np.array([start], np.int32)
    found: list[DenseIds] = []
    for hop in range(1, maximum + 1):
        budget.check_interrupts()
        ends = np.concatenate([way.expand_neighbours(frontier).ends for way in ways])
        if hop == 1 and minimum == 1 and np.any(ends == start):
            found.append(frontier)
        frontier = _sort_distinct(ends[~is_seen.take(ends)], size)
        is_seen[frontier] = True
        if hop >= minimum:
            found.append(frontier)
        if not len(frontier):
            break
    return np.concatenate(found) if found else frontier


def _sort_distinct(nodes: DenseIds, size: int) -> DenseIds:
    if _SORTED_SHARE * len(nodes) < size:
        ordered = np.sort(nodes)
        return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
    is_there = np.zeros(size, np.bool_)
    is_there[nodes] = True
    return np.flatnonzero(is_there).astype(np.int32)

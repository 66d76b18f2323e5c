"""Neighbours of many nodes at once, in chunks of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.algorithms.edge_graph import Arcs
from omnigraph.execution.query_budget import Budget

Places: TypeAlias = npt.NDArray[np.int64]

# Arcs that are examined between two checks of the budget: about a twentieth of a second.
ARCS_AT_ONCE: Final = 1_000_000
# Of an arc that is examined: a place, a slot, an end and what is computed of them.
_ARC_BYTES = 48


class Step(NamedTuple):
    """Arcs: for each the place of its start among the given nodes, and its slot in the matrix."""

    places: Places
    slots: Places


def iter_steps(
    arcs: Arcs, nodes: npt.NDArray[np.integer], budget: Budget, at_once: int = ARCS_AT_ONCE
) -> Iterator[Step]:
    """The arcs from nodes, those of a node together, in the order of the nodes."""
    starts = arcs.indptr.take(nodes).astype(np.int64)
    counts = arcs.indptr.take(nodes + 1) - starts
    ends = np.cumsum(counts)
    first = 0
    while first < len(nodes):
        budget.check_interrupts()
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + at_once, "right"))
        last = max(last, first + 1)
        own = counts[first:last]
        budget.require_memory(int(own.sum()) * _ARC_BYTES)
        places = np.repeat(np.arange(first, last), own)
        slots = np.arange(len(places))
        slots += np.repeat(starts[first:last] - (ends[first:last] - own - before), own)
        yield Step(places, slots)
        first = last


def iter_rows(before: npt.NDArray[np.integer], at_once: int) -> Iterator[slice]:
    """All rows, some at a time: `before` counts the work before each row and after the last."""
    start, size = 0, len(before) - 1
    while start < size:
        end = int(np.searchsorted(before, int(before[start]) + at_once, "right")) - 1
        end = max(end, start + 1)
        yield slice(start, end)
        start = end


def find_distinct_states(states: Places, marks: Places) -> Places:
    """The distinct ones of some states; `marks` has a place for every state."""
    marks[states] = np.arange(len(states))
    distinct: Places = states[marks.take(states) == np.arange(len(states))]
    return distinct

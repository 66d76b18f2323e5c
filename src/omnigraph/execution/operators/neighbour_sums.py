"""Sums over the neighbours of every node at once.

A sparse matrix of ones times a vector is the fastest way to it; a graph too large for one such
product is done a range of nodes at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from omnigraph.execution.operators.checked_ints import (
    CHECKED_MAX,
    CheckedInts,
    identity_of,
    require_in_range,
)
from omnigraph.execution.optimizer.factor_trees import PartialAggregate, PartialKind
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.sources.topology.adjacency_lists import Adjacency

# A product of this many edges takes a few milliseconds; as many ones are kept in memory.
EDGES_AT_ONCE: Final = 2**21
# Fewer edges are summed in the time that it takes to make a matrix of them.
SPARSE_EDGES_MIN: Final = 2**14
# From so many edges on, what a sparse matrix saves is more than the time of its import.
EDGES_BEFORE_SPARSE: Final = 2**24
_summed = 0
_ones: Final[dict[np.dtype[Any], npt.NDArray[Any]]] = {}  # Any: of each type that is asked for


def sum_neighbours(adjacency: Adjacency, amount: CheckedInts, budget: Budget) -> CheckedInts:
    """For each node the sum of the amounts of the nodes next to it."""
    bound = amount.bound * adjacency.degree_max
    if bound >= CHECKED_MAX:
        shadow = _multiply_vector(adjacency, np.abs(amount.values.astype(np.float64)), budget)
        bound = require_in_range(float(shadow.max(initial=0.0)))
    return CheckedInts(_multiply_vector(adjacency, amount.cast_for_bound(bound), budget), bound)


def find_neighbour_extremes(
    adjacency: Adjacency, item: PartialAggregate, codes: npt.NDArray[np.int64], budget: Budget
) -> npt.NDArray[np.int64]:
    """For each node the least or greatest code of the nodes next to it."""
    choose = np.minimum if item.kind is PartialKind.MIN else np.maximum
    found = np.full(len(adjacency.offsets) - 1, identity_of(item), np.int64)
    for first, last in _split_ranges(adjacency):
        budget.check_interrupts()
        offsets = adjacency.offsets[first : last + 1]
        # A segment without any edge would get the first code of the next one.
        filled = np.flatnonzero(offsets[1:] > offsets[:-1])
        if len(filled):
            near = codes.take(adjacency.ends[offsets[0] : offsets[-1]])
            found[first + filled] = choose.reduceat(near, offsets[filled] - offsets[0])
    return found


def _multiply_vector(
    adjacency: Adjacency, vector: npt.NDArray[Any], budget: Budget
) -> npt.NDArray[Any]:
    global _summed  # noqa: PLW0603 — what is imported is of the process, too
    is_large = len(adjacency.ends) >= SPARSE_EDGES_MIN
    _summed += len(adjacency.ends) if is_large else 0
    is_sparse = is_large and _summed > EDGES_BEFORE_SPARSE
    product = _multiply_sparse if is_sparse else _multiply_gathered
    parts = []
    for first, last in _split_ranges(adjacency):
        budget.check_interrupts()
        offsets = adjacency.offsets[first : last + 1]
        ends = adjacency.ends[offsets[0] : offsets[-1]]
        parts.append(product(offsets - offsets[0] if first else offsets, ends, vector))
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.zeros(0, vector.dtype)])


def _multiply_sparse(
    offsets: npt.NDArray[Any], ends: npt.NDArray[Any], vector: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    from scipy.sparse import (  # noqa: PLC0415 — see below
        csr_array,
    )

    ones = _ones_of(vector.dtype, len(ends))
    shape = (len(offsets) - 1, len(vector))
    found: npt.NDArray[Any] = csr_array((ones, ends, offsets), shape=shape, copy=False) @ vector
    return found


def _multiply_gathered(
    offsets: npt.NDArray[Any], ends: npt.NDArray[Any], vector: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """The same without a library whose import takes longer than the first queries do."""
    found = np.zeros(len(offsets) - 1, vector.dtype)
    # A segment without any edge would get the first value of the next one.
    filled = np.flatnonzero(offsets[1:] > offsets[:-1])
    if len(filled):
        found[filled] = np.add.reduceat(vector.take(ends), offsets[filled])
    return found


def _split_ranges(adjacency: Adjacency) -> Iterator[tuple[int, int]]:
    """Ranges of nodes that have so many edges together; a node with more is alone."""
    offsets = adjacency.offsets
    first, count = 0, len(offsets) - 1
    while first < count:
        reached = np.searchsorted(offsets, int(offsets[first]) + EDGES_AT_ONCE, side="right")
        last = min(max(int(reached) - 1, first + 1), count)
        yield first, last
        first = last


def _ones_of(dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    """Ones; those of a usual number are kept, as they cost more than the product they serve."""
    known = _ones.get(dtype)
    if known is not None and len(known) >= count:
        return known[:count]
    made = np.ones(count, dtype)
    if count <= EDGES_AT_ONCE:
        _ones[dtype] = made
    return made

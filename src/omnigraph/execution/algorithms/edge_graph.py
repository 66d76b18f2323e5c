"""The edges of a selection as arrays and as sparse matrices, by the number of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from omnigraph.execution.query_budget import Budget

# Numbers of nodes: their places in the order of type and id.
NodeNumbers: TypeAlias = npt.NDArray[np.int32]
Floats: TypeAlias = npt.NDArray[np.float64]
Arcs: TypeAlias = sparse.csr_array

_END_BITS = 32
_END_MASK = 2**_END_BITS - 1
_WORD_BITS = 63
# Integers that are sorted between two checks of the budget.
_RUN = 2_000_000
# Of an edge while a matrix is made of it: a pair, its order, two ends and a weight.
_EDGE_BYTES = 40


@dataclass(frozen=True, slots=True)
class EdgeArrays:
    """Edges of one type: where each starts and ends, and its weight; 1 without weights."""

    starts: NodeNumbers
    ends: NodeNumbers
    weights: Floats | None
    # Whether each is walked both ways.
    is_undirected: bool = False


@dataclass(frozen=True, slots=True)
class EdgeGraph:
    """A graph of `size` nodes.

    Parallel edges are one arc of a matrix whose weight is their sum; a loop counts once.
    """

    size: int
    parts: Sequence[EdgeArrays]
    budget: Budget

    @property
    def is_weighted(self) -> bool:
        """Whether edges have weights of their own."""
        return any(each.weights is not None for each in self.parts)

    def build_arcs(self, *, is_reversed: bool = False) -> Arcs:
        """The arcs from each node; those to each node, if reversed."""
        parts = self._list_directed()
        if is_reversed:
            parts = [EdgeArrays(each.ends, each.starts, each.weights) for each in parts]
        return self._build_matrix(parts)

    def build_lengths(self) -> Arcs:
        """The arcs from each node, where weights are lengths: of parallel edges the shortest."""
        return self._build_matrix(self._list_directed(), is_length=True)

    def build_undirected(self) -> Arcs:
        """The neighbours of each node, whatever the direction; each edge is there both ways."""
        parts: list[EdgeArrays] = []
        for each in self.parts:
            parts.append(EdgeArrays(each.starts, each.ends, each.weights))
            parts.append(_without_loops(EdgeArrays(each.ends, each.starts, each.weights)))
        return self._build_matrix(parts)

    def build_simple(self) -> Arcs:
        """The distinct neighbours of each node other than itself, whatever the direction."""
        parts: list[EdgeArrays] = []
        for each in self.parts:
            ends = _without_loops(EdgeArrays(each.starts, each.ends, None))
            parts += [ends, EdgeArrays(ends.ends, ends.starts, None)]
        found = self._build_matrix(parts)
        found.data[:] = 1.0
        return found

    def _list_directed(self) -> list[EdgeArrays]:
        parts: list[EdgeArrays] = []
        for each in self.parts:
            parts.append(EdgeArrays(each.starts, each.ends, each.weights))
            if each.is_undirected:
                parts.append(_without_loops(EdgeArrays(each.ends, each.starts, each.weights)))
        return parts

    def _build_matrix(self, parts: Sequence[EdgeArrays], *, is_length: bool = False) -> Arcs:
        self.budget.check_interrupts()
        self.budget.require_memory(_EDGE_BYTES * sum(len(each.starts) for each in parts))
        none: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        pairs = np.concatenate([none, *(_pack(each.starts, each.ends) for each in parts)])
        self.budget.check_interrupts()
        if any(each.weights is not None for each in parts):
            weights = np.concatenate([_list_weights(each) for each in parts])
            order = _sort_pairs(pairs, self.size, self.budget)
            self.budget.check_interrupts()
            pairs = pairs.take(order)
            weights = _sort_parallel(weights.take(order), pairs)
        else:
            _sort_in_runs(pairs, self.budget)
            weights = np.ones(len(pairs))
        self.budget.check_interrupts()
        firsts = _find_firsts(pairs)
        if len(firsts) < len(pairs):
            weights = weights.take(firsts) if is_length else np.add.reduceat(weights, firsts)
            pairs = pairs.take(firsts)
        self.budget.check_interrupts()
        starts, ends = pairs >> _END_BITS, (pairs & _END_MASK).astype(np.int32)
        self.budget.check_interrupts()
        offsets = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(starts, minlength=self.size), out=offsets[1:])
        if len(ends) < np.iinfo(np.int32).max:
            offsets = offsets.astype(np.int32)
        return make_arcs(weights, ends, offsets, self.size)


def make_arcs(
    weights: Floats, ends: NodeNumbers, offsets: npt.NDArray[np.integer], size: int
) -> Arcs:
    """A square matrix of sorted rows, which is not checked again."""
    found = sparse.csr_array((weights, ends, offsets), shape=(size, size))
    found.has_sorted_indices = True
    found.has_canonical_format = True
    return found


def _without_loops(edges: EdgeArrays) -> EdgeArrays:
    is_kept = edges.starts != edges.ends
    if is_kept.all():
        return edges
    weights = None if edges.weights is None else edges.weights[is_kept]
    return EdgeArrays(edges.starts[is_kept], edges.ends[is_kept], weights)


def _list_weights(edges: EdgeArrays) -> Floats:
    return np.ones(len(edges.starts)) if edges.weights is None else edges.weights


def _pack(starts: NodeNumbers, ends: NodeNumbers) -> npt.NDArray[np.int64]:
    pairs = starts.astype(np.int64)
    pairs <<= _END_BITS
    pairs |= ends
    return pairs


def _sort_in_runs(keys: npt.NDArray[np.int64], budget: Budget) -> None:
    """Sort integers, so many at a time, and then merge these runs, which takes linear time."""
    for start in range(0, len(keys), _RUN):
        keys[start : start + _RUN].sort()
        budget.check_interrupts()
    if len(keys) > _RUN:
        keys.sort(kind="stable")


def _sort_pairs(pairs: npt.NDArray[np.int64], size: int, budget: Budget) -> npt.NDArray[np.int64]:
    """Where the pairs are in their order."""
    node_bits, place_bits = size.bit_length(), len(pairs).bit_length()
    if 2 * node_bits + place_bits > _WORD_BITS:
        return np.argsort(pairs, kind="stable")
    # With its place in the same integer: to sort those is many times faster than to sort places.
    keys = (pairs >> _END_BITS) << (node_bits + place_bits)
    keys |= (pairs & _END_MASK) << place_bits
    keys |= np.arange(len(pairs))
    _sort_in_runs(keys, budget)
    keys &= (1 << place_bits) - 1
    return keys


def _sort_parallel(weights: Floats, pairs: npt.NDArray[np.int64]) -> Floats:
    """The weights of parallel edges in order, so that their sum is the same in any order."""
    is_same = pairs[1:] == pairs[:-1]
    at = np.flatnonzero(np.append(is_same, False) | np.append(False, is_same))
    own = weights.take(at)
    weights[at] = own.take(np.lexsort((own, pairs.take(at))))
    return weights


def _find_firsts(pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each distinct pair begins."""
    is_first = np.ones(len(pairs), np.bool_)
    np.not_equal(pairs[1:], pairs[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)

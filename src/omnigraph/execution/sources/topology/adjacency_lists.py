"""Which nodes are next to which: for each node the sorted numbers of its neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.execution.sources.graph_source import (
    DenseIds,
    NeighbourEdges,
    Neighbours,
    RowIndices,
)

Offsets: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]
# A start and an end in one integer, which orders by start, then by end.
Pairs: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

END_BITS: Final = 32
_END_MASK: Final = 2**END_BITS - 1
_WORD_BITS: Final = 64
_OFFSET_MAX: Final = 2**31 - 1


class Adjacency(ABC):
    """The distinct neighbours of node `n` are `ends[offsets[n]:offsets[n + 1]]`, ascending."""

    offsets: Offsets
    ends: DenseIds

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How much memory it takes."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many nodes it knows."""

    @cached_property
    def degrees(self) -> npt.NDArray[np.int32]:
        """How many neighbours each node has."""
        return np.diff(self.offsets).astype(np.int32, copy=False)

    @cached_property
    def degree_max(self) -> int:
        """The most neighbours that a node has."""
        return int(self.degrees.max(initial=0))

    @cached_property
    def is_functional(self) -> bool:
        """Whether every node has exactly one neighbour."""
        return bool(self.size) and bool(np.all(self.degrees == 1))

    @property
    @abstractmethod
    def edge_count(self) -> int:
        """How many pairs of neighbours there are."""

    @abstractmethod
    def count_neighbours(self, nodes: DenseIds) -> npt.NDArray[np.int32]:
        """How many neighbours some nodes have."""

    def get_only_neighbours(self, nodes: DenseIds) -> DenseIds:
        """The neighbour of each given node, where every node has one."""
        return self.expand_neighbours(nodes).ends

    @abstractmethod
    def expand_neighbours(self, nodes: DenseIds) -> Neighbours:
        """The neighbours of each given node, by place, then by end."""

    @abstractmethod
    def with_size(self, size: int) -> Adjacency:
        """The same for other nodes: more of them, or without some that have no neighbour."""


class PlainAdjacency(Adjacency):
    """Neighbours in two arrays. `repeats` are the pairs of parallel edges, but one of each."""

    def __init__(self, offsets: Offsets, ends: DenseIds, repeats: Pairs) -> None:
        self.offsets = offsets
        self.ends = ends
        self.repeats = repeats

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.offsets.nbytes + self.ends.nbytes + self.repeats.nbytes

    @property
    def size(self) -> int:
        """How many nodes it knows."""
        return len(self.offsets) - 1

    @property
    def edge_count(self) -> int:
        """How many pairs of neighbours there are."""
        return len(self.ends)

    def count_neighbours(self, nodes: DenseIds) -> npt.NDArray[np.int32]:
        """How many neighbours some nodes have."""
        return self.degrees.take(nodes)

    def get_only_neighbours(self, nodes: DenseIds) -> DenseIds:
        """The neighbour of each given node, where every node has one."""
        return self.ends.take(nodes)

    def expand_neighbours(self, nodes: DenseIds) -> Neighbours:
        """The neighbours of each given node, by place, then by end."""
        if len(nodes) == 1:
            ends = self.ends[self.offsets[nodes[0]] : self.offsets[nodes[0] + 1]]
            return Neighbours(np.zeros(len(ends), np.int64), ends)
        if self.is_functional:
            return Neighbours(np.arange(len(nodes)), self.ends.take(nodes))
        places, slots = expand_offsets(self.offsets, nodes)
        return Neighbours(places, self.ends.take(slots))

    def with_size(self, size: int) -> PlainAdjacency:
        """The same for other nodes."""
        if size == self.size:
            return self
        return PlainAdjacency(fit_offsets(self.offsets, size), self.ends, self.repeats)

    def count_copies(self, pairs: Pairs) -> npt.NDArray[np.int64]:
        """How many edges each pair has."""
        slots, is_there = self.find_slots(pairs)
        del slots
        more = np.searchsorted(self.repeats, pairs, "right") - np.searchsorted(self.repeats, pairs)
        return is_there + more

    def find_slots(self, pairs: Pairs) -> tuple[RowIndices, Mask]:
        """Where the end of each pair is among the ends of its start, or belongs; if it is there."""
        starts, ends = unpack_pairs(pairs)
        # A node beyond the last one has no neighbours.
        low = self.offsets.take(starts, mode="clip").astype(np.int64)
        stop = self.offsets.take(starts + 1, mode="clip").astype(np.int64)
        high = stop.copy()
        while np.any(low < high):
            middle = (low + high) // 2
            is_less = (self.ends.take(middle, mode="clip") < ends) & (low < high)
            high = np.where(is_less, high, np.minimum(middle, high))
            low = np.where(is_less, middle + 1, low)
        is_there = low < stop
        if len(self.ends):
            is_there &= self.ends.take(low, mode="clip") == ends
        return low, is_there


@dataclass(frozen=True)
class EdgeLists:
    """Every edge at each node: as `Adjacency`, but parallel edges are apart, each with its number.

    The edges at a node are ordered by end, then by number.
    """

    offsets: Offsets
    ends: DenseIds
    edges: DenseIds

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.offsets.nbytes + self.ends.nbytes + self.edges.nbytes

    @property
    def size(self) -> int:
        """How many nodes it knows."""
        return len(self.offsets) - 1

    def expand_edges(self, nodes: DenseIds) -> NeighbourEdges:
        """The edges at each given node, by place, then by end, then by edge."""
        if len(nodes) == 1:
            here = slice(self.offsets[nodes[0]], self.offsets[nodes[0] + 1])
            ends = self.ends[here]
            return NeighbourEdges(np.zeros(len(ends), np.int64), ends, self.edges[here])
        places, slots = expand_offsets(self.offsets, nodes)
        return NeighbourEdges(places, self.ends.take(slots), self.edges.take(slots))

    def with_size(self, size: int) -> EdgeLists:
        """The same for other nodes: more of them, or without some that have no edge."""
        if size == self.size:
            return self
        return EdgeLists(fit_offsets(self.offsets, size), self.ends, self.edges)


def build_adjacency(starts: DenseIds, ends: DenseIds, size: int) -> PlainAdjacency:
    """The adjacency of edges between `size` starts and any ends."""
    pairs = pack_pairs(starts, ends)
    pairs.sort()
    is_repeat = pairs[1:] == pairs[:-1]
    repeats = pairs[1:][is_repeat]
    if len(repeats):
        pairs = pairs[np.append(True, ~is_repeat)]
    distinct_starts, distinct_ends = unpack_pairs(pairs)
    return PlainAdjacency(offsets_of(distinct_starts, size), distinct_ends, repeats)


def build_edge_lists(starts: DenseIds, ends: DenseIds, edges: DenseIds, *, size: int) -> EdgeLists:
    """The edges at each of `size` starts; the numbers of edges ascend."""
    if not len(edges):
        return EdgeLists(offsets_of(starts, size), ends, edges)
    end_bits = int(ends.max()).bit_length()
    edge_bits = int(edges[-1]).bit_length()
    if max(size - 1, 0).bit_length() + end_bits + edge_bits <= _WORD_BITS:
        # All three in one integer: sorting those is much faster than an order of pairs.
        triples = starts.astype(np.uint64) << np.uint64(end_bits + edge_bits)
        triples |= ends.astype(np.uint64) << np.uint64(edge_bits)
        triples |= edges.astype(np.uint64)
        triples.sort()
        edges = (triples & np.uint64(2**edge_bits - 1)).astype(np.int32)
        triples >>= np.uint64(edge_bits)
        ends = (triples & np.uint64(2**end_bits - 1)).astype(np.int32)
        starts = (triples >> np.uint64(end_bits)).astype(np.int32)
        return EdgeLists(offsets_of(starts, size), ends, edges)
    order = np.argsort(pack_pairs(starts, ends), kind="stable")
    return EdgeLists(offsets_of(starts, size), ends.take(order), edges.take(order))


def pack_pairs(starts: DenseIds | RowIndices, ends: DenseIds) -> Pairs:
    """Each start with its end in one integer."""
    pairs = starts.astype(np.int64)
    pairs <<= END_BITS
    pairs |= ends
    return pairs


def unpack_pairs(pairs: Pairs) -> tuple[DenseIds, DenseIds]:
    """The starts and the ends of pairs."""
    return (pairs >> END_BITS).astype(np.int32), (pairs & _END_MASK).astype(np.int32)


def expand_offsets(offsets: Offsets, nodes: DenseIds) -> tuple[RowIndices, RowIndices]:
    """For each slot of each given node, the place of the node and the slot."""
    starts = offsets.take(nodes).astype(np.int64, copy=False)
    counts = offsets[1:].take(nodes) - starts
    return expand_ranges(starts, counts)


def expand_ranges(starts: RowIndices, counts: RowIndices) -> tuple[RowIndices, RowIndices]:
    """For each element of each range, the place of the range and the element."""
    places = np.repeat(np.arange(len(starts)), counts)
    before = np.cumsum(counts) - counts
    elements = np.arange(len(places))
    elements += np.repeat(starts - before, counts)
    return places, elements


def fit_offsets(offsets: Offsets, size: int) -> Offsets:
    """The offsets of other nodes: the first of them, or more that have nothing."""
    if size < len(offsets):
        return offsets[: size + 1]
    more = np.full(size + 1 - len(offsets), offsets[-1], offsets.dtype)
    grown: Offsets = np.concatenate([offsets, more])
    return grown


def offsets_of(starts: DenseIds, size: int) -> Offsets:
    """Where the elements of each start begin, among all in the order of starts."""
    ends = np.cumsum(np.bincount(starts, minlength=size))
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    return offsets.astype(np.int32) if len(starts) <= _OFFSET_MAX else offsets

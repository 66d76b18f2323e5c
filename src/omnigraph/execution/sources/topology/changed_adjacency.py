"""Neighbours and edges after a few changes: what was known, with a little added and taken away."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.execution.sources.graph_source import (
    DenseIds,
    NeighbourEdges,
    Neighbours,
    RowIndices,
)
from omnigraph.execution.sources.topology.adjacency_lists import (
    END_BITS,
    Adjacency,
    EdgeLists,
    Mask,
    Offsets,
    Pairs,
    PlainAdjacency,
    build_edge_lists,
    expand_ranges,
    pack_pairs,
    unpack_pairs,
)
from omnigraph.sorted_search import are_among

# A walk from a larger share of the nodes puts all changes into place first.
_WALK_SHARE_MAX: Final = 1 / 16


class ChangedAdjacency(Adjacency):
    """A plain adjacency after a few edges came and went, of as many nodes or more.

    `pairs` are those that some edge came to or left, in order; `was_there` are those that the plain
    adjacency has, and `copies` is how many edges each of them has by now.
    """

    def __init__(
        self,
        base: PlainAdjacency,
        size: int,
        pairs: Pairs,
        was_there: Mask,
        copies: npt.NDArray[np.int64],
    ) -> None:
        self.base = base
        self._size = size
        self.pairs = pairs
        self.was_there = was_there
        self.copies = copies
        # The pairs that are gone, and those that are new.
        self.gone = pairs[was_there & (copies <= 0)]
        self.new = pairs[~was_there & (copies > 0)]
        self._plain: PlainAdjacency | None = None

    @property
    def nbytes(self) -> int:
        """How much memory it takes, until everything is in place."""
        return self.base.nbytes + self.pairs.nbytes + self.copies.nbytes

    @property
    def size(self) -> int:
        """How many nodes it knows."""
        return self._size

    @property
    def edge_count(self) -> int:
        """How many pairs of neighbours there are."""
        return self.base.edge_count + len(self.new) - len(self.gone)

    @property
    def offsets(self) -> Offsets:  # type: ignore[override]  # read, never assigned
        """Where the neighbours of each node begin."""
        return self.plain.offsets

    @property
    def ends(self) -> DenseIds:  # type: ignore[override]  # read, never assigned
        """The neighbours of all nodes."""
        return self.plain.ends

    @cached_property
    def degrees(self) -> npt.NDArray[np.int32]:
        """How many neighbours each node has."""
        degrees = np.zeros(self._size, np.int32)
        degrees[: self.base.size] = self.base.degrees
        np.subtract.at(degrees, unpack_pairs(self.gone)[0], 1)
        np.add.at(degrees, unpack_pairs(self.new)[0], 1)
        return degrees

    @cached_property
    def degree_max(self) -> int:
        """No node has more neighbours than this."""
        return self.base.degree_max + len(self.new)

    @cached_property
    def is_functional(self) -> bool:
        """Whether every node is known to have exactly one neighbour."""
        if not self.base.is_functional:
            return False
        touched = np.unique(unpack_pairs(self.pairs)[0])
        more = np.arange(self.base.size, self._size, dtype=np.int32)
        return bool(np.all(self.count_neighbours(np.union1d(touched, more)) == 1))

    def count_neighbours(self, nodes: DenseIds) -> npt.NDArray[np.int32]:
        """How many neighbours some nodes have."""
        found = np.zeros(len(nodes), np.int32)
        is_old = nodes < self.base.size
        found[is_old] = self.base.count_neighbours(nodes[is_old])
        starts = nodes.astype(np.int64) << END_BITS
        return found + (_count_pairs(self.new, starts) - _count_pairs(self.gone, starts)).astype(
            np.int32
        )

    @property
    def plain(self) -> PlainAdjacency:
        """The same with all changes in place; it does not know any more which edges are parallel.

        Two threads may make it at once: both make the same.
        """
        if self._plain is None:
            self._plain = self._merge_with_repeats(self.pairs[:0])
        return self._plain

    def merge_changes(self) -> PlainAdjacency:
        """The same with all changes in place, which is not kept."""
        is_untouched = ~are_among(self.base.repeats, self.pairs)
        repeats = np.repeat(self.pairs, np.maximum(self.copies - 1, 0))
        repeats = np.concatenate([self.base.repeats[is_untouched], repeats])
        repeats.sort()
        return self._merge_with_repeats(repeats)

    def _merge_with_repeats(self, repeats: Pairs) -> PlainAdjacency:
        base = self.base.with_size(self._size)
        if not len(self.gone) and not len(self.new):
            return PlainAdjacency(base.offsets, base.ends, repeats)
        slots, _ = base.find_slots(self.gone)
        ends = np.delete(base.ends, slots)
        before, _ = base.find_slots(self.new)
        before -= np.searchsorted(slots, before)
        ends = np.insert(ends, before, unpack_pairs(self.new)[1])
        offsets = np.zeros(self._size + 1, base.offsets.dtype)
        np.cumsum(self.degrees, dtype=offsets.dtype, out=offsets[1:])
        return PlainAdjacency(offsets, ends, repeats)

    def expand_neighbours(self, nodes: DenseIds) -> Neighbours:
        """The neighbours of each given node, by place, then by end."""
        if self._plain is not None or len(nodes) > _WALK_SHARE_MAX * self.size:
            return self.plain.expand_neighbours(nodes)
        if self._size > self.base.size and int(nodes.max(initial=0)) >= self.base.size:
            is_old = np.flatnonzero(nodes < self.base.size)
            places, ends = self.base.expand_neighbours(nodes.take(is_old))
            places = is_old.take(places)
        else:
            places, ends = self.base.expand_neighbours(nodes)
        starts = nodes.astype(np.int64) << END_BITS
        is_touched = _count_pairs(self.gone, starts) > 0
        if is_touched.any():
            rows = np.flatnonzero(is_touched.take(places))
            pairs = pack_pairs(nodes.take(places.take(rows)), ends.take(rows))
            dead = rows[are_among(pairs, self.gone)]
            places, ends = np.delete(places, dead), np.delete(ends, dead)
        more_places, more = _find_pairs(self.new, starts)
        if len(more):
            more_ends = unpack_pairs(self.new.take(more))[1]
            before = np.searchsorted(pack_pairs(places, ends), pack_pairs(more_places, more_ends))
            places = np.insert(places, before, more_places)
            ends = np.insert(ends, before, more_ends)
        return Neighbours(places, ends)

    def with_size(self, size: int) -> ChangedAdjacency:
        """The same for other nodes."""
        if size == self.size:
            return self
        base = self.base.with_size(min(size, self.base.size))
        return ChangedAdjacency(base, size, self.pairs, self.was_there, self.copies)


def extend_nodes(
    value: Adjacency | EdgeLists | ChangedEdgeLists, size: int
) -> ChangedAdjacency | ChangedEdgeLists:
    """Neighbours or edges of more nodes, which have none."""
    if isinstance(value, Adjacency):
        nothing = np.zeros(0, np.int64)
        return change_adjacency(value, nothing, nothing, size=size)
    no_edges = np.zeros(0, np.int32)
    return change_edge_lists(value, no_edges, np.zeros(0, np.int64), no_edges, size=size)


def change_adjacency(
    older: Adjacency, removed: Pairs, added: Pairs, *, size: int
) -> ChangedAdjacency:
    """An adjacency after edges were removed and added; they are given by their pairs."""
    if isinstance(older, ChangedAdjacency):
        base, pairs = older.base, older.pairs
        was_there, copies = older.was_there, older.copies
    else:
        assert isinstance(older, PlainAdjacency)
        base, pairs = older, removed[:0]
        was_there, copies = np.zeros(0, np.bool_), np.zeros(0, np.int64)
    touched = np.unique(np.concatenate([removed, added]))
    new = touched[~are_among(touched, pairs)]
    if len(new):
        before, at = base.count_copies(new), np.searchsorted(pairs, new)
        pairs = np.insert(pairs, at, new)
        was_there = np.insert(was_there, at, before > 0)
        copies = np.insert(copies, at, before)
    else:
        copies = copies.copy()
    np.add.at(copies, np.searchsorted(pairs, added), 1)
    np.subtract.at(copies, np.searchsorted(pairs, removed), 1)
    return ChangedAdjacency(base, size, pairs, was_there, copies)


@dataclass(frozen=True)
class ChangedEdgeLists:
    """Edge lists of which some edges are gone, and others that are in the order of pairs."""

    base: EdgeLists
    size: int
    # The edges of the lists that are gone, ascending.
    gone: DenseIds
    pairs: Pairs
    edges: DenseIds

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.base.nbytes + self.gone.nbytes + self.pairs.nbytes + self.edges.nbytes

    def expand_edges(self, nodes: DenseIds) -> NeighbourEdges:
        """The edges at each given node, by place, then by end, then by edge."""
        is_old = nodes < self.base.size
        if is_old.all():
            places, ends, edges = self.base.expand_edges(nodes)
        else:
            old = np.flatnonzero(is_old)
            places, ends, edges = self.base.expand_edges(nodes.take(old))
            places = old.take(places)
        if len(self.gone):
            is_alive = ~are_among(edges, self.gone)
            places, ends, edges = places[is_alive], ends[is_alive], edges[is_alive]
        more_places, more = _find_pairs(self.pairs, nodes.astype(np.int64) << END_BITS)
        if len(more):
            ends = np.concatenate([ends, unpack_pairs(self.pairs.take(more))[1]])
            edges = np.concatenate([edges, self.edges.take(more)])
            places = np.concatenate([places, more_places])
            # Added edges have higher numbers than all others.
            order = np.argsort(pack_pairs(places, ends), kind="stable")
            places, ends, edges = places[order], ends[order], edges[order]
        return NeighbourEdges(places, ends, edges)

    def with_size(self, size: int) -> ChangedEdgeLists:
        """The same for other nodes."""
        if size == self.size:
            return self
        base = self.base.with_size(min(size, self.base.size))
        return ChangedEdgeLists(base, size, self.gone, self.pairs, self.edges)

    def merge_changes(self) -> EdgeLists:
        """The same with all changes in place."""
        starts = np.repeat(np.arange(self.base.size, dtype=np.int32), np.diff(self.base.offsets))
        is_alive = ~are_among(self.base.edges, self.gone)
        more_starts, more_ends = unpack_pairs(self.pairs)
        starts = np.concatenate([starts[is_alive], more_starts])
        ends = np.concatenate([self.base.ends[is_alive], more_ends])
        edges = np.concatenate([self.base.edges[is_alive], self.edges])
        order = np.argsort(edges, kind="stable")
        return build_edge_lists(starts[order], ends[order], edges[order], size=self.size)


def change_edge_lists(
    older: EdgeLists | ChangedEdgeLists,
    removed: DenseIds,
    added: Pairs,
    edges: DenseIds,
    *,
    size: int,
) -> ChangedEdgeLists:
    """Edge lists after edges were removed and added; added ones have higher numbers than all."""
    if isinstance(older, ChangedEdgeLists):
        base, gone = older.base, older.gone
        is_left = ~np.isin(older.edges, removed)
        added = np.concatenate([older.pairs[is_left], added])
        edges = np.concatenate([older.edges[is_left], edges])
        removed = removed[~np.isin(removed, older.edges)]
    else:
        base, gone = older, removed[:0]
    order = np.argsort(added, kind="stable")
    return ChangedEdgeLists(base, size, np.union1d(gone, removed), added[order], edges[order])


def _find_pairs(pairs: Pairs, starts: Pairs) -> tuple[RowIndices, RowIndices]:
    """The pairs of each given start, as the place of the start and that of the pair."""
    low = np.searchsorted(pairs, starts)
    return expand_ranges(low, np.searchsorted(pairs, starts + (1 << END_BITS)) - low)


def _count_pairs(pairs: Pairs, starts: Pairs) -> RowIndices:
    """How many pairs each of the given starts has."""
    if not len(pairs):
        return np.zeros(len(starts), np.int64)
    return np.searchsorted(pairs, starts + (1 << END_BITS)) - np.searchsorted(pairs, starts)

"""Neighbours and edges after a few changes: what was known, with a little added and taken away."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.execution.source import Numbers, Places, Reached, ReachedEdges
from omnigraph.execution.topology.adjacency import (
    END_BITS,
    Adjacency,
    EdgeLists,
    Mask,
    Offsets,
    Pairs,
    PlainAdjacency,
    edge_lists,
    packed,
    spread_ranges,
    unpacked,
)

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
    def ends(self) -> Numbers:  # type: ignore[override]  # read, never assigned
        """The neighbours of all nodes."""
        return self.plain.ends

    @cached_property
    def degrees(self) -> npt.NDArray[np.int32]:
        """How many neighbours each node has."""
        degrees = np.zeros(self._size, np.int32)
        degrees[: self.base.size] = self.base.degrees
        np.subtract.at(degrees, unpacked(self.gone)[0], 1)
        np.add.at(degrees, unpacked(self.new)[0], 1)
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
        touched = np.unique(unpacked(self.pairs)[0])
        more = np.arange(self.base.size, self._size, dtype=np.int32)
        return bool(np.all(self.degrees_at(np.union1d(touched, more)) == 1))

    def degrees_at(self, nodes: Numbers) -> npt.NDArray[np.int32]:
        """How many neighbours some nodes have."""
        found = np.zeros(len(nodes), np.int32)
        is_old = nodes < self.base.size
        found[is_old] = self.base.degrees_at(nodes[is_old])
        starts = nodes.astype(np.int64) << END_BITS
        return found + (_count_at(self.new, starts) - _count_at(self.gone, starts)).astype(np.int32)

    @property
    def plain(self) -> PlainAdjacency:
        """The same with all changes in place; it does not know any more which edges are parallel.

        Two threads may make it at once: both make the same.
        """
        if self._plain is None:
            self._plain = self._joined(self.pairs[:0])
        return self._plain

    def joined(self) -> PlainAdjacency:
        """The same with all changes in place, which is not kept."""
        is_untouched = ~_is_among(self.base.repeats, self.pairs)
        repeats = np.repeat(self.pairs, np.maximum(self.copies - 1, 0))
        repeats = np.concatenate([self.base.repeats[is_untouched], repeats])
        repeats.sort()
        return self._joined(repeats)

    def _joined(self, repeats: Pairs) -> PlainAdjacency:
        base = self.base.sized(self._size)
        if not len(self.gone) and not len(self.new):
            return PlainAdjacency(base.offsets, base.ends, repeats)
        slots, _ = base.slots(self.gone)
        ends = np.delete(base.ends, slots)
        before, _ = base.slots(self.new)
        before -= np.searchsorted(slots, before)
        ends = np.insert(ends, before, unpacked(self.new)[1])
        offsets = np.zeros(self._size + 1, base.offsets.dtype)
        np.cumsum(self.degrees, dtype=offsets.dtype, out=offsets[1:])
        return PlainAdjacency(offsets, ends, repeats)

    def reach(self, nodes: Numbers) -> Reached:
        """The neighbours of each given node, by place, then by end."""
        if self._plain is not None or len(nodes) > _WALK_SHARE_MAX * self.size:
            return self.plain.reach(nodes)
        if self._size > self.base.size and int(nodes.max(initial=0)) >= self.base.size:
            is_old = np.flatnonzero(nodes < self.base.size)
            places, ends = self.base.reach(nodes.take(is_old))
            places = is_old.take(places)
        else:
            places, ends = self.base.reach(nodes)
        starts = nodes.astype(np.int64) << END_BITS
        is_touched = _count_at(self.gone, starts) > 0
        if is_touched.any():
            rows = np.flatnonzero(is_touched.take(places))
            pairs = packed(nodes.take(places.take(rows)), ends.take(rows))
            dead = rows[_is_among(pairs, self.gone)]
            places, ends = np.delete(places, dead), np.delete(ends, dead)
        more_places, more = _elements(self.new, starts)
        if len(more):
            more_ends = unpacked(self.new.take(more))[1]
            before = np.searchsorted(packed(places, ends), packed(more_places, more_ends))
            places = np.insert(places, before, more_places)
            ends = np.insert(ends, before, more_ends)
        return Reached(places, ends)

    def sized(self, size: int) -> ChangedAdjacency:
        """The same for other nodes."""
        if size == self.size:
            return self
        base = self.base.sized(min(size, self.base.size))
        return ChangedAdjacency(base, size, self.pairs, self.was_there, self.copies)


def larger(
    value: Adjacency | EdgeLists | ChangedEdgeLists, size: int
) -> ChangedAdjacency | ChangedEdgeLists:
    """Neighbours or edges of more nodes, which have none."""
    if isinstance(value, Adjacency):
        nothing = np.zeros(0, np.int64)
        return changed_adjacency(value, nothing, nothing, size=size)
    no_edges = np.zeros(0, np.int32)
    return changed_edge_lists(value, no_edges, np.zeros(0, np.int64), no_edges, size=size)


def changed_adjacency(
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
    new = touched[~_is_among(touched, pairs)]
    if len(new):
        before, at = base.copies(new), np.searchsorted(pairs, new)
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
    gone: Numbers
    pairs: Pairs
    edges: Numbers

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.base.nbytes + self.gone.nbytes + self.pairs.nbytes + self.edges.nbytes

    def match(self, nodes: Numbers) -> ReachedEdges:
        """The edges at each given node, by place, then by end, then by edge."""
        is_old = nodes < self.base.size
        if is_old.all():
            places, ends, edges = self.base.match(nodes)
        else:
            old = np.flatnonzero(is_old)
            places, ends, edges = self.base.match(nodes.take(old))
            places = old.take(places)
        if len(self.gone):
            is_alive = ~_is_among(edges, self.gone)
            places, ends, edges = places[is_alive], ends[is_alive], edges[is_alive]
        more_places, more = _elements(self.pairs, nodes.astype(np.int64) << END_BITS)
        if len(more):
            ends = np.concatenate([ends, unpacked(self.pairs.take(more))[1]])
            edges = np.concatenate([edges, self.edges.take(more)])
            places = np.concatenate([places, more_places])
            # Added edges have higher numbers than all others.
            order = np.argsort(packed(places, ends), kind="stable")
            places, ends, edges = places[order], ends[order], edges[order]
        return ReachedEdges(places, ends, edges)

    def sized(self, size: int) -> ChangedEdgeLists:
        """The same for other nodes."""
        if size == self.size:
            return self
        base = self.base.sized(min(size, self.base.size))
        return ChangedEdgeLists(base, size, self.gone, self.pairs, self.edges)

    def joined(self) -> EdgeLists:
        """The same with all changes in place."""
        starts = np.repeat(np.arange(self.base.size, dtype=np.int32), np.diff(self.base.offsets))
        is_alive = ~_is_among(self.base.edges, self.gone)
        more_starts, more_ends = unpacked(self.pairs)
        starts = np.concatenate([starts[is_alive], more_starts])
        ends = np.concatenate([self.base.ends[is_alive], more_ends])
        edges = np.concatenate([self.base.edges[is_alive], self.edges])
        order = np.argsort(edges, kind="stable")
        return edge_lists(starts[order], ends[order], edges[order], size=self.size)


def changed_edge_lists(
    older: EdgeLists | ChangedEdgeLists,
    removed: Numbers,
    added: Pairs,
    edges: Numbers,
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


def _elements(pairs: Pairs, starts: Pairs) -> tuple[Places, Places]:
    """The pairs of each given start, as the place of the start and that of the pair."""
    low = np.searchsorted(pairs, starts)
    return spread_ranges(low, np.searchsorted(pairs, starts + (1 << END_BITS)) - low)


def _count_at(pairs: Pairs, starts: Pairs) -> Places:
    """How many pairs each of the given starts has."""
    if not len(pairs):
        return np.zeros(len(starts), np.int64)
    return np.searchsorted(pairs, starts + (1 << END_BITS)) - np.searchsorted(pairs, starts)


def _is_among(values: Pairs | Numbers, ordered: Pairs | Numbers) -> Mask:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    places = np.searchsorted(ordered, values)
    is_among: Mask = ordered.take(places, mode="clip") == values
    return is_among

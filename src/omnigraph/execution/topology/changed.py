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
    packed,
    spread_ranges,
    unpacked,
)

# A walk from a larger share of the nodes puts all changes into place first.
_WALK_SHARE_MAX: Final = 1 / 16


class ChangedAdjacency(Adjacency):
    """A plain adjacency without some pairs, and with some others; both are in order."""

    def __init__(self, base: PlainAdjacency, gone: Pairs, new: Pairs) -> None:
        self.base = base
        self.gone = gone
        self.new = new
        self._plain: PlainAdjacency | None = None

    @property
    def nbytes(self) -> int:
        """How much memory it takes, once everything is in place."""
        return self.base.nbytes + self.gone.nbytes + self.new.nbytes

    @property
    def size(self) -> int:
        """How many nodes it knows."""
        return self.base.size

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
        degrees = self.base.degrees.copy()
        np.subtract.at(degrees, unpacked(self.gone)[0], 1)
        np.add.at(degrees, unpacked(self.new)[0], 1)
        return degrees

    @property
    def plain(self) -> PlainAdjacency:
        """The same with all changes in place; it does not know any more which edges are parallel.

        Two threads may make it at once: both make the same.
        """
        if self._plain is None:
            slots, _ = self.base.slots(self.gone)
            ends = np.delete(self.base.ends, slots)
            before, _ = self.base.slots(self.new)
            before -= np.searchsorted(slots, before)
            ends = np.insert(ends, before, unpacked(self.new)[1])
            offsets = np.zeros(self.size + 1, self.base.offsets.dtype)
            np.cumsum(self.degrees, dtype=offsets.dtype, out=offsets[1:])
            self._plain = PlainAdjacency(offsets, ends, self.new[:0])
        return self._plain

    def reach(self, nodes: Numbers) -> Reached:
        """The neighbours of each given node, by place, then by end."""
        if self._plain is not None or len(nodes) > _WALK_SHARE_MAX * self.size:
            return self.plain.reach(nodes)
        places, ends = self.base.reach(nodes)
        starts = nodes.astype(np.int64) << END_BITS
        is_touched = _has_any(self.gone, starts)
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
        return ChangedAdjacency(self.base.sized(size), self.gone, self.new)


def changed_adjacency(base: PlainAdjacency, removed: Pairs, added: Pairs) -> ChangedAdjacency:
    """An adjacency after edges were removed and added; they are given by their pairs."""
    touched = np.unique(np.concatenate([removed, added]))
    before = base.copies(touched)
    after = before + _count(added, touched) - _count(removed, touched)
    gone = touched[(before > 0) & (after <= 0)]
    new = touched[(before <= 0) & (after > 0)]
    return ChangedAdjacency(base, gone, new)


def joined(base: PlainAdjacency, removed: Pairs, added: Pairs) -> PlainAdjacency:
    """The plain adjacency after edges were removed and added."""
    touched = np.unique(np.concatenate([removed, added]))
    after = base.copies(touched) + _count(added, touched) - _count(removed, touched)
    untouched = base.repeats[~_is_among(base.repeats, touched)]
    repeats = np.concatenate([untouched, np.repeat(touched, np.maximum(after - 1, 0))])
    repeats.sort()
    plain = changed_adjacency(base, removed, added).plain
    return PlainAdjacency(plain.offsets, plain.ends, repeats)


@dataclass(frozen=True)
class ChangedEdgeLists:
    """Edge lists of which some edges are gone, and others that are in the order of pairs."""

    base: EdgeLists
    is_alive: Mask | None
    pairs: Pairs
    edges: Numbers

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.base.nbytes + self.pairs.nbytes + self.edges.nbytes

    @property
    def size(self) -> int:
        """How many nodes it knows."""
        return self.base.size

    def match(self, nodes: Numbers) -> ReachedEdges:
        """The edges at each given node, by place, then by end, then by edge."""
        places, ends, edges = self.base.match(nodes)
        if self.is_alive is not None:
            is_alive = self.is_alive.take(edges)
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
        return ChangedEdgeLists(self.base.sized(size), self.is_alive, self.pairs, self.edges)


def changed_edge_lists(
    base: EdgeLists, is_alive: Mask | None, added: Pairs, edges: Numbers
) -> ChangedEdgeLists:
    """Edge lists after edges were removed and added; the numbers of added ones ascend."""
    order = np.argsort(added, kind="stable")
    return ChangedEdgeLists(base, is_alive, added[order], edges[order])


def _elements(pairs: Pairs, starts: Pairs) -> tuple[Places, Places]:
    """The pairs of each given start, as the place of the start and that of the pair."""
    low = np.searchsorted(pairs, starts)
    return spread_ranges(low, np.searchsorted(pairs, starts + (1 << END_BITS)) - low)


def _has_any(pairs: Pairs, starts: Pairs) -> Mask:
    """Which of the given starts have a pair."""
    if not len(pairs):
        return np.zeros(len(starts), np.bool_)
    low = np.searchsorted(pairs, starts)
    has_any: Mask = np.searchsorted(pairs, starts + (1 << END_BITS)) > low
    return has_any


def _is_among(values: Pairs, ordered: Pairs) -> Mask:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    places = np.searchsorted(ordered, values)
    is_among: Mask = ordered.take(places, mode="clip") == values
    return is_among


def _count(values: Pairs, among: Pairs) -> npt.NDArray[np.int64]:
    """How often each of some distinct values in order is there; no other is."""
    return np.bincount(np.searchsorted(among, values), minlength=len(among))

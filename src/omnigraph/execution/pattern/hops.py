"""Where traversals lead: one hop over all steps together, or several by shortest distance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from omnigraph.execution.batch import BoundEdges
from omnigraph.execution.numbers import (
    NO_NUMBERS,
    NO_PLACES,
    Pairs,
    distinct_sorted,
    is_among,
    packed,
    sorted_distinct,
    unpacked,
)
from omnigraph.execution.reading import Reading
from omnigraph.execution.source import Edges, Numbers, Places, Reached, ReachedEdges
from omnigraph.execution.topology.adjacency import Adjacency
from omnigraph.query.plan import Expand

# What a pair costs while it is made: the pair, its place, its end, and a copy to sort.
PAIR_BYTES = 32
# Pairs that a hop makes between two looks at the budget: about 20 milliseconds.
_PAIRS_AT_ONCE = 2**18
# Fewer ends than this part of the nodes are sorted; more are marked in a bitmap.
_SPARSE_FACTOR = 8


@dataclass(frozen=True)
class Way:
    """Edges of one type, walked in one direction; `member` is their place among the steps."""

    member: int
    edges: Edges
    is_reversed: bool
    # The other direction of an undirected step, which must not give a loop again.
    is_return: bool = False
    # Whether both ends of the edges are of one type.
    is_symmetric: bool = False

    def degrees(self, nodes: Numbers) -> Places | None:
        """How many neighbours each node has, if the edges know without reading anything."""
        known = self._adjacency
        return None if known is None else known.degrees_at(nodes).astype(np.int64)

    def edge_counts(self, nodes: Numbers) -> Places | None:
        """How many edges each node has, if the edges know without reading anything."""
        offsets = self._offsets
        if offsets is None:
            return None
        return (offsets[1:].take(nodes) - offsets.take(nodes)).astype(np.int64)

    @cached_property
    def _adjacency(self) -> Adjacency | None:
        # Only some sources hold all neighbours; an attribute is looked up faster than a protocol.
        adjacency = getattr(self.edges, "adjacency", None)
        return None if adjacency is None else adjacency(self.is_reversed)

    @cached_property
    def _offsets(self) -> npt.NDArray[np.int64] | None:
        edge_lists = getattr(self.edges, "edge_lists", None)
        # Lists with changes on top of them have no offsets.
        return (
            None if edge_lists is None else getattr(edge_lists(self.is_reversed), "offsets", None)
        )

    def incident(self, nodes: Numbers, rows: Places | None) -> int:
        """How many edges are at nodes on either side, a loop once; each for so many rows."""
        found = self.edges.match(nodes, is_reversed=self.is_reversed)
        places = found.places
        if self.is_symmetric:
            others = self.edges.match(nodes, is_reversed=not self.is_reversed)
            is_loop = others.ends == nodes.take(others.places)
            places = np.concatenate([places, others.places[~is_loop]])
        return len(places) if rows is None else int(rows.take(places).sum())


@dataclass(frozen=True, slots=True)
class Hops:
    """The edges of a traversal, to be walked from its source."""

    reading: Reading
    types: tuple[str, ...]
    ways: tuple[Way, ...]
    minimum: int
    maximum: int
    is_selection: bool

    @property
    def is_single(self) -> bool:
        """Whether every match is one hop."""
        return self.maximum == 1

    def degrees(self, nodes: Numbers) -> Places | None:
        """How many nodes are one hop away from each node, or a few more; None if unknown."""
        return _summed(way.degrees(nodes) for way in self.ways)

    def edge_counts(self, nodes: Numbers) -> Places | None:
        """How many edges are at each node, or a few more; None if unknown."""
        return _summed(way.edge_counts(nodes) for way in self.ways)

    def reached(self, starts: Numbers, rows: Places | None = None) -> Reached:
        """The distinct nodes within the bounds of each start, ordered by place, then by end.

        `rows` says how many rows of the query each start stands for; None is one each.
        """
        if self.minimum > self.maximum or not len(starts):
            return Reached(NO_PLACES, NO_NUMBERS)
        if self.is_single:
            self.count_work(starts, rows)
            return self._next(starts)
        if len(starts) == 1:
            ends = self._around(starts, rows)
            return Reached(np.zeros(len(ends), np.int64), ends)
        return self._around_each(starts, rows)

    def matched(self, starts: Numbers) -> tuple[Reached, BoundEdges]:
        """Every edge at each start; an undirected loop only once."""
        counts = self.edge_counts(starts)
        if counts is None:
            # A bound from below: parallel edges are rare.
            counts = self.degrees(starts)
        if counts is not None:
            self.reading.budget.require(PAIR_BYTES * int(counts.sum()))
        parts = [self._matched(way, starts) for way in self.ways]
        if len(parts) == 1:
            (found,) = parts
            members = np.zeros(len(found.ends), np.int16)
            return Reached(found.places, found.ends), BoundEdges(self.types, members, found.edges)
        if not parts:
            none = BoundEdges(self.types, np.zeros(0, np.int16), NO_NUMBERS)
            return Reached(NO_PLACES, NO_NUMBERS), none
        places, ends, edges = (np.concatenate(each) for each in zip(*parts, strict=True))
        members = np.repeat(
            np.array([way.member for way in self.ways], np.int16),
            [len(part.ends) for part in parts],
        )
        return Reached(places, ends), BoundEdges(self.types, members, edges)

    def _matched(self, way: Way, starts: Numbers) -> ReachedEdges:
        found = way.edges.match(starts, is_reversed=way.is_reversed)
        if not way.is_return:
            return found
        is_kept = found.ends != starts.take(found.places)
        return ReachedEdges(*(each[is_kept] for each in found))

    def count_work(self, nodes: Numbers, rows: Places | None = None) -> None:
        """Count the edges that a selection looks at from nodes, each for so many rows."""
        if not self.is_selection:
            return
        budget = self.reading.budget
        for way in self.ways:
            if way.is_return:
                continue
            least = way.degrees(nodes)
            known = 0 if least is None else _weighted(least, rows)
            # What a bound from below refuses need not be counted exactly.
            if known > budget.work_left:
                budget.work(known)
            budget.work(way.incident(nodes, rows))

    # ---- one hop ----

    def _next(self, nodes: Numbers) -> Reached:
        budget = self.reading.budget
        degrees = self.degrees(nodes)
        if degrees is not None:
            budget.require(PAIR_BYTES * int(degrees.sum()))
        if len(self.ways) == 1:
            return self.ways[0].edges.reach(nodes, is_reversed=self.ways[0].is_reversed)
        if not self.ways:
            return Reached(NO_PLACES, NO_NUMBERS)
        parts = [way.edges.reach(nodes, is_reversed=way.is_reversed) for way in self.ways]
        return unpacked(sorted_distinct(np.concatenate([packed(*part) for part in parts])))

    # ---- several hops ----

    def _around(self, start: Numbers, rows: Places | None) -> Numbers:
        """The nodes around one start: what was seen is a bitmap."""
        seen = np.zeros(int(start[0]) + 1, np.bool_)
        seen[start] = True
        kept: list[Numbers] = []
        frontier = start
        for hop in range(1, self.maximum + 1):
            self.reading.budget.check()
            self.count_work(frontier, None if rows is None else rows.repeat(len(frontier)))
            ends = self._next(frontier).ends
            if hop == 1 and self.minimum == 1 and np.any(ends == start[0]):
                kept.append(start)
            seen = _covering(seen, ends)
            frontier = _unseen(seen, ends)
            if hop >= self.minimum:
                kept.append(frontier)
            if not len(frontier):
                break
            seen[frontier] = True
        # Each part is ascending, which a stable sort takes as it is.
        return np.sort(np.concatenate(kept), kind="stable") if kept else NO_NUMBERS

    def _around_each(self, starts: Numbers, rows: Places | None) -> Reached:
        """The nodes around many starts: what was seen is sorted pairs of start and node."""
        budget = self.reading.budget
        frontier = Reached(np.arange(len(starts)), starts)
        seen = packed(*frontier)
        kept: list[Pairs] = []
        for hop in range(1, self.maximum + 1):
            budget.check()
            self.count_work(frontier.ends, None if rows is None else rows.take(frontier.places))
            pairs = self._next_pairs(frontier, None if hop == 1 else seen)
            if hop == 1 and self.minimum == 1:
                # All that was seen before the first hop are the starts: these are loops.
                kept.append(pairs)
            fresh = pairs[~is_among(pairs, seen)] if hop == 1 else pairs
            if hop >= self.minimum and not (hop == 1 and self.minimum == 1):
                kept.append(fresh)
            if not len(fresh) or hop == self.maximum:
                break
            seen = np.concatenate([seen, fresh])
            seen.sort(kind="stable")
            frontier = unpacked(fresh)
        if not kept:
            return Reached(NO_PLACES, NO_NUMBERS)
        together = np.concatenate(kept)
        together.sort(kind="stable")
        return unpacked(together)

    def _next_pairs(self, frontier: Reached, seen: Pairs | None) -> Pairs:
        """The distinct pairs one hop on, without those that were seen; some starts at a time."""
        budget = self.reading.budget
        parts: list[Pairs] = []
        for first, last in self._pieces(frontier.ends):
            budget.check()
            found = self._next(frontier.ends[first:last])
            budget.require(PAIR_BYTES * (len(found.ends) + sum(map(len, parts))))
            places = frontier.places[first:last].take(found.places)
            pairs = sorted_distinct(packed(places, found.ends))
            parts.append(pairs if seen is None else pairs[~is_among(pairs, seen)])
        return parts[0] if len(parts) == 1 else sorted_distinct(np.concatenate(parts))

    def _pieces(self, nodes: Numbers) -> Iterator[tuple[int, int]]:
        """Where to cut nodes, so that a hop from them does not make too many pairs at once."""
        degrees = self.degrees(nodes)
        if degrees is None or not len(nodes):
            yield 0, len(nodes)
            return
        ends = np.cumsum(degrees)
        first = made = 0
        while first < len(nodes):
            last = max(int(np.searchsorted(ends, made + _PAIRS_AT_ONCE, side="right")), first + 1)
            yield first, last
            first, made = last, int(ends[last - 1])


def hops_of(op: Expand, reading: Reading, *, is_backwards: bool = False) -> Hops:
    """The edges of a traversal, or of the same one from its target."""
    ways: list[Way] = []
    is_symmetric = op.source_type == op.target_type
    for member, step in enumerate(op.steps):
        edges = reading.source.edges(step.edge_type)
        is_reversed = step.is_reversed != is_backwards
        ways.append(Way(member, edges, is_reversed, is_symmetric=is_symmetric))
        if op.is_undirected:
            ways.append(Way(member, edges, not is_reversed, is_return=True))
    # Between two types there is nothing after the first hop.
    maximum = op.maximum if is_symmetric else 1
    types = tuple(step.edge_type for step in op.steps)
    return Hops(reading, types, tuple(ways), op.minimum, maximum, op.is_selection)


def _summed(parts: Iterable[Places | None]) -> Places | None:
    total: Places | None = None
    for part in parts:
        if part is None:
            return None
        total = part if total is None else total + part
    return total


def _weighted(counts: Places, rows: Places | None) -> int:
    return int(counts.sum() if rows is None else (counts * rows).sum())


def _covering(seen: npt.NDArray[np.bool_], ends: Numbers) -> npt.NDArray[np.bool_]:
    """The bitmap, long enough for some numbers."""
    size = int(ends.max(initial=-1)) + 1
    if size <= len(seen):
        return seen
    wider = np.zeros(size, np.bool_)
    wider[: len(seen)] = seen
    return wider


def _unseen(seen: npt.NDArray[np.bool_], ends: Numbers) -> Numbers:
    """The distinct numbers that were not seen, ascending."""
    if _SPARSE_FACTOR * len(ends) < len(seen):
        return distinct_sorted(ends[~seen.take(ends)])
    is_reached = np.zeros(len(seen), np.bool_)
    is_reached[ends] = True
    is_reached &= ~seen
    return np.flatnonzero(is_reached).astype(np.int32)

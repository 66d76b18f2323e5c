"""Where traversals lead: one hop over all steps together, or several by shortest distance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from omnigraph.execution.batch import BoundEdges
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.node_guard import NodeGuard, build_node_guard
from omnigraph.execution.sorted_arrays import (
    NO_DENSE_IDS,
    NO_ROW_INDICES,
    Pairs,
    is_among,
    pack_pairs,
    sort_distinct,
    sort_distinct_pairs,
    split_by_counts,
    unpack_pairs,
)
from omnigraph.execution.sources.graph_source import (
    DenseIds,
    Edges,
    NeighbourEdges,
    Neighbours,
    RowIndices,
)
from omnigraph.execution.sources.topology.adjacency_lists import Adjacency
from omnigraph.execution.sources.type_set_source import connect_ends
from omnigraph.query.logical_plan import Expand
from omnigraph.schema.type_sets import is_type_set

# What a pair costs while it is made: the pair, its place, its end, and a copy to sort.
PAIR_BYTES = 32
# Pairs that a hop makes between two looks at the budget: about 20 milliseconds.
_PAIRS_AT_ONCE = 2**18
# Fewer ends than this part of the nodes are sorted; more are marked in a bitmap.
_SPARSE_FACTOR = 64


@dataclass(frozen=True)
class DirectedEdges:
    """Edges of one type, walked in one direction; `member` is their place among the steps."""

    member: int
    edges: Edges
    is_reversed: bool
    # The other direction of an undirected step, which must not give a loop again.
    is_return: bool = False
    # Whether both ends of the edges are of one type.
    is_symmetric: bool = False

    def count_neighbours(self, nodes: DenseIds) -> RowIndices | None:
        """How many neighbours each node has, if the edges know without reading anything."""
        known = self.adjacency
        return None if known is None else known.count_neighbours(nodes).astype(np.int64)

    def count_edges(self, nodes: DenseIds) -> RowIndices | None:
        """How many edges each node has, if the edges know without reading anything."""
        offsets = self._offsets
        if offsets is None:
            return None
        return (offsets[1:].take(nodes) - offsets.take(nodes)).astype(np.int64)

    @cached_property
    def adjacency(self) -> Adjacency | None:
        """All neighbours, if the source holds them."""
        # Only some sources hold all neighbours; an attribute is looked up faster than a protocol.
        adjacency = getattr(self.edges, "get_adjacency", None)
        return None if adjacency is None else adjacency(self.is_reversed)

    @cached_property
    def _offsets(self) -> npt.NDArray[np.int64] | None:
        edge_lists = getattr(self.edges, "get_edge_lists", None)
        # Lists with changes on top of them have no offsets.
        return (
            None if edge_lists is None else getattr(edge_lists(self.is_reversed), "offsets", None)
        )

    def count_incident(
        self, nodes: DenseIds, rows: RowIndices | None, guard: NodeGuard | None
    ) -> int:
        """How many edges are at nodes on either side, a loop once; each for so many rows."""
        found = self.edges.expand_edges(nodes, is_reversed=self.is_reversed)
        places = found.start_indices
        if guard is not None:
            places = places[guard.evaluate_mask(found.ends)]
        if self.is_symmetric:
            others = self.edges.expand_edges(nodes, is_reversed=not self.is_reversed)
            is_counted = others.ends != nodes.take(others.start_indices)
            if guard is not None:
                is_counted &= guard.evaluate_mask(others.ends)
            places = np.concatenate([places, others.start_indices[is_counted]])
        return len(places) if rows is None else int(rows.take(places).sum())


@dataclass(frozen=True, slots=True)
class Traversal:
    """The edges of a traversal, to be walked from its source."""

    context: ExecutionContext
    types: tuple[str, ...]
    directions: tuple[DirectedEdges, ...]
    minimum: int
    maximum: int
    is_selection: bool
    # The nodes that may be passed and counted; all of them if None.
    guard: NodeGuard | None = None

    @property
    def is_single(self) -> bool:
        """Whether every match is one hop."""
        return self.maximum == 1 <= self.minimum

    def count_neighbours(self, nodes: DenseIds) -> RowIndices | None:
        """How many nodes are one hop away from each node, or a few more; None if unknown."""
        return _sum_counts(way.count_neighbours(nodes) for way in self.directions)

    def count_edges(self, nodes: DenseIds) -> RowIndices | None:
        """How many edges are at each node, or a few more; None if unknown."""
        return _sum_counts(way.count_edges(nodes) for way in self.directions)

    def find_reachable(self, starts: DenseIds, rows: RowIndices | None = None) -> Neighbours:
        """The distinct nodes within the bounds of each start, ordered by place, then by end.

        `rows` says how many rows of the query each start stands for; None is one each.
        """
        if self.minimum > self.maximum or not len(starts):
            return Neighbours(NO_ROW_INDICES, NO_DENSE_IDS)
        if self.is_single:
            self.count_work(starts, rows)
            return self._expand_hop(starts)
        if len(starts) == 1:
            # Each hop is ascending, which a stable sort takes as it is.
            ends = np.sort(self.find_around(starts, rows), kind="stable")
            return Neighbours(np.zeros(len(ends), np.int64), ends)
        return self._find_around_each(starts, rows)

    def expand_edges(self, starts: DenseIds) -> tuple[Neighbours, BoundEdges]:
        """Every edge at each start; an undirected loop only once."""
        counts = self.count_edges(starts)
        if counts is None:
            # A bound from below: parallel edges are rare.
            counts = self.count_neighbours(starts)
        if counts is not None:
            self.context.budget.require_memory(PAIR_BYTES * int(counts.sum()))
        parts = [self._expand_direction(way, starts) for way in self.directions]
        if len(parts) == 1:
            (found,) = parts
            members = np.zeros(len(found.ends), np.int16)
            return Neighbours(found.start_indices, found.ends), BoundEdges(
                self.types, members, found.edges
            )
        if not parts:
            none = BoundEdges(self.types, np.zeros(0, np.int16), NO_DENSE_IDS)
            return Neighbours(NO_ROW_INDICES, NO_DENSE_IDS), none
        places, ends, edges = (np.concatenate(each) for each in zip(*parts, strict=True))
        members = np.repeat(
            np.array([way.member for way in self.directions], np.int16),
            [len(part.ends) for part in parts],
        )
        return Neighbours(places, ends), BoundEdges(self.types, members, edges)

    def _expand_direction(self, way: DirectedEdges, starts: DenseIds) -> NeighbourEdges:
        found = way.edges.expand_edges(starts, is_reversed=way.is_reversed)
        if not way.is_return:
            return found
        is_kept = found.ends != starts.take(found.start_indices)
        return NeighbourEdges(*(each[is_kept] for each in found))

    def count_work(self, nodes: DenseIds, rows: RowIndices | None = None) -> None:
        """Count the edges that a selection looks at from nodes, each for so many rows."""
        if not self.is_selection:
            return
        budget = self.context.budget
        for way in self.directions:
            if way.is_return:
                continue
            # A degree counts edges to hidden nodes too.
            least = way.count_neighbours(nodes) if self.guard is None else None
            known = 0 if least is None else _count_weighted(least, rows)
            # What a bound from below refuses need not be counted exactly.
            if known > budget.work_left:
                budget.spend_work(known)
            budget.spend_work(way.count_incident(nodes, rows, self.guard))

    # ---- one hop ----

    def _expand_hop(self, nodes: DenseIds, *, is_distinct: bool = False) -> Neighbours:
        found = self._find_neighbours(nodes, is_distinct=is_distinct)
        if self.guard is None:
            return found
        seen = self.guard.evaluate_mask(found.ends)
        return Neighbours(found.start_indices[seen], found.ends[seen])

    def _find_neighbours(self, nodes: DenseIds, *, is_distinct: bool) -> Neighbours:
        self._require_memory(nodes, is_distinct=is_distinct)
        if len(self.directions) == 1:
            return self.directions[0].edges.expand_neighbours(
                nodes, is_reversed=self.directions[0].is_reversed
            )
        if not self.directions:
            return Neighbours(NO_ROW_INDICES, NO_DENSE_IDS)
        parts = [
            way.edges.expand_neighbours(nodes, is_reversed=way.is_reversed)
            for way in self.directions
        ]
        return unpack_pairs(
            sort_distinct_pairs(np.concatenate([pack_pairs(*part) for part in parts]))
        )

    def _require_memory(self, nodes: DenseIds, *, is_distinct: bool) -> None:
        """Refuse a hop whose pairs do not fit the memory of the query."""
        budget = self.context.budget
        known = [way.adjacency for way in self.directions if way.adjacency is not None]
        most = sum(
            each.edge_count if is_distinct else each.degree_max * len(nodes) for each in known
        )
        if budget.has_room(PAIR_BYTES * most):
            return
        degrees = self.count_neighbours(nodes)
        if degrees is not None:
            budget.require_memory(PAIR_BYTES * int(degrees.sum()))

    # ---- several hops ----

    def find_around(self, start: DenseIds, rows: RowIndices | None = None) -> DenseIds:
        """The nodes within the bounds of one start, each once: what was seen is a bitmap."""
        if self.minimum > self.maximum:
            return NO_DENSE_IDS
        sizes = [way.adjacency.size for way in self.directions if way.adjacency is not None]
        seen = np.zeros(max(int(start[0]) + 1, *sizes, 1), np.bool_)
        seen[start] = True
        kept: list[DenseIds] = [] if self.minimum else [start]
        frontier = start
        for hop in range(1, self.maximum + 1):
            self.context.budget.check_interrupts()
            self.count_work(frontier, None if rows is None else rows.repeat(len(frontier)))
            ends = self._expand_hop(frontier, is_distinct=True).ends
            if hop == 1 and self.minimum == 1 and np.any(ends == start[0]):
                kept.append(start)
            if not sizes:
                seen = _grow_bitmap(seen, ends)
            frontier = _select_unseen(seen, ends)
            if hop >= self.minimum:
                kept.append(frontier)
            if not len(frontier):
                break
            seen[frontier] = True
        return np.concatenate(kept) if kept else NO_DENSE_IDS

    def _find_around_each(self, starts: DenseIds, rows: RowIndices | None) -> Neighbours:
        """The nodes around many starts: what was seen is sorted pairs of start and node."""
        budget = self.context.budget
        frontier = Neighbours(np.arange(len(starts)), starts)
        seen = pack_pairs(*frontier)
        kept: list[Pairs] = [] if self.minimum else [seen]
        for hop in range(1, self.maximum + 1):
            budget.check_interrupts()
            self.count_work(
                frontier.ends, None if rows is None else rows.take(frontier.start_indices)
            )
            pairs = self._expand_pairs(frontier, None if hop == 1 else seen)
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
            frontier = unpack_pairs(fresh)
        if not kept:
            return Neighbours(NO_ROW_INDICES, NO_DENSE_IDS)
        together = np.concatenate(kept)
        together.sort(kind="stable")
        return unpack_pairs(together)

    def _expand_pairs(self, frontier: Neighbours, seen: Pairs | None) -> Pairs:
        """The distinct pairs one hop on, without those that were seen; some starts at a time."""
        budget = self.context.budget
        parts: list[Pairs] = []
        counts = self.count_neighbours(frontier.ends)
        for first, last in split_by_counts(counts, len(frontier.ends), _PAIRS_AT_ONCE):
            budget.check_interrupts()
            found = self._expand_hop(frontier.ends[first:last])
            budget.require_memory(PAIR_BYTES * (len(found.ends) + sum(map(len, parts))))
            places = frontier.start_indices[first:last].take(found.start_indices)
            pairs = sort_distinct_pairs(pack_pairs(places, found.ends))
            parts.append(pairs if seen is None else pairs[~is_among(pairs, seen)])
        return parts[0] if len(parts) == 1 else sort_distinct_pairs(np.concatenate(parts))


def traversal_of(op: Expand, context: ExecutionContext, *, is_backwards: bool = False) -> Traversal:
    """The edges of a traversal, or of the same one from its target."""
    ways: list[DirectedEdges] = []
    is_symmetric = op.source_type == op.target_type
    has_sets = is_type_set(op.source_type) or is_type_set(op.target_type)
    for member, step in enumerate(op.steps):
        edges: Edges = context.source.get_edges(step.edge_type)
        if has_sets:
            edge_type = context.view.catalog.edges[step.edge_type]
            ends = (op.target_type, op.source_type) if is_backwards else _types_of(op)
            edges = connect_ends(context.source, edge_type, from_type=ends[0], to_type=ends[1])
            is_symmetric = edge_type.is_symmetric
        is_reversed = step.is_reversed != is_backwards
        ways.append(DirectedEdges(member, edges, is_reversed, is_symmetric=is_symmetric))
        if op.is_undirected:
            ways.append(DirectedEdges(member, edges, not is_reversed, is_return=True))
    # Between two types there is nothing after the first hop.
    maximum = op.maximum if op.source_type == op.target_type else 1
    types = tuple(step.edge_type for step in op.steps)
    end_type = op.source_type if is_backwards else op.target_type
    guard = build_node_guard(context, end_type, op.guards)
    return Traversal(context, types, tuple(ways), op.minimum, maximum, op.is_selection, guard)


def _types_of(op: Expand) -> tuple[str, str]:
    return op.source_type, op.target_type


def _sum_counts(parts: Iterable[RowIndices | None]) -> RowIndices | None:
    total: RowIndices | None = None
    for part in parts:
        if part is None:
            return None
        total = part if total is None else total + part
    return total


def _count_weighted(counts: RowIndices, rows: RowIndices | None) -> int:
    return int(counts.sum() if rows is None else (counts * rows).sum())


def _grow_bitmap(seen: npt.NDArray[np.bool_], ends: DenseIds) -> npt.NDArray[np.bool_]:
    """The bitmap, long enough for some numbers."""
    size = int(ends.max(initial=-1)) + 1
    if size <= len(seen):
        return seen
    wider = np.zeros(size, np.bool_)
    wider[: len(seen)] = seen
    return wider


def _select_unseen(seen: npt.NDArray[np.bool_], ends: DenseIds) -> DenseIds:
    """The distinct numbers that were not seen, ascending."""
    if _SPARSE_FACTOR * len(ends) < len(seen):
        return sort_distinct(ends[~seen.take(ends)])
    is_reached = np.zeros(len(seen), np.bool_)
    is_reached[ends] = True
    is_reached &= ~seen
    return np.flatnonzero(is_reached).astype(np.int32)

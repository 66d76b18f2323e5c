"""Paths between the nodes of rows: each pair of ends is searched once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import (
    Batch,
    KeptVariables,
    add_variables,
    count_row_bytes,
    prune_variables,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.path_enumeration import PathEnds, enumerate_paths, rank_paths
from omnigraph.execution.operators.path_search import (
    Depths,
    Meeting,
    Sphere,
    search_around,
    search_between,
    search_from_one_side,
)
from omnigraph.execution.operators.path_tracing import (
    FoundPaths,
    make_single_paths,
    rank_within,
    trace_paths,
)
from omnigraph.execution.operators.path_walks import PathWalks, States
from omnigraph.execution.sorted_arrays import expand_runs, find_distinct, pack_pairs, unpack_pairs
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.query.ast import PathSelector
from omnigraph.query.logical_plan import PathExpand
from omnigraph.rows.path_columns import split_lists

# From so many pairs for each end on one side, a search around those ends costs less.
_PAIRS_PER_END: Final = 32
# Pairs that are searched from both ends at once, so that what is seen fits the caches.
_PAIRS_AT_ONCE: Final = 4_096
# States of a search around several nodes at once.
_STATES_AT_ONCE: Final = 2**23
_ROW_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class _Found:
    """Paths by pair: their lengths, their places among those of their ends, and their steps."""

    pairs: RowIndices
    lengths: Depths
    ranks: RowIndices
    lists: pa.ListArray | None


class PathOperator:
    """Each row with the shortest paths between two of its nodes, or to nodes that it binds."""

    def __init__(self, op: PathExpand, context: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._context = context
        self._kept = kept
        self._walks = PathWalks(op, context)
        self._is_traced = kept is None or op.variable in kept or op.is_all

    def estimate_fan_out(self, batch: Batch) -> RowIndices | None:
        """At most as many rows as there are nodes to lead to."""
        if self._op.target_is_bound:
            return None
        nodes = self._context.source.get_nodes(self._op.target_type).count
        return np.full(batch.num_rows, max(nodes, 1), np.int64)

    def run(self, batch: Batch) -> Batch:
        """The rows with the paths, and with the node that they lead to."""
        op = self._op
        sources = batch.nodes[op.source]
        if op.target_is_bound:
            pairs, at = np.unique(
                pack_pairs(sources.astype(np.int64), batch.nodes[op.target]), return_inverse=True
            )
            starts, ends = unpack_pairs(pairs)
            return self._bind_rows(batch, self._find_between(starts.astype(np.int32), ends), at)
        around, at = find_distinct(sources)
        owners, reached, found = self._find_around(around)
        # Rows have a source; each of its ends is a pair.
        counts = np.bincount(owners, minlength=len(around))
        firsts = np.cumsum(counts) - counts
        rows, within = expand_runs(counts.take(at))
        self._context.budget.require_memory(len(rows) * _ROW_BYTES)
        pairs = firsts.take(at).take(rows) + within
        return self._bind_rows(batch, found, pairs, rows=rows, ends=reached)

    def _bind_rows(
        self,
        batch: Batch,
        found: _Found,
        pairs: RowIndices,
        *,
        rows: RowIndices | None = None,
        ends: DenseIds | None = None,
    ) -> Batch:
        """Rows of which each has a pair, with each path of it."""
        counts = np.bincount(found.pairs, minlength=int(pairs.max(initial=-1)) + 1)
        firsts = np.cumsum(counts) - counts
        places, within = expand_runs(counts.take(pairs))
        chosen = firsts.take(pairs).take(places) + within
        before = prune_variables(batch, self._kept)
        self._context.budget.require_memory(
            len(places) * (count_row_bytes(before) + _ROW_BYTES + self._count_path_bytes(found))
        )
        op = self._op
        values = {
            op.length: pa.array(found.lengths.take(chosen), pa.int64()),
            op.rank: pa.array(found.ranks.take(chosen), pa.int64()),
        }
        if found.lists is not None:
            values[op.variable] = found.lists.take(pa.array(chosen))
        nodes = {} if ends is None else {op.target: ends.take(pairs.take(places))}
        taken = before.take(places if rows is None else rows.take(places))
        return add_variables(taken, nodes=nodes, values=values, kept=self._kept)

    def _count_path_bytes(self, found: _Found) -> int:
        if found.lists is None:
            return 0
        nbytes: int = found.lists.nbytes
        return nbytes // max(len(found.lists), 1)

    # ---- what is reached ----

    def _find_around(self, starts: DenseIds) -> tuple[RowIndices, DenseIds, _Found]:
        """The nodes within the bounds of each start, as pairs by start, and the paths to them."""
        op, walks = self._op, self._walks
        states = walks.make_states(np.arange(len(starts)), op.source_type, starts)
        if op.selector is PathSelector.ALL:
            return self._enumerate_around(states, starts)
        total = sum(self._context.source.get_nodes(name).count for name in walks.node_types)
        at_once = max(_STATES_AT_ONCE // max(total, 1), 1)
        owners = [np.zeros(0, np.int64)]
        ends = [np.zeros(0, np.int32)]
        parts: list[_Found] = []
        pairs = 0
        for first in range(0, len(starts), at_once):
            some = states[first : first + at_once]
            some = walks.move_states(some, np.arange(len(some)))
            meeting = self._search_around(some)
            assert meeting.ahead is not None
            own = meeting.ahead.owners
            assert own is not None
            traced = self._trace(walks.move_states(some.take(own), np.arange(len(own))), meeting)
            parts.append(replace(traced, pairs=traced.pairs + pairs))
            owners.append(own + first)
            ends.append(walks.numbers_of(meeting.states))
            pairs += len(own)
        return self._add_closed(starts, owners, ends, parts)

    def _add_closed(
        self,
        starts: DenseIds,
        owners: list[RowIndices],
        ends: list[DenseIds],
        parts: list[_Found],
    ) -> tuple[RowIndices, DenseIds, _Found]:
        """All pairs by start, also those of a start and itself, and their paths."""
        op, own = self._op, np.arange(len(starts))
        if op.source_type == op.target_type and op.minimum <= 1:
            parts.append(self._find_closed(own + sum(map(len, owners)), starts))
            owners.append(own)
            ends.append(starts)
        return _sort_by_owner(np.concatenate(owners), np.concatenate(ends), _join_found(parts))

    def _enumerate_around(
        self, states: States, starts: DenseIds
    ) -> tuple[RowIndices, DenseIds, _Found]:
        """Every path from starts, as a pair of its own."""
        op, walks = self._op, self._walks
        ends = PathEnds(None, op.target_type)
        found, reached = enumerate_paths(walks, states, ends, (max(op.minimum, 1), op.maximum))
        owners, numbers = found.pairs, walks.numbers_of(reached)
        groups = np.unique(pack_pairs(owners, numbers), return_inverse=True)[1]
        every = np.arange(len(owners))
        paths = self._rank_all(replace(found, pairs=every), groups)
        return self._add_closed(starts, [owners], [numbers], [paths])

    def _rank_all(self, paths: FoundPaths, groups: RowIndices) -> _Found:
        """Paths with their places among those of their group, if anything asks for them."""
        is_ranked = self._kept is None or self._op.rank in self._kept
        ranks = rank_paths(self._walks, paths, groups) if is_ranked else np.zeros_like(groups)
        lengths = split_lists(paths.lists)[1] // 2
        return _Found(paths.pairs, lengths, ranks, paths.lists)

    def _search_around(self, starts: States) -> Meeting:
        """Each node of the type of the target around starts, as a pair with its start."""
        op, walks = self._op, self._walks
        sphere = search_around(walks, starts, op.maximum)
        is_wanted = (sphere.depths >= max(op.minimum, 1)) & walks.are_of_type(
            sphere.states, op.target_type
        )
        found, depths = sphere.states[is_wanted], sphere.depths[is_wanted]
        owners = walks.places_of(found)
        states = walks.move_states(found, np.arange(len(found)))
        ahead = Sphere(walks, sphere.states, sphere.depths, owners)
        return Meeting(depths, states, depths, ahead, None)

    # ---- paths between pairs ----

    def _find_between(self, sources: DenseIds, targets: DenseIds) -> _Found:
        """The paths between pairs of nodes."""
        op, walks = self._op, self._walks
        is_same = np.zeros(len(sources), np.bool_)
        if op.source_type == op.target_type:
            is_same = sources == targets
        closed, apart = np.flatnonzero(is_same), np.flatnonzero(~is_same)
        parts = [self._find_closed(closed, sources.take(closed))]
        places = np.arange(len(apart))
        starts = walks.make_states(places, op.source_type, sources.take(apart))
        ends = walks.make_states(places, op.target_type, targets.take(apart))
        if op.selector is PathSelector.ALL:
            bounds = (max(op.minimum, 1), op.maximum)
            every, _ = enumerate_paths(walks, starts, PathEnds(ends, op.target_type), bounds)
            parts.append(self._rank_all(replace(every, pairs=apart.take(every.pairs)), every.pairs))
            return _join_found(parts)
        counts = [len(np.unique(walks.nodes_of(each))) for each in (starts, ends)]
        side = int(counts[1] < counts[0])
        is_one_sided = _PAIRS_PER_END * counts[side] <= len(apart)
        step = len(apart) if is_one_sided else _PAIRS_AT_ONCE
        for first in range(0, len(apart), max(step, 1)):
            some = [
                walks.move_states(part, np.arange(len(part)))
                for part in (starts[first : first + step], ends[first : first + step])
            ]
            if is_one_sided:
                meeting = search_from_one_side(
                    walks, (some[0], some[1]), op.maximum, is_backwards=bool(side)
                )
            else:
                meeting = search_between(walks, (some[0], some[1]), op.maximum)
            found = self._trace(some[0], meeting)
            parts.append(replace(found, pairs=apart.take(found.pairs + first)))
        return _join_found(parts)

    def _trace(self, starts: States, meeting: Meeting) -> _Found:
        """The paths of pairs whose distances are known."""
        op, walks = self._op, self._walks
        if not self._is_traced:
            pairs = np.flatnonzero(meeting.distances >= max(op.minimum, 1))
            nothing = np.zeros(len(pairs), np.int64)
            return _Found(pairs, meeting.distances.take(pairs), nothing, None)
        distances = np.where(meeting.distances >= op.minimum, meeting.distances, -1)
        parts = []
        for first in range(0, len(distances), _PAIRS_AT_ONCE):
            part = meeting.select_pairs(walks, first, first + _PAIRS_AT_ONCE)
            some = starts[first : first + _PAIRS_AT_ONCE]
            some = walks.move_states(some, np.arange(len(some)))
            wanted = distances[first : first + _PAIRS_AT_ONCE]
            paths = trace_paths(walks, some, replace(part, distances=wanted), is_all=op.is_all)
            lengths = wanted.take(paths.pairs)
            parts.append(_build_found(paths.pairs + first, paths, lengths, len(distances)))
        return _join_found(parts)

    def _find_closed(self, pairs: RowIndices, nodes: DenseIds) -> _Found:
        """Paths from nodes to themselves: without an edge, or over a loop."""
        op, walks = self._op, self._walks
        states = walks.make_states(np.arange(len(nodes)), op.source_type, nodes)
        if op.minimum == 0:
            return _build_found(pairs, make_single_paths(walks, states, None), 0, len(nodes))
        if op.minimum > 1:
            states = states[:0]
        loops = walks.expand_edges(states, lambda each: each.states == states.take(each.parents))
        walked = walks.choose_edges(loops, is_all=op.is_all)
        paths = make_single_paths(walks, states, walked)
        return _build_found(pairs.take(paths.pairs), paths, 1, len(nodes))


def _build_found(pairs: RowIndices, paths: FoundPaths, lengths: Depths | int, count: int) -> _Found:
    """Paths, those of one pair after each other, with the numbers of their pairs."""
    ranks = rank_within(paths.pairs, count)
    filled = np.array(np.broadcast_to(np.asarray(lengths, np.int64), len(ranks)))
    return _Found(pairs, filled, ranks, paths.lists)


def _join_found(parts: Sequence[_Found]) -> _Found:
    """Paths of several searches by pair."""
    if not parts:
        nothing = np.zeros(0, np.int64)
        return _Found(nothing, nothing, nothing, pa.array([], pa.list_(pa.int64())))
    pairs = np.concatenate([each.pairs for each in parts])
    order = np.argsort(pairs, kind="stable")
    lengths = np.concatenate([each.lengths for each in parts]).take(order)
    ranks = np.concatenate([each.ranks for each in parts]).take(order)
    known = [each.lists for each in parts if each.lists is not None]
    is_traced = len(known) == len(parts)
    lists = pa.concat_arrays(known).take(pa.array(order)) if is_traced else None
    return _Found(pairs.take(order), lengths, ranks, lists)


def _sort_by_owner(
    owners: RowIndices, ends: DenseIds, found: _Found
) -> tuple[RowIndices, DenseIds, _Found]:
    """Pairs in the order of their starts, and their paths."""
    order = np.argsort(owners, kind="stable")
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    moved = replace(found, pairs=numbers.take(found.pairs))
    return owners.take(order), ends.take(order), _join_found([moved])

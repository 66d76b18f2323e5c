"""Traversals to nodes that are not bound yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from omnigraph.execution.batch import (
    Batch,
    BoundEdges,
    KeptVariables,
    add_variables,
    concatenate_batches,
    count_row_bytes,
    filter_rows,
    prune_variables,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.filter_operator import NodeFilter
from omnigraph.execution.operators.traversal_hops import PAIR_BYTES, Traversal, traversal_of
from omnigraph.execution.sorted_arrays import (
    count_occurrences,
    expand_runs,
    find_distinct,
    is_among,
    pack_pairs,
)
from omnigraph.execution.sources.graph_source import DenseIds, Neighbours, RowIndices
from omnigraph.query.logical_plan import Expand, Operator
from omnigraph.query.tree_walk import used_variables_of, variables_of
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.row_filter import Mask

# What a match costs beside the variables of its row: its place, its end, and its edge.
_MATCH_BYTES = 20

# From how many starts pairs over several hops are made at once.
_STARTS_MAX = 1024

# Fewer neighbours than this are not worth a look at the other side.
_SIDES_MIN = 1024

# What a start costs when its neighbours must be read from a table.
_UNKNOWN_DEGREE = 64


class ExpandOperator:
    """Each row with each node that its source reaches, or with each edge there."""

    def __init__(self, op: Expand, context: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._context = context
        self._kept = kept
        self._hops = traversal_of(op, context)
        own, self._others = _split_conditions(op)
        self._conditions = NodeFilter(context, op.target, own) if own else None

    def estimate_fan_out(self, batch: Batch) -> RowIndices:
        """How many matches each source has; an estimate for several hops, or if it is unknown."""
        sources = batch.nodes[self._op.source]
        counts = None
        if self._op.edge_variable is not None:
            counts = self._hops.count_edges(sources)
        if counts is None:
            counts = self._hops.count_neighbours(sources)
        if counts is None:
            counts = np.full(len(sources), self._estimate_mean_degree(), np.int64)
        if self._hops.is_single:
            return counts
        most = self._count_targets()
        # From a mean degree of two on, so many hops reach every node.
        hops = min(max(self._hops.maximum - 1, 0), most.bit_length())
        growth = min(self._estimate_mean_degree() ** hops, most)
        reached: RowIndices = np.minimum(counts * growth, most)
        # A start that counts itself has at least that match.
        return reached if self._hops.minimum else np.maximum(reached, 1)

    def run(self, batch: Batch) -> Batch:
        """The rows with the target, and with the edge if it is bound."""
        op = self._op
        sources = batch.nodes[op.source]
        edges: dict[str, BoundEdges] = {}
        if op.edge_variable is not None:
            found, edges[op.edge_variable] = self._expand_edges(sources)
        else:
            found = self._expand_neighbours(sources)
        return self._bind_rows(batch, found, edges)

    def _expand_neighbours(self, sources: DenseIds) -> Neighbours:
        hops = self._hops
        if hops.is_single and len(hops.directions) <= 1 and not hops.is_selection:
            return self._filter_targets(hops.find_reachable(sources))
        # What costs more than a look-up is done once for each node, not for each row.
        starts, at = find_distinct(sources)
        found = self._filter_targets(hops.find_reachable(starts, count_occurrences(at, starts)))
        if len(sources) == 1:
            return found
        counts = np.bincount(found.start_indices, minlength=len(starts))
        firsts = np.cumsum(counts) - counts
        row_counts = counts.take(at)
        self._require_memory(int(row_counts.sum()), 0)
        places, within = expand_runs(row_counts)
        return Neighbours(places, found.ends.take(firsts.take(at).take(places) + within))

    def _filter_targets(self, found: Neighbours) -> Neighbours:
        if self._conditions is None:
            return found
        mask = self._conditions.evaluate_mask(found.ends)
        return Neighbours(found.start_indices[mask], found.ends[mask])

    def _expand_edges(self, sources: DenseIds) -> tuple[Neighbours, BoundEdges]:
        if self._hops.is_selection:
            starts, at = find_distinct(sources)
            self._hops.count_work(starts, count_occurrences(at, starts))
        found, edges = self._hops.expand_edges(sources)
        if self._conditions is None:
            return found, edges
        kept = np.flatnonzero(self._conditions.evaluate_mask(found.ends))
        return Neighbours(found.start_indices.take(kept), found.ends.take(kept)), edges.take(kept)

    def _bind_rows(self, batch: Batch, found: Neighbours, edges: dict[str, BoundEdges]) -> Batch:
        op = self._op
        kept = None if self._others else self._kept
        before = prune_variables(batch, kept)
        self._require_memory(len(found.ends), count_row_bytes(before))
        rows = before.take(found.start_indices)
        rows = add_variables(rows, nodes={op.target: found.ends}, edges=edges, kept=kept)
        if self._others:
            mask = self._context.evaluate_mask(rows, self._others)
            rows = filter_rows(prune_variables(rows, self._kept), mask)
        return rows

    def _require_memory(self, rows: int, bytes_each: int) -> None:
        self._context.budget.require_memory(rows * (bytes_each + _MATCH_BYTES))

    def _estimate_mean_degree(self) -> int:
        edges = sum(way.edges.count for way in self._hops.directions)
        return 1 + edges // max(1, self._context.source.get_nodes(self._op.source_type).count)

    def _count_targets(self) -> int:
        return self._context.source.get_nodes(self._op.target_type).count


def _split_conditions(op: Expand) -> tuple[list[Expr], list[Expr]]:
    """The conditions on the target alone, and those that read other variables too."""
    own = [each for each in op.conditions if variables_of(each) <= {op.target}]
    return own, [each for each in op.conditions if each not in own]


class CloseOperator:
    """Keeps the rows whose target is reached from their source."""

    def __init__(self, op: Expand, context: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._context = context
        self._kept = kept
        self._forwards = traversal_of(op, context)
        self._backwards = traversal_of(op, context, is_backwards=True)

    def estimate_fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows that the traversal connects."""
        mask = self._evaluate_mask(batch.nodes[self._op.source], batch.nodes[self._op.target])
        if self._op.conditions:
            mask &= self._context.evaluate_mask(batch, self._op.conditions)
        return filter_rows(prune_variables(batch, self._kept), mask)

    def _evaluate_mask(self, sources: DenseIds, targets: DenseIds) -> Mask:
        starts, at = find_distinct(sources)
        hops, ends = self._forwards, targets
        # From the other side if that is less; a selection's work is that of its own side.
        if not hops.is_selection and (cost := _estimate_cost(hops, starts)) > _SIDES_MIN:
            others, other_at = find_distinct(targets)
            if _estimate_cost(self._backwards, others) < cost:
                hops, starts, at, ends = self._backwards, others, other_at, sources
        if hops.is_single or len(starts) <= _STARTS_MAX:
            found = hops.find_reachable(starts, count_occurrences(at, starts))
            return is_among(pack_pairs(at, ends), pack_pairs(*found))
        mask = np.zeros(len(at), np.bool_)
        for first, rows_there in _group_by_start(at, len(starts)):
            some = starts[first : first + _STARTS_MAX]
            places = at.take(rows_there) - first
            found = hops.find_reachable(some, count_occurrences(places, some))
            pairs = pack_pairs(places, ends.take(rows_there))
            mask[rows_there] = is_among(pairs, pack_pairs(*found))
        return mask


class IntersectOperator:
    """Each row with each node that both of two sources reach; each row from the side of fewer.

    A hub on one side is not walked around where the other side has few neighbours.
    """

    def __init__(
        self, op: Expand, closing: Expand, context: ExecutionContext, kept: KeptVariables
    ) -> None:
        used = used_variables_of(op) | used_variables_of(closing) | {op.target}
        between = None if kept is None else kept | used
        first = replace(closing, target_is_bound=False, conditions=op.conditions)
        last = replace(op, target_is_bound=True, conditions=closing.conditions)
        self._ways = [
            (ExpandOperator(each, context, between), CloseOperator(other, context, kept))
            for each, other in ((op, closing), (first, last))
        ]

    def estimate_fan_out(self, batch: Batch) -> RowIndices:
        """How many neighbours the side of fewer has."""
        fewest: RowIndices = self._count_sides(batch).min(axis=0)
        return fewest

    def run(self, batch: Batch) -> Batch:
        """The rows with the target."""
        sides = self._count_sides(batch).argmin(axis=0)
        parts = []
        for number, (expand, close) in enumerate(self._ways):
            if number == 0 or np.any(sides == number):
                rows = expand.run(filter_rows(batch, sides == number))
                parts.append(close.run(rows))
        return concatenate_batches(parts)

    def _count_sides(self, batch: Batch) -> npt.NDArray[np.int64]:
        return np.stack([expand.estimate_fan_out(batch) for expand, _ in self._ways])

    @staticmethod
    def is_for(op: Operator, closing: Operator) -> bool:
        """Whether a traversal binds a node that the next one reaches from another source."""
        return (
            isinstance(op, Expand)
            and isinstance(closing, Expand)
            and not op.target_is_bound
            and closing.target_is_bound
            and closing.target == op.target != closing.source
            and all(map(_is_plain, (op, closing)))
        )


def _is_plain(op: Expand) -> bool:
    is_single = op.minimum == op.maximum == 1
    return is_single and op.edge_variable is None and not op.is_selection


class CloseEdgesOperator:
    """Each row with each edge between its source and its target."""

    def __init__(self, op: Expand, context: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._context = context
        self._kept = kept
        self._hops = traversal_of(op, context)

    def estimate_fan_out(self, _batch: Batch) -> None:
        """Mostly at most one each: parallel edges are rare."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows with the edge."""
        op, kept = self._op, None if self._op.conditions else self._kept
        assert op.edge_variable is not None
        sources, targets = batch.nodes[op.source], batch.nodes[op.target]
        starts, at = find_distinct(sources)
        self._hops.count_work(starts, count_occurrences(at, starts))
        found, edges = self._hops.expand_edges(starts)
        self._context.budget.require_memory(PAIR_BYTES * len(found.ends))
        known = pack_pairs(*found)
        order = np.argsort(known, kind="stable")
        known = known.take(order)
        wanted = pack_pairs(at, targets)
        firsts = np.searchsorted(known, wanted)
        counts = np.searchsorted(known, wanted, side="right") - firsts
        before = prune_variables(batch, kept)
        self._context.budget.require_memory(
            int(counts.sum()) * (count_row_bytes(before) + PAIR_BYTES)
        )
        places, within = expand_runs(counts)
        bound = edges.take(order.take(firsts.take(places) + within))
        rows = add_variables(before.take(places), edges={op.edge_variable: bound}, kept=kept)
        if op.conditions:
            mask = self._context.evaluate_mask(rows, op.conditions)
            rows = filter_rows(prune_variables(rows, self._kept), mask)
        return rows


def _estimate_cost(hops: Traversal, starts: DenseIds) -> int:
    degrees = hops.count_neighbours(starts)
    return _UNKNOWN_DEGREE * len(starts) if degrees is None else int(degrees.sum())


def _group_by_start(at: RowIndices, count: int) -> Iterator[tuple[int, RowIndices]]:
    """Rows by ranges of their starts."""
    order = np.argsort(at, kind="stable")
    firsts = range(0, count, _STARTS_MAX)
    bounds = np.searchsorted(at.take(order), [*firsts, count])
    for number, first in enumerate(firsts):
        yield first, order[bounds[number] : bounds[number + 1]]

"""Traversals between nodes that are both bound already."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.numbers import (
    count_occurrences,
    expand_runs,
    find_distinct,
    is_among,
    pack_pairs,
)
from omnigraph.execution.pattern.hops import PAIR_BYTES, Traversal, traversal_of
from omnigraph.execution.pattern.rows import (
    KeptVariables,
    add_variables,
    count_row_bytes,
    filter_rows,
    prune_variables,
)
from omnigraph.execution.reading import ExecutionContext, Mask
from omnigraph.execution.source import DenseIds, RowIndices
from omnigraph.query.plan import Expand

# From how many starts pairs over several hops are made at once.
_STARTS_MAX = 1024
# Fewer neighbours than this are not worth a look at the other side.
_SIDES_MIN = 1024
# What a start costs when its neighbours must be read from a table.
_UNKNOWN_DEGREE = 64


class CloseOperator:
    """Keeps the rows whose target is reached from their source."""

    def __init__(self, op: Expand, reading: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._reading = reading
        self._kept = kept
        self._forwards = traversal_of(op, reading)
        self._backwards = traversal_of(op, reading, is_backwards=True)

    def estimate_fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows that the traversal connects."""
        mask = self._evaluate_mask(batch.nodes[self._op.source], batch.nodes[self._op.target])
        if self._op.conditions:
            mask &= self._reading.evaluate_mask(batch, self._op.conditions)
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


class CloseEdgesOperator:
    """Each row with each edge between its source and its target."""

    def __init__(self, op: Expand, reading: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._reading = reading
        self._kept = kept
        self._hops = traversal_of(op, reading)

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
        self._reading.budget.require_memory(PAIR_BYTES * len(found.ends))
        known = pack_pairs(*found)
        order = np.argsort(known, kind="stable")
        known = known.take(order)
        wanted = pack_pairs(at, targets)
        firsts = np.searchsorted(known, wanted)
        counts = np.searchsorted(known, wanted, side="right") - firsts
        before = prune_variables(batch, kept)
        self._reading.budget.require_memory(
            int(counts.sum()) * (count_row_bytes(before) + PAIR_BYTES)
        )
        places, within = expand_runs(counts)
        bound = edges.take(order.take(firsts.take(places) + within))
        rows = add_variables(before.take(places), edges={op.edge_variable: bound}, kept=kept)
        if op.conditions:
            mask = self._reading.evaluate_mask(rows, op.conditions)
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

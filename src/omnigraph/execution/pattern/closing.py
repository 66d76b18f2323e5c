"""Traversals between nodes that are both bound already."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.batch import Batch
from omnigraph.execution.numbers import counts_of, distinct, is_among, packed, runs
from omnigraph.execution.pattern.hops import PAIR_BYTES, Hops, hops_of
from omnigraph.execution.pattern.rows import Kept, extended, filtered, pruned, row_bytes
from omnigraph.execution.reading import Mask, Reading
from omnigraph.execution.source import Numbers, Places
from omnigraph.query.plan import Expand

# From how many starts pairs over several hops are made at once.
_STARTS_MAX = 1024
# Fewer neighbours than this are not worth a look at the other side.
_SIDES_MIN = 1024
# What a start costs when its neighbours must be read from a table.
_UNKNOWN_DEGREE = 64


class CloseStep:
    """Keeps the rows whose target is reached from their source."""

    def __init__(self, op: Expand, reading: Reading, kept: Kept) -> None:
        self._op = op
        self._reading = reading
        self._kept = kept
        self._forwards = hops_of(op, reading)
        self._backwards = hops_of(op, reading, is_backwards=True)

    def fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows that the traversal connects."""
        mask = self._mask(batch.nodes[self._op.source], batch.nodes[self._op.target])
        if self._op.conditions:
            mask &= self._reading.mask(batch, self._op.conditions)
        return filtered(pruned(batch, self._kept), mask)

    def _mask(self, sources: Numbers, targets: Numbers) -> Mask:
        starts, at = distinct(sources)
        hops, ends = self._forwards, targets
        # From the other side if that is less; a selection's work is that of its own side.
        if not hops.is_selection and (cost := _cost(hops, starts)) > _SIDES_MIN:
            others, other_at = distinct(targets)
            if _cost(self._backwards, others) < cost:
                hops, starts, at, ends = self._backwards, others, other_at, sources
        if hops.is_single or len(starts) <= _STARTS_MAX:
            found = hops.reached(starts, counts_of(at, starts))
            return is_among(packed(at, ends), packed(*found))
        mask = np.zeros(len(at), np.bool_)
        for first, rows_there in _by_start(at, len(starts)):
            some = starts[first : first + _STARTS_MAX]
            places = at.take(rows_there) - first
            found = hops.reached(some, counts_of(places, some))
            pairs = packed(places, ends.take(rows_there))
            mask[rows_there] = is_among(pairs, packed(*found))
        return mask


class CloseEdgesStep:
    """Each row with each edge between its source and its target."""

    def __init__(self, op: Expand, reading: Reading, kept: Kept) -> None:
        self._op = op
        self._reading = reading
        self._kept = kept
        self._hops = hops_of(op, reading)

    def fan_out(self, _batch: Batch) -> None:
        """Mostly at most one each: parallel edges are rare."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows with the edge."""
        op, kept = self._op, None if self._op.conditions else self._kept
        assert op.edge_variable is not None
        sources, targets = batch.nodes[op.source], batch.nodes[op.target]
        starts, at = distinct(sources)
        self._hops.count_work(starts, counts_of(at, starts))
        found, edges = self._hops.matched(starts)
        self._reading.budget.require(PAIR_BYTES * len(found.ends))
        known = packed(*found)
        order = np.argsort(known, kind="stable")
        known = known.take(order)
        wanted = packed(at, targets)
        firsts = np.searchsorted(known, wanted)
        counts = np.searchsorted(known, wanted, side="right") - firsts
        before = pruned(batch, kept)
        self._reading.budget.require(int(counts.sum()) * (row_bytes(before) + PAIR_BYTES))
        places, within = runs(counts)
        bound = edges.take(order.take(firsts.take(places) + within))
        rows = extended(before.take(places), edges={op.edge_variable: bound}, kept=kept)
        if op.conditions:
            mask = self._reading.mask(rows, op.conditions)
            rows = filtered(pruned(rows, self._kept), mask)
        return rows


def _cost(hops: Hops, starts: Numbers) -> int:
    degrees = hops.degrees(starts)
    return _UNKNOWN_DEGREE * len(starts) if degrees is None else int(degrees.sum())


def _by_start(at: Places, count: int) -> Iterator[tuple[int, Places]]:
    """Rows by ranges of their starts."""
    order = np.argsort(at, kind="stable")
    firsts = range(0, count, _STARTS_MAX)
    bounds = np.searchsorted(at.take(order), [*firsts, count])
    for number, first in enumerate(firsts):
        yield first, order[bounds[number] : bounds[number + 1]]

"""Traversals to nodes that are not bound yet."""

from __future__ import annotations

import numpy as np

from omnigraph.execution.batch import Batch, BoundEdges
from omnigraph.execution.numbers import counts_of, distinct, runs
from omnigraph.execution.pattern.conditions import NodeConditions
from omnigraph.execution.pattern.hops import hops_of
from omnigraph.execution.pattern.rows import Kept, extended, filtered, pruned, row_bytes
from omnigraph.execution.reading import Reading
from omnigraph.execution.source import Numbers, Places, Reached
from omnigraph.query.plan import Expand
from omnigraph.query.typed import Expr
from omnigraph.query.walk import variables_of

# What a match costs beside the variables of its row: its place, its end, and its edge.
_MATCH_BYTES = 20


class ExpandStep:
    """Each row with each node that its source reaches, or with each edge there."""

    def __init__(self, op: Expand, reading: Reading, kept: Kept) -> None:
        self._op = op
        self._reading = reading
        self._kept = kept
        self._hops = hops_of(op, reading)
        own, self._others = _split(op)
        self._conditions = NodeConditions(reading, op.target, own) if own else None

    def fan_out(self, batch: Batch) -> Places | None:
        """How many matches each source has; for several hops, or if nobody knows, an estimate."""
        sources = batch.nodes[self._op.source]
        counts = None
        if self._op.edge_variable is not None:
            counts = self._hops.edge_counts(sources)
        if counts is None:
            counts = self._hops.degrees(sources)
        if counts is None:
            counts = np.full(len(sources), self._mean_degree(), np.int64)
        if self._hops.is_single:
            return counts
        most = self._target_count()
        # From a mean degree of two on, so many hops reach every node.
        hops = min(self._hops.maximum - 1, most.bit_length())
        growth = min(self._mean_degree() ** hops, most)
        reached: Places = np.minimum(counts * growth, most)
        return reached

    def run(self, batch: Batch) -> Batch:
        """The rows with the target, and with the edge if it is bound."""
        op = self._op
        sources = batch.nodes[op.source]
        edges: dict[str, BoundEdges] = {}
        if op.edge_variable is not None:
            found, edges[op.edge_variable] = self._matched(sources)
        else:
            found = self._reached(sources)
        return self._bound(batch, found, edges)

    def _reached(self, sources: Numbers) -> Reached:
        hops = self._hops
        if hops.is_single and len(hops.ways) <= 1 and not hops.is_selection:
            return self._satisfying(hops.reached(sources))
        # What costs more than a look-up is done once for each node, not for each row.
        starts, at = distinct(sources)
        found = self._satisfying(hops.reached(starts, counts_of(at, starts)))
        if len(sources) == 1:
            return found
        counts = np.bincount(found.places, minlength=len(starts))
        firsts = np.cumsum(counts) - counts
        row_counts = counts.take(at)
        self._require(int(row_counts.sum()), 0)
        places, within = runs(row_counts)
        return Reached(places, found.ends.take(firsts.take(at).take(places) + within))

    def _satisfying(self, found: Reached) -> Reached:
        if self._conditions is None:
            return found
        mask = self._conditions.mask(found.ends)
        return Reached(found.places[mask], found.ends[mask])

    def _matched(self, sources: Numbers) -> tuple[Reached, BoundEdges]:
        if self._hops.is_selection:
            starts, at = distinct(sources)
            self._hops.count_work(starts, counts_of(at, starts))
        found, edges = self._hops.matched(sources)
        if self._conditions is None:
            return found, edges
        kept = np.flatnonzero(self._conditions.mask(found.ends))
        return Reached(found.places.take(kept), found.ends.take(kept)), edges.take(kept)

    def _bound(self, batch: Batch, found: Reached, edges: dict[str, BoundEdges]) -> Batch:
        op = self._op
        kept = None if self._others else self._kept
        before = pruned(batch, kept)
        self._require(len(found.ends), row_bytes(before))
        rows = before.take(found.places)
        rows = extended(rows, nodes={op.target: found.ends}, edges=edges, kept=kept)
        if self._others:
            mask = self._reading.mask(rows, self._others)
            rows = filtered(pruned(rows, self._kept), mask)
        return rows

    def _require(self, rows: int, bytes_each: int) -> None:
        self._reading.budget.require(rows * (bytes_each + _MATCH_BYTES))

    def _mean_degree(self) -> int:
        edges = sum(way.edges.count for way in self._hops.ways)
        return 1 + edges // max(1, self._reading.source.nodes(self._op.source_type).count)

    def _target_count(self) -> int:
        return self._reading.source.nodes(self._op.target_type).count


def _split(op: Expand) -> tuple[list[Expr], list[Expr]]:
    """The conditions on the target alone, and those that read other variables too."""
    own = [each for each in op.conditions if variables_of(each) <= {op.target}]
    return own, [each for each in op.conditions if each not in own]

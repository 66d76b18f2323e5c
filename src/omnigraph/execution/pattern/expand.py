"""Traversals to nodes that are not bound yet."""

from __future__ import annotations

import numpy as np

from omnigraph.execution.batch import Batch, BoundEdges
from omnigraph.execution.numbers import count_occurrences, expand_runs, find_distinct
from omnigraph.execution.pattern.conditions import NodeFilter
from omnigraph.execution.pattern.hops import traversal_of
from omnigraph.execution.pattern.rows import (
    KeptVariables,
    add_variables,
    count_row_bytes,
    filter_rows,
    prune_variables,
)
from omnigraph.execution.reading import ExecutionContext
from omnigraph.execution.source import DenseIds, Neighbours, RowIndices
from omnigraph.query.plan import Expand
from omnigraph.query.typed import Expr
from omnigraph.query.walk import variables_of

# What a match costs beside the variables of its row: its place, its end, and its edge.
_MATCH_BYTES = 20


class ExpandOperator:
    """Each row with each node that its source reaches, or with each edge there."""

    def __init__(self, op: Expand, reading: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._reading = reading
        self._kept = kept
        self._hops = traversal_of(op, reading)
        own, self._others = _split_conditions(op)
        self._conditions = NodeFilter(reading, op.target, own) if own else None

    def estimate_fan_out(self, batch: Batch) -> RowIndices | None:
        """How many matches each source has; for several hops, or if nobody knows, an estimate."""
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
        hops = min(self._hops.maximum - 1, most.bit_length())
        growth = min(self._estimate_mean_degree() ** hops, most)
        reached: RowIndices = np.minimum(counts * growth, most)
        return reached

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
            mask = self._reading.evaluate_mask(rows, self._others)
            rows = filter_rows(prune_variables(rows, self._kept), mask)
        return rows

    def _require_memory(self, rows: int, bytes_each: int) -> None:
        self._reading.budget.require_memory(rows * (bytes_each + _MATCH_BYTES))

    def _estimate_mean_degree(self) -> int:
        edges = sum(way.edges.count for way in self._hops.directions)
        return 1 + edges // max(1, self._reading.source.get_nodes(self._op.source_type).count)

    def _count_targets(self) -> int:
        return self._reading.source.get_nodes(self._op.target_type).count


def _split_conditions(op: Expand) -> tuple[list[Expr], list[Expr]]:
    """The conditions on the target alone, and those that read other variables too."""
    own = [each for each in op.conditions if variables_of(each) <= {op.target}]
    return own, [each for each in op.conditions if each not in own]

"""Scans: a first one gives the rows to start with, later ones are joined to the rows there are.

What only reads variables of the new component is matched apart, once, and not for each row that is
there already. Then the two are joined: by the values of equal expressions, by id where that finds
single nodes, or else each row with each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from omnigraph.execution.batch import (
    Batch,
    BoundEdges,
    KeptVariables,
    add_variables,
    count_row_bytes,
    prune_variables,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.filter_operator import NodeFilter
from omnigraph.execution.operators.join_keys import Equality, JoinKeys
from omnigraph.execution.sorted_arrays import NO_DENSE_IDS, expand_runs
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.query.logical_plan import Scan
from omnigraph.query.typed_tree import Expr, SystemName, SystemValue
from omnigraph.rows.comparison import to_numpy
from omnigraph.schema.type_sets import is_type_set

_NUMBER_BYTES = 4
_INDICES_BYTES = 24
# So few rows are worth a search for their values, so many times.
_NARROWED_ROWS_MAX = 64
_NARROWED_TIMES_MAX = 4


class ScanOperator:
    """The one row there is with each node of a type that satisfies the conditions."""

    def __init__(self, op: Scan, context: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._context = context
        self._kept = kept

    def estimate_fan_out(self, _batch: Batch) -> None:
        """One scan cannot be cut."""
        return

    def run(self, batch: Batch) -> Batch:
        """The nodes, ascending."""
        op, kept = self._op, self._kept
        nodes = self._context.source.get_nodes(op.type_name)
        if not op.conditions:
            self._context.budget.require_memory(nodes.count * _NUMBER_BYTES)
        found = nodes.filter_nodes(op.conditions, self._context.params) if batch.num_rows else None
        columns = {op.variable: np.zeros(0, np.int32) if found is None else found}
        return add_variables(Batch(len(columns[op.variable])), nodes=columns, kept=kept)


class LookupOperator:
    """Each row with the node whose id an expression gives, if it satisfies the conditions."""

    def __init__(
        self, op: Scan, context: ExecutionContext, equality: Equality, kept: KeptVariables
    ) -> None:
        self._op = op
        self._context = context
        self._equality = equality
        self._kept = kept
        conditions = op.conditions
        self._conditions = NodeFilter(context, op.variable, conditions) if conditions else None

    def estimate_fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows whose node there is."""
        ids = self._equality.compute_left(self._context, batch)
        places = np.flatnonzero(to_numpy(ids.is_valid()))
        found = self._context.source.get_nodes(self._op.type_name).find(ids.drop_null())
        places, found = places[found >= 0], found[found >= 0]
        if self._conditions is not None:
            mask = self._conditions.evaluate_mask(found)
            places, found = places[mask], found[mask]
        rows = prune_variables(batch, self._kept).take(places)
        return add_variables(rows, nodes={self._op.variable: found}, kept=self._kept)

    @staticmethod
    def is_for(op: Scan, equality: Equality) -> bool:
        """Whether an equality gives the id of the scanned node."""
        is_id = equality.right == SystemValue(op.variable, SystemName.ID)
        return is_id and not is_type_set(op.type_name)


class HashJoinOperator:
    """Each row with each row of another component that has the same values.

    The component is matched once, for all rows. Only while few rows come, it is matched for their
    values alone, which an index may find.
    """

    def __init__(
        self,
        context: ExecutionContext,
        variables: frozenset[str],
        component: Callable[[tuple[Expr, ...]], Batch],
        equalities: Sequence[Equality],
        *,
        kept: KeptVariables,
    ) -> None:
        self._context = context
        self._variables = variables
        self._component = component
        self._equalities = equalities
        self._kept = kept
        self._whole: _BuildSide | None = None
        self._narrow: tuple[Batch, _BuildSide] | None = None
        self._narrowed_times = 0

    def estimate_fan_out(self, batch: Batch) -> RowIndices | None:
        """How many rows each row becomes, exactly."""
        return self._count_matches(batch)[0] if batch.num_rows else None

    def run(self, batch: Batch) -> Batch:
        """The joined rows."""
        if not batch.num_rows:
            return self._make_empty_batch(batch)
        counts, codes = self._count_matches(batch)
        other = self._get_build_side(batch)
        bytes_each = count_row_bytes(batch) + count_row_bytes(other.rows) + _INDICES_BYTES
        self._context.budget.require_memory(int(counts.sum()) * bytes_each)
        places, matches = expand_runs(counts)
        if other.keys is not None:
            matches = other.keys.find_rows(codes.take(places), matches)
        rows = prune_variables(batch, self._kept).take(places)
        more = prune_variables(other.rows, self._kept).take(matches)
        return add_variables(rows, nodes=more.nodes, edges=more.edges)

    def _count_matches(self, batch: Batch) -> tuple[RowIndices, RowIndices]:
        """How many rows each row becomes, and the number of its key."""
        other = self._get_build_side(batch)
        if other.keys is None:
            codes: RowIndices = np.zeros(batch.num_rows, np.int64)
            return np.full(batch.num_rows, other.rows.num_rows, np.int64), codes
        codes = other.keys.encode_rows(batch)
        return other.keys.count_rows(codes), codes

    def _get_build_side(self, batch: Batch) -> _BuildSide:
        """The rows to join with some rows; only when these need them, as they may be many."""
        if self._whole is not None:
            return self._whole
        if self._narrow is not None and self._narrow[0] is batch:
            return self._narrow[1]
        if batch.num_rows <= _NARROWED_ROWS_MAX and self._narrowed_times < _NARROWED_TIMES_MAX:
            given = [each.build_membership(self._context, batch) for each in self._equalities]
            conditions = tuple(each for each in given if each is not None)
            if conditions:
                self._narrowed_times += 1
                self._narrow = batch, self._make_build_side(conditions)
                return self._narrow[1]
        self._whole = self._make_build_side(())
        return self._whole

    def _make_build_side(self, conditions: tuple[Expr, ...]) -> _BuildSide:
        rows = self._component(conditions)
        equalities = self._equalities
        return _BuildSide(rows, JoinKeys(self._context, equalities, rows) if equalities else None)

    def _make_empty_batch(self, batch: Batch) -> Batch:
        context = self._context
        nodes = {name: NO_DENSE_IDS for name in self._variables if name in context.nodes_of}
        edges = {
            name: BoundEdges(context.edges_of[name], np.zeros(0, np.int16), NO_DENSE_IDS)
            for name in self._variables
            if name in context.edges_of
        }
        return add_variables(
            prune_variables(batch, self._kept), nodes=nodes, edges=edges, kept=self._kept
        )


class _BuildSide(NamedTuple):
    """Rows to join with, and the rows of each key if there are keys."""

    rows: Batch
    keys: JoinKeys | None

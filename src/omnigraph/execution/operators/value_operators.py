"""Variables that are bound to values: items of lists, what an expression or a block gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.batch import (
    Batch,
    KeptVariables,
    add_variables,
    collect_batches,
    count_row_bytes,
    outer_of,
    prune_variables,
    select_variables,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.group_operator import compute_aggregate
from omnigraph.execution.operators.row_keys import evaluate_rows
from omnigraph.execution.operators.semi_join_operator import (
    BlockCounter,
    BlockRunner,
    is_row_count,
)
from omnigraph.execution.sorted_arrays import expand_runs
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.query.logical_plan import BlockColumn, Extend, Unnest
from omnigraph.query.tree_walk import chain_of, used_variables_of, variables_of
from omnigraph.query.typed_tree import Expr, ScoreValue, element_type_of
from omnigraph.rows.columns import arrow_type_of
from omnigraph.rows.comparison import flatten_chunks, to_numpy
from omnigraph.rows.group_aggregates import Groups
from omnigraph.schema.property_types import PropertyType

# An item has a place, a position and a value of at least so many bytes.
_ITEM_BYTES = 24


class UnnestOperator:
    """Each row with each item of a list."""

    def __init__(self, op: Unnest, context: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._context = context
        self._kept = kept
        self._type = arrow_type_of(element_type_of(op.items))
        # The lists of the rows that were asked for last: they are counted before they are taken.
        self._known: tuple[Batch, pa.Array] | None = None

    def estimate_fan_out(self, batch: Batch) -> RowIndices:
        """How many items each row has."""
        return _count_items(self._evaluate_lists(batch))

    def run(self, batch: Batch) -> Batch:
        """The rows with the items."""
        lists = self._evaluate_lists(batch)
        self._known = None
        counts = _count_items(lists)
        before = prune_variables(batch, self._kept)
        bytes_each = count_row_bytes(before) + _ITEM_BYTES
        self._context.budget.require_memory(int(counts.sum()) * bytes_each)
        places, positions = expand_runs(counts)
        items = lists.flatten()
        values = {self._op.variable: items if items.type == self._type else items.cast(self._type)}
        if self._op.position is not None:
            values[self._op.position] = pa.array(positions, pa.int64())
        return add_variables(before.take(places), values=values, kept=self._kept)

    def _evaluate_lists(self, batch: Batch) -> pa.Array:
        if self._known is None or self._known[0] is not batch:
            self._known = batch, evaluate_array(self._op.items, batch, self._context)
        return self._known[1]


@dataclass(frozen=True, slots=True)
class ExtendOperator:
    """Each row with a value."""

    op: Extend
    context: ExecutionContext
    kept: KeptVariables

    def estimate_fan_out(self, _batch: Batch) -> None:
        """One each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows with the value, if anything reads it."""
        rows, name = prune_variables(batch, self.kept), self.op.variable
        if self.kept is not None and name not in self.kept:
            return rows
        if isinstance(self.op.value, ScoreValue):
            # Imported when it is needed: most queries do not search.
            from omnigraph.execution import search  # noqa: PLC0415

            values = search.score_values(self.op.value.score, batch, self.context)
        else:
            values = evaluate_array(self.op.value, batch, self.context)
        self.context.budget.require_memory(values.nbytes)
        assert isinstance(self.op.value.type, PropertyType)
        kind = arrow_type_of(self.op.value.type)
        return add_variables(
            rows, values={name: values if values.type == kind else values.cast(kind)}
        )


class BlockValueOperator:
    """Each row with an aggregate over the rows of a block, which is run once for all rows.

    A block that reads nothing of the rows is run for one of them.
    """

    def __init__(self, op: BlockColumn, runner: BlockRunner, kept: KeptVariables) -> None:
        self._op = op
        self._context = runner.context
        self._kept = kept
        self._used = used_variables_of(op)
        self._counted: BlockCounter | None = None
        call, operators = op.value, chain_of(op.block)[1:]
        if call is None or is_row_count(call):
            self._counted = BlockCounter(op, runner, is_set=call is None)
        else:
            self._rows = runner.compile_block(operators, needed=variables_of(call))

    def estimate_fan_out(self, _batch: Batch) -> None:
        """One each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows with the value, if anything reads it."""
        rows, name = prune_variables(batch, self._kept), self._op.variable
        if self._kept is not None and name not in self._kept:
            return rows
        is_correlated = bool(self._used)
        outer = select_variables(batch if is_correlated else Batch(1), self._used)
        values = self._compute_values(outer)
        if not is_correlated:
            self._context.budget.require_memory(batch.num_rows * values.nbytes)
            values = values.take(pa.array(np.zeros(batch.num_rows, np.int64)))
        return add_variables(rows, values={name: values})

    def _compute_values(self, outer: Batch) -> pa.Array:
        call, context = self._op.value, self._context
        if call is None:
            assert self._counted is not None
            return pa.array(self._counted.find_matched(outer))
        if self._counted is not None:
            return pa.array(self._counted.count_rows(outer), pa.int64())
        found = collect_batches(self._rows(outer), context.budget)
        groups = Groups(outer_of(found), np.zeros(outer.num_rows, np.int64))
        values = flatten_chunks(
            compute_aggregate(call, batch=found, groups=groups, context=context)
        )
        assert isinstance(call.type, PropertyType), "aggregates of a block take no nodes"
        kind = arrow_type_of(call.type)
        return values if values.type == kind else values.cast(kind)


def evaluate_array(expr: Expr, batch: Batch, context: ExecutionContext) -> pa.Array:
    """A value for each row, in one array."""
    return flatten_chunks(evaluate_rows(expr, batch, context))


def _count_items(lists: pa.Array) -> RowIndices:
    counts: RowIndices = to_numpy(pc.list_value_length(lists).fill_null(0)).astype(np.int64)
    return counts

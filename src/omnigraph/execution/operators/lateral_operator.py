"""Lateral blocks: each row with the rows of a block, which is run once for all rows together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import (
    Batch,
    BoundEdges,
    KeptVariables,
    add_variables,
    collect_batches,
    concatenate_batches,
    count_row_bytes,
    filter_rows,
    find_bound_rows,
    outer_of,
    prune_variables,
    select_variables,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.expand_operator import ExpandOperator
from omnigraph.execution.operators.row_keys import RowKey
from omnigraph.execution.operators.semi_join_operator import BlockRunner
from omnigraph.execution.sources.graph_source import RowIndices
from omnigraph.query.limit_binding import read_counts
from omnigraph.query.logical_plan import Expand, Lateral, Operator, PathExpand
from omnigraph.query.tree_walk import (
    bound_variables_of,
    chain_of,
    used_variables_of,
    variables_of,
)
from omnigraph.rows.evaluator import is_constant
from omnigraph.rows.row_order import Codes, SortKey, sort_row_indices

# Of a row that is sorted within its outer row: two codes, a place and a position.
_SORT_BYTES = 32


class LateralOperator:
    """Each row with the rows of a block, or with the first of them in an order.

    A row without any stays if the block is optional: it lacks the variables of the block.
    """

    def __init__(self, op: Lateral, runner: BlockRunner, kept: KeptVariables) -> None:
        self._op = op
        self._context = runner.context
        self._kept = kept
        self._used = used_variables_of(op)
        self._own = bound_variables_of(op)
        self._cut = read_counts(op.limit, op.offset, runner.context.params)
        operators = chain_of(op.block)[1:]
        keys = frozenset().union(*(variables_of(key.value) for key in op.keys))
        wanted = self._own if kept is None else self._own & kept
        self._rows = runner.compile_block(operators, needed=wanted | keys)
        self._first = _make_first_traversal(operators, runner.context)

    def estimate_fan_out(self, batch: Batch) -> RowIndices | None:
        """How many rows the first traversal of the block makes, if it starts with one."""
        return None if self._first is None else self._first.estimate_fan_out(batch)

    def run(self, batch: Batch) -> Batch:
        """The rows with those of the block."""
        outer = select_variables(batch, self._used)
        budget = self._context.budget
        if self._op.is_cut:
            # Each part is cut as it comes, so that not all rows are held.
            found = collect_batches(self._iter_first_rows(outer), budget)
            found = self._cut_rows(found, self._cut.offset)
        else:
            found = collect_batches(self._rows(outer), budget)
        found = prune_variables(found, self._own)
        if self._op.is_optional:
            found = _add_missing(found, batch.num_rows)
        before = prune_variables(batch, self._kept)
        budget.require_memory(found.num_rows * count_row_bytes(before))
        rows = before.take(outer_of(found))
        return add_variables(
            rows, nodes=found.nodes, edges=found.edges, values=found.values, kept=self._kept
        )

    def _iter_first_rows(self, outer: Batch) -> Iterator[Batch]:
        return (self._cut_rows(part, 0) for part in self._rows(outer))

    def _cut_rows(self, rows: Batch, offset: int) -> Batch:
        """For each outer row its rows in the order of the keys, after so many of them."""
        count = rows.num_rows
        if not count:
            return rows
        context = self._context
        keys: list[SortKey] = [_OuterKey(outer_of(rows))]
        keys += (
            RowKey(key.value, rows, context, key.is_descending)
            for key in self._op.keys
            if not is_constant(key.value)
        )
        with context.budget.reserve(count * _SORT_BYTES):
            order = sort_row_indices(keys, count)
            outer = outer_of(rows).take(order)
            starts = np.flatnonzero(np.append(True, outer[1:] != outer[:-1]))
            positions = np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))
            is_kept = positions >= offset
            if self._cut.count is not None:
                is_kept &= positions < self._cut.offset + self._cut.count
            return rows.take(order[is_kept])


@dataclass(frozen=True, slots=True)
class _OuterKey:
    """The number of the outer row, which all other keys come after."""

    outer: RowIndices
    is_descending: bool = False

    def compute_codes(self, places: RowIndices | None) -> list[Codes]:
        """The numbers themselves."""
        return [self.outer if places is None else self.outer.take(places)]


@dataclass(frozen=True, slots=True)
class BoundRowsOperator:
    """Keeps the rows that have variables, before a traversal from or to them."""

    variables: frozenset[str]

    def estimate_fan_out(self, _batch: Batch) -> None:
        """At most one each."""
        return

    def run(self, batch: Batch) -> Batch:
        """The rows that lack none of them."""
        for name in sorted(self.variables):
            batch = filter_rows(batch, find_bound_rows(batch, name))
        return batch


def list_open_ends(operator: Operator, closing: Expand | None) -> frozenset[str]:
    """The variables that a path, or a traversal and one that closes it, find bound."""
    if not isinstance(operator, Expand | PathExpand):
        return frozenset()
    ends = {operator.source}
    if operator.target_is_bound:
        ends.add(operator.target)
    if closing is not None:
        ends.add(closing.source)
    return frozenset(ends)


def _make_first_traversal(
    operators: tuple[Operator, ...], context: ExecutionContext
) -> ExpandOperator | None:
    """The traversal that a block starts with, to estimate how many rows it makes."""
    first = operators[0] if operators else None
    if not isinstance(first, Expand) or first.target_is_bound or first.source in context.nullable:
        return None
    return ExpandOperator(first, context, None)


def _add_missing(found: Batch, count: int) -> Batch:
    """The rows of a block, and a row that lacks its variables for each outer row without any."""
    missing = np.flatnonzero(np.bincount(outer_of(found), minlength=count) == 0)
    if not len(missing):
        return found
    nodes = {name: np.full(len(missing), -1, each.dtype) for name, each in found.nodes.items()}
    edges = {
        name: BoundEdges(
            each.types,
            np.full(len(missing), -1, each.type_indices.dtype),
            np.full(len(missing), -1, each.dense_ids.dtype),
        )
        for name, each in found.edges.items()
    }
    values = {name: pa.nulls(len(missing), each.type) for name, each in found.values.items()}
    return concatenate_batches([found, Batch(len(missing), nodes, edges, missing, values=values)])

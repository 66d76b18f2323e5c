"""Table functions: each row with the rows of a table, which is computed once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.batch import (
    Batch,
    KeptVariables,
    add_variables,
    count_row_bytes,
    prune_variables,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.node_guard import build_node_guard
from omnigraph.execution.sorted_arrays import expand_runs
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.query.logical_plan import TableFunction
from omnigraph.rows.columns import arrow_type_of
from omnigraph.schema.property_types import PropertyType

if TYPE_CHECKING:
    from omnigraph.execution.algorithms.table_columns import TableRows

_INDEX_BYTES = 24
_KEY_BITS = 32


class _Table(NamedTuple):
    """The rows to join with, and their order by the nodes that rows have already."""

    rows: Batch
    order: RowIndices
    keys: npt.NDArray[np.int64]


class TableFunctionOperator:
    """Each row with the rows of a table, or with those that have its nodes."""

    def __init__(self, op: TableFunction, context: ExecutionContext, kept: KeptVariables) -> None:
        self._op = op
        self._context = context
        self._kept = kept

    def estimate_fan_out(self, batch: Batch) -> RowIndices:
        """How many rows each row becomes, exactly."""
        first, last = self._find_matches(batch)
        return last - first

    def run(self, batch: Batch) -> Batch:
        """The rows with the variables of the table, as far as anything reads them."""
        table, op = self._table, self._op
        first, last = self._find_matches(batch)
        rows = prune_variables(batch, self._kept)
        bytes_each = count_row_bytes(rows) + count_row_bytes(table.rows) + _INDEX_BYTES
        self._context.budget.require_memory(int((last - first).sum()) * bytes_each)
        places, within = expand_runs(last - first)
        at = table.order.take(first.take(places) + within)
        own = {each.name for each in op.variables} - set(op.joined)
        found = table.rows.take(at)
        return add_variables(
            rows.take(places),
            nodes={name: each for name, each in found.nodes.items() if name in own},
            values=found.values,
            kept=self._kept,
        )

    def _find_matches(self, batch: Batch) -> tuple[RowIndices, RowIndices]:
        """Where the rows of the table for each row begin and end, in its order."""
        table = self._table
        if not self._op.joined:
            zeros: RowIndices = np.zeros(batch.num_rows, np.int64)
            return zeros, np.full(batch.num_rows, table.rows.num_rows, np.int64)
        keys = self._encode_nodes(batch)
        return np.searchsorted(table.keys, keys), np.searchsorted(table.keys, keys, "right")

    @cached_property
    def _table(self) -> _Table:
        # Imported when it is needed: most queries compute no table, and SciPy takes long to load.
        from omnigraph.execution.algorithms.table_columns import compute_table  # noqa: PLC0415

        context, op = self._context, self._op
        guards = {
            each.type_name: build_node_guard(context, each.type_name, [each]) for each in op.guards
        }
        found = compute_table(op.call, context, guards)
        rows = _bind_columns(op, found)
        context.budget.require_memory(rows.num_rows * (count_row_bytes(rows) + _INDEX_BYTES))
        if not op.joined:
            return _Table(rows, np.arange(rows.num_rows), np.zeros(0, np.int64))
        keys = self._encode_nodes(rows)
        order = np.argsort(keys, kind="stable")
        return _Table(rows, order, keys.take(order))

    def _encode_nodes(self, batch: Batch) -> npt.NDArray[np.int64]:
        """The nodes that both sides have as one number; below zero where a row lacks one."""
        first, *others = (batch.nodes[name].astype(np.int64) for name in self._op.joined)
        for other in others:
            first = np.where(other < 0, -1, (first << _KEY_BITS) | other)
        return first


def _bind_columns(op: TableFunction, table: TableRows) -> Batch:
    """The rows whose nodes are of the types of their variables."""
    nodes, is_kept = table.nodes, np.ones(table.num_rows, np.bool_)
    numbers: dict[str, npt.NDArray[np.integer]] = {}
    values: dict[str, pa.Array] = {}
    for variable in op.variables:
        column = table.columns[variable.column]
        if isinstance(variable.type, PropertyType):
            assert isinstance(column, pa.Array)
            kind = arrow_type_of(variable.type)
            values[variable.name] = column if column.type == kind else column.cast(kind)
        else:
            assert isinstance(column, np.ndarray)
            own = nodes.get_range(variable.type)
            is_kept &= (column >= own.start) & (column < own.stop)
            numbers[variable.name] = column
    dense: dict[str, DenseIds] = {
        name: nodes.dense_ids.take(each) for name, each in numbers.items()
    }
    batch = Batch(table.num_rows, dense, values=values)
    return batch if is_kept.all() else batch.take(np.flatnonzero(is_kept))

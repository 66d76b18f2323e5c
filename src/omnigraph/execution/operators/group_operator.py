"""Rows to groups, and their aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.row_keys import compute_key_codes, evaluate_rows
from omnigraph.query import typed_tree
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.typed_tree import AggregateValue, Column
from omnigraph.rows.group_aggregates import (
    Groups,
    aggregate_groups,
    group_by_codes,
    make_single_group,
)
from omnigraph.rows.row_order import RowIndices

# For a row: its group, and a code and a value at a time.
_ROW_BYTES = 24


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Groups: a row of the pattern for each, which has its keys, and its aggregates by column."""

    columns: tuple[Column, ...]
    first_rows: Batch
    aggregates: Mapping[str, pa.Array]

    @property
    def num_rows(self) -> int:
        """How many groups there are."""
        return self.first_rows.num_rows

    def take(self, places: RowIndices) -> GroupedRows:
        """Some groups, in the order of the places."""
        chosen = pa.array(places)
        return GroupedRows(
            self.columns,
            self.first_rows.take(places),
            {name: values.take(chosen) for name, values in self.aggregates.items()},
        )


def group_rows(batch: Batch, columns: Sequence[Column], reading: ExecutionContext) -> GroupedRows:
    """The groups of rows with equal keys; without any key, all rows are one group."""
    keys = [each.value for each in columns if not isinstance(each.value, AggregateValue)]
    with reading.budget.reserve((len(keys) + 1) * batch.num_rows * _ROW_BYTES):
        if keys:
            codes = [compute_key_codes(key, batch, reading) for key in keys]
            groups = group_by_codes(codes, batch.num_rows)
            firsts = batch.take(groups.first_rows)
        else:
            groups, firsts = make_single_group(batch.num_rows), Batch(1)
        aggregates = {
            column.name: _compute_aggregate(column.value, batch, groups, reading)
            for column in columns
            if isinstance(column.value, AggregateValue)
        }
    return GroupedRows(tuple(columns), firsts, aggregates)


def _compute_aggregate(
    call: AggregateValue, batch: Batch, groups: Groups, reading: ExecutionContext
) -> pa.Array:
    reading.budget.check_interrupts()
    if call.function is AggregateFunction.COUNT and _is_never_null(call.argument):
        return pa.array(np.bincount(groups.of_row, minlength=groups.count), pa.int64())
    return aggregate_groups(call.function, evaluate_rows(call.argument, batch, reading), groups)


def _is_never_null(expr: typed_tree.Expr) -> bool:
    return isinstance(expr, typed_tree.NodeValue | typed_tree.SystemValue)

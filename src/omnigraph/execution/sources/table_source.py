"""Nodes of one type that a scan found, by their places in it.

For a read of one type nothing has to be numbered: the table filters and projects what it can, and
the rows that come back are all there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.batch import Batch
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.result_executor import finish_rows
from omnigraph.execution.optimizer.plan_split import split_plan
from omnigraph.execution.query_budget import Budget
from omnigraph.execution.result import Result
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.type_scan import (
    evaluate_conditions,
    list_physical_columns,
    scan_matching_batches,
)
from omnigraph.query import logical_plan as plans
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.columns import TableShape
from omnigraph.rows.comparison import Values, flatten_chunks, to_numpy
from omnigraph.rows.evaluator import Params
from omnigraph.rows.row_order import compute_order_codes
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.versioning.effects import ID_COLUMN


def run_scan(plan: plans.ReadPlan, scan: plans.Scan, reading: ExecutionContext) -> Result:
    """The result of a plan whose pattern is one scan."""
    parts, view, budget = split_plan(plan.root), reading.view, reading.budget
    shape = view.get_shape(TypeKey(TypeKind.NODE, scan.type_name))
    names = list_physical_columns(
        shape, [shape.columns[name] for name in _iter_properties(scan, view)]
    )
    batches = scan_matching_batches(
        view, shape.type_key, scan.conditions, reading.params, names=names
    )
    schema = pa.schema([shape.schema.field(name) for name in names])
    found = pa.Table.from_batches(_take_first(batches, parts.rows_max, budget), schema=schema)
    nodes = TableNodes(found, shape)
    rows = Batch(nodes.count, {scan.variable: nodes.list_all()})
    scanned = replace(reading, source=TableSource(**{scan.type_name: nodes}))
    return finish_rows(plan, rows, parts.steps, scanned)


def _iter_properties(scan: plans.Scan, view: View) -> Iterator[str]:
    properties = view.catalog.nodes[scan.type_name].properties
    for name in properties if scan.properties is None else scan.properties:
        if not properties[name].type.is_blob:
            yield name


def _take_first(
    batches: Iterable[pa.RecordBatch], count: int | None, budget: Budget
) -> Iterator[pa.RecordBatch]:
    """The batches of the first rows, or all of them; no more is read than needed."""
    rows = 0
    for batch in batches:
        if count is not None and rows >= count:
            return
        budget.check_interrupts()
        budget.allocate(batch.nbytes)
        yield batch
        rows += batch.num_rows


class TableNodes:
    """The rows of a scan as nodes; there are no others."""

    def __init__(self, rows: pa.Table, shape: TableShape) -> None:
        self._rows = rows
        self._shape = shape

    @property
    def count(self) -> int:
        """How many there are."""
        count: int = self._rows.num_rows
        return count

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        """Their ids."""
        return self._take_column(ID_COLUMN, at)

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do, within one call."""
        ranks: npt.NDArray[np.int64] = compute_order_codes(self.fetch_ids(at))
        return ranks

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        """The values of a property that the scan read."""
        return self._take_column(self._shape.columns[name], at)

    def list_all(self) -> DenseIds:
        """Every node, ascending."""
        return self._all

    def find(self, ids: pa.Array) -> DenseIds:
        """The nodes with these ids; -1 where there is none."""
        places = pc.index_in(ids, value_set=flatten_chunks(self._rows[ID_COLUMN]))
        found: DenseIds = to_numpy(pc.fill_null(places, -1)).astype(np.int32)
        return found

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        """The nodes that satisfy all conditions, ascending."""
        mask = to_numpy(evaluate_conditions(self._rows, self._shape, conditions, params))
        return np.flatnonzero(mask).astype(np.int32)

    def fetch_row_ids(self, _: DenseIds) -> NoReturn:
        """Never asked for: a read that ranks is no scan."""
        raise AssertionError("a scan does not read row ids")

    def find_by_row_ids(self, _: npt.NDArray[np.uint64]) -> NoReturn:
        """Never asked for: a read that ranks is no scan."""
        raise AssertionError("a scan does not read row ids")

    @cached_property
    def _all(self) -> DenseIds:
        return np.arange(self.count, dtype=np.int32)

    def _take_column(self, column: str, at: DenseIds) -> pa.Array:
        values: Values = self._rows[column]
        if _is_consecutive(at):
            return flatten_chunks(values.slice(int(at[0]), len(at)))
        return flatten_chunks(values.take(pa.array(at)))


class TableSource:
    """The source of a read of one node type, or of none at all."""

    def __init__(self, **nodes: TableNodes) -> None:
        self._nodes = nodes

    def get_nodes(self, type_name: str) -> TableNodes:
        """The nodes of the type."""
        return self._nodes[type_name]

    def get_edges(self, type_name: str) -> NoReturn:
        """Never asked for: a read with edges is no scan."""
        raise AssertionError(f"a scan has no {type_name}")


# Of a read that has not found out yet where to read from.
NO_SOURCE: Final = TableSource()


def _is_consecutive(at: DenseIds) -> bool:
    """Whether the numbers follow one another, so that nothing has to be picked."""
    if not len(at) or int(at[-1]) - int(at[0]) != len(at) - 1:
        return False
    return bool((np.diff(at) == 1).all())

"""The nodes of one type as a source: a scan reads them from their table.

A read of one type needs no numbers: the table filters and projects what it can, and the rows that
come back are the nodes, by their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.query_budget import Budget
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.type_scan import list_physical_columns, scan_matching_batches
from omnigraph.query.logical_plan import Scan
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.comparison import Values, flatten_chunks, to_numpy
from omnigraph.rows.evaluator import Params
from omnigraph.rows.row_order import compute_order_codes
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.versioning.effects import ID_COLUMN


class TableSource:
    """The source of one read whose pattern is one scan; `rows_max` rows of it are enough."""

    def __init__(self, view: View, scan: Scan, budget: Budget, *, rows_max: int | None) -> None:
        self.view = view
        self._nodes = TableNodes(view, scan, budget, rows_max=rows_max)

    def get_nodes(self, type_name: str) -> TableNodes:
        """The nodes of the type."""
        assert type_name == self._nodes.type_key.name
        return self._nodes

    def get_edges(self, type_name: str) -> NoReturn:
        """A read with edges has another source."""
        raise AssertionError(f"a scan has no {type_name}")


class TableNodes:
    """The rows that a scan found, as nodes; before the scan there are none."""

    def __init__(self, view: View, scan: Scan, budget: Budget, *, rows_max: int | None) -> None:
        self.type_key = TypeKey(TypeKind.NODE, scan.type_name)
        self._view = view
        self._budget = budget
        self._rows_max = rows_max
        self._shape = view.get_shape(self.type_key)
        columns = [self._shape.columns[name] for name in _iter_properties(scan, view)]
        self._names = list_physical_columns(self._shape, columns)
        self._rows: pa.Table = self._schema.empty_table()

    @property
    def count(self) -> int:
        """How many nodes a scan may find."""
        rows = self._view.snapshot.pins[str(self.type_key)].rows
        return rows if self._rows_max is None else min(rows, self._rows_max)

    def list_all(self) -> DenseIds:
        """Every node, ascending."""
        return self.filter_nodes((), {})

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        """The nodes that satisfy all conditions, ascending; the table is read here."""
        batches = scan_matching_batches(
            self._view, self.type_key, conditions, params, names=self._names
        )
        first = _take_first(batches, self._rows_max, self._budget)
        self._rows = pa.Table.from_batches(first, schema=self._schema)
        return np.arange(self._rows.num_rows, dtype=np.int32)

    def find(self, ids: pa.Array) -> DenseIds:
        """The nodes with these ids; -1 where there is none."""
        places = pc.index_in(ids, value_set=flatten_chunks(self._rows[ID_COLUMN]))
        found: DenseIds = to_numpy(pc.fill_null(places, -1)).astype(np.int32)
        return found

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

    def fetch_row_ids(self, _: DenseIds) -> NoReturn:
        """A read that ranks has another source."""
        raise AssertionError("a scan does not read row ids")

    def find_by_row_ids(self, _: npt.NDArray[np.uint64]) -> NoReturn:
        """A read that ranks has another source."""
        raise AssertionError("a scan does not read row ids")

    @cached_property
    def _schema(self) -> pa.Schema:
        return pa.schema([self._shape.schema.field(name) for name in self._names])

    def _take_column(self, column: str, at: DenseIds) -> pa.Array:
        values: Values = self._rows[column]
        if _is_consecutive(at):
            return flatten_chunks(values.slice(int(at[0]), len(at)))
        return flatten_chunks(values.take(pa.array(at)))


def _iter_properties(scan: Scan, view: View) -> Iterator[str]:
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


def _is_consecutive(at: DenseIds) -> bool:
    """Whether the numbers follow one another, so that nothing has to be picked."""
    if not len(at) or int(at[-1]) - int(at[0]) != len(at) - 1:
        return False
    return bool((np.diff(at) == 1).all())

"""The nodes of one type, as far as a query has met them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import CorruptObjectError
from omnigraph.execution.budget import Budget
from omnigraph.execution.expressions import Params
from omnigraph.execution.lookups.entities import TypeReader, rank_texts
from omnigraph.execution.lookups.numbering import NO_ROW, IdNumbering, RowIds, find_sorted
from omnigraph.execution.scan import (
    build_rows_schema,
    find_type_candidate_ids,
    scan_matching_batches,
)
from omnigraph.execution.source import DenseIds
from omnigraph.execution.view import View
from omnigraph.query.typed import Expr
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN


class IndexNodes:
    """Numbers are given to ids: an edge names its ends by id before anybody looks them up.

    Ranks compare within one call only, as later calls may meet ids that lie in between.
    """

    def __init__(self, view: View, type_key: TypeKey, budget: Budget) -> None:
        self._looked = TypeReader(view, type_key, budget)
        self._numbers = IdNumbering(budget.allocate)
        self._row_ids: RowIds = np.empty(0, np.uint64)
        self._all: DenseIds | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return self._looked.count

    def list_all(self) -> DenseIds:
        """Every node, ascending."""
        if self._all is None:
            rows = self._looked.scan([ID_COLUMN, ROW_ID])
            self._all = np.sort(self._record_rows(rows))
        return self._all

    def find(self, ids: pa.Array) -> DenseIds:
        """The nodes with these ids; -1 where there is none."""
        found = self._numbers.find_numbers(ids)
        unknown = np.flatnonzero(found < 0)
        if self._all is not None or not len(unknown):
            return found
        columns = [ID_COLUMN, ROW_ID, *self._looked.list_read_columns(len(unknown))]
        absent = ids.take(pa.array(unknown))
        self._record_rows(self._looked.table.find(ID_COLUMN, absent, columns=columns))
        return self._numbers.find_numbers(ids)

    def filter_nodes(self, conditions: Sequence[Expr], params: Params) -> DenseIds:
        """The nodes that satisfy all conditions, ascending; each is about one variable."""
        if not conditions:
            return self.list_all()
        view, shape = self._looked.view, self._looked.shape
        pinned = find_type_candidate_ids(view, shape.type_key, conditions, params)
        along = [] if pinned is None else self._looked.list_read_columns(len(pinned))
        names = [ID_COLUMN, ROW_ID, *along]
        found = scan_matching_batches(view, shape.type_key, conditions, params, names=names)
        return np.sort(
            self._record_rows(self._looked.collect_batches(found, build_rows_schema(shape, names)))
        )

    def assign_dense_ids(self, ids: pa.Array) -> DenseIds:
        """The nodes with ids that are known to exist, without looking them up."""
        return self._numbers.assign_numbers(ids)

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        """Their ids."""
        return self._numbers.ids.take(pa.array(at))

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do, by the bytes of UTF-8."""
        return rank_texts(self.fetch_ids(at))

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        """The values of a property, of the Arrow type of the property."""
        column = self._looked.shape.columns[name]
        missing = self._looked.fetched.find_missing(column, at)
        if len(missing):
            self._read_columns(missing, self._looked.list_read_columns(len(missing), column))
        return self._looked.fetched.get_values(column, at)

    def fetch_row_ids(self, at: DenseIds) -> npt.NDArray[np.uint64]:
        """The rows of nodes in their table, for indexes that know rows."""
        self._reserve_row_ids()
        unknown = np.unique(at[self._row_ids[at] == NO_ROW])
        if len(unknown):
            self._fetch_by_id(unknown, [])
        return self._row_ids[at]

    def find_by_row_ids(self, row_ids: npt.NDArray[np.uint64]) -> DenseIds:
        """The nodes at rows of their table; -1 where there is none."""
        found = self._find_known_rows(row_ids)
        unknown = np.flatnonzero(found < 0)
        if not len(unknown):
            return found
        wanted = pa.array(np.unique(row_ids[unknown]))
        self._record_rows(self._looked.table.fetch_rows(wanted, columns=[ID_COLUMN, ROW_ID]))
        return self._find_known_rows(row_ids)

    def _find_known_rows(self, row_ids: RowIds) -> DenseIds:
        numbers = np.flatnonzero(self._row_ids != NO_ROW).astype(np.int32)
        keys = self._row_ids[numbers]
        order = np.argsort(keys)
        return find_sorted(keys[order], numbers[order], row_ids)

    def _read_columns(self, numbers: DenseIds, columns: list[str]) -> None:
        self._reserve_row_ids()
        has_row = self._row_ids[numbers] != NO_ROW
        by_row = numbers[has_row]
        if len(by_row):
            rows = pa.array(self._row_ids[by_row])
            self._looked.fetched.add_rows(by_row, self._looked.table.take(rows, columns=columns))
        if len(by_row) < len(numbers):
            self._fetch_by_id(numbers[~has_row], columns)

    def _fetch_by_id(self, numbers: DenseIds, columns: list[str]) -> None:
        table = self._looked.table
        names = [ID_COLUMN, ROW_ID, *columns]
        rows = table.find(ID_COLUMN, self.fetch_ids(numbers), columns=names)
        if rows.num_rows < len(numbers):
            problem = f"lacks {len(numbers) - rows.num_rows} nodes that edges name"
            raise CorruptObjectError(table.pin.path, problem)
        self._record_rows(rows)

    def _record_rows(self, rows: pa.Table) -> DenseIds:
        """The numbers of rows that were read, with whatever columns came along."""
        numbers = self._numbers.assign_numbers(rows[ID_COLUMN].combine_chunks())
        self._reserve_row_ids()
        self._row_ids[numbers] = rows[ROW_ID].to_numpy()
        along = [name for name in rows.column_names if name not in (ID_COLUMN, ROW_ID)]
        self._looked.fetched.add_rows(numbers, rows.select(along))
        return numbers

    def _reserve_row_ids(self) -> None:
        known, needed = len(self._row_ids), len(self._numbers)
        if needed > known:
            more = max(needed, 2 * known) - known
            self._looked.budget.allocate(more * NO_ROW.nbytes)
            unknown = np.full(more, NO_ROW)
            self._row_ids = np.concatenate([self._row_ids, unknown])

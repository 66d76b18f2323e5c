"""The nodes of one type, as far as a query has met them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import CorruptObject
from omnigraph.execution.budget import Budget
from omnigraph.execution.expressions import Params
from omnigraph.execution.lookups.entities import Looked, ranks_of
from omnigraph.execution.lookups.numbering import NO_ROW, IdNumbers, RowIds, find_sorted
from omnigraph.execution.scan import matching_batches, pinned_ids, rows_schema
from omnigraph.execution.source import Numbers
from omnigraph.execution.view import View
from omnigraph.query.typed import Expr
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN


class LookupNodes:
    """Numbers are given to ids: an edge names its ends by id before anybody looks them up.

    Ranks compare within one call only, as later calls may meet ids that lie in between.
    """

    def __init__(self, view: View, type_key: TypeKey, budget: Budget) -> None:
        self._looked = Looked(view, type_key, budget)
        self._numbers = IdNumbers(budget.hold)
        self._row_ids: RowIds = np.empty(0, np.uint64)
        self._all: Numbers | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return self._looked.count

    def all(self) -> Numbers:
        """Every node, ascending."""
        if self._all is None:
            rows = self._looked.scan([ID_COLUMN, ROW_ID])
            self._all = np.sort(self._met(rows))
        return self._all

    def find(self, ids: pa.Array) -> Numbers:
        """The nodes with these ids; -1 where there is none."""
        found = self._numbers.find(ids)
        unknown = np.flatnonzero(found < 0)
        if self._all is not None or not len(unknown):
            return found
        columns = [ID_COLUMN, ROW_ID, *self._looked.along(len(unknown))]
        absent = ids.take(pa.array(unknown))
        self._met(self._looked.table.find(ID_COLUMN, absent, columns=columns))
        return self._numbers.find(ids)

    def where(self, conditions: Sequence[Expr], params: Params) -> Numbers:
        """The nodes that satisfy all conditions, ascending; each is about one variable."""
        if not conditions:
            return self.all()
        view, shape = self._looked.view, self._looked.shape
        pinned = pinned_ids(view, shape.type_key, conditions, params)
        along = [] if pinned is None else self._looked.along(len(pinned))
        names = [ID_COLUMN, ROW_ID, *along]
        found = matching_batches(view, shape.type_key, conditions, params, names=names)
        return np.sort(self._met(self._looked.gathered(found, rows_schema(shape, names))))

    def expect(self, ids: pa.Array) -> Numbers:
        """The nodes with ids that are known to exist, without looking them up."""
        return self._numbers.give(ids)

    def ids(self, at: Numbers) -> pa.Array:
        """Their ids."""
        return self._numbers.ids.take(pa.array(at))

    def ranks(self, at: Numbers) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do, by the bytes of UTF-8."""
        return ranks_of(self.ids(at))

    def values(self, name: str, at: Numbers) -> pa.Array:
        """The values of a property, of the Arrow type of the property."""
        column = self._looked.shape.columns[name]
        missing = self._looked.fetched.missing(column, at)
        if len(missing):
            self._read(missing, self._looked.along(len(missing), column))
        return self._looked.fetched.values(column, at)

    def row_ids(self, at: Numbers) -> npt.NDArray[np.uint64]:
        """The rows of nodes in their table, for indexes that know rows."""
        self._reserve()
        unknown = np.unique(at[self._row_ids[at] == NO_ROW])
        if len(unknown):
            self._look_up(unknown, [])
        return self._row_ids[at]

    def at_rows(self, row_ids: npt.NDArray[np.uint64]) -> Numbers:
        """The nodes at rows of their table; -1 where there is none."""
        found = self._at_known(row_ids)
        unknown = np.flatnonzero(found < 0)
        if not len(unknown):
            return found
        wanted = pa.array(np.unique(row_ids[unknown]))
        self._met(self._looked.table.rows(wanted, columns=[ID_COLUMN, ROW_ID]))
        return self._at_known(row_ids)

    def _at_known(self, row_ids: RowIds) -> Numbers:
        numbers = np.flatnonzero(self._row_ids != NO_ROW).astype(np.int32)
        keys = self._row_ids[numbers]
        order = np.argsort(keys)
        return find_sorted(keys[order], numbers[order], row_ids)

    def _read(self, numbers: Numbers, columns: list[str]) -> None:
        self._reserve()
        has_row = self._row_ids[numbers] != NO_ROW
        by_row = numbers[has_row]
        if len(by_row):
            rows = pa.array(self._row_ids[by_row])
            self._looked.fetched.add(by_row, self._looked.table.take(rows, columns=columns))
        if len(by_row) < len(numbers):
            self._look_up(numbers[~has_row], columns)

    def _look_up(self, numbers: Numbers, columns: list[str]) -> None:
        table = self._looked.table
        names = [ID_COLUMN, ROW_ID, *columns]
        rows = table.find(ID_COLUMN, self.ids(numbers), columns=names)
        if rows.num_rows < len(numbers):
            problem = f"lacks {len(numbers) - rows.num_rows} nodes that edges name"
            raise CorruptObject(table.pin.path, problem)
        self._met(rows)

    def _met(self, rows: pa.Table) -> Numbers:
        """The numbers of rows that were read, with whatever columns came along."""
        numbers = self._numbers.give(rows[ID_COLUMN].combine_chunks())
        self._reserve()
        self._row_ids[numbers] = rows[ROW_ID].to_numpy()
        along = [name for name in rows.column_names if name not in (ID_COLUMN, ROW_ID)]
        self._looked.fetched.add(numbers, rows.select(along))
        return numbers

    def _reserve(self) -> None:
        known, needed = len(self._row_ids), len(self._numbers)
        if needed > known:
            more = max(needed, 2 * known) - known
            self._looked.budget.hold(more * NO_ROW.nbytes)
            unknown = np.full(more, NO_ROW)
            self._row_ids = np.concatenate([self._row_ids, unknown])

"""What nodes and edges of one type have in common: their table, and the values read from it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.budget import Budget
from omnigraph.execution.columns import TableShape
from omnigraph.execution.lookups.fetched import ColumnCache
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.table import Table

# So few rows are read with all their plain columns: a second request costs more than those do.
FEW_ROWS: Final = 16
PLAIN_COLUMNS_MAX: Final = 16


class TypeReader:
    """The part of a type that a query has met, for use by one thread at a time."""

    def __init__(self, view: View, type_key: TypeKey, budget: Budget) -> None:
        self.view = view
        self.budget = budget
        self.shape: TableShape = view.get_shape(type_key)
        self.fetched = ColumnCache(self.shape.schema, budget.allocate)

    @cached_property
    def table(self) -> Table:
        """The table of the type, opened when it is first asked."""
        return self.view.open_table(self.shape.type_key)

    @property
    def count(self) -> int:
        """How many entities the type has."""
        return self.view.snapshot.pins[str(self.shape.type_key)].rows

    def scan(self, columns: list[str]) -> pa.Table:
        """Every row of the type."""
        if not self.count:
            return self.table.scan(columns=columns)
        return self.collect_batches(self.table.scan_batches(columns=columns))

    def collect_batches(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema | None = None
    ) -> pa.Table:
        """Rows that are read one batch after the other, as long as there is memory and time."""
        found, nbytes = [], 0
        for batch in batches:
            nbytes += batch.nbytes
            self.budget.require_memory(nbytes)
            self.budget.check_interrupts()
            found.append(batch)
        return pa.Table.from_batches(found, schema)

    def list_read_columns(self, rows: int, column: str | None = None) -> list[str]:
        """The properties' columns to read for so many rows of which one column is wanted."""
        wanted = [] if column is None else [column]
        if rows > FEW_ROWS:
            return wanted
        return list(dict.fromkeys([*wanted, *self._plain_columns]))

    @cached_property
    def _plain_columns(self) -> list[str]:
        columns = [
            column
            for column in self.shape.columns.values()
            if _is_plain(self.shape.schema.field(column).type)
        ]
        return columns if len(columns) <= PLAIN_COLUMNS_MAX else []


def rank_texts(ids: pa.Array) -> npt.NDArray[np.int64]:
    """Numbers that compare as texts do, by the bytes of UTF-8; equal texts have equal ones."""
    encoded = ids.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    places: npt.NDArray[np.int32] = encoded.indices.to_numpy()
    return ranks.take(places)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_string(kind))

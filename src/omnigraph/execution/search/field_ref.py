"""What a search asks for: a property of a node type at a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.execution.search.field_index import RowIds
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import ROW_ID

_COMPONENT_BYTES: Final = 4
# Rows that are fetched at once.
_FETCHED_ROWS: Final = 2**16


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A property of a node type at a snapshot."""

    view: View
    type_name: str
    property_name: str
    # Whether words are found by their stems, or as they are written.
    is_stemmed: bool = True

    @property
    def type_key(self) -> TypeKey:
        """The type."""
        return TypeKey(TypeKind.NODE, self.type_name)

    @property
    def pin(self) -> Pin:
        """The version of the table."""
        return self.view.snapshot.pins[str(self.type_key)]

    @property
    def column(self) -> str:
        """The column of the property, which no other one ever has."""
        return self.view.get_shape(self.type_key).columns[self.property_name]

    @property
    def cache_name(self) -> str:
        """The column, and how its words are found."""
        return self.column if self.is_stemmed else f"{self.column}-words"

    @property
    def key(self) -> tuple[str, str]:
        """What all versions of the field have in common."""
        return self.pin.path, self.cache_name

    @property
    def name(self) -> str:
        """The field of this version."""
        return f"{self.pin.path}@{self.pin.version}/{self.cache_name}"

    def is_after(self, stream: str, seq: int) -> bool:
        """Whether the snapshot is a later one than a commit, on the same branch.

        Then a row id that both have is the same row: along a branch none is given out twice, but
        two branches may give the same one to different rows.
        """
        snapshot = self.view.snapshot
        return seq < snapshot.seq and snapshot.stream.owner_of(seq).id == stream

    @property
    def vector_bytes(self) -> int:
        """How many bytes the vectors of the property take."""
        kind = self.view.get_shape(self.type_key).schema.field(self.column).type
        return self.pin.rows * int(kind.list_size) * _COMPONENT_BYTES

    def read_row_ids(self) -> RowIds:
        """The rows of the version."""
        found: RowIds = (
            self.view.open_table(self.type_key).scan(columns=[ROW_ID])[ROW_ID].to_numpy()
        )
        return found

    def read_rows(
        self, row_ids: RowIds | None, *, check: Callable[[], None] = lambda: None
    ) -> tuple[RowIds, pa.ChunkedArray]:
        """The values of some rows, or of all, in the order of row ids.

        `check` is called between batches, and may raise.
        """
        table, columns = self.view.open_table(self.type_key), [ROW_ID, self.column]
        batches: list[pa.RecordBatch] = []
        if row_ids is None:
            for batch in table.scan_batches(columns=columns):
                check()
                batches.append(batch)
        else:
            for start in range(0, len(row_ids), _FETCHED_ROWS):
                check()
                some = pa.array(row_ids[start : start + _FETCHED_ROWS])
                batches += table.fetch_rows(some, columns=columns).to_batches()
        found = pa.Table.from_batches(batches, table.project_schema(columns))
        rows: RowIds = found[ROW_ID].to_numpy()
        if bool(np.all(rows[1:] > rows[:-1])):
            return rows, found[self.column]
        order = np.argsort(rows, kind="stable")
        values = found[self.column].combine_chunks().take(pa.array(order))
        return rows[order], pa.chunked_array([values])

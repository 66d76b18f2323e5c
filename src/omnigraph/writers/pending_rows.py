"""The rows that a mutation has written to one type so far, where its later statements see them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.type_scan import evaluate_conditions
from omnigraph.query import typed_tree
from omnigraph.rows.columns import TableShape
from omnigraph.rows.evaluator import Params
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.assignments import Cell
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import (
    COPIES,
    NO_COPIES,
    NO_IDS,
    TypeChange,
    WriteMode,
    combine_column,
)
from omnigraph.writers.matching_rows import SharedRows

# One chunk of equal cells, which a column repeats by reference however long it is.
_CHUNK_ROWS: Final = 65_536
_CHUNK_BYTES: Final = 16 * 1024 * 1024
# Chunks of rows that statements wrote, before they are joined: joining copies them all.
_CHUNKS_MAX: Final = 8


class PendingRows:
    """The newest row of every entity that a mutation has written to one type."""

    def __init__(self, shape: TableShape) -> None:
        self._shape = shape
        self._rows: pa.Table | None = None
        # Single rows by id, not in `_rows` yet: a mutation of many inserts makes one table.
        self._inserted: dict[str, Mapping[str, Cell]] = {}
        self._keyed: set[str] = set()
        # What is assigned to single committed entities that are not in `_rows` yet, by id.
        self._assigned: dict[str, dict[str, Cell]] = {}
        self._shared: SharedRows | None = None
        self._found: list[pa.Table] = []
        # What statements wrote: as it still is, and where a later one may have replaced parts.
        self._batches: list[pa.Table] = []
        self._replaced_batches: list[pa.Table] = []

    def insert_row(self, entity_id: str, cells: Mapping[str, Cell]) -> None:
        """Write one row, given by column; columns left out are null."""
        self._inserted[entity_id] = {ID_COLUMN: entity_id, **cells}
        self._assigned.pop(entity_id, None)
        if self._shape.key:
            self._keyed.add(entity_id)

    @property
    def are_single(self) -> bool:
        """Whether only single rows were written, so that another one is found by its id."""
        return self._rows is None

    def assign_cells(self, entity_id: str, cells: Mapping[str, Cell], shared: SharedRows) -> int:
        """Assign cells to one entity, as it is now; how many there are of it: one or none."""
        assert self.are_single
        if entity_id in self._inserted:
            self._inserted[entity_id] = {**self._inserted[entity_id], **cells}
        elif entity_id in shared:
            self._shared = shared
            self._assigned.setdefault(entity_id, {}).update(cells)
        else:
            return 0
        return 1

    def filter_unwritten(self, committed: pa.Table) -> pa.Table:
        """The committed rows that no statement has written: others are seen in their new form."""
        self._flush_inserted()
        if self._rows is None:
            return committed
        return committed.filter(pc.invert(_are_in(committed[ID_COLUMN], self._rows)))

    def update_matching(
        self,
        committed: pa.Table,
        conditions: Sequence[typed_tree.Expr],
        cells: Mapping[str, Cell],
        params: Params,
    ) -> int:
        """Assign cells to all matching rows: committed ones with their row ids, and pending."""
        self._flush_inserted()
        matched = [committed]
        if self._rows is not None:
            is_touched = evaluate_conditions(self._rows, self._shape, conditions, params)
            matched = [committed, self._rows.filter(is_touched)]
            if matched[1].num_rows:
                self._supersede_rows(self._rows.filter(pc.invert(is_touched)))
        schema = self._shape.schema
        parts = [_assign_columns(rows, cells, schema) for rows in matched if rows.num_rows]
        if not parts:
            return 0
        written = pa.concat_tables(parts)
        self._add_rows(written)
        # A single row is unique in itself.
        if written.num_rows > 1:
            self._batches.append(written)
        if committed.num_rows:
            self._found.append(committed.select(COPIES.names).cast(COPIES))
        return int(written.num_rows)

    def build_change(self, committed: CommittedState) -> TypeChange | None:
        """What was done to the type; None if nothing was."""
        self._flush_inserted()
        if self._rows is None:
            return None
        is_only_new = not self._shape.key and not self._found
        return TypeChange(
            shape=self._shape,
            mode=WriteMode.INSERT if is_only_new else WriteMode.UPSERT,
            rows=self._rows,
            deleted=NO_IDS,
            known_copies=self._find_known_copies(committed),
            batches=tuple(self._replaced_batches),
        )

    def _find_known_copies(self, committed: CommittedState) -> pa.Table | None:
        """The committed copies of all rows; None if the reader has to look them up."""
        if not self._keyed:
            # A fresh id has no committed copy.
            return pa.concat_tables([NO_COPIES, *self._found])
        if not self._found:
            return None
        found = pa.concat_tables(self._found)
        inserted = pa.array(sorted(self._keyed), pa.utf8())
        unknown = inserted.filter(pc.invert(_are_in(inserted, found)))
        copies = committed.find_copies(self._shape.type_key, unknown)
        return pa.concat_tables([found, copies.select(COPIES.names).cast(COPIES)])

    def _flush_inserted(self) -> None:
        self._flush_assigned()
        if not self._inserted:
            return
        inserted = _build_table(self._inserted.values(), self._shape.schema)
        self._inserted = {}
        if self._rows is not None:
            is_replaced = _are_in(self._rows[ID_COLUMN], inserted)
            if pc.any(is_replaced).as_py():
                self._supersede_rows(self._rows.filter(pc.invert(is_replaced)))
        self._add_rows(inserted)

    def _flush_assigned(self) -> None:
        if not self._assigned or self._shared is None:
            return
        assigned, self._assigned = self._assigned, {}
        schema, cells = self._shape.schema, list(assigned.values())
        blobs = [f.name for f in schema if is_blob(f) and any(f.name not in each for each in cells)]
        committed = self._shared.select_rows(assigned, blobs=blobs)
        columns = [_overlay_column(committed, cells, field) for field in schema]
        self._add_rows(pa.Table.from_arrays(columns, schema=schema))
        self._found.append(committed.select(COPIES.names).cast(COPIES))

    def _supersede_rows(self, kept: pa.Table) -> None:
        self._rows = kept
        self._replaced_batches += self._batches
        self._batches = []

    def _add_rows(self, rows: pa.Table) -> None:
        if self._rows is None:
            self._rows = rows
            return
        self._rows = pa.concat_tables([self._rows, rows])
        # Conditions are evaluated chunk by chunk, and most statements add a chunk of one row.
        if self._rows[ID_COLUMN].num_chunks > _CHUNKS_MAX:
            self._rows = self._rows.combine_chunks()


def _are_in(ids: pa.Array | pa.ChunkedArray, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
    return pc.is_in(ids, value_set=rows[ID_COLUMN])


def _build_table(rows: Collection[Mapping[str, Cell]], schema: pa.Schema) -> pa.Table:
    """Rows given by column."""
    if len(rows) == 1:
        # Each array that is made lets other threads in between, which costs more than the array.
        row = pa.array(list(rows), pa.struct(schema))
        columns = [row.field(at) for at in range(len(schema))]
    else:
        columns = [pa.array([cells.get(f.name) for cells in rows], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _overlay_column(
    rows: pa.Table, cells: Sequence[Mapping[str, Cell]], field: pa.Field
) -> pa.Array | pa.ChunkedArray:
    """A column of rows where each may be given another cell."""
    given = np.array([field.name in each for each in cells])
    if not given.any():
        return rows[field.name]
    assigned = pa.array([each.get(field.name) for each in cells], field.type)
    if given.all():
        return assigned
    count = len(cells)
    both = pa.concat_arrays([assigned, combine_column(rows[field.name])])
    return both.take(pa.array(np.where(given, 0, count) + np.arange(count)))


def _assign_columns(rows: pa.Table, cells: Mapping[str, Cell], schema: pa.Schema) -> pa.Table:
    """The rows with some columns replaced by one cell each."""
    columns = [
        _repeat_cell(cells[field.name], field.type, rows.num_rows)
        if field.name in cells
        else rows[field.name]
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _repeat_cell(cell: Cell, type_: pa.DataType, count: int) -> pa.ChunkedArray:
    """A column of equal cells; it takes the memory of one chunk."""
    one = pa.array([cell], type_)
    chunk_rows = max(1, min(count, _CHUNK_ROWS, _CHUNK_BYTES // max(one.nbytes, 1)))
    chunk = pa.repeat(one[0], chunk_rows)
    whole, rest = divmod(count, chunk_rows)
    chunks = [chunk] * whole + ([chunk.slice(0, rest)] if rest else [])
    return pa.chunked_array(chunks, type_)

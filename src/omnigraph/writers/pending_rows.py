"""The rows that a mutation has written to one type so far, where its later statements see them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, KeyConflictError
from omnigraph.execution.type_scan import evaluate_conditions
from omnigraph.query import typed_tree
from omnigraph.query.ast import WriteVerb
from omnigraph.rows.evaluator import Params
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.assignments import Cell, require_complete
from omnigraph.writers.computed_values import RowAssignments
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import (
    NO_IDS,
    TypeChange,
    WriteMode,
    combine_column,
    copies_schema_of,
)
from omnigraph.writers.matching_rows import CommittedRows, SharedRows, fill_columns

_Mask: TypeAlias = npt.NDArray[np.bool_]

# Chunks of rows that statements wrote, before they are joined: joining copies them all.
_CHUNKS_MAX: Final = 8


class PendingRows:
    """The newest row of every entity that a mutation has written to one type."""

    def __init__(
        self, type_: NodeType | EdgeType, committed: CommittedRows, state: CommittedState
    ) -> None:
        self._type = type_
        self._shape = committed.shape
        self._copies = copies_schema_of(committed.shape.type_key)
        self._committed = committed
        self._state = state
        self._rows: pa.Table | None = None
        # Single rows by id, not in `_rows` yet: a mutation of many inserts makes one table.
        self._inserted: dict[str, Mapping[str, Cell]] = {}
        self._keyed: set[str] = set()
        # Entities that must be new, as far as that has not been looked up.
        self._created: list[str] = []
        # Entities that statements deleted; those among them that exist again are in `_rows`.
        self._deleted: pa.Array = NO_IDS
        # What upserts assign to single entities that are not in `_rows` yet, by id.
        self._patched: dict[str, dict[str, Cell]] = {}
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
        self._patched.pop(entity_id, None)
        if self._shape.key:
            self._keyed.add(entity_id)

    def create_row(self, entity_id: str, cells: Mapping[str, Cell]) -> None:
        """The same of an entity that must not exist."""
        if self._shape.key:
            if any(entity_id in each for each in (self._inserted, self._assigned, self._patched)):
                raise self._build_conflict([entity_id])
            self._created.append(entity_id)
        self.insert_row(entity_id, cells)

    def assign_row(self, entity_id: str, cells: Mapping[str, Cell]) -> None:
        """Assign cells to an entity, which is made if it does not exist."""
        if entity_id in self._inserted:
            self._inserted[entity_id] = {**self._inserted[entity_id], **cells}
            return
        earlier = self._patched.get(entity_id) or self._assigned.pop(entity_id, {})
        self._patched[entity_id] = {**earlier, **cells}

    def assign_computed(
        self, entity_id: str, cells: Mapping[str, Cell], assignments: RowAssignments
    ) -> None:
        """Assign values that are computed from the entity as it is, or from nulls."""
        self._flush_inserted()
        names = {*cells, *assignments.columns}
        current, is_there = self._align_rows([entity_id], assignments.overwritten)
        given = {**cells, **assignments.cells}
        if not is_there[0]:
            members = {column: name for name, column in self._shape.columns.items()}
            require_complete(self._type, {members.get(name, name) for name in names})
        seen = _overlay_rows(current, [{ID_COLUMN: entity_id}], self._shape.schema)
        written = assignments.assign(seen)
        self._replace_rows(
            _overlay_rows(written, [{ID_COLUMN: entity_id, **given}], written.schema)
        )

    def assign_columns(self, ids: pa.Array, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Assign a value of each column to entities, as far as they exist; those that do."""
        self._flush_inserted()
        rows, is_there = self._align_rows(ids, columns.keys())
        if not is_there.all():
            mask = pa.array(is_there)
            rows, ids = rows.filter(mask), ids.filter(mask)
            columns = {name: each.filter(mask) for name, each in columns.items()}
        self._write_batch(self._put_columns(rows, ids, columns))
        return ids

    def write_columns(
        self, ids: pa.Array, columns: Mapping[str, pa.Array], verb: WriteVerb
    ) -> None:
        """Write entities as a verb says, one column of values for each column that is given."""
        self._flush_inserted()
        schema, is_patch = self._shape.schema, verb is WriteVerb.UPSERT
        rows, is_there = self._align_rows(ids, columns.keys() if is_patch else schema.names)
        if verb is WriteVerb.CREATE and is_there.any():
            raise self._build_conflict(ids.filter(pa.array(is_there)).to_pylist())
        if not is_patch:
            rows = fill_columns(pa.table({ID_COLUMN: ids}), schema)
        if not is_patch or not is_there.all():
            names = {column: name for name, column in self._shape.columns.items()}
            require_complete(self._type, {names.get(column, column) for column in columns})
        self._write_batch(self._put_columns(rows, ids, columns))

    def _put_columns(
        self, rows: pa.Table, ids: pa.Array, columns: Mapping[str, pa.Array]
    ) -> pa.Table:
        given = {**columns, ID_COLUMN: ids}
        schema = self._shape.schema
        arrays = [given.get(field.name, rows[field.name]) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _write_batch(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        self._replace_rows(rows)
        if rows.num_rows > 1:
            self._batches.append(rows)

    @property
    def are_single(self) -> bool:
        """Whether only single rows were written, so that another one is found by its id."""
        return self._rows is None and not len(self._deleted)

    def assign_cells(self, entity_id: str, cells: Mapping[str, Cell], shared: SharedRows) -> int:
        """Assign cells to one entity, as it is now; how many there are of it: one or none."""
        assert self.are_single
        if entity_id in self._inserted or entity_id in self._patched:
            self.assign_row(entity_id, cells)
        elif entity_id in shared:
            self._shared = shared
            self._assigned.setdefault(entity_id, {}).update(cells)
        else:
            return 0
        return 1

    def filter_unwritten(self, committed: pa.Table) -> pa.Table:
        """The committed rows that no statement has written: others are seen in their new form."""
        self._flush_inserted()
        for known in (self._rows, self._deleted):
            if known is not None and len(known) and committed.num_rows:
                committed = committed.filter(pc.invert(_are_in(committed[ID_COLUMN], known)))
        return committed

    def find_matching(self, conditions: Sequence[typed_tree.Expr], params: Params) -> pa.Array:
        """The ids of written rows that satisfy conditions."""
        self._flush_inserted()
        if self._rows is None:
            return NO_IDS
        mask = evaluate_conditions(self._rows, self._shape, conditions, params)
        return combine_column(self._rows[ID_COLUMN].filter(mask))

    def find_written(self, column: str, values: pa.Array) -> pa.Array:
        """The ids of written rows that hold one of some values in a column."""
        self._flush_inserted()
        if self._rows is None:
            return NO_IDS
        return combine_column(self._rows[ID_COLUMN].filter(_are_in(self._rows[column], values)))

    def delete_rows(self, ids: pa.Array, copies: pa.Table) -> None:
        """End entities; `copies` are the committed ones of those that no statement wrote."""
        self._flush_inserted()
        if self._rows is not None:
            self._supersede_rows(self._rows.filter(pc.invert(_are_in(self._rows[ID_COLUMN], ids))))
        self._deleted = pa.chunked_array([self._deleted, ids]).unique()
        if copies.num_rows:
            self._found.append(copies)

    def update_matching(
        self,
        committed: pa.Table,
        conditions: Sequence[typed_tree.Expr],
        assignments: RowAssignments,
        params: Params,
    ) -> int:
        """Assign values to all matching rows: committed ones with their row ids, and pending."""
        self._flush_inserted()
        matched = [committed]
        if self._rows is not None:
            is_touched = evaluate_conditions(self._rows, self._shape, conditions, params)
            matched = [committed, self._rows.filter(is_touched)]
            if matched[1].num_rows:
                self._supersede_rows(self._rows.filter(pc.invert(is_touched)))
        parts = [assignments.assign(rows) for rows in matched if rows.num_rows]
        if not parts:
            return 0
        written = pa.concat_tables(parts)
        self._add_rows(written)
        # A single row is unique in itself.
        if written.num_rows > 1:
            self._batches.append(written)
        if committed.num_rows:
            self._found.append(self._select_copies(committed))
        return int(written.num_rows)

    def build_change(self) -> TypeChange | None:
        """What was done to the type; None if nothing was."""
        self._flush_inserted()
        rows = self._shape.schema.empty_table() if self._rows is None else self._rows
        is_only_new = not self._shape.key and not self._found
        copies = self._find_known_copies()
        ended = self._deleted
        if copies is not None and len(ended):
            is_there = _are_in(ended, combine_column(copies[ID_COLUMN]))
            ended = ended.filter(pc.and_(is_there, pc.invert(_are_in(ended, rows))))
        if not rows.num_rows and not len(ended):
            return None
        return TypeChange(
            shape=self._shape,
            mode=WriteMode.INSERT if is_only_new else WriteMode.UPSERT,
            rows=rows,
            deleted=ended,
            known_copies=None if copies is None else _select_copies_of(copies, rows, ended),
            is_cascade=bool(len(ended)) and self._shape.type_key.kind is TypeKind.NODE,
            batches=tuple(self._replaced_batches),
        )

    def _find_known_copies(self) -> pa.Table | None:
        """The committed copies of all written and deleted entities.

        None if entities were inserted and nothing else: the reader looks them up.
        """
        if self._keyed and not self._found and not len(self._deleted):
            return None
        found = pa.concat_tables([self._copies.empty_table(), *self._found])
        parts = [self._deleted]
        if self._keyed:
            # A fresh id has no committed copy; a given one may have.
            parts.append(pa.array(sorted(self._keyed), pa.utf8()))
        unknown = pa.chunked_array(parts, pa.utf8()).unique()
        unknown = unknown.filter(pc.invert(_are_in(unknown, found)))
        if not len(unknown):
            return found
        copies = self._state.find_copies(self._shape.type_key, unknown, self._copies.empty_table())
        return pa.concat_tables([found, self._select_copies(copies)])

    def _flush_inserted(self) -> None:
        self._require_new()
        self._flush_assigned()
        self._flush_patched()
        if self._inserted:
            inserted = _build_table(self._inserted.values(), self._shape.schema)
            self._inserted = {}
            self._replace_rows(inserted)

    def _require_new(self) -> None:
        if not self._created:
            return
        created, self._created = pa.array(self._created, pa.utf8()), []
        is_there = self._state.find_existing(self._shape.type_key, created)
        is_there = pc.and_(is_there, pc.invert(_are_in(created, self._deleted)))
        if self._rows is not None:
            is_there = pc.or_(is_there, _are_in(created, self._rows))
        if is_there.true_count:
            raise self._build_conflict(created.filter(is_there).to_pylist())

    def _build_conflict(self, ids: Sequence[str]) -> KeyConflictError:
        type_key, first = self._shape.type_key, ids[0]
        others = [
            KeyConflictError.build_violation(type_key.name, each, None)
            for each in ids[1:VIOLATIONS_SHOWN_MAX]
        ]
        return KeyConflictError(
            type_key.name,
            first,
            others=others,
            count=len(ids),
            entity_kind=str(type_key.kind),
            hint="write 'upsert' to change what exists, or 'replace' to write it anew",
        )

    def _flush_patched(self) -> None:
        if not self._patched:
            return
        patched, self._patched = self._patched, {}
        cells = [{ID_COLUMN: entity_id, **each} for entity_id, each in patched.items()]
        always = set.intersection(*map(set, cells))
        rows, is_there = self._align_rows(list(patched), always)
        if not is_there.all():
            self._require_complete([cells[at] for at in np.flatnonzero(~is_there)])
        self._replace_rows(_overlay_rows(rows, cells, self._shape.schema))

    def _require_complete(self, new: Sequence[Mapping[str, Cell]]) -> None:
        names = {column: name for name, column in self._shape.columns.items()}
        for given in {frozenset(cells): cells for cells in new}.values():
            require_complete(self._type, {names.get(column, column) for column in given})

    def _align_rows(
        self, entity_ids: Sequence[str] | pa.Array, assigned: Collection[str]
    ) -> tuple[pa.Table, _Mask]:
        """The rows of entities as they are, in this order, and which of them there are.

        Of those that there are not, everything is null; what is assigned is not read.
        """
        wanted = pa.array(entity_ids, pa.utf8())
        unwritten = wanted.filter(pc.invert(_are_in(wanted, self._deleted)))
        if self._rows is not None:
            unwritten = unwritten.filter(pc.invert(_are_in(unwritten, self._rows)))
        kept = [field.name for field in self._shape.schema if field.name not in assigned]
        committed = self._committed.find_rows(unwritten, kept)
        if committed.num_rows:
            self._found.append(self._select_copies(committed))
        rows = fill_columns(committed, self._shape.schema)
        if self._rows is not None:
            rows = pa.concat_tables(
                [self._rows.filter(_are_in(self._rows[ID_COLUMN], wanted)), rows]
            )
        places = pc.index_in(wanted, value_set=combine_column(rows[ID_COLUMN]))
        return rows.take(places), np.asarray(places.is_valid())

    def _replace_rows(self, rows: pa.Table) -> None:
        """Write rows, which take the place of those with their ids."""
        if self._rows is not None:
            is_replaced = _are_in(self._rows[ID_COLUMN], rows)
            if pc.any(is_replaced).as_py():
                self._supersede_rows(self._rows.filter(pc.invert(is_replaced)))
        self._add_rows(rows)

    def _flush_assigned(self) -> None:
        if not self._assigned or self._shared is None:
            return
        assigned, self._assigned = self._assigned, {}
        schema, cells = self._shape.schema, list(assigned.values())
        blobs = [f.name for f in schema if is_blob(f) and any(f.name not in each for each in cells)]
        committed = self._shared.select_rows(assigned, blobs=blobs)
        self._add_rows(_overlay_rows(committed, cells, schema))
        self._found.append(self._select_copies(committed))

    def _select_copies(self, rows: pa.Table) -> pa.Table:
        return rows.select(self._copies.names).cast(self._copies)

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


def _are_in(ids: pa.Array | pa.ChunkedArray, rows: pa.Table | pa.Array) -> pa.Array:
    known = rows[ID_COLUMN] if isinstance(rows, pa.Table) else rows
    return pc.is_in(ids, value_set=known)


def _select_copies_of(copies: pa.Table, rows: pa.Table, ended: pa.Array) -> pa.Table:
    """The copies of what is written or ends at last; of others there is nothing to do."""
    is_needed = pc.or_(_are_in(copies[ID_COLUMN], rows), _are_in(copies[ID_COLUMN], ended))
    return copies if pc.all(is_needed).as_py() in (True, None) else copies.filter(is_needed)


def _build_table(rows: Collection[Mapping[str, Cell]], schema: pa.Schema) -> pa.Table:
    """Rows given by column."""
    if len(rows) == 1:
        # Each array that is made lets other threads in between, which costs more than the array.
        row = pa.array(list(rows), pa.struct(schema))
        columns = [row.field(at) for at in range(len(schema))]
    else:
        columns = [pa.array([cells.get(f.name) for cells in rows], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _overlay_rows(
    rows: pa.Table, cells: Sequence[Mapping[str, Cell]], schema: pa.Schema
) -> pa.Table:
    """Rows where each may be given other cells."""
    columns = [_overlay_column(rows, cells, field) for field in schema]
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

"""The rows that a mutation has written to one type so far, where its later statements see them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.type_scan import evaluate_conditions
from omnigraph.query import typed_tree
from omnigraph.query.ast import WriteVerb
from omnigraph.query.typed_tree import Value
from omnigraph.rows.evaluator import Params
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.assignments import Cell, require_complete
from omnigraph.writers.computed_values import RowAssignments
from omnigraph.writers.default_values import DefaultValues, has_defaults
from omnigraph.writers.existing_rows import CommittedState, build_key_conflict
from omnigraph.writers.graph_change import (
    NO_IDS,
    TypeChange,
    WriteMode,
    combine_column,
    copies_schema_of,
)
from omnigraph.writers.matching_rows import CommittedRows, SharedRows, fill_columns
from omnigraph.writers.single_rows import Origin, SingleRow, apply_steps, build_rows

_Mask: TypeAlias = npt.NDArray[np.bool_]

# Chunks of rows that statements wrote, before they are joined: joining copies them all.
_CHUNKS_MAX: Final = 8


class PendingRows:
    """The newest row of every entity that a mutation has written to one type."""

    def __init__(
        self,
        type_: NodeType | EdgeType,
        committed: CommittedRows,
        state: CommittedState,
        now: Value = None,
    ) -> None:
        self._type = type_
        self._shape = committed.shape
        self._copies = copies_schema_of(committed.shape.type_key)
        self._committed = committed
        self._state = state
        self._defaults = (
            DefaultValues.from_type(type_, committed.shape, now) if has_defaults(type_) else None
        )
        self._rows: pa.Table | None = None
        # Single entities by id, not in `_rows` yet: many statements make one table.
        self._single: dict[str, SingleRow] = {}
        # The ids of entities with a key that were written whole.
        self._keyed: set[str] = set()
        # Entities that must be new, as far as that has not been looked up.
        self._created: list[str] = []
        # Entities that statements deleted; those among them that exist again are in `_rows`.
        self._deleted: pa.Array = NO_IDS
        # The committed entities that statements update by id.
        self._shared: SharedRows | None = None
        # The committed copies of what was updated.
        self._found: list[pa.Table] = []
        # What statements wrote: as it still is, and where a later one may have replaced parts.
        self._batches: list[pa.Table] = []
        self._replaced_batches: list[pa.Table] = []

    def insert_row(self, entity_id: str, cells: Mapping[str, Cell]) -> None:
        """Write one row, given by column; columns left out have their defaults or are null."""
        row = self._single[entity_id] = SingleRow(Origin.WRITTEN, self._defaults)
        row.assign({ID_COLUMN: entity_id, **cells})
        row.assign_defaults()
        if self._shape.key:
            self._keyed.add(entity_id)

    def create_row(self, entity_id: str, cells: Mapping[str, Cell]) -> None:
        """The same of an entity that must not exist."""
        if self._shape.key:
            if entity_id in self._single:
                raise build_key_conflict(self._shape.type_key, [entity_id])
            self._created.append(entity_id)
        self.insert_row(entity_id, cells)

    def assign_row(
        self, entity_id: str, cells: Mapping[str, Cell], computed: RowAssignments | None
    ) -> None:
        """Assign to an entity, which is made if it does not exist: cells, and computed values.

        These are computed from the entity as it is, or from nulls.
        """
        row = self._single.get(entity_id)
        if row is None:
            row = self._single[entity_id] = SingleRow(Origin.UNKNOWN, self._defaults)
        row.assign(cells, computed)

    def assign_columns(self, ids: pa.Array, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Assign a value of each column to entities, as far as they exist; those that do."""
        self._flush_single()
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
        self._flush_single()
        schema, is_patch = self._shape.schema, verb is WriteVerb.UPSERT
        rows, is_there = self._align_rows(ids, columns.keys() if is_patch else schema.names)
        if verb is WriteVerb.CREATE and is_there.any():
            raise build_key_conflict(
                self._shape.type_key, ids.filter(pa.array(is_there)).to_pylist()
            )
        if not is_patch:
            rows = fill_columns(pa.table({ID_COLUMN: ids}), schema)
        if not is_patch or not is_there.all():
            names = {column: name for name, column in self._shape.columns.items()}
            self._require_complete({names.get(column, column) for column in columns})
        written = self._put_columns(rows, ids, columns)
        if self._defaults is not None:
            is_new = ~is_there if is_patch else np.ones(len(ids), np.bool_)
            absent = dict.fromkeys(self._defaults.columns.difference(columns), is_new)
            written = self._defaults.fill_rows(written, absent)
        self._write_batch(written)

    def read_rows(self, ids: pa.Array, columns: Collection[str]) -> tuple[pa.Table, _Mask]:
        """Some columns of entities as they are, in this order, and which of them there are."""
        self._flush_single()
        others = {name for name in self._shape.schema.names if name not in columns}
        rows, is_there = self._align_rows(ids, others, is_written=False)
        return self._put_columns(rows, ids, {}), is_there

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

    def update_row(self, entity_id: str, values: RowAssignments, shared: SharedRows) -> int:
        """Assign to one entity, as it is now; how many there are of it: one or none."""
        assert self.are_single
        row = self._single.get(entity_id)
        if row is None:
            if entity_id not in shared:
                return 0
            self._shared = shared
            row = self._single[entity_id] = SingleRow(Origin.COMMITTED)
        row.assign(values.cells, values if values.computed else None)
        return 1

    def filter_unwritten(self, committed: pa.Table) -> pa.Table:
        """The committed rows that no statement has written: others are seen in their new form."""
        self._flush_single()
        for known in (self._rows, self._deleted):
            if known is not None and len(known) and committed.num_rows:
                committed = committed.filter(pc.invert(_are_in(committed[ID_COLUMN], known)))
        return committed

    def find_matching(self, conditions: Sequence[typed_tree.Expr], params: Params) -> pa.Array:
        """The ids of written rows that satisfy conditions."""
        self._flush_single()
        if self._rows is None:
            return NO_IDS
        mask = evaluate_conditions(self._rows, self._shape, conditions, params)
        return combine_column(self._rows[ID_COLUMN].filter(mask))

    def find_written(self, column: str, values: pa.Array) -> pa.Array:
        """The ids of written rows that hold one of some values in a column."""
        self._flush_single()
        if self._rows is None:
            return NO_IDS
        return combine_column(self._rows[ID_COLUMN].filter(_are_in(self._rows[column], values)))

    def delete_rows(self, ids: pa.Array, copies: pa.Table) -> None:
        """End entities; `copies` are the committed ones of those that no statement wrote."""
        self._flush_single()
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
        self._flush_single()
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
        self._flush_single()
        rows = self._shape.schema.empty_table() if self._rows is None else self._rows
        is_only_new = not self._shape.key and not self._found
        copies = self._find_known_copies()
        ended = self._deleted
        if copies is not None and len(ended):
            is_there = _are_in(ended, combine_column(copies[ID_COLUMN]))
            ended = ended.filter(pc.and_(is_there, pc.invert(_are_in(ended, rows))))
            copies = _select_copies_of(copies, rows, ended)
        if not rows.num_rows and not len(ended):
            return None
        return TypeChange(
            shape=self._shape,
            mode=WriteMode.INSERT if is_only_new else WriteMode.UPSERT,
            rows=rows,
            deleted=ended,
            known_copies=copies,
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

    def _flush_single(self) -> None:
        self._require_new()
        if not self._single:
            return
        single, self._single = self._single, {}
        tables, entities = [], list[SingleRow]()
        for origin in Origin:
            own = {id_: row for id_, row in single.items() if row.origin is origin}
            if own:
                tables.append(self._read_single(origin, own))
                entities += own.values()
        self._replace_rows(apply_steps(pa.concat_tables(tables), entities))

    def _read_single(self, origin: Origin, entities: Mapping[str, SingleRow]) -> pa.Table:
        """Single entities as their first statements found or wrote them."""
        schema, rows = self._shape.schema, entities.values()
        if origin is Origin.WRITTEN:
            return build_rows(rows, schema)
        kept = frozenset.intersection(*(each.overwritten for each in rows))
        if origin is Origin.COMMITTED:
            assert self._shared is not None
            blobs = [f.name for f in schema if is_blob(f) and f.name not in kept]
            committed = self._shared.select_rows(entities, blobs=blobs)
            self._found.append(self._select_copies(committed))
            return fill_columns(committed, schema)
        ids = list(entities)
        found, is_there = self._align_rows(ids, kept)
        names = {column: name for name, column in self._shape.columns.items()}
        new = {
            frozenset(row.given) for row, is_old in zip(rows, is_there, strict=True) if not is_old
        }
        for given in new:
            self._require_complete({names.get(column, column) for column in given})
        for row, is_old in zip(rows, is_there, strict=True):
            if not is_old:
                row.assign_defaults()
        index = schema.get_field_index(ID_COLUMN)
        return found.set_column(index, schema.field(index), pa.array(ids, pa.utf8()))

    def _require_complete(self, given: Collection[str]) -> None:
        require_complete(self._type, given, fills_vectors=self._state.fills_vectors)

    def _require_new(self) -> None:
        if not self._created:
            return
        created, self._created = pa.array(self._created, pa.utf8()), []
        is_there = self._state.find_existing(self._shape.type_key, created)
        is_there = pc.and_(is_there, pc.invert(_are_in(created, self._deleted)))
        if self._rows is not None:
            is_there = pc.or_(is_there, _are_in(created, self._rows))
        if is_there.true_count:
            raise build_key_conflict(self._shape.type_key, created.filter(is_there).to_pylist())

    def _align_rows(
        self,
        entity_ids: Sequence[str] | pa.Array,
        assigned: Collection[str],
        *,
        is_written: bool = True,
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
        if committed.num_rows and is_written:
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

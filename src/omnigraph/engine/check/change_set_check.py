"""What commits say they changed, compared with the rows that moved between table versions.

What two versions share is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.row_comparison import compare_columns
from omnigraph.engine.check.check_problems import Problems
from omnigraph.engine.check.checked_reads import TornFiles, read_blobs
from omnigraph.engine.check.schema_check import SchemaCheck
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape, build_table_shape
from omnigraph.rows.view import View, table_types_of
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.converted_columns import find_previous_column
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning import change_sets
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Maintenance, Record, Spilled
from omnigraph.writers.graph_change import MARKS_MAX
from omnigraph.writers.validate import marks_of
from omnigraph.writers.validate.unique_groups import groups_of

KIND = "change_set"
_ENDS = (SOURCE_COLUMN, TARGET_COLUMN)
_NO_IDS = pa.array([], pa.large_string())
_NO_ROWS = pa.table({ID_COLUMN: _NO_IDS, ROW_ID: pa.array([], pa.uint64())})


@dataclass(frozen=True, slots=True)
class _TypeStep:
    """One type over one commit: its table before and after, and where to report.

    `view` is the commit, if it leaves the schema alone. Otherwise `filled` are the columns that
    have a default where there was no value.
    """

    where: str
    type_key: str
    view: View | None
    before: Pin | None
    after: Pin
    filled: frozenset[str] = frozenset()


class ChangeSetCheck:
    """Compares what commits say with their tables; what a commit left alone is not read."""

    def __init__(
        self, objects: Objects, torn: TornFiles, schemas: SchemaCheck, problems: Problems
    ) -> None:
        self._objects = objects
        self._torn = torn
        self._tables = torn.tables
        self._schemas = schemas
        self._problems = problems

    def check(self, record: Record, before: Snapshot, after: Snapshot) -> None:
        """Report where a commit and its change sets disagree."""
        stored = self._schemas.get(after.schema)
        is_same = before.schema == after.schema
        view = None if stored is None or not is_same else View(after, stored, self._tables)
        filled = {} if stored is None or is_same else _index_filled_columns(stored.accepted)
        old_names = {new: old for old, new in record.renamed.items()}
        for type_key, pin in sorted(after.pins.items()):
            is_new = type_key in record.registered
            old = None if is_new else before.pins.get(old_names.get(type_key, type_key))
            change = record.changes.get(type_key)
            where = f"{layout.build_record_path(record.stream, record.seq)} {type_key}"
            if change is not None or (old is not None and old != pin):
                columns = filled.get(type_key, frozenset())
                step = _TypeStep(where, type_key, view, old, pin, columns)
                self._problems.attempt(KIND, where, partial(self._check_type, step, change))

    def _check_type(self, step: _TypeStep, change: ChangeSet | None) -> None:
        loaded = None if change is None else change_sets.load_change_set(self._objects, change)
        if isinstance(loaded, Bulk) and (step.before is None or step.before.rows == 0):
            # All rows are new, and their number was compared with the pin: no id is needed.
            self._check_bulk_rows(step, loaded, new=step.after.rows, kept=0)
            return
        moved = _compare_versions(step.before, step.after, self._torn)
        match loaded:
            case Changed():
                self._check_counts(step, change, loaded)
                self._check_changed(step, loaded, moved)
            case Bulk():
                self._check_bulk(step, loaded, moved)
            case Maintenance() | None:
                self._check_unchanged(step, moved)
            case _:
                assert_never(loaded)

    # ---- each form of a change set ----

    def _check_counts(self, step: _TypeStep, change: ChangeSet | None, loaded: Changed) -> None:
        if not isinstance(change, Spilled):
            return
        counts = (change.inserted, change.updated, change.deleted)
        found = (len(loaded.inserted), len(loaded.updated), len(loaded.deleted))
        if counts != found:
            message = f"{change.file} lists {found} ids, and the record says {counts}"
            self._problems.add(KIND, step.where, message)

    def _check_changed(self, step: _TypeStep, listed: Changed, moved: _MovedRows) -> None:
        inserted, updated, deleted = map(
            IdSet.to_array, (listed.inserted, listed.updated, listed.deleted)
        )
        report = partial(self._problems.add_ids, KIND, step.where)
        report(_exclude_ids(moved.inserted, inserted), "'{id}' was inserted and is not listed")
        report(_exclude_ids(inserted, moved.inserted), "'{id}' is listed as inserted and was not")
        report(_exclude_ids(moved.deleted, deleted), "'{id}' was deleted and is not listed")
        report(_exclude_ids(deleted, moved.deleted), "'{id}' is listed as deleted and was not")
        unseen = _exclude_ids(updated, moved.rewritten)
        present = self._select_present(step.before, self._select_present(step.after, unseen))
        report(_exclude_ids(unseen, present), "'{id}' is listed as updated and was not")
        self._check_values(step, moved, _exclude_ids(moved.rewritten, updated))
        self._check_marks(step, listed, moved)

    def _check_marks(self, step: _TypeStep, listed: Changed, moved: _MovedRows) -> None:
        """Report marks that are not listed; one too many costs a retry, no more.

        An entity that was written again with the same values holds what it held all along.
        """
        types = {} if step.view is None else {str(key): key for key in step.view.types}
        if step.view is None or listed.marks is None or step.type_key not in types:
            return
        changed = IdSet.union_of([listed.inserted, listed.updated, listed.deleted]).to_array()
        moved = replace(
            moved,
            added_rows=_select_entities(moved.added_rows, changed),
            removed_rows=_select_entities(moved.removed_rows, changed),
        )
        held = compute_marks(step.view, types[step.type_key], step.before, moved).to_array()
        missing = _exclude_ids(held, listed.marks.to_array())
        message = "mark '{id}' of an end or a unique value is not listed"
        self._problems.add_ids(KIND, step.where, missing, message)

    def _check_bulk(self, step: _TypeStep, bulk: Bulk, moved: _MovedRows) -> None:
        self._check_bulk_rows(step, bulk, new=moved.added_rows.num_rows, kept=moved.kept_rows)
        if not bulk.replaces:
            message = "'{id}' was deleted by a load that only adds"
            self._problems.add_ids(KIND, step.where, moved.deleted, message)

    def _check_bulk_rows(self, step: _TypeStep, bulk: Bulk, *, new: int, kept: int) -> None:
        if new != bulk.rows:
            message = f"{new} rows are new, and the record says {bulk.rows}"
            self._problems.add(KIND, step.where, message)
        if bulk.replaces and kept:
            self._problems.add(KIND, step.where, f"{kept} rows should be gone")
        unknown = sorted(set(bulk.files) - self._tables.list_references(step.after))
        for file in unknown:
            self._problems.add(KIND, step.where, f"{file} is listed and not in the table")

    def _check_unchanged(self, step: _TypeStep, moved: _MovedRows) -> None:
        report = partial(self._problems.add_ids, KIND, step.where)
        report(moved.inserted, "'{id}' was inserted without a change set")
        report(moved.deleted, "'{id}' was deleted without a change set")
        if step.before is not None:
            self._check_columns(step, step.before)
            # A copied row keeps its row id, so here having it says nothing about its values.
            self._check_values(
                step, moved, _intersect_ids(moved.after[ID_COLUMN], moved.before[ID_COLUMN])
            )
            self._check_new_columns(step)

    def _check_values(self, step: _TypeStep, moved: _MovedRows, ids: pa.Array) -> None:
        """Report the entities among these whose values are not what they were."""
        if len(ids) == 0 or step.before is None:
            return
        old, new = self._tables.open(step.before), self._tables.open(step.after)
        ours, theirs = (_lookup_row_ids(rows, ids) for rows in (moved.before, moved.after))
        found = np.zeros(len(ids), np.bool_)
        for column in self._check_columns(step, step.before):
            found |= _compare_column(column, (old, ours), (new, theirs))
        changed = ids.filter(pa.array(found))
        message = "'{id}' was changed and is not listed"
        self._problems.add_ids(KIND, step.where, changed, message)

    def _check_columns(self, step: _TypeStep, before: Pin) -> list[str]:
        """The columns that are what they were, after reporting the others."""
        old, new = self._tables.open(before).schema, self._tables.open(step.after).schema
        is_kept = {
            name: name in new.names and old.field(name) == new.field(name) for name in old.names
        }
        for column in (name for name in old.names if not is_kept[name]):
            self._problems.add(KIND, step.where, f"column {column} is not what it was")
        return [name for name in old.names if is_kept[name]]

    def _select_present(self, pin: Pin | None, ids: pa.Array) -> pa.Array:
        """The ids that a version has among some."""
        if pin is None or not len(ids):
            return ids.slice(0, 0)
        with self._torn.explain_failures(pin):
            found = self._tables.open(pin).find(ID_COLUMN, ids, columns=[ID_COLUMN])
        return _intersect_ids(ids, found[ID_COLUMN].cast(ids.type))

    def _check_new_columns(self, step: _TypeStep) -> None:
        assert step.before is not None
        new = self._tables.open(step.after)
        known = set(self._tables.open(step.before).schema.names)
        for column in new.schema.names:
            if column not in known:
                source = find_previous_column(column, known)
                rows = new.scan(columns=[column] if source is None else [column, source])
                if column in step.filled and rows[column].null_count:
                    message = f"column {column} is filled and has nulls"
                    self._problems.add(KIND, step.where, message)
                if source is not None:
                    if column in step.filled:
                        rows = rows.filter(rows[source].is_valid())
                    if compare_columns(rows[source], rows[column]).any():
                        message = f"column {column} does not hold the values of {source}"
                        self._problems.add(KIND, step.where, message)
                elif column not in step.filled and rows[column].null_count < rows.num_rows:
                    message = f"column {column} is new and is not empty"
                    self._problems.add(KIND, step.where, message)


def _index_filled_columns(accepted: AcceptedSchema) -> dict[str, frozenset[str]]:
    """The columns of required properties with a default, by their type."""
    found = {}
    for key, type_ in table_types_of(accepted.catalog).items():
        columns = build_table_shape(accepted, key).columns
        found[str(key)] = frozenset(
            columns[name]
            for name, each in type_.properties.items()
            if each.default is not None and not each.type.is_nullable
        )
    return found


def _compare_column(
    column: str, ours: tuple[Table, pa.Array], theirs: tuple[Table, pa.Array]
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    pairs = zip(_read_values(column, *ours), _read_values(column, *theirs), strict=True)
    return np.concatenate([compare_columns(left, right) for left, right in pairs])


def _read_values(column: str, table: Table, row_ids: pa.Array) -> Iterator[pa.ChunkedArray]:
    if is_blob(table.schema.field(column)):
        yield from read_blobs(table, column, row_ids)
    else:
        yield table.take(row_ids, columns=[column])[column]


def _lookup_row_ids(rows: pa.Table, ids: pa.Array) -> pa.Array:
    places = pc.index_in(ids, value_set=rows[ID_COLUMN].combine_chunks())
    return rows[ROW_ID].combine_chunks().take(places)


def _select_entities(rows: pa.Table, ids: pa.Array) -> pa.Table:
    """The rows of some entities."""
    return rows.filter(pc.is_in(rows[ID_COLUMN], value_set=ids.cast(rows[ID_COLUMN].type)))


def compute_marks(view: View, type_key: TypeKey, before: Pin | None, moved: _MovedRows) -> IdSet:
    """The marks of the rows that came, and of the ends of edges that went."""
    type_, shape = view.types[type_key], view.get_shape(type_key)
    found: list[IdSet] = []
    for rows in _read_moved_rows(
        view.open_table(type_key), _list_mark_columns(shape, type_), moved.added_rows
    ):
        found += filter(None, [marks_of(shape, type_, rows)])
    if before is not None and isinstance(type_, EdgeType):
        for rows in _read_moved_rows(view.tables.open(before), _ENDS, moved.removed_rows):
            found += filter(None, [marks_of(shape, type_, rows)])
    return IdSet.union_of(found)


def _list_mark_columns(shape: TableShape, type_: NodeType | EdgeType) -> tuple[str, ...]:
    """The columns that marks are made of."""
    ends = _ENDS if isinstance(type_, EdgeType) else ()
    groups = (group.columns for group in groups_of(shape, type_) if not group.has_key)
    return tuple(dict.fromkeys((*ends, *(name for columns in groups for name in columns))))


def _read_moved_rows(table: Table, columns: tuple[str, ...], moved: pa.Table) -> Iterator[pa.Table]:
    """The columns of moved rows, as many at a time as marks are made of."""
    row_ids = moved[ROW_ID].combine_chunks()
    for start in range(0, len(row_ids) if columns else 0, MARKS_MAX):
        yield table.take(row_ids[start : start + MARKS_MAX], columns=columns)


@dataclass(frozen=True, slots=True)
class _MovedRows:
    """The ids that a commit inserted, deleted and wrote again.

    Along a line of versions a row id names one row for good: a row that both versions have needs
    no comparison, and a row that was written again has another one. `before` and `after` are ids
    and row ids of all rows that are not in the same place of the same file in both versions; of
    these, `gone` and `came` are in one version only.
    """

    before: pa.Table
    after: pa.Table
    inserted: pa.Array
    deleted: pa.Array
    rewritten: pa.Array
    removed_rows: pa.Table
    added_rows: pa.Table
    kept_rows: int


def _compare_versions(before: Pin | None, after: Pin, torn: TornFiles) -> _MovedRows:
    """Compare two versions of a table; without a first one, all rows are new."""
    if before is None:
        old, new, shared = _NO_ROWS, _TableVersion(after, torn).read_all(), 0
    else:
        old, new, shared = _exclude_shared_rows(
            _TableVersion(before, torn), _TableVersion(after, torn)
        )
    # Rows that were copied, or a table with another column, mostly keep their order.
    same = _count_common_rows(old, new)
    ours, theirs = old.slice(same), new.slice(same)
    gone, came = _split_exclusive_rows(ours, theirs)
    old_ids, new_ids = _concatenate_chunks(gone[ID_COLUMN]), _concatenate_chunks(came[ID_COLUMN])
    return _MovedRows(
        before=old,
        after=new,
        inserted=_exclude_ids(new_ids, old_ids),
        deleted=_exclude_ids(old_ids, new_ids),
        rewritten=_intersect_ids(new_ids, old_ids),
        removed_rows=gone,
        added_rows=came,
        kept_rows=shared + new.num_rows - came.num_rows,
    )


def _split_exclusive_rows(ours: pa.Table, theirs: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that only the first and only the second of two tables has."""
    if ours.num_rows == 0:
        return ours, theirs
    places = pc.index_in(theirs[ROW_ID], value_set=_concatenate_chunks(ours[ROW_ID]))
    is_same = pc.equal(theirs[ID_COLUMN], ours[ID_COLUMN].take(places))
    is_same = pc.fill_null(is_same, fill_value=False)
    is_kept = np.zeros(ours.num_rows, np.bool_)
    is_kept[places.filter(is_same).to_numpy()] = True
    return ours.filter(pa.array(~is_kept)), theirs.filter(pc.invert(is_same))


class _TableVersion:
    """One of two versions that are compared."""

    def __init__(self, pin: Pin, torn: TornFiles) -> None:
        self._pin = pin
        self._torn = torn
        with torn.explain_failures(pin):
            self.table = torn.tables.open(pin)

    def read_all(self) -> pa.Table:
        """The ids and row ids of all rows."""
        return self._read(lambda table: table.scan(columns=[ID_COLUMN, ROW_ID]))

    def read_fragments(self, ids: set[int]) -> pa.Table:
        """The ids and row ids of the rows in some fragments."""
        chosen = sorted(ids)
        return self._read(lambda table: table.scan_fragments(chosen, columns=[ID_COLUMN, ROW_ID]))

    def read_by_row_id(self, row_ids: npt.NDArray[np.uint64]) -> pa.Table:
        """The ids and row ids of some rows."""
        if len(row_ids) == 0:
            return _NO_ROWS
        wanted = pa.array(row_ids)
        return self._read(lambda table: table.fetch_rows(wanted, columns=[ID_COLUMN, ROW_ID]))

    def read_row_ids(self, ids: set[int]) -> npt.NDArray[np.uint64]:
        """The row ids in some fragments, which are read without their data."""
        with self._torn.explain_failures(self._pin):
            found = self.table.scan_fragments(sorted(ids), columns=[ROW_ID])
        row_ids: npt.NDArray[np.uint64] = found[ROW_ID].cast(pa.uint64()).to_numpy()
        return row_ids

    def _read(self, action: Callable[[Table], pa.Table]) -> pa.Table:
        with self._torn.explain_failures(self._pin):
            found = action(self.table)
        return pa.table(
            {
                ID_COLUMN: _concatenate_chunks(found[ID_COLUMN].cast(pa.large_string())),
                ROW_ID: _concatenate_chunks(found[ROW_ID].cast(pa.uint64())),
            }
        )


def _exclude_shared_rows(
    before: _TableVersion, after: _TableVersion
) -> tuple[pa.Table, pa.Table, int]:
    """The rows of two versions without those that are the same bytes in both, and how many are."""
    is_alike = before.table.pin.path == after.table.pin.path
    if not is_alike or before.table.field_ids != after.table.field_ids:
        return before.read_all(), after.read_all(), 0
    ours, theirs = before.table.fragments, after.table.fragments
    both = ours.keys() & theirs.keys()
    shared = {id_ for id_ in both if ours[id_] == theirs[id_]}
    shrunk = {id_ for id_ in both - shared if ours[id_].data == theirs[id_].data}
    gone, came = _split_exclusive_ids(before.read_row_ids(shrunk), after.read_row_ids(shrunk))
    known = shared | shrunk
    old = [before.read_fragments(ours.keys() - known), before.read_by_row_id(gone)]
    new = [after.read_fragments(theirs.keys() - known), after.read_by_row_id(came)]
    kept = sum(theirs[id_].rows for id_ in known) - len(came)
    return pa.concat_tables(old), pa.concat_tables(new), kept


def _split_exclusive_ids(
    ours: npt.NDArray[np.uint64], theirs: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """What only the first and only the second of two lists has."""
    # Most commits end a few rows, so that the lists begin alike and end alike.
    start = _count_common_prefix(ours, theirs)
    ours, theirs = ours[start:], theirs[start:]
    end = _count_common_prefix(ours[::-1], theirs[::-1])
    ours, theirs = ours[: len(ours) - end], theirs[: len(theirs) - end]
    return np.setdiff1d(ours, theirs), np.setdiff1d(theirs, ours)


def _count_common_prefix(ours: npt.NDArray[np.uint64], theirs: npt.NDArray[np.uint64]) -> int:
    count = min(len(ours), len(theirs))
    is_other = ours[:count] != theirs[:count]
    first = int(np.argmax(is_other)) if count else 0
    return first if count and is_other[first] else count


def _count_common_rows(before: pa.Table, after: pa.Table) -> int:
    """How many rows two versions start with are the same."""
    count = min(before.num_rows, after.num_rows)
    ours, theirs = before.slice(0, count), after.slice(0, count)
    is_same = pc.and_(
        pc.equal(ours[ROW_ID], theirs[ROW_ID]), pc.equal(ours[ID_COLUMN], theirs[ID_COLUMN])
    )
    first = pc.index(is_same, value=False).as_py()
    return count if first < 0 else int(first)


def _exclude_ids(ids: pa.Array, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The ids that are not among others."""
    if not len(ids) or not len(others):
        return ids
    return ids.filter(pc.invert(pc.is_in(ids, value_set=_concatenate_chunks(others))))


def _intersect_ids(ids: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The ids that are among others."""
    if not len(ids) or not len(others):
        return _NO_IDS
    return _concatenate_chunks(ids.filter(pc.is_in(ids, value_set=_concatenate_chunks(others))))


def _concatenate_chunks(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The same values in one piece."""
    return ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids

"""What commits say they changed, compared with what they changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.checks.damage import TornFiles
from omnigraph.engine.checks.problems import Problems
from omnigraph.engine.checks.rows import blobs
from omnigraph.execution.changes.equality import differing
from omnigraph.storage import layout
from omnigraph.storage.blobs import is_blob
from omnigraph.storage.objects import Objects
from omnigraph.storage.pins import Pin
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.storage.table import Table
from omnigraph.versioning import changes as change_sets
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.idset import IdSet
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Maintenance, Record, Spilled
from omnigraph.versioning.snapshot import Snapshot

KIND = "change_set"
_NO_IDS = pa.array([], pa.large_string())
_NOBODY = pa.table({ID_COLUMN: _NO_IDS, ROW_ID: pa.array([], pa.uint64())})


@dataclass(frozen=True, slots=True)
class _Step:
    """One type over one commit: its table before and after, and where to report."""

    where: str
    before: Pin | None
    after: Pin


@dataclass(frozen=True, slots=True)
class _Moved:
    """The ids that a commit inserted, deleted and wrote again, as the tables tell it.

    Along a line of versions a row id names one row for good: a row that both versions have needs
    no comparison, and a row that was written again has another one.
    """

    before: pa.Table
    after: pa.Table
    inserted: pa.Array
    deleted: pa.Array
    rewritten: pa.Array
    new_rows: int


class ChangeSetCheck:
    """Follows tables from commit to commit, the older first."""

    def __init__(self, objects: Objects, torn: TornFiles, problems: Problems) -> None:
        self._objects = objects
        self._torn = torn
        self._tables = torn.tables
        self._problems = problems
        # The ids of the last version of each table: the version before of the next commit.
        self._ids: dict[str, tuple[str, pa.Table]] = {}

    def check(self, record: Record, before: Snapshot, after: Snapshot) -> None:
        """Report where a commit and its change sets disagree."""
        old_names = {new: old for old, new in record.renamed.items()}
        for type_key, pin in sorted(after.pins.items()):
            is_new = type_key in record.registered
            old = None if is_new else before.pins.get(old_names.get(type_key, type_key))
            change = record.changes.get(type_key)
            where = f"{layout.record(record.stream, record.seq)} {type_key}"
            if change is not None or (old is not None and old != pin):
                step = _Step(where, old, pin)
                self._problems.attempt(KIND, where, partial(self._check_type, step, change))

    def _check_type(self, step: _Step, change: ChangeSet | None) -> None:
        loaded = None if change is None else change_sets.load(self._objects, change)
        if isinstance(loaded, Bulk) and (step.before is None or step.before.rows == 0):
            # All rows are new, and their number was compared with the pin: no id is needed.
            self._check_bulk_rows(step, loaded, new=step.after.rows, kept=0)
            return
        moved = self._moved(step)
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

    def _moved(self, step: _Step) -> _Moved:
        before = _NOBODY if step.before is None else self._ids_of(step.before)
        after = self._ids_of(step.after)
        # Most commits add a few rows behind all others: those need not be looked up one by one.
        same = _rows_in_common(before, after)
        old, new = before.slice(same), after.slice(same)
        if old.num_rows == 0:
            came = _whole(new[ID_COLUMN])
            return _Moved(before, after, came, _NO_IDS, _NO_IDS, len(came))
        places = pc.index_in(new[ROW_ID], value_set=_whole(old[ROW_ID]))
        is_same = pc.equal(new[ID_COLUMN], old[ID_COLUMN].take(places))
        is_same = pc.fill_null(is_same, fill_value=False)
        is_kept = np.zeros(old.num_rows, np.bool_)
        is_kept[places.filter(is_same).to_numpy()] = True
        came = _whole(new[ID_COLUMN].filter(pc.invert(is_same)))
        gone = _whole(old[ID_COLUMN].filter(pa.array(~is_kept)))
        return _Moved(
            before=before,
            after=after,
            inserted=_without(came, gone),
            deleted=_without(gone, came),
            rewritten=_common(came, gone),
            new_rows=len(came),
        )

    def _ids_of(self, pin: Pin) -> pa.Table:
        version, ids = self._ids.get(pin.path, (None, _NOBODY))
        if version == pin.version:
            return ids
        with self._torn.naming(pin):
            found = self._tables.open(pin).scan(columns=[ID_COLUMN, ROW_ID])
        ids = pa.table(
            {
                ID_COLUMN: _whole(found[ID_COLUMN].cast(pa.large_string())),
                ROW_ID: _whole(found[ROW_ID].cast(pa.uint64())),
            }
        )
        self._ids[pin.path] = (pin.version, ids)
        return ids

    # ---- each form of a change set ----

    def _check_counts(self, step: _Step, change: ChangeSet | None, loaded: Changed) -> None:
        if not isinstance(change, Spilled):
            return
        counts = (change.inserted, change.updated, change.deleted)
        found = (len(loaded.inserted), len(loaded.updated), len(loaded.deleted))
        if counts != found:
            message = f"{change.file} lists {found} ids, and the record says {counts}"
            self._problems.add(KIND, step.where, message)

    def _check_changed(self, step: _Step, listed: Changed, moved: _Moved) -> None:
        inserted, updated, deleted = map(
            IdSet.to_array, (listed.inserted, listed.updated, listed.deleted)
        )
        report = partial(self._problems.add_ids, KIND, step.where)
        report(_without(moved.inserted, inserted), "'{id}' was inserted and is not listed")
        report(_without(inserted, moved.inserted), "'{id}' is listed as inserted and was not")
        report(_without(moved.deleted, deleted), "'{id}' was deleted and is not listed")
        report(_without(deleted, moved.deleted), "'{id}' is listed as deleted and was not")
        # The few are looked for among the many, which hashes only the few.
        present = _common(moved.before[ID_COLUMN], _common(moved.after[ID_COLUMN], updated))
        report(_without(updated, present), "'{id}' is listed as updated and was not")
        self._check_values(step, moved, _without(moved.rewritten, updated))

    def _check_bulk(self, step: _Step, bulk: Bulk, moved: _Moved) -> None:
        kept = moved.after.num_rows - moved.new_rows
        self._check_bulk_rows(step, bulk, new=moved.new_rows, kept=kept)
        if not bulk.replaces:
            message = "'{id}' was deleted by a load that only adds"
            self._problems.add_ids(KIND, step.where, moved.deleted, message)

    def _check_bulk_rows(self, step: _Step, bulk: Bulk, *, new: int, kept: int) -> None:
        if new != bulk.rows:
            message = f"{new} rows are new, and the record says {bulk.rows}"
            self._problems.add(KIND, step.where, message)
        if bulk.replaces and kept:
            self._problems.add(KIND, step.where, f"{kept} rows should be gone")
        unknown = sorted(set(bulk.files) - self._tables.references(step.after))
        for file in unknown:
            self._problems.add(KIND, step.where, f"{file} is listed and not in the table")

    def _check_unchanged(self, step: _Step, moved: _Moved) -> None:
        report = partial(self._problems.add_ids, KIND, step.where)
        report(moved.inserted, "'{id}' was inserted without a change set")
        report(moved.deleted, "'{id}' was deleted without a change set")
        if step.before is not None:
            # A copied row keeps its row id, so here having it says nothing about its values.
            self._check_values(
                step, moved, _common(moved.after[ID_COLUMN], moved.before[ID_COLUMN])
            )
            self._check_new_columns(step)

    def _check_values(self, step: _Step, moved: _Moved, ids: pa.Array) -> None:
        """Report the entities among these whose values are not what they were."""
        if len(ids) == 0 or step.before is None:
            return
        old, new = self._tables.open(step.before), self._tables.open(step.after)
        ours, theirs = (_row_ids(rows, ids) for rows in (moved.before, moved.after))
        found = np.zeros(len(ids), np.bool_)
        for column in old.schema.names:
            if column not in new.schema.names or old.schema.field(column) != new.schema.field(
                column
            ):
                self._problems.add(KIND, step.where, f"column {column} is not what it was")
                continue
            found |= _differing(column, (old, ours), (new, theirs))
        changed = ids.filter(pa.array(found))
        message = "'{id}' was changed and is not listed"
        self._problems.add_ids(KIND, step.where, changed, message)

    def _check_new_columns(self, step: _Step) -> None:
        assert step.before is not None
        new = self._tables.open(step.after)
        known = set(self._tables.open(step.before).schema.names)
        for column in new.schema.names:
            if column not in known:
                values = new.scan(columns=[column])[column]
                if values.null_count < len(values):
                    message = f"column {column} is new and is not empty"
                    self._problems.add(KIND, step.where, message)


def _differing(
    column: str, ours: tuple[Table, pa.Array], theirs: tuple[Table, pa.Array]
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    pairs = zip(_values(column, *ours), _values(column, *theirs), strict=True)
    return np.concatenate([differing(left, right) for left, right in pairs])


def _values(column: str, table: Table, row_ids: pa.Array) -> Iterator[pa.ChunkedArray]:
    if is_blob(table.schema.field(column)):
        yield from blobs(table, column, row_ids)
    else:
        yield table.take(row_ids, columns=[column])[column]


def _row_ids(rows: pa.Table, ids: pa.Array) -> pa.Array:
    places = pc.index_in(ids, value_set=rows[ID_COLUMN].combine_chunks())
    return rows[ROW_ID].combine_chunks().take(places)


def _rows_in_common(before: pa.Table, after: pa.Table) -> int:
    """How many rows two versions start with are the same."""
    count = min(before.num_rows, after.num_rows)
    ours, theirs = before.slice(0, count), after.slice(0, count)
    is_same = pc.and_(
        pc.equal(ours[ROW_ID], theirs[ROW_ID]), pc.equal(ours[ID_COLUMN], theirs[ID_COLUMN])
    )
    first = pc.index(is_same, value=False).as_py()
    return count if first < 0 else int(first)


def _without(ids: pa.Array, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not len(ids) or not len(others):
        return ids
    return ids.filter(pc.invert(pc.is_in(ids, value_set=_whole(others))))


def _common(ids: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not len(ids) or not len(others):
        return _NO_IDS
    return _whole(ids.filter(pc.is_in(ids, value_set=_whole(others))))


def _whole(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    return ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids

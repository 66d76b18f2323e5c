"""What a load ends besides what it writes: entities that its source names, and those it lacks.

The deletions are prepared first, as a transaction of their own that takes edges along. The rows of
the load are compared with tables of which that is gone, in versions that no commit has; then both
are one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.bulk_sources import BulkSource
from omnigraph.bulk.hash_files import HashIndex, read_hashes
from omnigraph.bulk.row_checks import RecordProblem, RowChecks
from omnigraph.bulk.split_reader import read_split
from omnigraph.bulk.split_writer import IDS
from omnigraph.bulk.splits import FileRange, InputSplit, get_stores
from omnigraph.bulk.staged_load import StagedLoad, join_texts
from omnigraph.errors import Violation, WriteRefusedError, format_violations
from omnigraph.lang.quoting import sanitize_text
from omnigraph.rows.hashing import hash_any_texts
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.versioning.effects import ID_COLUMN, EffectApplier
from omnigraph.versioning.footprint import unite_footprints
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.record import Bulk, Changed, ChangeSet
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.deletions import Deletions
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.inputs.input_rows import AbsentColumns
from omnigraph.writers.inputs.row_sink import RowNumbers
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.matching_rows import MutationBudget
from omnigraph.writers.prepare import Request, prepare_transaction
from omnigraph.writers.row_staging import RowStaging

_ORDER_HINT: Final = "order its records, so that the last of them counts ('latest' in a pipeline)"


@dataclass(frozen=True, slots=True)
class PlannedDeletions:
    """The graph without what a load ends, and the transaction that ends it, if there is any."""

    view: View
    ended: Transaction | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    # The ids of such a view, which no other one has.
    keys: KeyCache | None = None

    def add_to(self, loaded: Transaction, load: StagedLoad) -> Transaction:
        """The transaction of the rows of a load, with its deletions."""
        if self.ended is None:
            return loaded
        types = {str(type_key): type_key for type_key in self.view.types}
        ended, written = (
            {name: _list_changed(change, load, types[name]) for name, change in each.items()}
            for each in (self.ended.changes, loaded.changes)
        )
        names = dict.fromkeys([*ended, *written])
        return replace(
            loaded,
            snapshot=self.ended.snapshot,
            effects=(*self.ended.effects, *loaded.effects),
            changes={name: _combine_changes(ended.get(name), written.get(name)) for name in names},
            footprint=unite_footprints([self.ended.footprint, loaded.footprint]),
        )


@dataclass(frozen=True, slots=True)
class DeletionPlanner:
    """A load whose rows are written, and the view that it is prepared on."""

    load: StagedLoad
    view: View
    keys: KeyCache
    # All of its pieces: in some of them rows name entities that end.
    pieces: Sequence[FileRange]

    def plan(self, source: BulkSource, request: Request) -> PlannedDeletions:
        """The deletions of entities that pieces name, and of all that the load does not have."""
        deletions = Deletions(self.view, MutationBudget())
        for type_key, ids in self._read_named().items():
            self._require_unwritten(type_key, ids)
            deletions.delete_ids(type_key, ids)
        for type_key in self.view.types:
            if str(type_key) in source.snapshot_types:
                ids, committed = self._find_missing(type_key), self._count_committed(type_key)
                source.accept_missing(str(type_key), len(ids), committed)
                deletions.delete_ids(type_key, ids)
        deletions.finish_deletes(CommittedState(self.view, self.keys, {}))
        changes = deletions.build_changes()
        if not changes:
            return PlannedDeletions(self.view)
        ended = prepare_transaction(
            changes,
            self.view,
            self.keys,
            staging=RowStaging(self.view.tables),
            request=replace(request, reads=unite_footprints([request.reads, deletions.reads])),
        )
        counts = {str(name): len(change.deleted) for name, change in changes.items()}
        return PlannedDeletions(self._apply(ended), ended, counts, self.keys.create_empty())

    def _apply(self, ended: Transaction) -> View:
        """The view with versions of its tables that no commit has."""
        snapshot = self.view.snapshot
        touched = EffectApplier(self.view.tables, ended.effects).apply(snapshot.pins)
        pins = {name: pin for name, pin in touched.items() if pin is not None}
        return replace(self.view, snapshot=replace(snapshot, pins={**snapshot.pins, **pins}))

    def _read_named(self) -> dict[TypeKey, pa.Array]:
        """The ids of the entities that the rows of pieces name."""
        found: dict[TypeKey, list[pa.Array]] = {}
        for number, piece in enumerate(each for each in self.pieces if each.is_deletion):
            unit = InputSplit(self.load.job, number, piece)
            for type_key, ids in read_named_ids(unit, self.view):
                found.setdefault(type_key, []).append(ids)
        return {name: pc.unique(pa.chunked_array(parts)) for name, parts in found.items()}

    def _require_unwritten(self, type_key: TypeKey, ids: pa.Array) -> None:
        """Refuse a load that writes an entity and ends it: which of both is last is not known."""
        is_written = self._index_written(type_key).contains_each(hash_any_texts(ids))
        if is_written.any():
            first = ids[int(np.flatnonzero(is_written)[0])].as_py()
            count = int(is_written.sum())
            others = f", and {count - 1} others" if count > 1 else ""
            raise WriteRefusedError(
                f"{type_key.name} '{sanitize_text(first)}'{others}: written and deleted at once",
                hint=_ORDER_HINT,
            )

    def _find_missing(self, type_key: TypeKey) -> pa.Array:
        """The ids of committed entities that the load does not have."""
        rejected = self._count_rejected(type_key)
        if rejected:
            raise WriteRefusedError(
                f"{type_key.name}: which entities are missing is not known, because {rejected}"
                " records were rejected that may name some",
                hint="mend these records, or delete nothing that is missing",
            )
        given, parts = self._index_written(type_key), []
        if self._count_committed(type_key):
            for batch in self.view.open_table(type_key).scan_batches(columns=[ID_COLUMN]):
                ids = batch.column(0)
                is_given = given.contains_each(hash_any_texts(ids))
                parts.append(ids.filter(pa.array(~is_given)))
        return pa.chunked_array(parts, pa.utf8()).combine_chunks()

    def _count_rejected(self, type_key: TypeKey) -> int:
        """The rejected records of a type, and those that could not be read.

        Such a record is reported once, for one of the types that are made of it.
        """
        splits = zip(self.load.splits, self.load.results, strict=True)
        return sum(
            each.problem_count
            if unit.file_range.type == str(type_key)
            else sum(not _is_of_row(problem.violation) for problem in each.problems)
            for unit, each in splits
        )

    def _count_committed(self, type_key: TypeKey) -> int:
        return self.view.snapshot.pins[str(type_key)].rows

    def _index_written(self, type_key: TypeKey) -> HashIndex:
        """The hashes of the ids of a load. Equal ids have equal ones: none is taken for missing."""
        written = self.load.list_hash_files(type_key, IDS)
        files = written + self.load.list_unchanged_files(type_key)
        return HashIndex(read_hashes(get_stores(self.load.job.location).objects, files))


def _is_of_row(violation: Violation) -> bool:
    """Whether a row was rejected, not the record: what is said of a row begins with its type."""
    return violation.property is not None or (
        violation.type_name is not None and violation.message.startswith(violation.type_name)
    )


def read_named_ids(unit: InputSplit, view: View) -> Iterator[tuple[TypeKey, pa.Array]]:
    """The ids of the entities that the rows of a unit name by their keys."""
    found: list[tuple[TypeKey, pa.Array]] = []

    def keep_ids(
        type_key: TypeKey, rows: pa.Table, numbers: RowNumbers, absent: AbsentColumns, /
    ) -> None:
        shape = view.get_shape(type_key)
        checks = RowChecks(type_key, view.types[type_key], shape, unit.job.problems_max)
        others = set(rows.column_names) - {*shape.key.values(), ID_COLUMN}
        identified = checks.identify_rows(rows, numbers, frozenset({*absent, *others}))
        problems.extend(checks.problems)
        found.append((type_key, join_texts(identified.rows[ID_COLUMN]).cast(pa.utf8())))

    problems: list[RecordProblem] = []
    reading = read_split(unit, get_stores(unit.job.location), keep_ids)
    violations = [each.violation for each in (*reading.problems, *problems)]
    if violations:
        message = format_violations(violations, len(violations))
        raise WriteRefusedError(message, violations=violations)
    yield from found


def _list_changed(change: ChangeSet, load: StagedLoad, type_key: TypeKey) -> Changed:
    """The ids of a type that a load writes."""
    if isinstance(change, Bulk):
        return Changed(inserted=IdSet.from_distinct(load.read_ids(type_key)))
    assert isinstance(change, Changed), "a load that merges lists what it writes, or its files"
    return change


def _combine_changes(ended: Changed | None, written: Changed | None) -> Changed:
    """What both do to a type; an entity that ends and is written again is updated."""
    if ended is None or written is None:
        return ended or written or Changed()
    gone, new = ended.deleted.to_array(), written.inserted.to_array()
    is_again = pc.is_in(new, value_set=gone)
    stays_gone = pc.invert(pc.is_in(gone, value_set=new))
    marks = (
        None if ended.marks is None or written.marks is None else ended.marks.union(written.marks)
    )
    return Changed(
        inserted=IdSet.from_distinct(new.filter(pc.invert(is_again))),
        updated=written.updated.union(IdSet.from_distinct(new.filter(is_again))),
        deleted=IdSet.from_distinct(gone.filter(stays_gone)),
        marks=marks,
    )

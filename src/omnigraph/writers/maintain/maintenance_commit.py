"""From the newest view of a branch to a commit of maintenance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from omnigraph.errors import ConflictError, CorruptObjectError
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage.tables.lance_tables import Compacted, Compaction, Indexed, IndexSpec, Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import Maintain
from omnigraph.versioning.publisher import Publishers
from omnigraph.versioning.record import Maintenance, Record, Signature
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.maintain.index_status import (
    INDEX_KIND,
    DeclaredIndex,
    PendingIndex,
    find_pending_reason,
    list_declared_indexes,
)

# Each round does again what another compaction or another schema made worthless.
COMMIT_ATTEMPTS_MAX: Final = 8

# The newest view of a branch, each time it is called.
NewestView: TypeAlias = Callable[[], View]

# Joining fragments makes indexes shorter, and merging indexes lets fragments be joined.
STEPS_MAX: Final = 4
WorkPiece: TypeAlias = Compacted | Indexed


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index that was built."""

    type_key: TypeKey
    property: str

    def to_json(self) -> JsonObject:
        """The entry of a built index in a document."""
        return {"type_key": str(self.type_key), "property": self.property, "kind": INDEX_KIND}


@dataclass(frozen=True, slots=True)
class EnsuredIndexes:
    """The indexes that were missing and are there now, and those that have to wait."""

    built: tuple[BuiltIndex, ...]
    pending: tuple[PendingIndex, ...]
    record: Record | None


@dataclass(frozen=True, slots=True)
class OptimizedTable:
    """What an optimization did to one table; without a version it had nothing to do."""

    type_key: TypeKey
    fragments_removed: int
    fragments_added: int
    indexes: tuple[BuiltIndex, ...]
    pending: tuple[PendingIndex, ...]
    version: str | None


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """What an optimization did to every table."""

    tables: tuple[OptimizedTable, ...]
    record: Record | None


def ensure_indices(
    newest: NewestView, publishers: Publishers, workers: MaintenanceWorkers | None = None
) -> EnsuredIndexes:
    """Build every declared index that is missing, in one commit."""
    built: dict[BuiltIndex, None] = {}
    last: Record | None = None
    for _ in range(COMMIT_ATTEMPTS_MAX):
        view = newest()
        works = _prepare_tables(
            view, lambda at, _, declared: build_missing_indexes(at, declared, workers)
        )
        record = publish_work(view, works, publishers, message="index build")
        if not any(work.pieces for work in works.values()):
            pending = tuple(one for work in works.values() for one in work.pending)
            return EnsuredIndexes(tuple(built), pending, last)
        last = record or last
        built |= dict.fromkeys(one for work in works.values() for one in _list_built_indexes(work))
    raise _build_conflict(newest())


def optimize_tables(
    newest: NewestView, publishers: Publishers, workers: MaintenanceWorkers | None = None
) -> OptimizeResult:
    """Join small fragments and extend every declared index to all rows, in one commit."""
    for _ in range(COMMIT_ATTEMPTS_MAX):
        view = newest()
        works = _prepare_tables(
            view,
            lambda at, key, declared: build_full_maintenance(
                at, declared, at.snapshot.pins[str(key)], workers
            ),
        )
        record = publish_work(view, works, publishers, message="optimize")
        if record is not None or not any(work.pieces for work in works.values()):
            return OptimizeResult(
                tuple(_describe_table(key, work, record) for key, work in works.items()), record
            )
    raise _build_conflict(newest())


def rebuild_damaged_indexes(newest: NewestView, publishers: Publishers) -> Record | None:
    """Build anew what is damaged of the indexes of a branch, declared or not, in one commit."""
    for _ in range(COMMIT_ATTEMPTS_MAX):
        view = newest()
        works = _prepare_tables(view, lambda at, key, _: _rebuild_damaged(at.open_table(key), at))
        record = publish_work(view, works, publishers, message="index repair")
        if record is not None or not any(work.pieces for work in works.values()):
            return record
    raise _build_conflict(newest())


def _rebuild_damaged(table: Table, view: View) -> TableWork:
    try:
        built = view.tables.build_indexes(table.pin, table.damaged_indexes)
    except CorruptObjectError:
        # Its rows are damaged too; those of other tables need not be.
        built = None
    return TableWork(pieces=() if built is None else (built,))


def _prepare_tables(
    view: View, prepare: Callable[[View, TypeKey, Sequence[DeclaredIndex]], TableWork]
) -> dict[TypeKey, TableWork]:
    """The work of every table; what was written for some goes if that for another fails."""
    works: dict[TypeKey, TableWork] = {}
    with discard_pieces_on_failure(view.tables) as made:
        for key, declared in list_declared_indexes(view).items():
            works[key] = prepare(view, key, declared)
            made.extend(works[key].pieces)
    return works


def publish_work(
    view: View, works: Mapping[TypeKey, TableWork], publishers: Publishers, *, message: str
) -> Record | None:
    """The commit of some works; None when there is nothing to do, or it has to be done again."""
    busy = {str(key): work for key, work in works.items() if work.pieces}
    if not busy:
        return None
    transaction = Transaction(
        view.snapshot,
        tuple(Maintain(key, piece) for key, work in busy.items() for piece in work.pieces),
        {key: Maintenance() for key in busy},
        signature=Signature(message=message),
    )
    # Others wait while a preparation is repeated, and this one takes long: it starts anew instead.
    publisher = publishers.get_publisher(view.snapshot.stream)
    return publisher.publish(transaction, prepare_again=lambda _: None)


def _list_built_indexes(work: TableWork) -> list[BuiltIndex]:
    return [BuiltIndex(one.type_key, one.property) for one in work.indexes]


def _describe_table(key: TypeKey, work: TableWork, record: Record | None) -> OptimizedTable:
    pin = record.pins.get(str(key)) if record is not None and work.pieces else None
    return OptimizedTable(
        type_key=key,
        fragments_removed=work.fragments_removed,
        fragments_added=work.fragments_added,
        indexes=tuple(_list_built_indexes(work)),
        pending=work.pending,
        version=None if pin is None else pin.version,
    )


def _build_conflict(view: View) -> ConflictError:
    branch = view.snapshot.stream.branch
    return ConflictError(
        f"branch '{branch}' was compacted or changed {COMMIT_ATTEMPTS_MAX} times meanwhile"
    )


class MaintenanceWorkers(Protocol):
    """The writer of the files of maintenance: the tables themselves, or tasks elsewhere."""

    def compact(self, plan: Compaction) -> Compacted:
        """The files of a planned compaction."""

    def build_indexes(self, pin: Pin, specs: Sequence[IndexSpec]) -> Indexed | None:
        """Segments over what some indexes do not cover; None when there is nothing to do."""


@dataclass(frozen=True, slots=True)
class TableWork:
    """What was prepared for one table: pieces in the order in which they apply."""

    pieces: tuple[WorkPiece, ...] = ()
    pending: tuple[PendingIndex, ...] = ()
    # The indexes that are new or cover more.
    indexes: tuple[DeclaredIndex, ...] = ()
    fragments_removed: int = 0
    fragments_added: int = 0


def build_missing_indexes(
    view: View, declared: Sequence[DeclaredIndex], workers: MaintenanceWorkers | None = None
) -> TableWork:
    """The indexes that a table lacks, over all its rows; what is damaged is lacking."""
    if not declared:
        return TableWork()
    table = view.open_table(declared[0].type_key)
    known = {index.name for index in table.indexes if not index.is_damaged}
    missing = [one for one in declared if one.spec.name not in known]
    return _build_index_work(workers or view.tables, table, missing)


def build_full_maintenance(
    view: View,
    declared: Sequence[DeclaredIndex],
    pin: Pin,
    workers: MaintenanceWorkers | None = None,
) -> TableWork:
    """Fragments joined as far as they can be, and every declared index over all rows."""
    tables, tip = view.tables, pin
    doing = workers or tables
    with discard_pieces_on_failure(tables) as made:
        done = _WorkProgress({one.spec.name: one for one in declared}, made)
        for _ in range(STEPS_MAX):
            plan = tables.plan_compaction(tip, is_thorough=True)
            if plan is not None:
                tip = done.add_piece(tables, doing.compact(plan), tip)
            work = _build_index_work(doing, tables.open(tip), declared)
            done.pending = work.pending
            for piece in work.pieces:
                tip = done.add_piece(tables, piece, tip)
            if plan is None and not work.pieces:
                break
    return TableWork(
        tuple(done.pieces), done.pending, tuple(done.indexes), done.removed, done.added
    )


@contextmanager
def discard_pieces_on_failure(tables: Tables) -> Iterator[list[WorkPiece]]:
    """Around work that makes several pieces: those in the list go if a later one fails."""
    made: list[WorkPiece] = []
    try:
        yield made
    except BaseException:
        for piece in made:
            # Any failure: it must not hide why the work failed.
            with suppress(Exception):
                tables.discard(piece)
        raise


@dataclass(slots=True)
class _WorkProgress:
    """What was prepared so far for a table with these declared indexes."""

    declared: Mapping[str, DeclaredIndex]
    pieces: list[WorkPiece]
    pending: tuple[PendingIndex, ...] = ()
    indexes: dict[DeclaredIndex, None] = field(default_factory=dict)
    removed: int = 0
    added: int = 0

    def add_piece(self, tables: Tables, piece: WorkPiece, tip: Pin) -> Pin:
        """The version that a piece makes; only we can reach it."""
        indexed: Indexed | None = piece if isinstance(piece, Indexed) else piece.indexed
        if isinstance(piece, Compacted):
            self.removed += len(piece.inputs)
            self.added += sum(len(group.outputs) for group in piece.groups)
        for name in () if indexed is None else indexed.names:
            # An index that is not declared any more may also be there.
            if name in self.declared:
                self.indexes[self.declared[name]] = None
        self.pieces.append(piece)
        following = tables.replay(piece, tip)
        assert following is not None, "a piece fits the version it was made on"
        return following


def _build_index_work(
    workers: MaintenanceWorkers, table: Table, wanted: Sequence[DeclaredIndex]
) -> TableWork:
    """Segments for what the wanted indexes do not cover."""
    known = {index.name for index in table.indexes}
    reason = find_pending_reason(table)
    reasons = {
        declared: reason
        for declared in wanted
        if reason is not None and declared.spec.name not in known
    }
    ready = {one.spec.name: one for one in wanted if one not in reasons}
    built = workers.build_indexes(table.pin, [one.spec for one in ready.values()])
    return TableWork(
        pieces=() if built is None else (built,),
        pending=tuple(
            PendingIndex(one.type_key, one.property, why) for one, why in reasons.items()
        ),
        indexes=() if built is None else tuple(ready[name] for name in built.names),
    )

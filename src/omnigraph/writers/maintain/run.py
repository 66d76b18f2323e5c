"""From the newest view of a branch to a commit of maintenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from omnigraph.errors import ConflictError
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.shape import JsonObject
from omnigraph.versioning.effects import Maintain
from omnigraph.versioning.publisher import Publishers
from omnigraph.versioning.record import Maintenance, Record, Signature
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.maintain.declared import INDEX_KIND, DeclaredIndex, list_declared_indexes
from omnigraph.writers.maintain.status import PendingIndex
from omnigraph.writers.maintain.work import (
    MaintenanceWorkers,
    TableWork,
    build_full_maintenance,
    build_missing_indexes,
    discard_pieces_on_failure,
)

# Each round does again what another compaction or another schema made worthless.
COMMIT_ATTEMPTS_MAX: Final = 8

# The newest view of a branch, each time it is called.
NewestView: TypeAlias = Callable[[], View]


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

"""Compactions and index segments of one table, written but in no version yet.

Each piece of work is replayed when it is committed, on whatever version the table has by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from omnigraph.execution.view import View
from omnigraph.storage.pins import Pin
from omnigraph.storage.table import Table
from omnigraph.storage.tables import Compacted, Compaction, Indexed, IndexSpec, Tables
from omnigraph.writers.maintain.declared import DeclaredIndex
from omnigraph.writers.maintain.status import PendingIndex, find_pending_reason

# Joining fragments makes indexes shorter, and merging indexes lets fragments be joined.
STEPS_MAX: Final = 4

WorkPiece: TypeAlias = Compacted | Indexed


class MaintenanceWorkers(Protocol):
    """Who writes the files of maintenance: the tables themselves, or tasks elsewhere."""

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
    """The indexes that a table lacks, over all its rows."""
    if not declared:
        return TableWork()
    table = view.open_table(declared[0].type_key)
    known = {index.name for index in table.indexes}
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
            # An index that nobody declares any more may also be there.
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

"""Indexes are extended after commits, once much of a table is not covered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Final, TypeAlias

from omnigraph.errors import BranchRefused, Conflict, OmnigraphError
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.indexes import Index
from omnigraph.storage.table import Table
from omnigraph.versioning.publisher import Publishers
from omnigraph.versioning.record import Stream
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.writers.maintain.declared import DeclaredIndex, declared_indexes
from omnigraph.writers.maintain.run import publish
from omnigraph.writers.maintain.work import TableWork, extended_indexes

# Fewer rows are read as fast as an index is asked.
TAIL_ROWS_MIN: Final = 8_192
# An index is extended when it would grow by a tenth: so a row is indexed a few times in its life.
TAIL_SHARE_MIN: Final = 0.1
# A table whose number of rows stays the same may have been updated: looked at every so often.
LOOK_EVERY: Final = 64

# The newest view of a branch.
NewestOf: TypeAlias = Callable[[Stream], View]


class IndexKeeper:
    """Extends the indexes that somebody has built, on an executor: no writer waits for it."""

    def __init__(self, publishers: Publishers, newest: NewestOf, executor: Executor) -> None:
        self._publishers = publishers
        self._newest = newest
        self._executor = executor
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._look_at: dict[tuple[str, str], int] = {}
        self.last_error: OmnigraphError | None = None

    def consider(self, snapshot: Snapshot) -> None:
        """Look at the tables of a branch if one of them has grown enough since the last look."""
        stream = snapshot.stream
        rows = {key: pin.rows for key, pin in snapshot.pins.items() if pin.rows >= TAIL_ROWS_MIN}
        with self._lock:
            is_due = not snapshot.seq % LOOK_EVERY or any(
                count >= self._look_at.get((stream.id, key), 0) for key, count in rows.items()
            )
            if not rows or not is_due or stream.id in self._running:
                return
            self._running.add(stream.id)
            for key, count in rows.items():
                self._look_at[stream.id, key] = count + _tail_rows_min(count)
        try:
            self._executor.submit(self._run, stream)
        except RuntimeError:
            # The executor is shut down: the program is ending, and nothing depends on this.
            self._stop(stream)

    def _run(self, stream: Stream) -> None:
        try:
            extend_indexes(self._newest(stream), self._publishers)
        except (Conflict, BranchRefused):
            pass  # A busy or deleted branch: a later commit asks again.
        except OmnigraphError as error:
            self.last_error = error
        finally:
            self._stop(stream)

    def _stop(self, stream: Stream) -> None:
        with self._lock:
            self._running.discard(stream.id)


def extend_indexes(view: View, publishers: Publishers) -> None:
    """Extend the indexes of a view that leave much uncovered, in one commit; none is made new."""
    works: Mapping[TypeKey, TableWork] = {
        key: extended_indexes(view, short)
        for key, declared in declared_indexes(view).items()
        if (short := _short(view.table(key), declared))
    }
    publish(view, works, publishers, message="index extension")


def _short(table: Table, declared: tuple[DeclaredIndex, ...]) -> list[DeclaredIndex]:
    """The indexes that are there and leave much of their table uncovered."""
    if table.count() < TAIL_ROWS_MIN:
        return []
    known = {index.name: index for index in table.indexes if index.uncovered}
    return [
        one for one in declared if one.spec.name in known and _is_short(table, known[one.spec.name])
    ]


def _is_short(table: Table, index: Index) -> bool:
    covered = table.covered_rows(index)
    return table.count() - covered >= _tail_rows_min(covered)


def _tail_rows_min(rows: int) -> int:
    return max(TAIL_ROWS_MIN, int(TAIL_SHARE_MIN * rows))

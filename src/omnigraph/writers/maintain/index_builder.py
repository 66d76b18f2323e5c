"""Builds and extends indexes after commits, once many rows are not covered.

No command is needed: without them, a write of one row costs as much as its table has rows. The work
comes in pieces, each a commit of its own, so that a process that ends early leaves what it has
finished, and the next process that writes goes on from there.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from omnigraph.errors import BranchRefusedError, ConflictError, CorruptObjectError, OmnigraphError
from omnigraph.lru_cache import LruCache
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.table_indexes import Index, IndexPart
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.publisher import Publishers
from omnigraph.versioning.record import (
    Bulk,
    Changed,
    ChangeSet,
    Maintenance,
    Record,
    Spilled,
    Stream,
)
from omnigraph.writers.maintain.index_status import (
    ID_PROPERTY,
    DeclaredIndex,
    list_declared_indexes,
)
from omnigraph.writers.maintain.maintenance_commit import (
    TableWork,
    discard_pieces_on_failure,
    publish_work,
)

# Fewer rows are read as fast as an index is asked: 16,384 take 0.5 ms more than an index does.
TAIL_ROWS_MIN: Final = 16_384
# An index that is not built by default, with long values maybe, is extended by a tenth at a time.
TAIL_SHARE_MIN: Final = 0.1
# What other processes write is not counted here, so the tables are examined every so often.
CHECK_EVERY_COMMITS: Final = 64
# A piece takes a quarter of a second of one core: also a short process on a busy machine finishes
# one, so that processes of one write each get on. It is the size of a fragment.
STEP_ROWS_MAX: Final = 1024 * 1024
# More pieces than tables need in one run: 16 indexes of a billion rows.
STEPS_PER_RUN_MAX: Final = 16_384
# How many branches are watched; one that is forgotten is examined once more.
STREAMS_MAX: Final = 1_024

# The newest view of a branch.
NewestViewOf: TypeAlias = Callable[[Stream], View]


class IndexBuilder:
    """Builds and extends indexes on an executor: no writer waits for it.

    `has_time` says between two pieces whether there is time for another one: for any, or for one
    that is urgent. While a process ends, only what later writes need is built.
    """

    def __init__(
        self,
        publishers: Publishers,
        newest: NewestViewOf,
        executor: Executor,
        has_time: Callable[[bool], bool] = lambda _: True,
    ) -> None:
        self._publishers = publishers
        self._newest = newest
        self._executor = executor
        self._has_time = has_time
        self._lock = threading.Lock()
        # The branches that are being worked on, and whether more was written meanwhile.
        self._running: dict[str, bool] = {}
        # How many rows of each type were written since its branch was last examined.
        self._written: LruCache[str, Counter[str]] = LruCache(STREAMS_MAX)
        self.last_error: OmnigraphError | None = None

    def consider_snapshot(self, snapshot: Snapshot) -> None:
        """Look at the tables of a branch if much was written since the last look."""
        large = {key for key, pin in snapshot.pins.items() if pin.rows >= TAIL_ROWS_MIN}
        if not large:
            return
        stream = snapshot.stream
        written = self._count_written_rows(snapshot)
        with self._lock:
            counts = self._written.get(stream.id)
            is_due = counts is None or not snapshot.seq % CHECK_EVERY_COMMITS
            if counts is not None:
                counts.update(written)
                is_due |= any(counts[key] >= TAIL_ROWS_MIN for key in large)
            if not is_due:
                return
            self._written.put(stream.id, Counter())
            if stream.id in self._running:
                self._running[stream.id] = True
                return
            self._running[stream.id] = False
        try:
            self._executor.submit(self._run_builds, stream)
        except RuntimeError:
            # The executor is shut down: the program is ending, and nothing depends on this.
            self._finish_if_idle(stream)

    def _count_written_rows(self, snapshot: Snapshot) -> Counter[str]:
        """How many rows the newest commit of a snapshot wrote, by type."""
        try:
            record = self._publishers.committer.log.read(snapshot.stream.id, snapshot.seq)
        except CorruptObjectError:
            # If it is damage, `check` reports it.
            return Counter()
        changes = record.changes if isinstance(record, Record) else {}
        return Counter({key: _count_change_rows(change) for key, change in changes.items()})

    def _run_builds(self, stream: Stream) -> None:
        try:
            for _ in range(STEPS_PER_RUN_MAX):
                if not self._has_time(True):
                    break
                is_made = build_index_step(
                    self._newest(stream),
                    self._publishers,
                    tail_rows_min=TAIL_ROWS_MIN,
                    only_urgent=not self._has_time(False),
                )
                if not is_made and self._finish_if_idle(stream):
                    return
        except (ConflictError, BranchRefusedError):
            pass  # A busy or deleted branch: a later commit asks again.
        except OmnigraphError as error:
            self.last_error = error
        except BaseException:
            self._end_builds(stream)
            raise
        self._end_builds(stream)

    def _end_builds(self, stream: Stream) -> None:
        with self._lock:
            self._running.pop(stream.id, None)

    def _finish_if_idle(self, stream: Stream) -> bool:
        """End the work on a branch, unless much was written since it was last examined."""
        with self._lock:
            if self._running.get(stream.id):
                self._running[stream.id] = False
                return False
            self._running.pop(stream.id, None)
            return True


def build_index_step(
    view: View, publishers: Publishers, *, tail_rows_min: int, only_urgent: bool = False
) -> bool:
    """Build the next piece of the indexes of a view, in one commit; whether one was made."""
    chosen: dict[DeclaredIndex, IndexPart] = {}
    rows = 0
    for due in sorted(_iter_due_indexes(view, tail_rows_min), key=_DueIndex.compute_urgency):
        if only_urgent and not due.index.serves_writes:
            continue
        rows += due.part.rows
        if chosen and rows > STEP_ROWS_MAX:
            break
        chosen[due.index] = due.part
    works: dict[TypeKey, TableWork] = {}
    with discard_pieces_on_failure(view.tables) as made:
        for key in dict.fromkeys(index.type_key for index in chosen):
            parts = [part for index, part in chosen.items() if index.type_key == key]
            built = view.tables.build_parts(view.open_table(key).pin, parts)
            if built is not None:
                works[key] = TableWork(pieces=(built,))
                made.append(built)
    return publish_work(view, works, publishers, message="index maintenance") is not None


@dataclass(frozen=True, slots=True)
class _DueIndex:
    """An index that leaves many rows uncovered, and the first part of them."""

    index: DeclaredIndex
    part: IndexPart

    def compute_urgency(self) -> tuple[bool, bool]:
        """What every write looks for comes first, then what some writes look for."""
        return self.index.property != ID_PROPERTY, not self.index.serves_writes


def _iter_due_indexes(view: View, tail_rows_min: int) -> Iterator[_DueIndex]:
    """The indexes of a view that leave many rows uncovered, built or not."""
    for key, declared in list_declared_indexes(view).items():
        if view.snapshot.pins[str(key)].rows < tail_rows_min:
            continue
        table = view.open_table(key)
        known = {index.name: index for index in table.indexes}
        short = [
            one for one in declared if _is_due(table, one, known.get(one.spec.name), tail_rows_min)
        ]
        first: dict[str, IndexPart] = {}
        specs = [one.spec for one in short]
        for part in view.tables.cut_indexes(table.pin, specs, rows_max=STEP_ROWS_MAX):
            first.setdefault(part.spec.name, part)
        yield from (_DueIndex(one, first[one.spec.name]) for one in short if one.spec.name in first)


def _is_due(table: Table, declared: DeclaredIndex, index: Index | None, tail_rows_min: int) -> bool:
    if index is None:
        return declared.by_default
    if index.is_damaged:
        return True
    covered = table.count_covered_rows(index)
    least = 0 if declared.by_default else int(TAIL_SHARE_MIN * covered)
    return table.count() - covered >= max(tail_rows_min, least)


def _count_change_rows(change: ChangeSet) -> int:
    match change:
        case Bulk():
            return change.rows
        case Changed():
            return len(change.inserted) + len(change.updated)
        case Spilled():
            return change.inserted + change.updated
        case Maintenance():
            return 0
    assert_never(change)

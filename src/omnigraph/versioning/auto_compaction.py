"""Compaction: small fragments are joined after commits, so that cost stays flat as they add up."""

from __future__ import annotations

import threading
from concurrent.futures import Executor
from typing import Final

from omnigraph.errors import BranchRefusedError, ConflictError, OmnigraphError
from omnigraph.versioning.effects import Maintain
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.publisher import Publishers
from omnigraph.versioning.record import Maintenance, Record, Signature, Stream
from omnigraph.versioning.transaction import Transaction

# A table is examined when it has this many fragments; the tables decide what is worth joining.
FRAGMENTS_MIN: Final = 32
# Every so many commits the writer looks. A commit has one maker, so of several processes that write
# to a branch one looks, and they do not all do the same work to throw most of it away.
CHECK_EVERY: Final = 8
# After a look that found nothing, the table must have grown by this many fragments.
CHECK_AGAIN: Final = 8
# What one run may rewrite in a row: a long tail of tiers is finished by the next commit.
ROUNDS_MAX: Final = 4

_SIGNATURE: Final = Signature(message="compaction")


class Compactor:
    """Compacts tables after the commits of publishers, on an executor: no writer waits for it."""

    def __init__(self, publishers: Publishers, executor: Executor) -> None:
        self._publishers = publishers
        self._executor = executor
        self._lock = threading.Lock()
        self._is_running: set[tuple[str, str]] = set()
        self._look_at: dict[tuple[str, str], int] = {}
        self.last_error: OmnigraphError | None = None
        publishers.on_published = self.consider

    def consider(self, snapshot: Snapshot) -> None:
        """Start a compaction of each table that has collected enough fragments."""
        if snapshot.seq % CHECK_EVERY:
            return
        for type_key, pin in snapshot.pins.items():
            if pin.fragments >= FRAGMENTS_MIN:
                self._start(snapshot.stream, type_key, pin.fragments)

    def _start(self, stream: Stream, type_key: str, fragments: int) -> None:
        place = (stream.id, type_key)
        with self._lock:
            if place in self._is_running or fragments < self._look_at.get(place, 0):
                return
            self._is_running.add(place)
        try:
            self._executor.submit(self._run, stream, type_key, fragments + CHECK_AGAIN)
        except RuntimeError:
            # The executor is shut down: the program is ending, and nothing depends on this.
            self._stop(place, look_at=0)

    def _run(self, stream: Stream, type_key: str, look_at: int) -> None:
        try:
            for _ in range(ROUNDS_MAX):
                if compact(self._publishers, stream, type_key) is None:
                    break
            head = self._publishers.committer.log.read_head(stream)
            pin = head.snapshot.pins.get(type_key)
            look_at = pin.fragments + CHECK_AGAIN if pin else 0
        except (ConflictError, BranchRefusedError):
            pass  # A busy or deleted branch: a later commit asks again.
        except OmnigraphError as error:
            self.last_error = error
        finally:
            self._stop((stream.id, type_key), look_at=look_at)

    def _stop(self, place: tuple[str, str], *, look_at: int) -> None:
        with self._lock:
            self._is_running.discard(place)
            self._look_at[place] = look_at


def compact(publishers: Publishers, stream: Stream, type_key: str) -> Record | None:
    """Join the small fragments of one table in one commit; None when nothing is worth it."""
    committer = publishers.committer

    def prepare(snapshot: Snapshot) -> Transaction | None:
        pin = snapshot.pins.get(type_key)
        plan = None if pin is None else committer.tables.plan_compaction(pin)
        if plan is None:
            return None
        effect = Maintain(type_key, committer.tables.compact(plan))
        return Transaction(snapshot, (effect,), {type_key: Maintenance()}, signature=_SIGNATURE)

    transaction = prepare(committer.log.read_head(stream).snapshot)
    if transaction is None:
        return None
    return publishers.get_publisher(stream).publish(transaction, prepare_again=prepare)

"""Which reads run at the same time: short ones one after the other, all others as they come.

A short read holds the interpreter nearly all of its time, and lets go of it dozens of times in
between. Threads that run such reads at once get in each other's way at every one of these times,
and together are slower than one thread. One after the other, they are as fast as one. A read that
turns out to take long does not keep the others waiting: they wait for a bounded time only. Nor does
one that waits for a store: it has little work, but it would have its turn for all of that time.

To wake another thread takes a good part of a short read, so a thread that comes back soon has the
next turn too, and wakes no other thread as long as it does. A thread that has waited for long by
that is given its turn by the one before.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from types import TracebackType
from typing import Final

from omnigraph.lru_cache import LruCache

# A read with more work than this gains from a second core what it loses to other threads.
SHORT_S: Final = 0.005
# A read that waited so long is given a turn, unless one other read has its turn all that time.
WAIT_S_MAX: Final = 0.04
# After so long again it runs beside the others.
HANDOVER_S_MAX: Final = 0.08
# A turn that is older was lost by a thread that was interrupted between two steps.
LOST_S: Final = 5.0
# A thread that came back so soon, so many times, is expected to come back again.
RETURN_S: Final = 0.0005
RETURNS_MIN: Final = 3
# So often one of those that wait looks whether it was expected in vain.
LOOK_S: Final = 0.004
# A read that had its turn for long runs beside the others for some runs, more of them each time.
# Then it has a turn again: maybe it waited for a cold file, or for a thread that has ended.
BESIDE_GROWTH: Final = 4
BESIDE_RUNS_MAX: Final = 64
# Texts whose work is remembered; a longer one, with its data written into it, is hardly run twice.
TEXTS_MAX: Final = 1_024
TEXT_LENGTH_MAX: Final = 64 * 1024


class PlanTiming:
    """How much work the last run of a plan was, and whether it waited; at first not known."""

    __slots__ = ("_beside", "_left", "may_wait", "seconds")

    def __init__(self) -> None:
        self.seconds = SHORT_S
        self.may_wait = False
        self._beside = 0
        self._left = 0

    @property
    def is_short(self) -> bool:
        """Whether the next run is expected to be short, and may keep others waiting."""
        return self.seconds < SHORT_S and not self._left and not self.may_wait

    def note_turn(self, passed_s: float) -> None:
        """Remember a run that kept others waiting; its work is measured beside them, if at all."""
        is_slow = passed_s >= SHORT_S
        self._beside = min(max(self._beside, 1) * BESIDE_GROWTH, BESIDE_RUNS_MAX) if is_slow else 0
        self._left = self._beside

    def note_beside(self, work_s: float) -> None:
        """Remember a run beside others: the time that passed says more about them than about it."""
        self.seconds = work_s
        self._left = max(self._left - 1, 0)


class TurnQueue:
    """Whose turn it is: a lock that a thread takes again at once, while no other waits for long."""

    def __init__(self) -> None:
        # Nothing blocks on it, so that to release it wakes no thread.
        self._lock = threading.Lock()
        # Released to wake one of the threads that wait; one of them, the watcher, looks by itself.
        self._bell = threading.Lock()
        self._bell.acquire()
        self._watcher = threading.Lock()
        self._began = 0.0
        # The thread of the last turn, when it ended, and how often it came back soon.
        self._last = 0
        self._ended = 0.0
        self._returns = 0
        # Those that have waited for long, each with a lock that is released for its turn.
        self._overdue: deque[threading.Lock] = deque()

    def wait(self) -> bool:
        """Wait for a turn; whether it came within a bounded time."""
        is_mine = self._lock.acquire(blocking=False) or self._wait_bell() or self._wait_overdue()
        if is_mine:
            self._began, last, self._last = time.monotonic(), self._last, threading.get_ident()
            is_back = last == self._last and self._began - self._ended < RETURN_S
            self._returns = self._returns + 1 if is_back else 0
        return is_mine

    def end_turn(self) -> float:
        """Let the next thread have its turn; the seconds that this one took."""
        self._ended = time.monotonic()
        passed_s, returns = self._ended - self._began, self._returns
        try:
            self._overdue.popleft().release()
        except IndexError:
            self._release()
            if returns < RETURNS_MIN:
                self._wake_one()
        return passed_s

    @property
    def is_taken(self) -> bool:
        """Whether a thread has its turn."""
        return self._lock.locked()

    def _release(self) -> None:
        # The turn may have been taken for lost.
        with suppress(RuntimeError):
            self._lock.release()

    def _wake_one(self) -> None:
        # Another thread may have rung since.
        with suppress(RuntimeError):
            self._bell.release()

    def _wait_bell(self) -> bool:
        """Wait until the turn is free when the bell rings or at a look, for a bounded time."""
        end = time.monotonic() + WAIT_S_MAX
        is_watcher = is_mine = False
        try:
            while not is_mine and (left := end - time.monotonic()) > 0:
                is_watcher = is_watcher or self._watcher.acquire(blocking=False)
                self._bell.acquire(timeout=min(left, LOOK_S) if is_watcher else left)
                is_mine = self._lock.acquire(blocking=False)
        finally:
            if is_watcher:
                self._watcher.release()
                # Whom it wakes is the next watcher.
                self._wake_one()
        return is_mine

    def _wait_overdue(self) -> bool:
        held_s = time.monotonic() - self._began
        if held_s >= LOST_S:
            self._release()
            return self._lock.acquire(blocking=False)
        if held_s >= WAIT_S_MAX:
            return False
        given = threading.Lock()
        given.acquire()
        self._overdue.append(given)
        try:
            # The turn that it saw may have ended before it was in the queue.
            is_mine = self._lock.acquire(blocking=False) or given.acquire(timeout=HANDOVER_S_MAX)
        except BaseException:
            if not self._withdraw(given):
                self.end_turn()
            raise
        # A turn that is given in the last moment counts.
        return not self._withdraw(given) or is_mine

    def _withdraw(self, given: threading.Lock) -> bool:
        """Stop waiting; whether there was no turn yet."""
        try:
            self._overdue.remove(given)
        except ValueError:
            return False
        return True


class ReadTurns:
    """The turns of the reads of one graph, whose work is known by their texts."""

    def __init__(self) -> None:
        self.queue = TurnQueue()
        self._timings: LruCache[Hashable, PlanTiming] = LruCache(TEXTS_MAX)

    def admit(self, text: str, name: str | None) -> AdmissionSlot:
        """The place of one run of a read, from the look for its snapshot to its last row."""
        if len(text) > TEXT_LENGTH_MAX:
            return AdmissionSlot(self.queue, PlanTiming())
        timing = self._timings.get((text, name))
        return AdmissionSlot(self.queue, timing or self._timings.put((text, name), PlanTiming()))

    def exclude(self, text: str, name: str | None) -> None:
        """Give a read no turn any more, since it may wait for something else than other reads."""
        timing = self._timings.get((text, name))
        if timing is not None:
            timing.may_wait = True


class AdmissionSlot:
    """One run of a read: alone among short ones, or beside all others."""

    __slots__ = ("_holds", "_pace", "_started", "_turns")

    def __init__(self, turns: TurnQueue, pace: PlanTiming) -> None:
        self._turns = turns
        self._pace = pace
        self._holds = False
        self._started = 0.0

    def __enter__(self) -> None:
        if self._pace.is_short:
            self._holds = self._turns.wait()
        if not self._holds:
            # The time of this thread alone: waiting for others is not work.
            self._started = time.thread_time()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._holds:
            self._pace.note_turn(self._turns.end_turn())
        else:
            self._pace.note_beside(time.thread_time() - self._started)

"""Which reads run at the same time: short ones one after the other, all others as they come.

A short read holds the interpreter nearly all of its time, and lets go of it dozens of times in
between. Threads that run such reads at once get in each other's way at every one of these times,
and together are slower than one thread. One after the other, they are as fast as one. A read that
turns out to take long does not keep the others waiting: they wait for a bounded time only. Nor does
one that waits for a store: it has little work, but it would have its turn for all of that time.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final

# A read with more work than this gains from a second core what it loses to other threads.
SHORT_S: Final = 0.005
# After so long whatever runs is not short: the next read runs beside it.
WAIT_S_MAX: Final = 0.02
# A read that had its turn for long runs beside the others for some runs, more of them each time.
# Then it has a turn again: maybe it waited for a cold file, or for a thread that has ended.
BESIDE_GROWTH: Final = 4
BESIDE_RUNS_MAX: Final = 64


class PlanTiming:
    """How much work the last run of a plan was, and whether it waited; at first not known."""

    __slots__ = ("_beside", "_left", "seconds")

    def __init__(self) -> None:
        self.seconds = SHORT_S
        self._beside = 0
        self._left = 0

    @property
    def is_short(self) -> bool:
        """Whether the next run is expected to be short, and may keep others waiting."""
        return self.seconds < SHORT_S and not self._left

    def note_turn(self, work_s: float, *, passed_s: float) -> None:
        """Remember a run that kept others waiting."""
        self.seconds = work_s
        is_slow = passed_s >= SHORT_S
        self._beside = min(max(self._beside, 1) * BESIDE_GROWTH, BESIDE_RUNS_MAX) if is_slow else 0
        self._left = self._beside

    def note_beside(self, work_s: float) -> None:
        """Remember a run beside others: the time that passed says more about them than about it."""
        self.seconds = work_s
        self._left = max(self._left - 1, 0)


class AdmissionSlot:
    """One run of a read: alone among short ones, or beside all others."""

    __slots__ = ("_began", "_holds", "_lane", "_pace", "_started")

    def __init__(self, lane: threading.Lock, pace: PlanTiming) -> None:
        self._lane = lane
        self._pace = pace
        self._holds = False
        self._started = self._began = 0.0

    def __enter__(self) -> None:
        if self._pace.is_short:
            self._holds = self._lane.acquire(timeout=WAIT_S_MAX)
        self._began = time.monotonic()
        # The time of this thread alone: waiting for others is not work.
        self._started = time.thread_time()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        work_s = time.thread_time() - self._started
        if self._holds:
            self._lane.release()
            self._pace.note_turn(work_s, passed_s=time.monotonic() - self._began)
        else:
            self._pace.note_beside(work_s)

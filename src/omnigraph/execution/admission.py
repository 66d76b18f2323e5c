"""Which reads run at the same time: short ones one after the other, all others as they come.

A short read holds the interpreter nearly all of its time, and lets go of it dozens of times in
between. Threads that run such reads at once get in each other's way at every one of these times,
and together are slower than one thread. One after the other, they are as fast as one. A read that
turns out to take long does not keep the others waiting: they wait for a bounded time only.
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


class Pace:
    """How much work the last run of a plan was; not known before the first one."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = SHORT_S

    @property
    def is_short(self) -> bool:
        """Whether the next run is expected to be short."""
        return self.seconds < SHORT_S


class Turn:
    """One run of a read: alone among short ones, or beside all others."""

    __slots__ = ("_holds", "_lane", "_pace", "_started")

    def __init__(self, lane: threading.Lock, pace: Pace) -> None:
        self._lane = lane
        self._pace = pace
        self._holds = False
        self._started = 0.0

    def __enter__(self) -> None:
        if self._pace.is_short:
            self._holds = self._lane.acquire(timeout=WAIT_S_MAX)
        # The time of this thread alone: waiting for others is not work.
        self._started = time.thread_time()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pace.seconds = time.thread_time() - self._started
        if self._holds:
            self._lane.release()

"""Where the work of a request runs: quick warm reads in the event loop, all else in threads.

A hand-over to a thread and back takes as long as a small read. A read is quick if the same text
ran quickly on the very same snapshot before; a new commit sends it to a thread first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Final, TypeVar

from omnigraph.errors import QueryTimeoutError
from omnigraph.lru_cache import LruCache

Returned = TypeVar("Returned")

# A read below this may keep the event loop from its other requests.
QUICK_S: Final = 0.003
# One whose parameters need more than those before it is stopped after this, and goes to a thread.
LOOP_S_MAX: Final = 0.05
# One that waits, for a network or for threads of a library, takes no time of its own thread and
# would keep the loop waiting; one that competes for the interpreter is done within this.
_WAIT_S_MAX: Final = 0.03
# Texts that are remembered as quick, each with its snapshot.
QUICK_MAX: Final = 4_096
# Reads that are not quick compete for the interpreter; more of them at a time are not faster.
READ_THREADS: Final = 8
# Writes wait for each other's commits, and one commit takes as many of them as wait.
WRITE_THREADS: Final = 64
# Exports and baselines, which may take minutes.
STREAM_THREADS: Final = 8


class Lane(StrEnum):
    """Which threads do the work of a route."""

    LOOP = "loop"
    READ = "read"
    WRITE = "write"
    STREAM = "stream"


class _Watch:
    """What a read takes: of its own thread, and of the clock."""

    def __init__(self) -> None:
        self._worked_s, self._began_s = time.thread_time(), time.perf_counter()

    def has_worked(self) -> bool:
        """Whether it needed more than a quick read does, however busy the machine was."""
        return time.thread_time() - self._worked_s > QUICK_S

    def has_waited(self) -> bool:
        """Whether it kept its thread for long, working or not."""
        return time.perf_counter() - self._began_s > _WAIT_S_MAX


class Lanes:
    """The threads of a server, apart by the kind of work: a load does not keep a read waiting."""

    def __init__(self) -> None:
        self._pools = {
            Lane.READ: ThreadPoolExecutor(READ_THREADS, "omnigraph-read"),
            Lane.WRITE: ThreadPoolExecutor(WRITE_THREADS, "omnigraph-write"),
            Lane.STREAM: ThreadPoolExecutor(STREAM_THREADS, "omnigraph-stream"),
        }
        self._quick: LruCache[Hashable, bool] = LruCache(QUICK_MAX)

    async def run(self, lane: Lane, work: Callable[[], Returned]) -> Returned:
        """Do some work in a thread of a lane."""
        return await asyncio.get_running_loop().run_in_executor(self._pools[lane], work)

    def is_quick(self, key: Hashable) -> bool:
        """Whether equal reads were quick, all of them."""
        return self._quick.get(key) is True

    def run_quick(self, key: Hashable, work: Callable[[], Returned]) -> Returned:
        """Do a quick read here; one that turns out to be slow is not quick any more.

        One that was stopped stays in threads, whatever the next of them takes, unless it was the
        machine that kept it waiting: then it is measured again.
        """
        watch = _Watch()
        try:
            found = work()
        except QueryTimeoutError:
            if watch.has_worked():
                self._quick.put(key, False)
            else:
                self._quick.discard(key)
            raise
        if watch.has_worked() or watch.has_waited():
            self._quick.discard(key)
        return found

    async def run_measured(self, key: Hashable, work: Callable[[], Returned]) -> Returned:
        """Do a read in a thread, and remember whether it was quick."""
        return await self.run(Lane.READ, lambda: self._measure(key, work))

    def _measure(self, key: Hashable, work: Callable[[], Returned]) -> Returned:
        watch = _Watch()
        found = work()
        is_quick = not watch.has_worked() and not watch.has_waited()
        if is_quick and self._quick.get(key) is None:
            self._quick.put(key, True)
        return found

    def shutdown(self) -> None:
        """Let the threads end after what they are doing."""
        for pool in self._pools.values():
            pool.shutdown(wait=True, cancel_futures=True)

"""The threads that calls run in, and what cancelling a task does to its call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Final, TypeVar

from omnigraph.errors import GraphClosedError
from omnigraph.execution.query_budget import Cancellation

Returned = TypeVar("Returned")
Item = TypeVar("Item")

# Writers of one branch share commits only while they wait at the same time; more threads than this
# gain nothing, because queries compete for the same processors.
THREADS_MAX: Final = 32
# Entering a thread costs as much as reading a few items: it reads so many, or for so long.
_ITEMS_MAX: Final = 256
_ITEMS_S: Final = 0.005


class CallThreads:
    """Threads for the calls of one graph, whose work its closing waits for."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._pool = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="omnigraph-async")
        self._running: set[Cancellation] = set()
        self._is_closed = False

    async def run(
        self,
        call: Callable[[], Returned],
        *,
        cancellation: Cancellation | None = None,
        discard: Callable[[Returned], object] | None = None,
        is_write: bool = False,
    ) -> Returned:
        """The result of a call.

        If the task is cancelled, a call that has not begun never does. A running one is stopped by
        its cancellation, and the task waits for its end; without a cancellation it goes on alone
        to its end, and `discard` gets its result. Closing waits for a write and does not stop it.
        """
        future = self._submit(call)
        if cancellation is not None and not is_write:
            self._running.add(cancellation)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if cancellation is not None:
                cancellation.cancel()
                await _wait_for_end(future)
            elif discard is not None:
                future.add_done_callback(partial(_discard_result, discard))
            raise
        finally:
            if cancellation is not None:
                self._running.discard(cancellation)

    async def iter_items(self, start: Callable[[], Iterator[Item]]) -> AsyncIterator[Item]:
        """The items of an iterator that a thread reads, some at a time."""
        items = await self.run(start)
        try:
            # With a cancellation, so that no thread reads any more when the iterator is closed.
            while batch := await self.run(partial(_read_some, items), cancellation=Cancellation()):
                for item in batch:
                    yield item
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                with suppress(GraphClosedError):
                    await self.run(close)

    async def close(self, finish: Callable[[], None]) -> None:
        """Stop running queries, wait for all other calls, and finish; again is allowed."""
        self._is_closed = True
        for cancellation in list(self._running):
            cancellation.cancel()

        def end() -> None:
            self._pool.shutdown()
            finish()

        # Not in the pool, which waits for its own threads.
        await asyncio.to_thread(end)

    def _submit(self, call: Callable[[], Returned]) -> Future[Returned]:
        if self._is_closed:
            raise GraphClosedError(self._uri)
        return self._pool.submit(copy_context().run, call)


def _read_some(items: Iterator[Item]) -> list[Item]:
    until = time.monotonic() + _ITEMS_S
    batch: list[Item] = []
    for item in items:
        batch.append(item)
        if len(batch) == _ITEMS_MAX or time.monotonic() >= until:
            break
    return batch


async def _wait_for_end(future: Future[Returned]) -> None:
    """Wait until a call ended, whatever its result; not for one that never began."""
    if future.cancelled():
        return
    ended = asyncio.wrap_future(future)
    await asyncio.wait([ended])
    # Marks the error of the call as seen, so that asyncio does not report it.
    ended.exception()


def _discard_result(discard: Callable[[Returned], object], future: Future[Returned]) -> None:
    if not future.cancelled() and future.exception() is None:
        discard(future.result())

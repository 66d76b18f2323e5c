"""A graph that is being opened."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from omnigraph.aio.async_handles import AsyncGraph
from omnigraph.aio.call_threads import CallThreads
from omnigraph.engine import Graph


class AsyncOpening:
    """What opens a graph when it is awaited, or entered with `async with`."""

    def __init__(self, start: Callable[[], Graph], *, address: str) -> None:
        self._start = start
        self._address = address
        self._graph: AsyncGraph | None = None

    def __await__(self) -> Generator[Any, None, AsyncGraph]:  # Any: what asyncio waits for
        return self._open().__await__()

    async def __aenter__(self) -> AsyncGraph:
        self._graph = await self._open()
        return self._graph

    async def __aexit__(self, *_: object) -> None:
        assert self._graph is not None, "it was entered"
        await self._graph.close()

    async def _open(self) -> AsyncGraph:
        threads = CallThreads(self._address)
        # A graph that no task waits for any more is closed again.
        return AsyncGraph(await threads.run(self._start, discard=Graph.close), threads)

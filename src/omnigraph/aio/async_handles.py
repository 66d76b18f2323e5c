"""Asynchronous graphs, branches, snapshots, and what they return that reads when it is used."""

# Type checkers read the signatures in the stub, which `scripts/async_stub.py` generates.

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from functools import partial

from omnigraph.aio.async_members import AsyncHandle
from omnigraph.engine import Baseline, Blob, Block, Branch, Diff, Graph, Snapshot
from omnigraph.engine.feed import POLL_S, require_poll_interval
from omnigraph.engine.proposals import Proposal, ProposalDraft


class AsyncGraph(AsyncHandle[Graph], of=Graph):
    """A graph, open in this process or on a server, for tasks of one event loop.

    Wrap an open `Graph`, or open one with `omnigraph.connect_async`. Each method of `Graph` is
    here, to be awaited, and takes the same arguments; of branches and snapshots too.
    """

    IMMEDIATE = ("acting_as", "actor", "proposal", "uri")
    HIDDEN = ("spark",)

    async def close(self) -> None:
        """Stop running queries, wait for writes that are under way, and close the graph."""
        await self._threads.close(self.sync.close)

    async def __aenter__(self) -> AsyncGraph:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncBranch(AsyncHandle[Branch], of=Branch):
    """A branch whose reads and writes are awaited.

    A cancelled query stops in the engine. A cancelled write that has begun goes on to its end:
    repeat it with its `key`, and the answer is the commit it made, or that of the repetition.
    """

    IMMEDIATE = ("life", "name", "propose")
    HIDDEN = ("dataset", "retrying", "session", "stream")

    async def follow(
        self,
        *,
        cursor: str | None = None,
        start: str | None = None,
        poll_s: float = POLL_S,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> AsyncIterator[Block]:
        """What every commit after a position changed, without end; waits for new commits."""
        # Pages, since waiting in a thread would keep the thread from all others.
        pause_s = require_poll_interval(poll_s)
        read = partial(self.changes, kinds=kinds, types=types, ops=ops)
        page = await read(cursor=cursor, start=start)
        while True:
            for block in page.blocks:
                yield block
            if page.next_page_token is not None:
                page = await read(page_token=page.next_page_token)
                continue
            if page.caught_up:
                await asyncio.sleep(pause_s)
            page = await read(cursor=page.cursor)


class AsyncSnapshot(AsyncHandle[Snapshot], of=Snapshot):
    """A snapshot whose reads are awaited; the same questions give the same answers for ever."""

    IMMEDIATE = ("branch", "uri", "version")
    HIDDEN = ("answer", "at", "catalog", "dataset", "describe", "open_for", "type_key", "view")


class AsyncProposal(AsyncHandle[Proposal], of=Proposal):
    """A proposal whose reviews and merge are awaited."""

    IMMEDIATE = ("number",)


class AsyncProposalDraft(AsyncHandle[ProposalDraft], of=ProposalDraft):
    """A proposal that is opened with its first write, which is awaited."""


class AsyncDiff(AsyncHandle[Diff], of=Diff):
    """A diff; iterated with `async for`, it gives every entity that changed."""

    IMMEDIATE = ("counts", "header", "new", "old", "schema_changes", "summary")
    HIDDEN = ("parts", "reading")

    def __aiter__(self) -> AsyncIterator[object]:
        return self._threads.iter_items(self.sync.__iter__)

    def __len__(self) -> int:
        return len(self.sync)

    def __bool__(self) -> bool:
        """Whether anything is different, be it only the schema."""
        return bool(self.sync)


class AsyncBlob(AsyncHandle[Blob], of=Blob):
    """The bytes of a property; `read` and `save` are awaited."""

    IMMEDIATE = ("etag", "size")
    HIDDEN = ("open",)


class AsyncBaseline(AsyncHandle[Baseline], of=Baseline):
    """The entities of a branch at one commit, with `async for`, and the cursor after them."""

    IMMEDIATE = ("commit_id", "resume_cursor", "to_json")

    def __aiter__(self) -> AsyncIterator[object]:
        return self._threads.iter_items(self.sync.__iter__)

"""Asynchronous twins of graphs, branches and snapshots, for programs on asyncio.

In: an open graph, embedded or on a server. Out: handles with the same methods, to be awaited.
Guarantee: the event loop never waits for a read or a write; a cancelled query stops in the engine
before its task goes on; a cancelled write is one commit or none, never a part of one.

    async_handles    the classes; their signatures, in the stub, are generated from the engine
    async_members    builds a class of awaited members from a class of the engine
    call_threads     the threads that calls run in, and what cancelling does to a call
    async_opening    a graph that is being opened, awaited or used with `async with`
"""

from omnigraph.aio.async_handles import (
    AsyncBaseline,
    AsyncBlob,
    AsyncBranch,
    AsyncDiff,
    AsyncGraph,
    AsyncProposal,
    AsyncProposalDraft,
    AsyncSnapshot,
)
from omnigraph.aio.async_opening import AsyncOpening

__all__ = [
    "AsyncBaseline",
    "AsyncBlob",
    "AsyncBranch",
    "AsyncDiff",
    "AsyncGraph",
    "AsyncOpening",
    "AsyncProposal",
    "AsyncProposalDraft",
    "AsyncSnapshot",
]

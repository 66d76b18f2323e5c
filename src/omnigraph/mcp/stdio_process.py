"""The protocol over standard input and output, for one client that started the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import ListenHandler
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from omnigraph.mcp.list_watch import POLL_S, ListWatch
from omnigraph.mcp.tool_server import ToolServer
from omnigraph.mcp.toolbox import Toolbox


def serve_stdio(read: Callable[[], Toolbox]) -> None:
    """Answer requests until standard input ends; `read` gives the tools of its moment."""
    asyncio.run(_serve(ListWatch(read)))


async def _serve(watch: ListWatch) -> None:
    async with stdio_server() as (incoming, outgoing):
        await serve_streams(watch, incoming, outgoing)


async def serve_streams(
    watch: ListWatch,
    incoming: ReadStream[SessionMessage | Exception],
    outgoing: WriteStream[SessionMessage],
    *,
    poll_s: float = POLL_S,
) -> None:
    """Answer the requests of one client, and follow the tools meanwhile."""
    server = ToolServer(watch.find_toolbox, name="omnigraph", listen=ListenHandler(watch.bus))
    follow = asyncio.create_task(watch.follow(poll_s))
    try:
        protocol = server.protocol
        options = protocol.create_initialization_options(NotificationOptions(tools_changed=True))
        await protocol.run(incoming, outgoing, options)
    finally:
        follow.cancel()
        with suppress(asyncio.CancelledError):
            await follow
        await server.close()

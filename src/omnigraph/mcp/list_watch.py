"""Notices that the tools changed, while a client is connected."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import anyio
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged

from omnigraph.errors import OmnigraphError
from omnigraph.mcp.tool_server import Context, describe_tool
from omnigraph.mcp.toolbox import Toolbox

_log = logging.getLogger(__name__)

# As often as servers follow a cluster.
POLL_S: Final = 2.0


class ListWatch:
    """The tools of now; clients hear of a change in the way of their era of the protocol."""

    def __init__(self, read: Callable[[], Toolbox]) -> None:
        self._read = read
        self._toolbox = read()
        self._shown = _list_shown(self._toolbox)
        self._sessions: set[ServerSession] = set()
        self.bus = InMemorySubscriptionBus()

    def find_toolbox(self, context: Context) -> Toolbox:
        """The tools for a request, whose client hears of changes from now on."""
        self._sessions.add(context.session)
        return self._toolbox

    async def follow(self, poll_s: float = POLL_S) -> None:
        """Read the tools again and again, without end; what cannot be read changes nothing."""
        while True:
            await asyncio.sleep(poll_s)
            try:
                toolbox = await asyncio.to_thread(self._read)
                shown = await asyncio.to_thread(_list_shown, toolbox)
            except OmnigraphError as error:
                _log.warning("the tools stay as they are: %s", error)
                continue
            self._toolbox = toolbox
            if shown != self._shown:
                self._shown = shown
                await self._notify()

    async def _notify(self) -> None:
        await self.bus.publish(ToolsListChanged())
        for session in list(self._sessions):
            try:
                await session.send_tool_list_changed()
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._sessions.discard(session)


def _list_shown(toolbox: Toolbox) -> list[str]:
    return [describe_tool(each).model_dump_json() for each in toolbox.list_tools()]

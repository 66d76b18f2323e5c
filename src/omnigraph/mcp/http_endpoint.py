"""The protocol over HTTP, to be mounted by a server: stateless, each answer one JSON document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from omnigraph.mcp.tool_server import Context, ToolServer
from omnigraph.mcp.toolbox import Toolbox

Scope = MutableMapping[str, Any]  # Any: values of ASGI
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]  # Any: events of ASGI
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]  # Any: the same

# Where a request carries the tools of its caller.
_TOOLBOX: Final = "omnigraph.toolbox"
_METHOD_REFUSED: Final = b'{"error":"method not allowed","code":"method_not_allowed"}'


class McpEndpoint:
    """Answers requests of agents; the server has found out before who asks, and for what."""

    def __init__(self, *, body_bytes_max: int, name: str = "omnigraph") -> None:
        self._tools = ToolServer(_find_toolbox, name=name)
        self._manager = StreamableHTTPSessionManager(
            app=self._tools.protocol,
            json_response=True,
            stateless=True,
            max_request_body_size=body_bytes_max,
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Around all requests; once."""
        async with self._manager.run():
            try:
                yield
            finally:
                await self._tools.close()

    async def answer(self, scope: Scope, receive: Receive, send: Send, *, toolbox: Toolbox) -> None:
        """Answer one request with the tools of its caller."""
        if scope["method"] != "POST":
            # There is no stream to open and no session to end.
            headers = [(b"content-type", b"application/json"), (b"allow", b"POST")]
            await send({"type": "http.response.start", "status": 405, "headers": headers})
            await send({"type": "http.response.body", "body": _METHOD_REFUSED})
            return
        await self._manager.handle_request({**scope, _TOOLBOX: toolbox}, receive, send)


def _find_toolbox(context: Context) -> Toolbox:
    assert context.request is not None, "a request came over HTTP"
    found: Toolbox = context.request.scope[_TOOLBOX]
    return found

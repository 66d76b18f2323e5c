"""Requests of agents: the Model Context Protocol, for each graph and for the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from omnigraph.errors import PolicyDeniedError
from omnigraph.operations.graph_reads import ReadBounds
from omnigraph.server.admission_control import AdmissionControl
from omnigraph.server.exchange import Answer, Call, RequestRefusedError
from omnigraph.server.request_reader import Receive, read_body, require_media
from omnigraph.server.server_settings import ServerSettings
from omnigraph.server.service_routes import describe_graphs
from omnigraph.wire.protocol_names import JSON
from omnigraph.wire.wire_routes import RouteSpec

if TYPE_CHECKING:
    from omnigraph.mcp.http_endpoint import McpEndpoint
    from omnigraph.mcp.toolbox import Toolbox

_log = logging.getLogger(__name__)
_RESOURCE: Final = "request_body_bytes"
# What a request to the endpoint keeps of its headers: the token is known by then.
_HEADERS: Final = (b"accept", b"content-type", b"mcp-protocol-version")
_HEADER_PREFIX: Final = b"mcp-"
GRAPH_SPEC: Final = RouteSpec(
    "cluster_mcp", "POST", "/graphs/{graph_id}/mcp", "agents", "The tools of a graph."
)
SERVER_SPEC: Final = RouteSpec("mcp", "POST", "/mcp", "agents", "The tools of the server.")


class AgentRoutes:
    """Answers agents with the tools that their actor may call, as of the state of each request."""

    def __init__(self, settings: ServerSettings, admission: AdmissionControl) -> None:
        self._settings = settings
        self._admission = admission
        self._started = asyncio.Event()
        self._endpoint: McpEndpoint | None = None

    async def run(self) -> None:
        """Around all requests, in a task of its own, until it is cancelled."""
        # Loading the library takes a second, for which no other request waits.
        endpoint = await asyncio.to_thread(_load_endpoint, self._settings.body_bytes_max)
        if endpoint is None:
            self._started.set()
            return
        async with endpoint.run():
            self._endpoint = endpoint
            self._started.set()
            await asyncio.get_running_loop().create_future()

    async def ask_graph(self, call: Call, receive: Receive) -> Answer:
        """A request about one graph."""
        await self._require_endpoint()
        return await self._ask(call, receive, self._build_graph_toolbox(call))

    async def ask_server(self, call: Call, receive: Receive) -> Answer:
        """A request about the server."""
        await self._require_endpoint()
        from omnigraph.mcp.toolbox import ServerToolbox  # noqa: PLC0415 — a library of its own

        state = call.state
        try:
            state.authorize_list(call.actor)
        except PolicyDeniedError:
            toolbox = ServerToolbox(None)
        else:
            toolbox = ServerToolbox(lambda: describe_graphs(state))
        return await self._ask(call, receive, toolbox)

    def _build_graph_toolbox(self, call: Call) -> Toolbox:
        from omnigraph.mcp.exposure import Exposure  # noqa: PLC0415 — a library of its own
        from omnigraph.mcp.tool_scope import ToolScope  # noqa: PLC0415
        from omnigraph.mcp.toolbox import GraphToolbox  # noqa: PLC0415

        target, settings = call.target, self._settings
        # Agents of a cluster have its stored queries; of a graph alone they write their own.
        exposure = Exposure(
            has_adhoc=not target.is_managed,
            is_managed=target.is_managed,
            has_review_tools=settings.has_review_tools,
        )
        scope = ToolScope(
            call.open_graph(),
            target.queries,
            exposure,
            ReadBounds(settings.read_s_max, settings.read_bytes_max),
            target.open_unguarded(call.actor),
            lambda nbytes: self._admit(call.actor, nbytes),
        )
        return GraphToolbox(scope)

    @contextmanager
    def _admit(self, actor: str | None, nbytes: int) -> Iterator[None]:
        from omnigraph.mcp.agent_tool import ToolRefusedError  # noqa: PLC0415

        with ExitStack() as held:
            try:
                held.enter_context(self._admission.admit(actor, nbytes))
            except RequestRefusedError as refused:
                document = {"error": refused.message, "code": str(refused.code), **refused.detail}
                raise ToolRefusedError(document) from None
            yield

    async def _require_endpoint(self) -> McpEndpoint:
        await self._started.wait()
        if self._endpoint is None:
            raise RequestRefusedError(404, "this server has no usable omnigraph[mcp]")
        return self._endpoint

    async def _ask(self, call: Call, receive: Receive, toolbox: Toolbox) -> Answer:
        require_media(call, JSON, is_required=True)
        settings = self._settings
        body = await read_body(
            call,
            receive,
            bytes_max=settings.body_bytes_max,
            timeout_s=settings.body_s_max,
            resource=_RESOURCE,
        )
        exchanged = _Exchanged(body, receive)
        endpoint = await self._require_endpoint()
        await endpoint.answer(
            _build_scope(call), exchanged.receive, exchanged.send, toolbox=toolbox
        )
        return exchanged.build_answer()


@dataclass(slots=True)
class _Exchanged:
    """The channel of one request to the endpoint: its body, and what is answered."""

    body: bytes
    rest: Receive
    status: int = 500
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    is_read: bool = False

    async def receive(self) -> MutableMapping[str, Any]:  # Any: events of ASGI
        """The body, and then whatever the client does."""
        if self.is_read:
            return await self.rest()
        self.is_read = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def send(self, event: MutableMapping[str, Any]) -> None:  # Any: the same
        """Keep a part of the answer."""
        if event["type"] == "http.response.start":
            self.status, self.headers = event["status"], list(event["headers"])
        else:
            self.parts.append(event.get("body", b""))

    def build_answer(self) -> Answer:
        """The whole answer."""
        found = {name.lower(): value for name, value in self.headers}
        kept = tuple((b"allow", found[b"allow"]) for _ in range(b"allow" in found))
        return Answer(self.status, b"".join(self.parts), found.get(b"content-type"), kept)


def _build_scope(call: Call) -> MutableMapping[str, Any]:  # Any: values of ASGI
    kept = [
        (name, value)
        for name, value in call.headers
        if name in _HEADERS or name.startswith(_HEADER_PREFIX)
    ]
    path = call.raw_path.decode("latin-1")
    return {
        "type": "http",
        "http_version": "1.1",
        "method": call.method,
        "scheme": "http",
        "path": path,
        "raw_path": call.raw_path,
        "query_string": b"",
        "root_path": "",
        "headers": kept,
        "client": None,
        "server": None,
    }


def _load_endpoint(body_bytes_max: int) -> McpEndpoint | None:
    try:
        from omnigraph.mcp.http_endpoint import McpEndpoint  # noqa: PLC0415 — a library of its own
    except ImportError as failure:
        # A library of a version that does not fit is as good as none.
        _log.info("agents are not served: %s", failure)
        return None
    return McpEndpoint(body_bytes_max=body_bytes_max)

"""The protocol: lists and calls of tools, resources, and failures as answers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from omnigraph import __version__
from omnigraph.aio.call_threads import CallThreads
from omnigraph.error_codes import ErrorCode
from omnigraph.errors import OmnigraphError
from omnigraph.errors.error_documents import describe_error, error_code_of
from omnigraph.execution.query_budget import Cancellation
from omnigraph.mcp.agent_tool import AgentTool, JsonObject, ToolRefusedError
from omnigraph.mcp.toolbox import AgentResource, Toolbox

_log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]  # Any: what the transport attached
FindToolbox = Callable[[Context], Toolbox]

INSTRUCTIONS: Final = (
    "An Omnigraph: a typed graph with branches and history. Call schema_summary first. Prefer the"
    " tools of stored queries; where there is a query tool, omnigraph://best-practices/queries has"
    " its language. Change data on a branch, compare it with branches_diff, then merge it."
)
_INTERNAL: Final = "the call failed inside the server; its log has the reason"


class ToolServer:
    """Answers the requests of one or many clients with the toolbox of each request."""

    def __init__(
        self, find_toolbox: FindToolbox, *, name: str, listen: ListenHandler | None = None
    ) -> None:
        self._find_toolbox = find_toolbox
        self._threads = CallThreads(name)
        self.protocol: Server[Any] = Server(
            name,
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_list_prompts=_list_prompts,
            on_subscriptions_listen=listen,
        )

    async def close(self) -> None:
        """Stop running reads, and wait for writes that are under way."""
        await self._threads.close(lambda: None)

    async def _list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del params
        found = await self._threads.run(self._find_toolbox(context).list_tools)
        return types.ListToolsResult(tools=[describe_tool(each) for each in found])

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._find_toolbox(context).find_tool(params.name)
        if tool is None:
            # The same for what is denied, hidden or unknown, which a caller cannot distinguish.
            raise MCPError(types.INVALID_PARAMS, "unknown tool")
        cancel = Cancellation()
        work = partial(_answer, tool, params.arguments or {}, cancel)
        # A write goes on without a client that cancels it.
        text, is_error = await self._threads.run(
            work, cancellation=cancel if tool.is_read else None
        )
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], is_error=is_error)

    async def _list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        del params
        found = await self._threads.run(self._find_toolbox(context).list_resources)
        return types.ListResourcesResult(resources=list(map(_describe_resource, found)))

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        listed = await self._threads.run(self._find_toolbox(context).list_resources)
        resource = next((each for each in listed if each.uri == uri), None)
        if resource is None:
            raise MCPError(types.INVALID_PARAMS, "unknown resource")
        text = await self._threads.run(partial(_read_text, resource))
        found = types.TextResourceContents(uri=uri, mime_type=resource.media_type, text=text)
        return types.ReadResourceResult(contents=[found])


def describe_tool(tool: AgentTool) -> types.Tool:
    """A tool as clients list it."""
    hints = types.ToolAnnotations(
        read_only_hint=tool.is_read, destructive_hint=tool.is_destructive, open_world_hint=False
    )
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=hints,
    )


def _describe_resource(resource: AgentResource) -> types.Resource:
    return types.Resource(uri=resource.uri, name=resource.name, mime_type=resource.media_type)


async def _list_prompts(
    context: Context, params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    del context, params
    return types.ListPromptsResult(prompts=[])


def _answer(tool: AgentTool, arguments: dict[str, Any], cancel: Cancellation) -> tuple[str, bool]:
    """The text of an answer, and whether it is a failure."""
    try:
        return tool.answer(arguments, cancel), False
    except Exception as error:  # noqa: BLE001 — the boundary: every failure is an answer
        return orjson.dumps(describe_failure(error)).decode(), True


def _read_text(resource: AgentResource) -> str:
    try:
        return resource.read()
    except Exception as error:  # noqa: BLE001 — the boundary: every failure is an answer
        raise MCPError(types.INTERNAL_ERROR, describe_failure(error)["error"]) from None


def describe_failure(error: Exception) -> JsonObject:
    """The document of a failure; what is our own fault is logged, and not shown."""
    if isinstance(error, ToolRefusedError):
        return error.document
    if isinstance(error, OmnigraphError) and error_code_of(type(error)) is not ErrorCode.INTERNAL:
        return describe_error(error)
    _log.error("a tool failed", exc_info=error)
    return {"error": _INTERNAL, "code": str(ErrorCode.INTERNAL)}

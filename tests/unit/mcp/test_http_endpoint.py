"""The endpoint that a server mounts, asked by a client of the protocol's own library."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ToolsCapability

import omnigraph
from omnigraph import Graph
from omnigraph.mcp.exposure import Exposure
from omnigraph.mcp.http_endpoint import McpEndpoint
from omnigraph.mcp.toolbox import GraphToolbox, ServerToolbox, Toolbox
from unit.mcp.agent_world import build_graph, build_scope, load_rules, read_document

URL = "http://graphs.test/graphs/people/mcp"


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with build_graph(tmp_path) as graph:
        yield graph


def visit(
    toolboxes: Mapping[str, Toolbox],
    work: Callable[[Any], Awaitable[None]],
    *,
    endpoint: McpEndpoint | None = None,
) -> None:
    """Do some work with an HTTP client of an endpoint whose callers have a toolbox by token."""

    async def run() -> None:
        served = endpoint or McpEndpoint(body_bytes_max=1_000_000)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            headers = dict(scope["headers"])
            toolbox = toolboxes[headers[b"authorization"].decode()]
            await served.answer(scope, receive, send, toolbox=toolbox)

        async with (
            served.run(),
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=app),
                headers={"authorization": next(iter(toolboxes))},
            ) as http,
        ):
            await work(http)

    asyncio.run(run())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_are_listed_and_called_over_http(graph: Graph, mode: str) -> None:
    async def work(http: Any) -> None:
        async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
            names = [each.name for each in (await client.list_tools()).tools]
            assert {"find_person", "query"} <= set(names)
            result = await client.call_tool("find_person", {"name": "p003"})
            assert read_document(result)["rows"] == [{"name": "p003", "age": 3}]
            assert client.server_capabilities.tools == ToolsCapability(list_changed=False)

    visit({"ada": GraphToolbox(build_scope(graph))}, work)


def test_each_request_has_the_tools_of_its_caller(graph: Graph, tmp_path: Path) -> None:
    policy = load_rules(tmp_path)
    with omnigraph.open(graph.uri, durable=False, policy=policy) as opened:
        toolboxes: dict[str, Toolbox] = {
            actor: GraphToolbox(build_scope(opened.acting_as(actor)))
            for actor in ("agent", "reader")
        }

        async def work(http: Any) -> None:
            async with Client(streamable_http_client(URL, http_client=http)) as client:
                names = [each.name for each in (await client.list_tools()).tools]
                assert names == ["all_people", "find_person"]
                http.headers["authorization"] = "reader"
                result = await client.call_tool("snapshot", {})
                assert not result.is_error
                http.headers["authorization"] = "agent"
                refused = None
                try:
                    await client.call_tool("snapshot", {})
                except MCPError as error:
                    refused = error.error.code
                assert refused == -32602

        visit(toolboxes, work)


def test_the_tools_of_a_server_are_its_health_and_its_graphs() -> None:
    listing = {"graphs": [{"graph_id": "people", "uri": "x"}]}

    async def work(http: Any) -> None:
        async with Client(streamable_http_client(URL, http_client=http)) as client:
            names = [each.name for each in (await client.list_tools()).tools]
            assert names == ["health", "graphs_list"]
            result = await client.call_tool("graphs_list", {})
            assert read_document(result) == listing
            http.headers["authorization"] = "nobody-special"
            names = [each.name for each in (await client.list_tools()).tools]
            assert names == ["health"]

    visit({"ada": ServerToolbox(lambda: listing), "nobody-special": ServerToolbox(None)}, work)


def test_only_posts_of_a_bounded_size_are_answered(graph: Graph) -> None:
    async def work(http: Any) -> None:
        for method in ("GET", "DELETE", "PUT"):
            refused = await http.request(method, URL)
            assert refused.status_code == 405
            assert refused.headers["allow"] == "POST"
        large = await http.post(URL, content=b"x" * 1_000_001)
        assert large.status_code == 413
        wrong = await http.post(
            URL,
            json={"jsonrpc": "2.0", "id": 1, "method": "nothing/here"},
            headers={"accept": "application/json, text/event-stream"},
        )
        assert wrong.json()["error"]["code"] == -32601

    visit({"ada": GraphToolbox(build_scope(graph))}, work)


def test_a_client_that_goes_away_stops_its_read(graph: Graph) -> None:
    slow = """query q() {
      match { $a: Person $b: Person $c: Person $d: Person  $a.age != $b.age  $b.age != $c.age
        $c.age != $d.age }
      return { count($a) as n } }"""

    endpoint = McpEndpoint(body_bytes_max=1_000_000)
    running = endpoint._tools._threads._running

    async def work(http: Any) -> None:
        async with Client(streamable_http_client(URL, http_client=http)) as client:
            asked = asyncio.create_task(client.call_tool("query", {"query": slow}))
            await asyncio.sleep(0.3)
            assert running
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            for _ in range(200):
                await asyncio.sleep(0.01)
                if not running:
                    break
            assert not running
            result = await client.call_tool("find_person", {"name": "p003"})
            assert not result.is_error

    toolboxes = {"ada": GraphToolbox(build_scope(graph, exposure=Exposure(has_adhoc=True)))}
    visit(toolboxes, work, endpoint=endpoint)

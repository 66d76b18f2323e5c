"""Agents of a server: a client of the protocol's own library, with the token of its actor."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from served import RunningServer, serve_cluster, serve_people
from unit.mcp.agent_world import read_document
from unit.server.test_cluster_serving import ACTORS, write_cluster

CLUSTER_TOOLS = {"find_person", "hire"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Two graphs, one of them under a policy."""
    folder = write_cluster(tmp_path_factory.mktemp("agents") / "config")
    with serve_cluster(folder, actors=ACTORS) as running:
        yield running


@pytest.mark.parametrize("path", ["/mcp", "/graphs/people/mcp"])
def test_a_library_that_cannot_be_imported_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for name in ("http_endpoint", "toolbox"):
        # Importing a name from it fails as from a library of another version.
        monkeypatch.setitem(sys.modules, f"omnigraph.mcp.{name}", ModuleType(name))
    with serve_people(tmp_path) as running, running.connect() as client:
        answer = client.post(path, json={}, timeout=5)
    assert (answer.status_code, "omnigraph[mcp]" in answer.json()["error"]) == (404, True)


def visit(
    running: RunningServer,
    path: str,
    work: Callable[[Client], Awaitable[None]],
    *,
    actor: str | None = None,
    mode: str = "auto",
) -> None:
    """Do some work with a client of an endpoint."""

    async def run() -> None:
        headers = {} if actor is None else {"authorization": f"Bearer {actor}-secret"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            transport = streamable_http_client(f"{running.url}{path}", http_client=http)
            async with Client(transport, mode=mode) as client:
                await work(client)

    asyncio.run(run())


async def names_of(client: Client) -> set[str]:
    return {each.name for each in (await client.list_tools()).tools}


async def call(client: Client, name: str, /, **arguments: Any) -> Any:
    return read_document(await client.call_tool(name, arguments))


async def is_unknown(client: Client, name: str, /, **arguments: Any) -> bool:
    try:
        await client.call_tool(name, arguments)
    except MCPError as error:
        return (error.error.code, error.error.message) == (-32602, "unknown tool")
    return False


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_actor_with_all_rights_has_all_tools(cluster: RunningServer, mode: str) -> None:
    async def work(client: Client) -> None:
        names = await names_of(client)
        assert names >= CLUSTER_TOOLS | {"load", "schema_summary", "commits_list"}
        assert not {"query", "mutate", "schema_apply", "health"} & names
        assert (await call(client, "find_person", name="ada"))["rows"] == [{"p.name": "ada"}]
        hired = await call(client, "hire", name=f"by-{mode}")
        assert (hired["actor_id"], hired["affected_nodes"]) == ("ada", 1)

    visit(cluster, "/graphs/alpha/mcp", work, actor="ada", mode=mode)


def test_a_token_whose_rules_carry_a_query_calls_it_and_nothing_else(
    cluster: RunningServer,
) -> None:
    async def work(client: Client) -> None:
        assert await names_of(client) == {"find_person"}
        assert (await call(client, "find_person", name="bob"))["rows"] == [{"p.name": "bob"}]
        for name in ("hire", "schema_get", "snapshot", "query", "nothing"):
            assert await is_unknown(client, name)

    visit(cluster, "/graphs/alpha/mcp", work, actor="bot")


def test_graphs_are_apart(cluster: RunningServer) -> None:
    async def work(client: Client) -> None:
        # No policy is applied to this one: tokens alone allow to read.
        names = await names_of(client)
        assert "snapshot" in names
        assert not names & (CLUSTER_TOOLS | {"load"})
        assert await is_unknown(client, "find_person", name="ada")

    visit(cluster, "/graphs/beta/mcp", work, actor="ada")


def test_the_server_lists_its_graphs_to_those_who_may(cluster: RunningServer) -> None:
    async def work(client: Client) -> None:
        assert await names_of(client) == {"health", "graphs_list"}
        found = await call(client, "graphs_list")
        assert [each["graph_id"] for each in found["graphs"]] == ["alpha", "beta"]
        assert (await call(client, "health"))["version"].startswith("0.10.")

    async def refuse(client: Client) -> None:
        assert await names_of(client) == {"health"}
        assert await is_unknown(client, "graphs_list")

    visit(cluster, "/mcp", work, actor="ada")
    visit(cluster, "/mcp", refuse, actor="bot")


def test_requests_pass_the_door_of_every_route(cluster: RunningServer) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with cluster.connect() as client:
        assert client.post("/graphs/alpha/mcp", json=message).status_code == 401
    with cluster.connect("ada") as client:
        assert client.get("/graphs/alpha/mcp").status_code == 405
        assert client.delete("/mcp").headers["allow"] == "POST"
        assert client.post("/graphs/unknown/mcp", json=message).status_code == 404
        assert (
            client.post("/mcp", content=b"{}", headers={"content-type": "a/b"}).status_code == 415
        )
        assert client.post("/mcp", json={"x": "y" * 1_100_000}).status_code == 413
        accept = {"accept": "application/json, text/event-stream"}
        answer = client.post("/graphs/alpha/mcp", json=message, headers=accept)
        assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert "x-request-id" in answer.headers
        wrong = client.post("/mcp", json={**message, "method": "none"}, headers=accept)
        assert wrong.json()["error"]["code"] == -32601


def test_one_graph_without_a_cluster_takes_queries_of_agents(tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        assert {"query", "mutate", "schema_apply"} <= await names_of(client)
        text = "query q() { match { $p: Person } return { count($p) as n } }"
        assert (await call(client, "query", query=text))["rows"] == [{"n": 4}]

    with serve_people(tmp_path) as running:
        visit(running, "/graphs/people/mcp", work)


def test_writes_of_agents_are_admitted_like_others(tmp_path: Path) -> None:
    async def work(client: Client) -> None:
        refused = await call(client, "mutate", query='query q() { insert Person { name: "eve" } }')
        assert refused["code"] == "too_many_requests"

    with serve_people(tmp_path, actor_bytes_max=10) as running:
        visit(running, "/graphs/people/mcp", work)

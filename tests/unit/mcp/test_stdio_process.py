"""`omnigraph mcp`, started by a client of the protocol's own library as agents start it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import MessageHandlerFnT
from mcp.client.stdio import stdio_client
from mcp_types import ToolListChangedNotification
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.app import app
from omnigraph.errors import InvalidArgumentError
from omnigraph.mcp.exposure import Exposure
from omnigraph.mcp.list_watch import ListWatch
from omnigraph.mcp.stdio_process import serve_streams
from omnigraph.mcp.tool_sources import ToolSource, open_source
from omnigraph.operations.service_health import describe_health
from unit.clusters.cluster_folder import write_config
from unit.mcp.agent_world import read_document

Returned = TypeVar("Returned")

SCHEMA = "node Person { name: String @key }"
FIND = (
    "query find($name: String) { match { $p: Person { name: $name } } return { $p.name as name } }"
)
COUNT = "query total() { match { $p: Person } return { count($p) as n } }"
SOON_S = 20.0


@pytest.fixture
def store(tmp_path: Path) -> str:
    with omnigraph.create(tmp_path / "g.omni", schema=SCHEMA, durable=False) as graph:
        graph.branch().load([{"name": "ada"}], type="Person", mode="append")
        return graph.uri


def talk(
    work: Callable[[Client], Awaitable[Returned]], *arguments: str, mode: str = "auto"
) -> Returned:
    """What some work with a client of `omnigraph mcp` returns."""

    async def run() -> Returned:
        line = ["-c", "from omnigraph.cli import main; main()", "mcp", *arguments]
        server = StdioServerParameters(command=sys.executable, args=line)
        async with Client(stdio_client(server), mode=mode) as client:
            return await work(client)

    return asyncio.run(run())


async def names_of(client: Client) -> list[str]:
    return [each.name for each in (await client.list_tools()).tools]


async def call(client: Client, name: str, /, **arguments: Any) -> Any:
    return read_document(await client.call_tool(name, arguments))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_reads_a_graph_and_its_queries(store: str, tmp_path: Path, mode: str) -> None:
    (tmp_path / "queries.gq").write_text(FIND)

    async def work(client: Client) -> None:
        names = await names_of(client)
        assert {"find", "query", "schema_summary"} <= set(names)
        assert not {"mutate", "load", "branches_merge"} & set(names)
        assert (await call(client, "find", name="ada"))["rows"] == [{"name": "ada"}]
        assert await call(client, "health") == describe_health()

    talk(work, store, "--queries", str(tmp_path / "queries.gq"), mode=mode)


@pytest.mark.slow
def test_an_agent_of_a_cluster_does_what_the_applied_policy_allows(tmp_path: Path) -> None:
    folder = write_config(tmp_path / "config")
    for verb in ("import", "apply"):
        found = CliRunner().invoke(app, ["cluster", verb, "--config", str(folder), "--as", "ada"])
        assert found.exit_code == 0, found.output

    async def work(client: Client) -> None:
        names = await names_of(client)
        assert {"find_person", "add_person"} <= set(names)
        assert not {"query", "mutate", "load", "schema_apply"} & set(names)
        assert (await call(client, "add_person", name="ada", age=36))["actor_id"] == "act-ada"
        found = await call(client, "find_person", name="ada")
        assert found["rows"] == [{"p.name": "ada", "p.age": 36}]

    place = ("--cluster", str(folder), "--graph", "people", "--as", "act-ada")
    talk(work, *place, "--write")

    async def refuse(client: Client) -> None:
        assert await names_of(client) == ["health"]

    talk(refuse, "--cluster", str(folder), "--graph", "people", "--as", "somebody-else")


def test_queries_that_are_not_there_are_named(store: str, tmp_path: Path) -> None:
    with (
        _open_files(store, tmp_path / "no.gq") as opened,
        pytest.raises(InvalidArgumentError, match=r"no\.gq: No such file"),
    ):
        opened.read()


def test_a_hidden_query_that_is_not_there_is_refused(store: str, tmp_path: Path) -> None:
    queries = tmp_path / "find.gq"
    queries.write_text(FIND)
    with (
        pytest.raises(InvalidArgumentError, match="no stored query is called 'fnd'") as failed,
        _open_files(store, queries, hidden="fnd"),
    ):
        pass
    assert "find" in str(failed.value.hint)
    with _open_files(store, queries, hidden="find") as opened:
        assert "find" not in {each.name for each in opened.read().list_tools()}


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_a_client_hears_of_new_tools(store: str, tmp_path: Path, mode: str) -> None:
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "find.gq").write_text(FIND)
    heard = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            heard.set()

    async def listen(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as events:
            (queries / "total.gq").write_text(COUNT)
            async for _ in events:
                return

    async def work(client: Client) -> None:
        assert "total" not in await names_of(client)
        # A text with a mistake leaves the tools as they are.
        (queries / "wrong.gq").write_text("query wrong(")
        await asyncio.sleep(0.1)
        (queries / "wrong.gq").unlink()
        if mode == "legacy":
            (queries / "total.gq").write_text(COUNT)
            await asyncio.wait_for(heard.wait(), SOON_S)
        else:
            await asyncio.wait_for(listen(client), SOON_S)
        assert "total" in await names_of(client)
        assert (await call(client, "total"))["rows"] == [{"n": 1}]

    asyncio.run(_serve_in_process(store, queries, work, mode=mode, hear=hear))


def _open_files(
    store: str, queries: Path, *, hidden: str | None = None
) -> AbstractContextManager[ToolSource]:
    return open_source(
        store,
        actor=None,
        cluster_graph=None,
        queries=(queries,),
        exposure=Exposure(hidden=frozenset(filter(None, [hidden]))),
        timeout_s=10.0,
    )


async def _serve_in_process(
    store: str,
    queries: Path,
    work: Callable[[Client], Awaitable[None]],
    *,
    mode: str,
    hear: MessageHandlerFnT,
) -> None:
    to_server, server_in = anyio.create_memory_object_stream[Any](8)
    to_client, client_in = anyio.create_memory_object_stream[Any](8)
    with _open_files(store, queries) as opened:
        served = serve_streams(ListWatch(opened.read), server_in, to_client, poll_s=0.02)
        serving = asyncio.create_task(served)
        transport = _StreamPair(client_in, to_server)
        async with Client(transport, mode=mode, message_handler=hear) as client:
            await work(client)
        await serving


class _StreamPair:
    """A transport of the client library around two streams."""

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        self._streams = incoming, outgoing

    async def __aenter__(self) -> tuple[Any, Any]:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        for stream in self._streams:
            await stream.aclose()

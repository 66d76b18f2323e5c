"""A graph with stored queries, and a client of the protocol's own library beside it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

import omnigraph
from omnigraph import Graph
from omnigraph.clusters.query_registry import compile_file
from omnigraph.engine.gate import Gate
from omnigraph.mcp.exposure import Exposure
from omnigraph.mcp.tool_scope import ToolScope
from omnigraph.mcp.tool_server import ToolServer
from omnigraph.mcp.toolbox import GraphToolbox
from omnigraph.operations.stored_queries import QueryCatalogue, StoredText
from omnigraph.policy.decisions import load_policy
from places import fresh_uri

Returned = TypeVar("Returned")

SCHEMA = """
node Person @description("A colleague.") { name: String @key  age: I64?  bio: String? }
node Company { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company
"""
QUERIES = """
query find_person($name: String)
  @description("Finds one person.") @instruction("Names are exact.")
{
  match { $p: Person { name: $name } }
  return { $p.name as name, $p.age as age }
}
query all_people($branch: String?) {
  match { $p: Person }
  return { $p.name as name, $p.bio as bio }
  order { name }
}
query add_person($name: String, $age: I64?) { insert Person { name: $name, age: $age } }
query kinds(
  $b: Bool, $i: I32, $l: I64, $f: F64, $d: Date, $t: DateTime, $v: Vector(3), $s: [I64]?
) {
  match { $p: Person  $p.age in $s }
  return { $p.name }
}
"""
RULES = """
version: 1
groups:
  agents: [agent]
  readers: [reader]
  writers: [writer]
protected_branches: [main]
rules:
  - id: agents-call
    allow:
      actors: { group: agents }
      actions: [invoke_query]
      queries: [find_person, all_people]
      carries: [read]
  - id: readers-read
    allow: { actors: {group: readers}, actions: [read, invoke_query] }
  - id: writers-read
    allow: { actors: {group: writers}, actions: [read, invoke_query] }
  - id: writers-draft
    allow: { actors: {group: writers}, actions: [change], branch_scope: unprotected }
  - id: writers-fork
    allow: { actors: {group: writers}, actions: [branch_create], target_branch_scope: unprotected }
"""
PEOPLE = 500


def build_graph(folder: Path) -> Graph:
    """A graph of people, each with a text of a hundred characters."""
    uri = fresh_uri(folder / "agents.omni")
    graph = omnigraph.create(uri, schema=SCHEMA, durable=False, actor="ada")
    people = [{"name": f"p{n:03}", "age": n, "bio": "x" * 100} for n in range(PEOPLE)]
    graph.branch().load(people, type="Person", mode="append")
    return graph


def load_rules(folder: Path) -> Gate:
    """The policy of the actors `agent`, `reader` and `writer`."""
    path = folder / "rules.yaml"
    path.write_text(RULES)
    return load_policy(path)


def build_scope(graph: Graph, *, exposure: Exposure | None = None) -> ToolScope:
    """The graph with its stored queries."""
    catalog = omnigraph.open(graph.uri, durable=False).branch().snapshot().view.catalog
    compiled = compile_file(QUERIES.encode(), catalog, file="people.gq")
    queries = {each.name: StoredText(each, QUERIES) for each in compiled}
    return ToolScope(
        graph, QueryCatalogue(queries), exposure or Exposure(has_adhoc=True), unguarded=graph
    )


def ask(
    scope: ToolScope, work: Callable[[Client], Awaitable[Returned]], *, mode: str = "auto"
) -> Returned:
    """What some work with a client of the tools of a scope returns."""

    async def run() -> Returned:
        server = ToolServer(lambda _: GraphToolbox(scope, has_health=True), name="test")
        try:
            async with Client(server.protocol, mode=mode) as client:
                try:
                    return await work(client)
                except MCPError as error:
                    # The client would put it into a group.
                    refused = error
        finally:
            await server.close()
        raise refused

    return asyncio.run(run())


def list_names(scope: ToolScope) -> list[str]:
    """The names of the tools that a client lists."""

    async def work(client: Client) -> list[str]:
        return [each.name for each in (await client.list_tools()).tools]

    return ask(scope, work)


def call(scope: ToolScope, name: str, /, **arguments: Any) -> Any:
    """The document that a tool answers with; a failure fails the test."""
    document, is_error = try_call(scope, name, **arguments)
    assert not is_error, document
    return document


def try_call(scope: ToolScope, name: str, /, **arguments: Any) -> tuple[Any, bool]:
    """The document that a tool answers with, and whether it is a failure."""

    async def work(client: Client) -> tuple[Any, bool]:
        result = await client.call_tool(name, arguments)
        return read_document(result), result.is_error

    return ask(scope, work)


def read_document(result: CallToolResult) -> Any:
    """The document of an answer: its one text."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return json.loads(content.text)

"""The tools of a graph, called by a client of the protocol's own library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

import omnigraph
from omnigraph import Graph
from omnigraph.engine.opaque_texts import encode_opaque
from omnigraph.errors import ResourceLimitError
from omnigraph.execution.query_budget import Cancellation
from omnigraph.mcp.agent_tool import AgentTool, build_object_schema
from omnigraph.mcp.exposure import Exposure
from omnigraph.mcp.read_only_gate import ReadOnlyGate
from omnigraph.mcp.toolbox import list_advice, read_advice
from unit.mcp.agent_world import (
    PEOPLE,
    SCHEMA,
    ask,
    build_graph,
    build_scope,
    call,
    list_names,
    load_rules,
    try_call,
)

NAMES = "query q() { match { $p: Person } return { $p.name as name } order { name } }"
READS = {
    *("schema_summary", "schema_get", "snapshot", "branches_list", "branches_diff"),
    *("commits_list", "commits_get", "commits_changes", "changes_poll", "health"),
    *("proposal_list", "proposal_get"),
}
WRITES = {
    *("load", "branches_create", "branches_delete", "branches_merge", "schema_apply"),
    *("proposal_open", "proposal_comment", "proposal_sync"),
}
STORED = {"find_person", "all_people", "add_person", "kinds"}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with build_graph(tmp_path) as graph:
        yield graph


def test_a_graph_without_a_policy_offers_everything(graph: Graph) -> None:
    listed = list_names(build_scope(graph))
    assert set(listed) == READS | WRITES | STORED | {"query", "mutate"}
    assert listed[:2] == ["add_person", "all_people"]


def test_queries_of_callers_need_an_exposure(graph: Graph) -> None:
    scope = build_scope(graph, exposure=Exposure(has_adhoc=False))
    assert set(list_names(scope)) == READS | WRITES | STORED
    for name in ("query", "read", "mutate", "change"):
        with pytest.raises(MCPError, match="unknown tool"):
            call(scope, name, query=NAMES)


def test_only_the_answer_of_a_read_is_refused_for_its_length() -> None:
    def answer(*, is_read: bool) -> str:
        tool = AgentTool(
            "t",
            "",
            build_object_schema({}),
            lambda *_: {"text": "x" * 100},
            is_read=is_read,
            answer_bytes_max=50,
        )
        return tool.answer({}, Cancellation())

    with pytest.raises(ResourceLimitError):
        answer(is_read=True)
    # The write has happened by then.
    assert len(answer(is_read=False)) > 100


def test_a_managed_schema_is_not_applied_by_a_tool(graph: Graph) -> None:
    scope = build_scope(graph, exposure=Exposure(is_managed=True))
    assert "schema_apply" not in list_names(scope)


def test_read_only_tools_write_nothing_and_the_graph_refuses_it_too(graph: Graph) -> None:
    with omnigraph.open(graph.uri, durable=False, policy=ReadOnlyGate()) as opened:
        scope = build_scope(opened, exposure=Exposure(has_adhoc=True, is_read_only=True))
        assert set(list_names(scope)) == READS | STORED - {"add_person"} | {"query"}
        for name in ("add_person", "mutate", "load"):
            with pytest.raises(MCPError, match="unknown tool"):
                call(scope, name)
        # Offered by mistake, they would still be refused.
        scope = build_scope(opened, exposure=Exposure(has_adhoc=True))
        assert not {"add_person", "mutate", "load"} & set(list_names(scope))
        with pytest.raises(omnigraph.errors.PolicyDeniedError, match="reading only"):
            opened.branch().mutate('query q() { insert Person { name: "x" } }')


def test_denied_unknown_and_hidden_tools_are_the_same(graph: Graph, tmp_path: Path) -> None:
    policy = load_rules(tmp_path)
    with omnigraph.open(graph.uri, durable=False, actor="agent", policy=policy) as opened:
        hidden = Exposure(has_adhoc=True, hidden=frozenset({"all_people"}))
        scope = build_scope(opened, exposure=hidden)
        seen = set()
        for name in ("query", "add_person", "all_people", "nothing", "commits_list", "mutate"):
            with pytest.raises(MCPError) as refused:
                call(scope, name)
            seen.add((refused.value.error.code, refused.value.error.message))
        assert seen == {(-32602, "unknown tool")}


def test_an_agent_whose_rules_carry_two_queries_calls_them_and_nothing_else(
    graph: Graph, tmp_path: Path
) -> None:
    policy = load_rules(tmp_path)
    with omnigraph.open(graph.uri, durable=False, actor="agent", policy=policy) as opened:
        scope = build_scope(opened)
        assert list_names(scope) == ["all_people", "find_person", "health"]
        assert call(scope, "find_person", name="p007")["rows"] == [{"name": "p007", "age": 7}]
        assert call(scope, "all_people")["row_count"] == PEOPLE
        assert ask(scope, _list_resources) == [
            "omnigraph://best-practices/branches",
            "omnigraph://best-practices/queries",
        ]


def test_a_writer_of_drafts_sees_the_tools_and_is_refused_on_main(
    graph: Graph, tmp_path: Path
) -> None:
    policy = load_rules(tmp_path)
    with omnigraph.open(graph.uri, durable=False, actor="writer", policy=policy) as opened:
        scope = build_scope(opened)
        assert {"mutate", "load", "add_person", "branches_create"} <= set(list_names(scope))
        assert not {"branches_merge", "schema_apply"} & set(list_names(scope))
        refused, is_error = try_call(scope, "add_person", name="new")
        assert (is_error, refused["code"]) == (True, "forbidden")
        call(scope, "branches_create", name="draft")
        added = call(scope, "add_person", name="new", branch="draft", key="once")
        assert (added["affected_nodes"], added["actor_id"]) == (1, "writer")
        assert call(scope, "add_person", name="new", branch="draft", key="once") == added


def test_each_kind_of_parameter_has_its_schema(graph: Graph) -> None:
    async def work(client: Client) -> dict[str, Any]:
        tools = (await client.list_tools()).tools
        return {each.name: each for each in tools}

    tools = ask(build_scope(graph), work)
    schema = tools["kinds"].input_schema
    assert {name: schema["properties"][name] for name in "bilfdtv"} == {
        "b": {"type": "boolean"},
        "i": {"type": "integer"},
        "l": {"type": "string", "pattern": r"^-?\d+$"},
        "f": {"type": "number"},
        "d": {"type": "string", "format": "date"},
        "t": {"type": "string", "format": "date-time"},
        "v": {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3},
    }
    items = {"type": "string", "pattern": r"^-?\d+$"}
    assert schema["properties"]["s"] == {"type": ["array", "null"], "items": items}
    assert schema["required"] == [*"bilfdtv"]
    assert tools["find_person"].description == "Finds one person.\n\nNames are exact."
    hints = {name: tools[name].annotations for name in ("find_person", "add_person")}
    assert [each.read_only_hint for each in hints.values()] == [True, False]
    assert [each.destructive_hint for each in hints.values()] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "'name' is a required property"),
        ({"name": 7}, "7 is not of type 'string'"),
        ({"name": "a", "nme": "b"}, "'nme' was unexpected"),
        ({"name": None}, "None is not of type 'string'"),
    ],
)
def test_arguments_are_checked_against_the_schema(
    graph: Graph, arguments: dict[str, Any], problem: str
) -> None:
    document, is_error = try_call(build_scope(graph), "find_person", **arguments)
    assert is_error
    assert problem in document["error"]
    assert document["code"] == "bad_request"


def test_an_integer_is_as_good_as_its_digits(graph: Graph) -> None:
    values = {"b": True, "i": 1, "f": 1.5, "d": "2026-01-01", "t": "2026-01-01T00:00:00Z"}
    arguments = {**values, "l": 5, "v": [1, 0, 0], "s": ["7", 8]}
    rows = call(build_scope(graph), "kinds", **arguments)["rows"]
    assert [each["p.name"] for each in rows] == ["p007", "p008"]


def test_rows_come_in_pages_of_one_state(graph: Graph) -> None:
    scope = build_scope(graph, exposure=Exposure(has_adhoc=True, rows_max=200))
    page = call(scope, "query", query=NAMES)
    assert (page["row_count"], len(page["rows"]), page["truncated"]) == (PEOPLE, 200, True)
    names = [each["name"] for each in page["rows"]]
    # What is committed between two pages is on none of them.
    call(scope, "add_person", name="a-late-one")
    while "next_cursor" in page:
        page = call(scope, "query", query=NAMES, cursor=page["next_cursor"])
        names += [each["name"] for each in page["rows"]]
    assert names == [f"p{n:03}" for n in range(PEOPLE)]
    assert call(scope, "query", query=NAMES)["row_count"] == PEOPLE + 1


def test_rows_are_bounded_by_bytes(graph: Graph) -> None:
    scope = build_scope(graph, exposure=Exposure(rows_max=1_000, answer_bytes_max=10_000))
    page = call(scope, "all_people")
    assert 0 < len(page["rows"]) < 60
    rest = call(scope, "all_people", cursor=page["next_cursor"])
    assert rest["rows"][0]["name"] == f"p{len(page['rows']):03}"
    wide = 'query q() { update Person set { bio: "' + "y" * 20_000 + '" } where name = "p000" }'
    graph.branch().mutate(wide)
    document, is_error = try_call(scope, "all_people")
    assert (is_error, document["resource_limit"]["resource"]) == (True, "answer_bytes")


def test_a_cursor_belongs_to_its_call(graph: Graph) -> None:
    scope = build_scope(graph, exposure=Exposure(has_adhoc=True, rows_max=10))
    cursor = call(scope, "query", query=NAMES)["next_cursor"]
    for tool, arguments in (
        ("query", {"query": NAMES.replace("order { name }", ""), "cursor": cursor}),
        ("all_people", {"cursor": cursor}),
        ("query", {"query": NAMES, "cursor": "!"}),
        ("query", {"query": NAMES, "cursor": "WzEsMl0"}),
        ("query", {"query": NAMES, "cursor": encode_opaque(["x", float("inf"), "y"])}),
    ):
        document, is_error = try_call(scope, tool, **arguments)
        assert is_error
        assert document["error"].startswith("cursor")


def test_a_parameter_that_is_called_like_an_argument_keeps_its_name(graph: Graph) -> None:
    scope = build_scope(graph, exposure=Exposure(rows_max=10))
    graph.create_branch("draft").mutate('query q() { delete Person where name = "p000" }')
    page = call(scope, "all_people", branch="unused by the query", _branch="draft")
    assert page["rows"][0]["name"] == "p001"
    assert page["target"]["branch"] == "draft"


def test_changes_are_reviewed_and_merged(graph: Graph) -> None:
    scope = build_scope(graph)
    call(scope, "branches_create", name="review")
    lines = '{"type": "Company", "data": {"name": "Acme"}}\n'
    loaded = call(scope, "load", branch="review", mode="append", data=lines)
    assert loaded["total_entities"] == 1
    diff = call(scope, "branches_diff", source="review")
    assert [(each["op"], each["id"]) for each in diff["changes"]] == [("insert", "Acme")]
    merged = call(scope, "branches_merge", source="review", message="a company")
    assert merged["outcome"] == "fast_forward"
    newest = call(scope, "commits_list", limit=1)["commits"][0]
    assert call(scope, "commits_get", commitId=newest["graph_commit_id"]) == newest
    changes = call(scope, "commits_changes", commitId=newest["graph_commit_id"], limit=10)
    assert [each["id"] for each in changes["changes"]] == ["Acme"]
    polled = call(scope, "changes_poll", start="beginning", type=["Company"])
    assert polled["caught_up"]
    call(scope, "branches_delete", name="review")
    assert call(scope, "branches_list") == {"branches": ["main"]}


def test_a_failure_of_the_engine_is_an_answer(graph: Graph) -> None:
    document, is_error = try_call(build_scope(graph), "query", query="query q() { match }")
    assert (is_error, document["code"]) == (True, "bad_request")
    assert document["diagnostics"]


def test_a_summary_of_a_schema_fits(graph: Graph) -> None:
    scope = build_scope(graph)
    found = call(scope, "schema_summary")
    assert found["detail"] == "full"
    assert found["summary"].splitlines() == [
        "node Company (0) { name: String @key }",
        "node Person (500) { name: String @key, age: I64?, bio: String? } — A colleague.",
        "edge Knows: Person -> Person (0) { since: Date? }",
        "edge WorksAt: Person -> Company (0)",
    ]
    values = " ".join(f"value{number}: I64?" for number in range(50))
    wide = "\n".join(f"node Type{number} {{ slug: String @key {values} }}" for number in range(100))
    call(scope, "schema_apply", schema_source=SCHEMA + wide)
    found = call(scope, "schema_summary")
    assert found["detail"] == "type_names"
    assert len(found["summary"]) <= 8_000
    found = call(scope, "schema_summary", types=["Type7", "Type8", "Nothing"], characters=1_500)
    assert (found["detail"], found["unknown_types"]) == ("property_names", ["Nothing"])
    found = call(scope, "schema_summary", characters=200)
    assert found["omitted_types"] > 90


def test_resources_are_read(graph: Graph) -> None:
    async def work(client: Client) -> list[tuple[str, str]]:
        found = []
        for each in (await client.list_resources()).resources:
            (content,) = (await client.read_resource(str(each.uri))).contents
            assert isinstance(content, TextResourceContents)
            found.append((str(each.uri), content.text))
        with pytest.raises(MCPError, match="unknown resource"):
            await client.read_resource("omnigraph://nothing")
        assert (await client.list_prompts()).prompts == []
        return found

    found = dict(ask(build_scope(graph), work))
    assert found["omnigraph://schema"] == SCHEMA
    assert found["omnigraph://branches"] == '{"branches":["main"]}'
    assert found["omnigraph://schema-summary"].startswith("node Company")
    assert "omnigraph://best-practices/queries" in found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_eras_of_the_protocol_are_spoken(graph: Graph, mode: str) -> None:
    async def work(client: Client) -> tuple[str, str | None]:
        names = [each.name for each in (await client.list_tools()).tools]
        assert "find_person" in names
        return client.protocol_version, client.instructions

    version, instructions = ask(build_scope(graph), work, mode=mode)
    assert version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
    assert "schema_summary" in (instructions or "")


def test_the_queries_of_the_advice_are_right(graph: Graph) -> None:
    texts = read_advice("queries").split("```gq\n")[1:]
    scope = build_scope(graph)
    params = {"older": {"age": 490}, "popular": {}}
    for name, values in params.items():
        text = next(each for each in texts if f"query {name}(" in each).partition("```")[0]
        call(scope, "query", query=text, params=values)
    writes = texts[-1].partition("```")[0]
    people = {"a": "p001", "b": "p002"}
    assert call(scope, "mutate", query=writes, name="meet", params=people)["affected_edges"] == 1
    call(scope, "mutate", query=writes, name="rename", params={"name": "p001", "age": 5})
    call(scope, "mutate", query=writes, name="forget", params={"name": "p001"})
    assert list_advice() == ["branches", "queries"]


async def _list_resources(client: Client) -> list[str]:
    return [str(each.uri) for each in (await client.list_resources()).resources]

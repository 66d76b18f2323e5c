"""What a partner reaches of rows that a policy hides, by every door to a graph of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.app import app
from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.errors import PolicyInvalidError
from omnigraph.policy.decisions import Policy
from omnigraph.policy.grants import list_grants
from omnigraph.policy.policy_bundle import parse_bundle
from omnigraph.server.server_boot import boot_graph
from omnigraph.wire.wire_routes import ROUTES
from served import RunningServer, apply_cluster, make_tokens, serve_cluster
from unit.server.test_agent_routes import visit

SCHEMA = """
node Person { name: String @key }
node Company { name: String @key  public: Bool  logo: Blob? }
edge Works: Person -> Company
edge Owns: Company -> Company
"""
QUERIES = """
query companies() { match { $c: Company } return { $c.name as name } }
query around($name: String) {
  match { $c: Company { name: $name }  $c <owns>{1,3} $d } return { $d.name as name }
}
"""
RULES = """
version: 1
groups: {editors: [ed], partners: [pat]}
rules:
  - id: editors
    allow: {actors: {group: editors}, actions: [read, change, export]}
  - id: partners-call
    allow: {actors: {group: partners}, actions: [invoke_query]}
  - id: partners
    allow:
      actors: {group: partners}
      actions: [read, export]
      types: {Company: "$it.public = true", Person: all, Works: all, Owns: all}
"""
CLUSTER = """
version: 1
storage: ../root
graphs:
  kb: {schema: kb.pg, queries: queries}
policies:
  rows: {file: rows.yaml, applies_to: [kb]}
"""
# A name that no answer to a partner has.
HIDDEN = "hush"
SEEN = {"open", "other"}
ALL = "query q() { match { $c: Company } return { $c.name as name } }"


def write_config(folder: Path) -> Path:
    (folder / "queries").mkdir(parents=True)
    files = {"queries/kb.gq": QUERIES, "kb.pg": SCHEMA, "rows.yaml": RULES, "cluster.yaml": CLUSTER}
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_config(tmp_path_factory.mktemp("doors") / "config")
    apply_cluster(made, is_first=True)
    with omnigraph.open(made.parent / "root/graphs/kb.omni", durable=False) as graph:
        graph.branch().load(
            [
                {"type": "Person", "data": {"name": "ann"}},
                *(
                    {"type": "Company", "data": {"name": name, "public": name != HIDDEN}}
                    for name in (*sorted(SEEN), HIDDEN)
                ),
                {"edge": "Works", "from": "ann", "to": HIDDEN},
                {"edge": "Works", "from": "ann", "to": "open"},
                {"edge": "Owns", "from": "open", "to": HIDDEN},
                {"edge": "Owns", "from": HIDDEN, "to": "other"},
            ],
            mode="append",
        )
    return made


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningServer]:
    with serve_cluster(folder, actors=("ed", "pat")) as found:
        yield found


# What a caller could give to see more.
ASKED = {"type": "Company", "id": HIDDEN, "kind": "node", "property": "logo", "entity": "node"}
PLACES = {
    "graph_id": "kb",
    "branch": "main",
    "name": "companies",
    "number": 1,
    "run_id": 1,
    "pipeline": "p",
    "tag": "t",
    "deployment_id": "d",
}
BODIES: Mapping[str, list[dict[str, Any]]] = {
    "/query": [{"query": ALL}],
    "/read": [{"query_source": ALL}],
    "/explain": [{"query": ALL, "analyze": True}],
    "/export": [{}, {"type_names": ["Company"]}, {"type_names": ["Works"]}],
    "/queries/{name}": [{}],
    "/diff": [{"old": "main", "new": "main", "type": ["Company"]}],
    "/history": [{"kind": "node", "type": "Company", "id": HIDDEN}],
    "/blame": [{"kind": "node", "type": "Company", "id": HIDDEN}],
    "/changes/baseline": [{}, {"type": ["Company"]}],
}


def ask_everything(running: RunningServer, actor: str) -> dict[str, list[tuple[int, str]]]:
    """What every route that reads answers to an actor."""
    found: dict[str, list[tuple[int, str]]] = {}
    with running.connect(actor) as client:
        commit = client.post("/graphs/kb/query", json={"query": ALL}).json()["graph_commit_id"]
        for route in ROUTES:
            path = route.path.format_map({**PLACES, "commit_id": commit})
            if route.method == "GET":
                fields = set(route.query.model_fields) if route.query else set()
                query = {name: value for name, value in ASKED.items() if name in fields}
                answers = [client.get(path, params=each) for each in ({}, query)]
            else:
                bodies = BODIES.get(route.path.removeprefix("/graphs/{graph_id}"), [])
                if route.method != "POST" or not bodies:
                    continue
                answers = [client.post(path, json=each) for each in bodies]
            found[route.operation] = [(each.status_code, each.text) for each in answers]
    return found


def test_no_route_shows_a_partner_what_is_hidden(running: RunningServer) -> None:
    answers = ask_everything(running, "pat")
    leaks = {
        operation: [text for _, text in found if HIDDEN in _without_question(text)]
        for operation, found in answers.items()
    }
    assert {name: texts for name, texts in leaks.items() if texts} == {}
    assert not [found for found in answers.values() if any(status >= 500 for status, _ in found)]


def test_the_same_requests_show_it_to_an_editor(running: RunningServer) -> None:
    answers = ask_everything(running, "ed")
    shown = {name for name, found in answers.items() if any(HIDDEN in text for _, text in found)}
    assert len(shown) >= 6, "requests that show nothing would prove nothing"


def _without_question(text: str) -> str:
    """An answer that repeats the id of its question, as refusals do, shows nothing by it."""
    return text.replace(f"'{HIDDEN}'", "").replace(f'"id":"{HIDDEN}"', "")


def test_types_are_counted_without_hidden_rows(running: RunningServer) -> None:
    counts = {}
    for actor in ("pat", "ed"):
        with running.connect(actor) as client:
            types = client.get("/graphs/kb/schema/types").json()["types"]
            counts[actor] = {each["name"]: each["entity_count"] for each in types}
    assert counts["pat"] == {"Company": 2, "Person": 1, "Owns": 0, "Works": 1}
    assert counts["ed"] == {"Company": 3, "Person": 1, "Owns": 2, "Works": 2}


def test_tools_of_agents_do_not_show_it(running: RunningServer) -> None:
    shown: list[str] = []

    async def work(client: Client) -> None:
        for tool in (await client.list_tools()).tools:
            for arguments in ({}, {"query": ALL}, {"name": "open"}, {"type": "Company", **ASKED}):
                try:
                    answer = await client.call_tool(tool.name, arguments)
                except MCPError as error:
                    shown.append(error.error.message)
                else:
                    shown.append(f"{tool.name}: {answer.content}")
        for resource in (await client.list_resources()).resources:
            try:
                shown.append(str((await client.read_resource(str(resource.uri))).contents))
            except MCPError as error:
                shown.append(error.error.message)

    visit(running, "/graphs/kb/mcp", work, actor="pat")
    assert any("open" in each for each in shown)
    assert [each for each in shown if HIDDEN in _without_question(each)] == []


def test_a_program_reads_the_same_through_the_cluster(folder: Path) -> None:
    with open_cluster(folder).graph("kb", actor="pat") as graph:
        names = {row["name"] for row in graph.branch().query(ALL).to_arrow().to_pylist()}
    assert names == SEEN


def test_commands_do_not_show_it(
    running: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "pat-secret")
    place = ["--server", running.url, "--graph", "kb"]
    asked = [
        ["query", "-e", ALL],
        ["export"],
        ["export", "--type", "Company"],
        ["history", "Company", HIDDEN],
        ["diff", "main", "main"],
        ["snapshot"],
    ]
    answers = [CliRunner().invoke(app, [*each, *place]).output for each in asked]
    assert [each for each in answers if HIDDEN in _without_question(each)] == []
    # A query needs no right to see commits.
    assert all(name in answers[0] for name in SEEN), answers[0]


def test_a_condition_that_does_not_fit_the_schema_fails_the_plan(tmp_path: Path) -> None:
    folder = write_config(tmp_path / "config")
    (folder / "rows.yaml").write_text(RULES.replace("$it.public", "$it.publik"))
    plane = ControlPlane(str(folder), "ed")
    found = plane.validate()
    assert not found.is_ok
    assert any("Company has no property 'publik'" in str(each) for each in found.findings)


def test_a_server_of_one_graph_refuses_a_policy_that_does_not_fit_it(tmp_path: Path) -> None:
    omnigraph.create(tmp_path / "g.omni", schema=SCHEMA, durable=False).close()
    path = tmp_path / "rows.yaml"
    path.write_text(RULES.replace("$it.public", "$it.publik"))
    with pytest.raises(PolicyInvalidError, match="no property 'publik'"):
        boot_graph(
            str(tmp_path / "g.omni"),
            graph_id=None,
            policy=str(path),
            tokens=make_tokens("pat"),
            is_open=False,
        )


def test_a_plan_shows_who_sees_other_rows() -> None:
    limits = {
        each.limit
        for each in list_grants(Policy(parse_bundle(RULES, file="rows.yaml")))
        if each.actor == "pat" and each.action == "read"
    }
    assert "type:Company where ($it.public = true)" in limits
    assert "type:Person" in limits

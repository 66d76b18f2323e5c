"""The verbs of clusters and of stored queries on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.app import app
from unit.clusters.cluster_folder import QUERIES, SCHEMA, write_config

IMPORTED = ["import", "ada", "0 changes"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_config(tmp_path / "config")
    for verb in ("import", "apply"):
        found = CliRunner().invoke(app, ["cluster", verb, "--config", str(made), "--as", "ada"])
        assert found.exit_code == 0, found.output
    return made


def run(*arguments: str, exits: int = 0) -> str:
    found = CliRunner().invoke(app, [*arguments])
    assert found.exit_code == exits, found.output
    return found.stdout


def test_the_graphs_of_a_cluster_are_listed(folder: Path) -> None:
    shown = run("graphs", "list", "--cluster", str(folder))
    assert shown == "".join(f"{n}\t{folder}/graphs/{n}.omni\n" for n in ("people", "tasks"))
    found = json.loads(run("graphs", "list", "--cluster", str(folder), "--json"))
    assert [each["id"] for each in found["graphs"]] == ["people", "tasks"]


def test_stored_queries_are_listed_shown_run_and_checked(folder: Path) -> None:
    place = ("--cluster", str(folder), "--graph", "people")
    calling = (*place, "--as", "act-ada", "--params")
    run("queries", "run", "add_person", *calling, '{"name": "Ada", "age": 36}')
    found = json.loads(run("queries", "run", "find_person", *calling, '{"name": "Ada"}', "--json"))
    assert found["rows"] == [{"p.name": "Ada", "p.age": 36}]
    (add, find) = json.loads(run("queries", "list", *place, "--json"))["queries"]
    assert (add["mutation"], find["mutation"]) == (True, False)
    assert "description" not in add
    assert find["description"] == "Finds one."
    assert add["params"] == [
        {"name": "name", "kind": "string", "nullable": False},
        {"name": "age", "kind": "int", "nullable": True},
    ]
    schema = json.loads(run("queries", "show", "find_person", *place))
    assert schema["inputSchema"]["required"] == ["name"]
    assert [*schema["outputSchema"]["items"]["properties"]] == ["name", "age"]
    assert json.loads(run("queries", "lint", *place, "--json"))["ok"]
    run("queries", "run", "nothing", *place, "--as", "act-ada", exits=1)
    run("queries", "list", "--cluster", str(folder), exits=1)


def test_the_queries_of_a_file_need_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "a.pg").write_text(SCHEMA)
    (tmp_path / "a.gq").write_text(QUERIES)
    place = ("--query", str(tmp_path / "a.gq"), "--schema", str(tmp_path / "a.pg"))
    shown = run("queries", "list", *place)
    assert "find_person($name: string): read\n    Finds one.\n" in shown
    assert json.loads(run("queries", "show", "add_person", *place))["name"] == "add_person"
    (tmp_path / "a.gq").write_text(QUERIES.replace("$p.age", "$p.nothing"))
    assert not json.loads(run("queries", "lint", *place, "--json", exits=1))["ok"]
    run("queries", "list", "--query", str(tmp_path / "a.gq"), exits=2)


def test_every_kind_of_parameter_has_a_type_in_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "a.pg").write_text("node Doc {\n  title: String @key\n  v: Vector(3)?\n}\n")
    (tmp_path / "a.gq").write_text(
        "query q($big: I64, $tags: [String]?, $v: Vector(3), $d: Date, $t: DateTime, $f: F64) {\n"
        "  match { $x: Doc }\n  return { $x.title }\n}\n"
    )
    place = ("--query", str(tmp_path / "a.gq"), "--schema", str(tmp_path / "a.pg"))
    (query,) = json.loads(run("queries", "list", *place, "--json"))["queries"]
    kinds = {each["name"]: each for each in query["params"]}
    assert {name: each["kind"] for name, each in kinds.items()} == {
        "big": "bigint",
        "tags": "list",
        "v": "vector",
        "d": "date",
        "t": "datetime",
        "f": "float",
    }
    assert kinds["tags"]["item_kind"] == "string"
    assert kinds["v"]["vector_dim"] == 3
    shown = json.loads(run("queries", "show", "q", *place))["inputSchema"]
    assert shown["properties"]["v"]["minItems"] == 3
    assert shown["properties"]["tags"]["type"] == ["array", "null"]
    assert "agents cannot supply" in run("queries", "lint", *place)


def test_a_plan_is_saved_and_applied(folder: Path, tmp_path: Path) -> None:
    (folder / "people.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n  city: String?"))
    saved = tmp_path / "plan.json"
    shown = run("cluster", "plan", "--config", str(folder), "--out", str(saved))
    assert shown.splitlines() == [
        "~ graph.people",
        "~ schema.people",
        "    add node:Person.city: String?",
        "2 to update",
    ]
    place = ("--config", str(folder))
    run("cluster", "apply", "--config", str(folder), "--plan", str(saved))
    run("cluster", "apply", "--config", str(folder), "--plan", str(saved), exits=1)
    run("cluster", "approve", "graph.people", "--config", str(folder), exits=1)
    history = [line.split("  ")[2:] for line in run("cluster", "history", *place).splitlines()]
    assert history == [["apply", "-", "2 changes"], ["apply", "ada", "9 changes"], IMPORTED]
    document = json.loads(run("cluster", "status", "--config", str(folder), "--json"))
    assert document["state_observations"]["state_revision"] == 3
    run("cluster", "cleanup", "--config", str(folder), "--json")
    run("cluster", "plan", "--config", str(folder), "--store", "x", exits=1)


def test_a_maintenance_verb_finds_a_graph_by_the_ledger(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    (tmp_path / "config.yaml").write_text("operator: { actor: act-ada }\n")
    place = ("--cluster", str(folder))
    for query in (folder / "__cluster" / "resources" / "query").rglob("*.gq"):
        query.write_bytes(b"damaged")
    assert json.loads(run("optimize", *place, "--graph", "people", "--json"))
    with omnigraph.connect(cluster=str(folder), graph="people") as graph:
        assert graph.uri == f"{folder}/graphs/people.omni"
    several = CliRunner().invoke(app, ["optimize", *place])
    assert several.exit_code == 1
    assert "applied are: people, tasks" in several.stderr
    unknown = CliRunner().invoke(app, ["optimize", *place, "--graph", "nope"])
    assert unknown.exit_code == 1
    assert "graph 'nope' is not applied" in unknown.stderr
    assert "applied are: people, tasks" in unknown.stderr

"""The policies that are applied to a cluster hold its graphs, whichever way they are opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph import Graph
from omnigraph.cli.app import app
from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.errors import AddressError, ClusterError, PolicyDeniedError
from unit.clusters.cluster_folder import write_config

BUNDLE = """\
version: 1
groups:
  staff: [act-ada]
  agents: [act-bot]
  partners: [act-pat]
  keepers: [act-kay]
protected_branches: [main]
rules:
  - id: staff-read
    allow: { actors: { group: staff }, actions: [read, invoke_query] }
  - id: staff-draft
    allow: { actors: { group: staff }, actions: [change], branch_scope: unprotected }
  - id: staff-fork
    allow: { actors: { group: staff }, actions: [branch_create] }
  - id: agents-find
    allow:
      actors: { group: agents }
      actions: [invoke_query]
      queries: ["find_*"]
      carries: [read]
  - id: partners-see-tasks
    allow: { actors: { group: partners }, actions: [read], types: [Task] }
  - id: keepers-maintain
    allow: { actors: { group: keepers }, actions: [admin] }
"""
PEOPLE = "query people() { match { $p: Person } return { $p.name } }"
TASKS = "query tasks() { match { $t: Task } return { $t.title } }"
ADD = 'query add() { insert Person { name: "bob" } }'
Open = Callable[[Path, str | None], Graph]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_config(tmp_path / "config", storage="../root")
    (made / "staff.yaml").write_text(BUNDLE)
    _apply(made, is_first=True)
    with omnigraph.open(str(tmp_path / "root/graphs/people.omni")) as graph:
        graph.branch().load([{"name": "ada", "age": 36}], mode="append", type="Person")
    return made


def _apply(folder: Path, *, is_first: bool = False) -> None:
    plane = ControlPlane(str(folder), "ada")
    if is_first:
        assert plane.import_state().is_ok
    assert ControlPlane(str(folder), "ada").apply().is_ok


def _root(folder: Path) -> str:
    return str(folder.parent / "root")


def _open_by_root(folder: Path, actor: str | None) -> Graph:
    return open_cluster(_root(folder)).graph("people", actor=actor)


def _open_by_folder(folder: Path, actor: str | None) -> Graph:
    return open_cluster(folder).graph("people", actor=actor)


def _connect(folder: Path, actor: str | None) -> Graph:
    return omnigraph.connect(cluster=_root(folder), graph="people", actor=actor)


@pytest.mark.parametrize("opener", [_open_by_root, _open_by_folder, _connect])
def test_an_applied_policy_holds_the_actor_of_a_graph(folder: Path, opener: Open) -> None:
    with opener(folder, "act-ada") as graph:
        assert graph.branch().query(PEOPLE).to_json_rows() == [{"p.name": "ada"}]
        graph.create_branch("draft").mutate(ADD)
        with pytest.raises(PolicyDeniedError, match="'change' on branch 'main' to actor 'act-ada'"):
            graph.branch().mutate(ADD)
        with pytest.raises(PolicyDeniedError, match="'read'"):
            graph.acting_as("act-bot").branch().query(PEOPLE)
    with opener(folder, None) as graph, pytest.raises(PolicyDeniedError, match="no actor is named"):
        graph.branch().query(PEOPLE)


def test_a_cluster_asks_for_one_of_its_graphs(folder: Path) -> None:
    assert repr(open_cluster(folder)) == f"Cluster({_root(folder)!r}, revision=2)"
    with pytest.raises(AddressError, match="is a cluster, and no graph of it is chosen") as asked:
        omnigraph.connect(cluster=_root(folder))
    assert asked.value.hint == "give graph=; applied are: people, tasks"


def test_a_rule_by_type_holds_in_a_cluster(folder: Path) -> None:
    cluster = omnigraph.cluster(folder)
    with cluster.graph("tasks", actor="act-pat") as tasks:
        assert tasks.branch().query(TASKS).to_json_rows() == []
    with (
        cluster.graph("people", actor="act-pat") as people,
        pytest.raises(PolicyDeniedError, match="of type 'Person'"),
    ):
        people.branch().query(PEOPLE)


def test_a_graph_without_a_bundle_is_open_as_its_storage_is(folder: Path) -> None:
    text = (folder / "cluster.yaml").read_text()
    (folder / "cluster.yaml").write_text(text.replace("[people, tasks]", "[tasks]"))
    _apply(folder)
    with omnigraph.cluster(folder).graph("people") as graph:
        graph.branch().mutate(ADD)


def test_a_stored_query_reads_for_an_actor_who_may_not_read(folder: Path) -> None:
    cluster = omnigraph.cluster(folder)
    found = cluster.run_query("people", "find_person", params={"name": "ada"}, actor="act-bot")
    assert found.to_json_rows() == [{"p.name": "ada", "p.age": 36}]
    with pytest.raises(PolicyDeniedError, match="'invoke_query' by query 'add_person'"):
        cluster.run_query("people", "add_person", params={"name": "x"}, actor="act-bot")
    # A denial says the same of a query that does not exist.
    with pytest.raises(PolicyDeniedError, match="'invoke_query' by query 'nothing'"):
        cluster.run_query("people", "nothing", actor="act-bot")
    with pytest.raises(PolicyDeniedError, match="no actor is named"):
        cluster.run_query("people", "find_person", params={"name": "ada"})
    with cluster.graph("people", actor="act-bot") as graph:
        cluster.invoke_query(graph, "people", "find_person")
        with pytest.raises(PolicyDeniedError, match="'read'"):
            graph.branch().query(PEOPLE)


def test_a_stored_query_whose_rule_carries_nothing_needs_the_right_of_its_caller(
    folder: Path,
) -> None:
    cluster = omnigraph.cluster(folder)
    read = cluster.run_query("people", "find_person", params={"name": "ada"}, actor="act-ada")
    assert len(read.to_json_rows()) == 1
    with pytest.raises(PolicyDeniedError, match="'change' on branch 'main' by query 'add_person'"):
        cluster.run_query("people", "add_person", params={"name": "x"}, actor="act-ada")


def test_a_policy_that_was_altered_opens_nothing(folder: Path) -> None:
    (payload,) = Path(_root(folder)).glob("__cluster/resources/policy/staff/*.yaml")
    payload.write_text(BUNDLE.replace("[act-ada]", "[act-eve]"))
    with pytest.raises(ClusterError) as refused:
        omnigraph.cluster(folder).graph("people", actor="act-eve")
    assert refused.value.reason == "catalog_payload_digest_mismatch"
    payload.unlink()
    with pytest.raises(ClusterError) as refused:
        omnigraph.cluster(folder).graph("people", actor="act-ada")
    assert refused.value.reason == "catalog_payload_missing"


def _run(*arguments: str, exits: int = 0) -> str:
    found = CliRunner().invoke(app, [*arguments])
    assert found.exit_code == exits, found.output
    return found.output


def test_commands_at_a_cluster_are_held_by_its_policy(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    place = ("--cluster", str(folder), "--graph", "people")
    assert "no actor is named" in _run("optimize", *place, exits=1)
    (home / "config.yaml").write_text("operator: { actor: act-ada }\n")
    assert "denies 'admin'" in _run("optimize", *place, exits=1)
    (home / "config.yaml").write_text("operator: { actor: act-kay }\n")
    _run("optimize", *place)
    find = ("queries", "run", "find_person", *place, "--params", '{"name": "ada"}')
    assert "ada" in _run(*find, "--as", "act-bot")
    assert "denies 'invoke_query'" in _run(*find, exits=1)


def test_policy_verbs_ask_the_bundle_that_is_applied(folder: Path, tmp_path: Path) -> None:
    place = ("--cluster", str(folder))
    people = (*place, "--graph", "people")
    assert "policy.staff: valid, 6 rules, 4 actors" in _run("policy", "validate", *people)
    assert "several policies: front, staff" in _run("policy", "validate", *place, exits=1)
    asked = ("--action", "change", "--branch", "draft")
    explained = _run("policy", "explain", *people, "--actor", "act-ada", *asked)
    assert "matched_rule: staff-draft" in explained
    assert "act-ada" in _run("policy", "who-can", *people, *asked)
    cases = tmp_path / "cases.yaml"
    cases.write_text(
        "version: 1\ncases:\n"
        "  - {id: a, actor: act-ada, action: change, branch: main, expect: deny}\n"
    )
    assert "1 case passed" in _run("policy", "test", *people, "--tests", str(cases))
    both = ("--file", str(folder / "staff.yaml"))
    assert "exclude each other" in _run("policy", "validate", *people, *both, exits=1)
    assert "no cluster is addressed" in _run("policy", "validate", exits=1)
    assert "not applied" in _run("policy", "validate", *place, "--graph", "nope", exits=1)


def test_a_profile_that_is_bound_to_a_cluster_selects_its_graph(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    (home / "config.yaml").write_text(
        f"clusters: {{ main: {{ root: {_root(folder)} }} }}\n"
        "profiles:\n  ops: { cluster: main, default_graph: people }\n"
    )
    assert "add_person" in _run("queries", "list", "--profile", "ops")
    assert "policy.staff" in _run("policy", "validate", "--profile", "ops")


def test_what_a_cluster_manages_is_not_created_or_migrated_beside_it(
    folder: Path, tmp_path: Path
) -> None:
    schema = ("--schema", str(folder / "people.pg"))
    managed = f"{_root(folder)}/graphs/people.omni"
    fresh = f"{_root(folder)}/graphs/fresh.omni"
    for refused in (
        _run("init", fresh, *schema, exits=1),
        _run("schema", "apply", managed, *schema, exits=1),
    ):
        assert "omnigraph cluster apply" in refused
    _run("schema", "apply", managed, *schema, "--dry-run")
    assert not Path(fresh).exists()
    _run("init", str(tmp_path / "plain/graphs/x.omni"), *schema)
    _run("init", f"{_root(folder)}/graphs/deep/x.omni", *schema)
    _run("init", f"{_root(folder)}/graphs/x.graph", *schema)

"""Which verb takes which part of an address, and what it says of the others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from omnigraph.clusters.control_plane import ControlPlane
from unit.cli.small_company import EVERYONE, Run
from unit.clusters.cluster_folder import remove_tasks, write_config

CONFIG = """\
operator: {{actor: act-ada}}
servers:
  dev: {{url: "http://127.0.0.1:1"}}
  prod: {{url: "http://127.0.0.1:2"}}
clusters:
  lake: {{root: {root}}}
profiles:
  held: {{cluster: lake, default_graph: people}}
  two: {{server: prod, store: x}}
"""
PEOPLE = ("query", "-e", "query q() { match { $p: Person } return { $p.name } }")


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_config(tmp_path_factory.mktemp("seed"))
    assert ControlPlane(str(made), "ada").import_state().is_ok
    assert ControlPlane(str(made), "ada").apply().is_ok
    return made


@pytest.fixture
def cluster(seed: Path, tmp_path: Path, run: Run) -> Path:
    del run  # It sets the variable of the home.
    made = shutil.copytree(seed, tmp_path / "cluster")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.yaml").write_text(CONFIG.format(root=made))
    return made


def refused(run: Run, *arguments: object) -> str:
    found = run(*arguments)
    assert found.exit_code == 1, found.output
    assert found.stdout == ""
    return found.stderr


def test_the_group_of_graphs_only_lists(run: Run) -> None:
    shown = run("graphs", "--help").stdout
    assert [line.split()[0] for line in shown.partition("Commands:")[2].split("\n") if line] == [
        "list"
    ]


@pytest.mark.parametrize(
    ("verb", "flag", "remedy"),
    [
        (("graphs", "list"), "--store", "--cluster"),
        (("graphs", "list"), "--graph", "--cluster"),
        (("graphs", "list"), "--as", "leave out --as"),
        (("queries", "list"), "--store", "--cluster"),
        (("policy", "validate"), "--store", "--cluster"),
        (("cluster", "status"), "--profile", "--config"),
        (("cluster", "status"), "--store", "--config"),
        (("cluster", "apply"), "--cluster", "--config"),
        (("blob", "get", "node", "Person", "ada", "photo"), "--cluster", "--store"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_a_flag_that_a_verb_cannot_use_is_refused_with_a_remedy(
    run: Run, verb: tuple[str, ...], flag: str, remedy: str
) -> None:
    shown = refused(run, *verb, flag, "x")
    assert f"does not take {flag} (" in shown
    assert remedy in shown.partition("hint:")[2]


def test_a_blob_has_no_graph_among_its_arguments(run: Run, store: Path) -> None:
    for verb in ("get", "stat"):
        found = run("blob", verb, "node", "Person", "ada", "photo", store)
        assert (found.exit_code, found.stdout) == (2, "")


def test_a_profile_of_the_environment_has_no_part_in_the_verbs_of_a_cluster(
    run: Run, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "nope")
    assert run("cluster", "status", "--config", cluster).exit_code == 0


def test_names_that_are_not_known_are_listed_beside_those_that_are(run: Run, cluster: Path) -> None:
    del cluster
    assert "known are dev, prod" in refused(run, "snapshot", "--server", "nope")
    assert "known are held, two" in refused(run, "snapshot", "--profile", "nope")


def test_a_graph_is_not_chosen_twice(run: Run, store: Path) -> None:
    assert "already one graph" in refused(run, "snapshot", store, "--graph", "g")


def test_a_profile_of_a_cluster_serves_maintenance_and_not_data(run: Run, cluster: Path) -> None:
    del cluster
    assert "does not work on a cluster" in refused(run, *PEOPLE, "--profile", "held")
    assert run("optimize", "--profile", "held", "--quiet").exit_code == 0
    shown = refused(run, "optimize", "--profile", "held", "--graph", "nope")
    assert "applied are: people, tasks" in shown


def test_a_profile_with_two_bindings_is_listed_and_not_used(run: Run, cluster: Path) -> None:
    del cluster
    listed = {each["name"]: each for each in json.loads(run("profile", "list", "--json").stdout)}
    assert (listed["two"]["valid"], listed["held"]["valid"]) == (False, True)
    assert "has server, store" in refused(run, *PEOPLE, "--profile", "two")


def test_the_only_graph_of_a_cluster_need_not_be_chosen(run: Run, cluster: Path) -> None:
    place = ("--cluster", cluster)
    assert "applied are: people, tasks" in refused(run, "optimize", *place)
    remove_tasks(cluster)
    assert run("cluster", "approve", "graph.tasks", "--config", cluster).exit_code == 0
    assert run("cluster", "apply", "--config", cluster).exit_code == 0
    assert run("optimize", *place, "--quiet").exit_code == 0
    text = (cluster / "cluster.yaml").read_text()
    text = text[: text.index("graphs:")] + "graphs: {}\n"
    (cluster / "cluster.yaml").write_text(text)
    assert run("cluster", "approve", "graph.people", "--config", cluster).exit_code == 0
    assert run("cluster", "apply", "--config", cluster).exit_code == 0
    assert "has no graph" in refused(run, "optimize", *place)


def test_a_token_is_replaced_beside_sections_that_stay_as_they_are(run: Run, cluster: Path) -> None:
    path = cluster.parent / "home/credentials"
    others = "# mine\n[ dev ]\n\ttoken='a b'\n"
    path.write_text(f"{others}[prod]\ntoken = t1\n")
    path.chmod(0o600)
    assert run("login", "prod", "--token", "t2").exit_code == 0
    assert path.read_text() == f"{others}[prod]\ntoken = t2\n"


def test_the_verbs_of_a_cluster_read_the_actor_of_the_operator_and_nothing_else(
    run: Run, cluster: Path
) -> None:
    config = cluster.parent / "home/config.yaml"
    config.write_text("operator: {actor: kay}\ndefaults: {store: /nowhere}\n")
    assert run("cluster", "refresh", "--config", cluster).exit_code == 0
    assert run("cluster", "refresh", "--config", cluster, "--as", "bob").exit_code == 0
    shown = json.loads(run("cluster", "history", "--config", cluster, "--json").stdout)
    assert [each["actor"] for each in shown["revisions"][:2]] == ["bob", "kay"]
    config.unlink()
    remove_tasks(cluster)
    shown = run("cluster", "approve", "graph.tasks", "--config", cluster)
    assert (shown.exit_code, "--as ACTOR" in shown.stderr) == (1, True)


def test_an_overwrite_and_a_merge_take_any_number_of_rows(run: Run, empty: Path) -> None:
    data = empty.parent / "many.jsonl"
    data.write_text(
        "".join(f'{{"type": "Person", "data": {{"name": "p{n}"}}}}\n' for n in range(9_000))
    )
    for mode in ("overwrite", "merge"):
        done = run("load", empty, "--data", data, "--mode", mode, "--yes", "--json")
        assert json.loads(done.stdout)["total_entities"] == 9_000


def test_an_external_blob_is_refused_before_it_is_stored(run: Run, empty: Path) -> None:
    data = empty.parent / "external.jsonl"
    line = {"type": "Person", "data": {"name": "x", "photo": "https://example.invalid/x.png"}}
    data.write_text(json.dumps(line))
    shown = refused(run, "load", empty, "--data", data, "--mode", "merge")
    assert "an external URI is not allowed, got 'https://example.invalid/x.png'" in shown


def test_a_drop_is_soft_whatever_the_flag_says(run: Run, empty: Path) -> None:
    schema = empty.parent / "fewer.pg"
    schema.write_text("node Person {\n  name: String @key\n}\nedge Knows: Person -> Person\n")
    plain, loss = (
        run("schema", "apply", empty, "--schema", schema, "--dry-run", "--json", *more)
        for more in ((), ("--allow-data-loss",))
    )
    steps = json.loads(plain.stdout)["steps"]
    assert {each["mode"] for each in steps if each["kind"] == "drop_property"} == {"soft"}
    assert json.loads(loss.stdout)["steps"] == steps
    assert "allow_data_loss is ignored" in loss.stderr


def test_a_description_is_listed_only_where_it_is_declared(run: Run, cluster: Path) -> None:
    queries = cluster / "queries/people/people.gq"
    text = queries.read_text().replace(
        '@description("Finds one.")', '@description("Finds one.") @instruction("Ask\nby name.")'
    )
    queries.write_text(text)
    assert run("cluster", "apply", "--config", cluster).exit_code == 0
    place = ("queries", "list", "--cluster", cluster, "--graph", "people")
    add, find = json.loads(run(*place, "--json").stdout)["queries"]
    assert {"description", "instruction"} & add.keys() == set()
    assert (find["description"], find["instruction"]) == ("Finds one.", "Ask\nby name.")
    assert "    Ask\n    by name.\n" in run(*place).stdout


def test_everyone_is_read_through_a_default_store(run: Run, cluster: Path, store: Path) -> None:
    config = cluster.parent / "home/config.yaml"
    config.write_text(f"defaults: {{store: {store}}}\n")
    assert run("query", "-e", EVERYONE).exit_code == 0
    assert "already one graph" in refused(run, "query", "-e", EVERYONE, "--graph", "people")

"""Branches, commits, snapshots, exports and checks."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import lance
import pytest

from omnigraph import Graph
from omnigraph.engine.check.graph_check import CheckReport
from omnigraph.errors import StorageError
from omnigraph.format_version import IR_VERSION
from omnigraph.storage.tables.table_reader import Table
from unit.cli.small_company import ADD, Answer, Run


def test_a_graph_is_created_once(run: Run, folder: Path) -> None:
    store = folder / "new.omni"
    created = run("init", store, "--schema", folder / "s.pg", "--as", "ada")
    assert created.exit_code == 0
    assert created.stdout.startswith(f"created {store}: commit 01")
    assert created.stderr == f"omnigraph init → {store} (direct, local)\n"
    for flags in ((), ("--force",)):
        again = run("init", store, "--schema", folder / "s.pg", *flags)
        assert again.exit_code == 1
        assert "already exists" in again.stderr
        assert again.stdout == ""


@pytest.mark.on_disk
def test_an_init_that_failed_can_be_repeated(run: Run, folder: Path, store: Path) -> None:
    for left in store.glob("__manifest/*"):
        if left.name != "schemas":
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    assert run("snapshot", store).exit_code == 1
    again = run("init", store, "--schema", folder / "s.pg", "--quiet")
    assert again.exit_code == 0, again.output
    assert run("export", store).stdout == ""
    assert run("check", store).exit_code == 0


@pytest.mark.on_disk
def test_a_folder_with_other_files_needs_force(run: Run, folder: Path) -> None:
    place = folder / "place"
    place.mkdir()
    (place / "letter.txt").write_text("dear")
    refused = run("init", place, "--schema", folder / "s.pg")
    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    assert [each.name for each in place.iterdir()] == ["letter.txt"]
    assert run("init", place, "--schema", folder / "s.pg", "--force").exit_code == 0
    assert (place / "letter.txt").read_text() == "dear"


def test_a_broken_schema_creates_nothing_and_names_its_file(run: Run, folder: Path) -> None:
    path = folder / "bad.pg"
    path.write_text("node A { x: Sting }\n")
    result = run("init", folder / "new.omni", "--schema", path)
    assert result.exit_code == 1
    assert f"{path}:1:13: error[S001]" in result.stderr
    assert not (folder / "new.omni").exists()


def test_branches_are_created_listed_and_deleted(run: Run, answer: Answer, store: Path) -> None:
    document = answer("branch", "create", "review/x", "--uri", store, "--as", "ada")
    assert document == {"uri": str(store), "from": "main", "name": "review/x", "actor_id": "ada"}
    answer("branch", "create", "a", "--uri", store, "--from", "review/x")
    assert answer("branch", "list", "--store", store) == {"branches": ["a", "main", "review/x"]}
    assert run("branch", "list", "--uri", store).stdout == "a\nmain\nreview/x\n"
    assert answer("branch", "delete", "a", "--uri", store) == {
        "uri": str(store),
        "name": "a",
        "actor_id": None,
    }
    deleted = run("branch", "delete", "review/x", "--uri", store)
    assert deleted.stdout == "deleted branch review/x\n"
    assert deleted.stderr == f"omnigraph branch delete → {store} (direct, local)\n"
    assert answer("branch", "list", "--uri", store) == {"branches": ["main"]}


def test_branches_that_cannot_be_created_or_deleted_fail(run: Run, store: Path) -> None:
    assert run("branch", "create", "x", "--uri", store).exit_code == 0
    for verb in (
        ("create", "x"),
        ("create", "main"),
        ("create", "y", "--from", "nope"),
        ("delete", "main"),
        ("delete", "nope"),
    ):
        result = run("branch", *verb, "--uri", store)
        assert result.exit_code == 1, verb
        assert "error: " in result.stderr
        assert result.stdout == ""


def test_deleting_a_branch_elsewhere_needs_consent(run: Run) -> None:
    result = run("branch", "delete", "x", "--uri", "s3://b/g")
    assert result.exit_code == 1
    assert "--yes" in result.stderr


def test_consent_may_be_given_in_words(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.cli.graph_access.is_terminal", lambda: True)
    said = []
    monkeypatch.setattr(
        "omnigraph.cli.commands.branch_commands.echo_write", lambda *_: said.append(1)
    )
    refused = run("branch", "delete", "x", "--uri", "nowhere://b", text="no\n")
    assert refused.exit_code == 1
    assert "go on? [y/N]" in refused.stderr
    assert "not confirmed; nothing was written" in refused.stderr
    assert said == []
    run("branch", "delete", "x", "--uri", "nowhere://b", text="YES\n")
    assert said == [1]


def test_commits_are_listed_newest_first_with_those_of_the_base(
    run: Run, answer: Answer, store: Path
) -> None:
    on_main = answer("commit", "list", store)["commits"]
    assert [commit["graph_manifest_version"] for commit in on_main] == [1, 0]
    assert [commit["graph_branch"] for commit in on_main] == [None, None]
    answer("branch", "create", "f", "--uri", store)
    params = ("--params", '{"name": "zoe"}')
    written = answer("mutate", "--store", store, "-e", ADD, *params, "--branch", "f")
    on_branch = answer("commit", "list", store, "--branch", "f")["commits"]
    assert on_branch == [written["commit"], *on_main]
    assert on_branch[0]["graph_branch"] == "f"
    newest = answer("commit", "list", store, "--branch", "f", "--limit", "1")["commits"]
    assert newest == on_branch[:1]
    lines = run("commit", "list", store, "--branch", "f").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        commit["graph_commit_id"] for commit in on_branch
    ]


def test_a_commit_is_shown(run: Run, answer: Answer, store: Path) -> None:
    first = answer("commit", "list", store)["commits"][-1]
    assert answer("commit", "show", first["graph_commit_id"], "--uri", store) == first
    shown = run("commit", "show", first["graph_commit_id"], "--store", store).stdout.splitlines()
    assert shown[:4] == [
        f"commit: {first['graph_commit_id']}",
        "branch: main",
        "version: 0",
        "parents: none",
    ]
    bogus = run("commit", "show", "bogus", "--uri", store)
    assert bogus.exit_code == 1
    assert bogus.stdout == ""


@pytest.mark.on_disk
def test_a_snapshot_is_the_documented_document(run: Run, answer: Answer, store: Path) -> None:
    document = answer("snapshot", store)
    assert list(document) == [
        "graph_branch",
        "graph_manifest_version",
        "internal_schema_version",
        "datasets",
    ]
    assert document["graph_branch"] == "main"
    assert document["graph_manifest_version"] == 1
    assert document["internal_schema_version"] == IR_VERSION
    assert [
        (
            each["entity_kind"],
            each["type_name"],
            each["entity_count"],
            each["native_dataset_branch"],
        )
        for each in document["datasets"]
    ] == [("edge", "Knows", 1, None), ("node", "Person", 3, None)]
    for each in document["datasets"]:
        assert each["published_dataset_version"] > 0
        assert (store / each["dataset_path"]).is_dir()
    lines = run("snapshot", store).stdout.splitlines()
    assert lines[0].startswith("branch main at version 1: 01")
    assert lines[1].split()[:3] == ["edge", "Knows", "1"]


@pytest.mark.on_disk
def test_pins_lead_other_tools_to_the_tables(run: Run, answer: Answer, store: Path) -> None:
    document = answer("pins", store)
    assert (
        document["graph_commit_id"]
        == answer("commit", "list", store)["commits"][0]["graph_commit_id"]
    )
    for pin in document["pins"]:
        table = lance.dataset(pin["dataset_uri"], version=int(pin["version"], 16))
        assert table.count_rows() == pin["entity_count"]
        assert {*table.schema.names} >= {*pin["columns"].values()}
    first = answer("commit", "list", store)["commits"][-1]["graph_commit_id"]
    then = answer("pins", store, "--snapshot", first)["pins"]
    assert [pin["entity_count"] for pin in then] == [0, 0]
    assert [pin["columns"] for pin in then] == [pin["columns"] for pin in document["pins"]]
    assert ["since" in pin["columns"] for pin in then] == [True, False]
    assert run("pins", store).stdout.splitlines()[1].split()[:2] == ["node", "Person"]


def test_an_export_can_be_loaded_again(run: Run, answer: Answer, store: Path) -> None:
    exported = run("export", store)
    assert exported.exit_code == 0
    kinds = [next(iter(json.loads(line))) for line in exported.stdout.splitlines()]
    assert kinds == ["edge", "type", "type", "type"]
    (store.parent / "all.jsonl").write_text(exported.stdout)
    copy = store.parent / "copy.omni"
    assert run("init", copy, "--schema", store.parent / "s.pg").exit_code == 0
    answer("load", copy, "--data", store.parent / "all.jsonl", "--mode", "overwrite")
    assert run("export", copy).stdout == exported.stdout


def test_an_export_of_a_commit_has_what_was_there_then(
    run: Run, answer: Answer, store: Path
) -> None:
    before = run("export", store).stdout
    commit = answer("commit", "list", store)["commits"][0]["graph_commit_id"]
    mutation = ("mutate", "-e", ADD, "--params", '{"name": "zoe"}', "--store", store)
    assert run(*mutation).exit_code == 0
    assert run("export", store).stdout != before
    assert run("export", store, "--snapshot", commit).stdout == before
    assert run("export", store, "--snapshot", commit, "--branch", "main").exit_code == 2


def test_an_export_of_some_types(run: Run, store: Path) -> None:
    people = run("export", store, "--type", "Person").stdout.splitlines()
    assert {json.loads(line)["type"] for line in people} == {"Person"}
    assert len(run("export", store, "--type", "Person", "--type", "Knows").stdout.splitlines()) == 4
    unknown = run("export", store, "--type", "Persn")
    assert unknown.exit_code == 1
    assert "Persn" in unknown.stderr
    assert unknown.stdout == ""


def test_a_branch_that_is_not_there_is_named(run: Run, store: Path) -> None:
    for verb in (("snapshot", store), ("export", store), ("commit", "list", store)):
        result = run(*verb, "--branch", "nope")
        assert result.exit_code == 1
        assert "branch 'nope' not found" in result.stderr
        assert result.stdout == ""


def test_a_sound_graph_passes_its_check(run: Run, answer: Answer, store: Path) -> None:
    assert answer("check", store) == {
        "uri": str(store),
        "healthy": True,
        "branches": 1,
        "commits": 2,
        "compared": 2,
        "entities": 4,
        "problems": [],
        "notices": [],
    }
    result = run("check", "--store", store)
    assert result.exit_code == 0
    assert (
        result.stdout
        == f"{store}: ok (1 branch, 2 commits, contents of all compared, 4 entities)\n"
    )


def test_a_check_compares_the_newest_commits_or_all(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(_: Graph, *, commits_max: int | None = 100, deep: bool) -> CheckReport:
        assert not deep
        return CheckReport((), (), branches=1, commits=948, compared=commits_max or 948, entities=9)

    monkeypatch.setattr(Graph, "check", checked)
    verdict = f"{store}: ok (1 branch, 948 commits, contents of {{}} compared, 9 entities)\n"
    assert run("check", store).stdout == verdict.format("the newest 100")
    assert run("check", store, "--all").stdout == verdict.format("all")


@pytest.mark.on_disk
def test_a_check_tells_harmless_damage_as_a_notice(run: Run, store: Path) -> None:
    hint = "__manifest/main.0/latest.json"
    (store / hint).write_bytes(b"{")
    result = run("check", store)
    assert result.exit_code == 0
    notice = f"notice: {hint} is damaged; it is derived and ignored (is not JSON (1 bytes))"
    assert result.stdout.splitlines()[0] == notice


def test_an_interrupt_inside_lance_stops_a_check(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise StorageError("scan", "t/x", "External error: KeyboardInterrupt: ")

    monkeypatch.setattr(Table, "scan", interrupted)
    result = run("check", store)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "error: interrupted\n")


@pytest.mark.on_disk
def test_a_damaged_graph_fails_its_check(run: Run, answer: Answer, store: Path) -> None:
    (folder,) = (
        store / each["dataset_path"]
        for each in answer("snapshot", store)["datasets"]
        if each["type_name"] == "Person"
    )
    for data in sorted((folder / "data").rglob("*.lance")):
        data.unlink()
    result = run("check", store, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["healthy"] is False
    assert any("Person" in problem["where"] for problem in document["problems"])


def test_consent_lets_a_graph_elsewhere_be_changed(run: Run, folder: Path) -> None:
    store = f"memory://{uuid.uuid4().hex}"
    assert run("init", store, "--schema", folder / "s.pg").exit_code == 0
    created = run("branch", "create", "x", "--uri", store)
    assert created.stderr == f"omnigraph branch create → {store} (direct, remote)\n"
    assert run("branch", "delete", "x", "--uri", store).exit_code == 1
    assert run("--yes", "branch", "delete", "x", "--uri", store).exit_code == 0
    data = ("--data", folder / "people.jsonl", "--mode", "overwrite")
    assert run("load", store, *data).exit_code == 1
    assert run("load", store, *data, "--yes").exit_code == 0


def test_commits_of_one_actor_are_listed(answer: Answer, store: Path) -> None:
    for name, actor in (("x", "ada"), ("y", "bob"), ("z", "ada")):
        text = f'query q() {{ insert Person {{ name: "{name}" }} }}'
        answer("mutate", "--store", store, "-e", text, "--as", actor)
    every = answer("commit", "list", store)["commits"]
    own = [each for each in every if each["actor_id"] == "ada"]
    assert len(own) == 2
    assert answer("commit", "list", store, "--actor", "ada")["commits"] == own
    newest = answer("commit", "list", store, "--actor", "ada", "--limit", "1")["commits"]
    assert newest == own[:1]
    assert answer("commit", "list", store, "--actor", "eve")["commits"] == []


def test_a_limit_beyond_all_numbers_of_the_machine_is_none(answer: Answer, store: Path) -> None:
    listed = answer("commit", "list", store)
    assert listed["commits"]
    assert answer("commit", "list", store, "--limit", "9" * 20) == listed

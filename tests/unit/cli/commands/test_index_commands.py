"""Indexes and optimization from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.cli.small_company import Answer, Run


def test_the_status_lists_every_declared_index(answer: Answer, store: Path) -> None:
    document = answer("index", "status", store)
    assert document["uri"] == str(store)
    assert document["branch"] == "main"
    assert document["indexes"][0] == {
        "type_key": "node:Person",
        "property": "@id",
        "kind": "btree",
        "covered_rows": 0,
        "total_rows": 3,
        "state": "absent",
        "reason": None,
    }
    assert [(one["type_key"], one["property"]) for one in document["indexes"]] == [
        ("node:Person", "@id"),
        ("node:Person", "name"),
        ("edge:Knows", "@id"),
        ("edge:Knows", "@src"),
        ("edge:Knows", "@dst"),
    ]


def test_a_build_makes_missing_indexes_and_then_finds_nothing_to_do(
    run: Run, answer: Answer, store: Path
) -> None:
    document = answer("index", "build", store)
    assert document["uri"] == str(store)
    assert {"type_key": "edge:Knows", "property": "@src", "kind": "btree"} in document["built"]
    assert (len(document["built"]), document["pending_indexes"]) == (5, [])
    assert document["commit"]["message"] == "index build"
    assert {one["state"] for one in answer("index", "status", store)["indexes"]} == {"fresh"}
    again = run("index", "build", store)
    assert again.stdout == "built 0 indexes on main: nothing to do\n"
    assert again.stderr == f"omnigraph index build → {store} (direct, local)\n"


def test_people_see_a_line_per_index(run: Run, empty: Path) -> None:
    shown = run("index", "status", empty).stdout.splitlines()
    assert shown[0].split() == [
        "node:Person", "@id", "btree", "pending", "0/0", "the", "type", "has", "no", "rows", "yet",
    ]  # fmt: skip
    assert shown[-1] == "5 indexes on main: 5 pending"
    built = run("index", "build", empty, "--quiet").stdout.splitlines()
    assert built[0].split()[:3] == ["pending", "node:Person", "@id"]
    assert built[-1] == "built 0 indexes on main: nothing to do"


def test_optimize_answers_with_the_document_of_its_tables(
    run: Run, answer: Answer, folder: Path, store: Path
) -> None:
    more = folder / "more.jsonl"
    more.write_text('{"type": "Person", "data": {"name": "fay"}}\n')
    assert run("load", store, "--data", more, "--mode", "append").exit_code == 0
    document = answer("optimize", store)
    person = document["datasets"][0]
    assert {key: person[key] for key in ("type_key", "fragments_removed", "fragments_added")} == {
        "type_key": "node:Person",
        "fragments_removed": 2,
        "fragments_added": 1,
    }
    assert (person["committed"], person["skipped"], person["pending_indexes"]) == (True, None, [])
    assert len(person["published_dataset_version"]) == 16
    assert document["commit"]["message"] == "optimize"
    again = answer("optimize", store)
    assert again["commit"] is None
    assert {one["committed"] for one in again["datasets"]} == {False}
    assert run("optimize", store, "--quiet").stdout == "optimized 0 tables of main: nothing to do\n"
    assert run("check", store).exit_code == 0


def test_optimize_says_what_it_did(run: Run, store: Path) -> None:
    done = run("optimize", store)
    assert done.stderr == f"omnigraph optimize → {store} (direct, local)\n"
    first, *_, last = done.stdout.splitlines()
    assert first.startswith("node:Person  0 fragments joined into 0  indexed @id, name")
    assert last.startswith("optimized 2 tables of main: commit 01")


@pytest.mark.parametrize("verb", [("optimize",), ("index", "status"), ("index", "build")])
def test_an_unknown_branch_is_refused_and_nothing_is_written(
    run: Run, store: Path, verb: tuple[str, ...]
) -> None:
    refused = run(*verb, store, "--branch", "nowhere")
    assert refused.exit_code == 1
    assert "nowhere" in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize("verb", [("optimize",), ("index", "build")])
def test_maintenance_takes_no_actor(run: Run, store: Path, verb: tuple[str, ...]) -> None:
    refused = run(*verb, store, "--as", "ada")
    assert refused.exit_code == 1
    assert "--as" in refused.stderr


def test_another_branch_can_be_optimized(run: Run, answer: Answer, store: Path) -> None:
    assert run("branch", "create", "side", "--uri", store).exit_code == 0
    document = answer("optimize", store, "--branch", "side")
    assert document["branch"] == "side"
    assert document["commit"]["graph_branch"] == "side"
    assert {one["state"] for one in answer("index", "status", store)["indexes"]} == {"absent"}

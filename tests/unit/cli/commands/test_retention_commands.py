"""Clean-up, repair and tags from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pytest

import places
from unit.cli.small_company import Answer, Run


def test_a_clean_up_is_a_preview_unless_it_is_confirmed(run: Run, store: Path) -> None:
    shown = run("cleanup", store, "--keep", 5, "--older-than", "7d")
    assert shown.exit_code == 0
    assert shown.stderr == (
        "commits go that are not among the newest 5 and superseded more than 7d ago; "
        "this is a preview, --confirm removes\n"
    )
    assert shown.stdout.splitlines() == [
        "would remove 0 commits, 0 objects, 0 B",
        "kept: main from version 0",
        "what was superseded, deleted or written less than 24h ago stays",
    ]
    done = run("cleanup", store, "--keep", 1, "--confirm")
    assert done.stdout.startswith("removed 0 commits")
    assert done.stderr == f"omnigraph cleanup → {store} (direct, local)\n"


def test_a_clean_up_without_grace_removes_what_was_just_superseded(run: Run, store: Path) -> None:
    text = "query q() { update Person set { age: 77 } where age >= 0 }"
    assert run("mutate", "--store", store, "-e", text).exit_code == 0
    shown = run("cleanup", store, "--keep", 1, "--grace", "0s")
    assert "would remove 2 commits" in shown.stdout
    done = run("cleanup", store, "--keep", 1, "--grace", "0s", "--confirm")
    assert "removed 2 commits" in done.stdout
    assert "ago stays" not in done.stdout
    assert run("check", store).exit_code == 0


def test_the_document_of_a_clean_up(run: Run, store: Path) -> None:
    shown = run("cleanup", store, "--older-than", "2h", "--json")
    assert json.loads(shown.stdout) == {
        "uri": str(store),
        "keep_versions": None,
        "older_than_secs": 7200,
        "dry_run": True,
        "grace_secs": 86400,
        "commits_removed": 0,
        "bytes_removed": 0,
        "oldest_versions": {"main": 0},
        "datasets": [],
        "other": None,
    }


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--confirm"], 1, "needs to know what to keep"),
        (["--older-than", "5x"], 1, "'5x' is not a time span"),
        (["--older-than", "-5"], 1, "not a time span"),
        (["--keep", "1", "--grace", "soon"], 1, "'soon' is not a time span"),
    ],
)
def test_a_clean_up_without_a_policy_fails(
    run: Run, store: Path, arguments: list[str], code: int, told: str
) -> None:
    failed = run("cleanup", store, *arguments)
    assert failed.exit_code == code
    assert told in failed.stderr
    assert failed.stdout == ""


def test_a_clean_up_elsewhere_needs_consent(run: Run) -> None:
    refused = run("cleanup", "s3://bucket/graph", "--keep", 1, "--confirm")
    assert refused.exit_code == 1
    assert "--yes" in refused.stderr


def test_tags_are_created_listed_read_and_deleted(run: Run, answer: Answer, store: Path) -> None:
    head = answer("commit", "list", store)["commits"][0]["graph_commit_id"]
    tag = answer("tag", "create", "release/1", "--uri", store, "--as", "ada")
    assert (tag["name"], tag["graph_commit_id"], tag["actor_id"]) == ("release/1", head, "ada")
    assert answer("tag", "list", "--uri", store) == {"tags": [tag]}
    assert run("tag", "list", "--uri", store).stdout.split()[:2] == ["release/1", head]
    again = run("tag", "create", "release/1", "--uri", store)
    assert again.exit_code == 1
    assert "already exists" in again.stderr
    text = "query q() { match { $p: Person } return { count($p) as n } }"
    read = answer("query", "--store", store, "-e", text, "--snapshot", "release/1")
    assert read["rows"] == [{"n": 3}]
    assert run("tag", "delete", "release/1", "--uri", store).stdout == "deleted tag release/1\n"
    assert run("tag", "delete", "release/1", "--uri", store).exit_code == 1
    assert answer("tag", "list", "--uri", store) == {"tags": []}


def test_a_healthy_graph_needs_no_repair(run: Run, answer: Answer, store: Path) -> None:
    assert run("repair", store).stdout == f"nothing to repair in {store}\n"
    document = answer("repair", store)
    assert (document["confirm"], document["force"], document["derived"]) == (False, False, [])
    assert {each["classification"] for each in document["datasets"]} == {"no_drift"}
    assert {each["action"] for each in document["datasets"]} == {"none"}
    assert run("repair", store, "--force").exit_code == 2


@pytest.mark.skipif(places.is_on_s3(), reason="writes to the files of a table on the disk")
def test_what_others_wrote_to_a_table_is_told_and_removed_by_force_only(
    run: Run, answer: Answer, store: Path
) -> None:
    table = next((store / "t").glob("Person-*.lance"))
    latest = lance.dataset(str(table))
    lance.write_dataset(latest.schema.empty_table(), str(table), mode="append")
    seen = {each["type_key"]: each for each in answer("repair", store)["datasets"]}
    foreign = seen["node:Person"]
    assert (foreign["classification"], foreign["action"]) == ("suspicious", "preview")
    assert (foreign["lance_head_version"], foreign["operations"]) == (2, ["Append"])
    refused = run("repair", store, "--confirm")
    assert refused.exit_code == 1
    assert "refused" in refused.stdout
    assert lance.dataset(str(table)).version == 2
    forced = run("repair", store, "--confirm", "--force")
    assert (forced.exit_code, lance.dataset(str(table)).version) == (0, 1)
    assert run("check", store).exit_code == 0


@pytest.mark.skipif(places.is_on_s3(), reason="writes to the files of a graph on the disk")
def test_a_torn_hint_is_written_again(run: Run, answer: Answer, store: Path) -> None:
    hint = store / "__manifest" / "main.0" / "latest.json"
    good = hint.read_bytes()
    hint.write_bytes(good[:5])
    [torn] = answer("repair", store)["derived"]
    assert torn == {
        "path": "__manifest/main.0/latest.json",
        "reason": "it is torn",
        "action": "preview",
    }
    assert hint.read_bytes() == good[:5]
    assert run("repair", store, "--confirm").exit_code == 0
    assert hint.read_bytes() == good


@pytest.mark.on_disk
def test_a_repair_says_what_can_be_done_about_a_damaged_file(
    run: Run, answer: Answer, store: Path
) -> None:
    text = "query q() { update Person set { age: 77 } where age >= 0 }"
    assert run("mutate", "--store", store, "-e", text).exit_code == 0
    commit = answer("commit", "list", store)["commits"][1]["graph_commit_id"]
    (path,) = store.glob("t/Person-*/_deletions/*")
    path.write_bytes(path.read_bytes()[::-1])
    shown = run("repair", store)
    assert shown.exit_code == 1
    assert shown.stdout.splitlines() == [
        f"{path.relative_to(store)}: its digest is not the one in its name",
        "  restore it from a copy of the graph",
        "main: cannot be read completely: node:Person",
        f"  the newest whole commit is {commit}, version 1",
        f"  `omnigraph branch create rescued --uri {store} --from {commit}` starts a branch there",
        f"1 damaged object in {store}",
    ]
    rescue = ["branch", "create", "rescued", "--uri", store, "--from", commit]
    assert run(*rescue).exit_code == 0
    assert "bob" in run("export", store, "--branch", "rescued").stdout
    document = json.loads(run("repair", store, "--json").stdout)
    assert [each["path"] for each in document["damaged"]] == [str(path.relative_to(store))]
    assert document["broken_branches"] == [
        {
            "branch": "main",
            "unreadable_types": ["node:Person"],
            "whole_commit_id": commit,
            "whole_version": 1,
        }
    ]

"""`omnigraph proposal`, and `load --propose`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.app import app

SCHEMA = "node Person { name: String @key\n age: I32? }"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A graph with ada on main, and bob on a branch."""
    uri = str(tmp_path / "g.omni")
    with omnigraph.create(uri, schema=SCHEMA, durable=False) as graph:
        graph.branch().load([{"name": "ada"}], type="Person", mode="append")
        draft = graph.create_branch("draft")
        draft.load([{"name": "bob"}], type="Person", mode="append")
    return uri


def run(store: str, *line: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, [*line, "--store", store])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stdout + result.stderr


def read(store: str, *line: str, code: int = 0) -> Any:
    return json.loads(run(store, *line, "--json", "--quiet", code=code))


def test_a_proposal_lives_from_its_opening_to_its_merge(store: str) -> None:
    opened = read(
        store,
        "proposal",
        "open",
        "draft",
        "--title",
        "Add bob",
        "--body",
        "Why\nnot",
        "--as",
        "bot",
    )
    assert (opened["number"], opened["author_id"], opened["status"]) == (1, "bot", "open")
    head = opened["head_commit_id"]
    assert [each["title"] for each in read(store, "proposal", "list")["proposals"]] == ["Add bob"]
    said = ("proposal", "comment", "1", "--as", "ines")
    read(store, *said, "-m", "hello")
    read(store, *said, "-m", "age?", "--about", "Person", "bob", "--property", "age")
    read(store, *said, "-m", "none", "--reply-to", "3")
    shown = run(store, "proposal", "show", "1").splitlines()
    assert "comment 3 of ines on Person bob.age (open): age?" in shown
    assert "comment 4 of ines to 3: none" in shown
    read(store, *said, "--resolve", "3")
    read(store, "proposal", "request-changes", "1", "-m", "no", "--as", "max")
    read(store, "proposal", "approve", "1", "--head", head, "--as", "max", "-m", "yes")
    read(store, "proposal", "check", "1", "quality", "pass", "--link", "https://ci/1")
    read(store, "proposal", "edit", "1", "--title", "Add Bob")
    shown = run(store, "proposal", "show", "1").splitlines()
    assert shown[:2] == ["proposal 1: Add Bob", "open: draft into main, by bot"]
    assert {"Why", "not", "max approves: yes", "check quality: pass (https://ci/1)"} <= {*shown}
    assert "+ node Person bob" in run(store, "proposal", "diff", "1")
    assert read(store, "proposal", "diff", "1", "--stat")["summary"][0]["inserted"] == 1
    assert "dry run" in run(store, "proposal", "merge", "1", "--dry-run")
    merged = read(store, "proposal", "merge", "1", "--delete-branch", "--as", "max")
    assert (merged["outcome"], merged["branch_deleted"]) == ("fast_forward", True)
    assert read(store, "proposal", "merge", "1")["commit"] == merged["commit"]
    assert "merged by max at" in run(store, "proposal", "show", "1").splitlines()[-1]
    assert run(store, "proposal", "list") == "no proposals\n"
    assert "#1  merged" in run(store, "proposal", "list", "--all")


def test_an_expected_commit_and_a_refusal_have_their_exit_codes(store: str) -> None:
    read(store, "proposal", "open", "draft", "--title", "t")
    assert read(store, "proposal", "approve", "1", "--head", "01J", code=4)["reason"] == (
        "precondition_failed"
    )
    assert read(store, "proposal", "sync", "1")["outcome"] == "already_up_to_date"
    closed = read(store, "proposal", "close", "1", "-m", "later")
    assert (closed["status"], closed["reason"]) == ("closed", "later")
    assert "closed" in run(store, "proposal", "show", "1").splitlines()[-1]
    assert "proposal 1: it is closed" in run(store, "proposal", "merge", "1", code=1)
    assert "there is no proposal 2" in run(store, "proposal", "show", "2", code=1)


def test_a_load_proposes_once_for_its_key(store: str, tmp_path: Path) -> None:
    data = tmp_path / "new.jsonl"
    data.write_text('{"type": "Person", "data": {"name": "cyd"}}\n')
    line = ("load", "--data", str(data), "--mode", "append", "--propose", "Add cyd", "--key", "k")
    first = read(store, *line)
    assert first["target"] == "main"
    assert read(store, *line)["number"] == first["number"]
    for wrong in (("--from", "main"), ("--dry-run",), ("--on-error", "quarantine")):
        assert "--propose" in run(store, *line, *wrong, code=2)

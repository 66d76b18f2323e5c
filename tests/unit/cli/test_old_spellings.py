"""Verbs as they were once spelled work, with one line of warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.cli.small_company import ADD, EVERYONE, Answer, Run


def test_read_is_query_and_change_is_mutate(run: Run, store: Path) -> None:
    read = run("read", "--store", store, "-e", EVERYONE, "--format", "csv")
    query = run("query", "--store", store, "-e", EVERYONE, "--format", "csv")
    assert (read.exit_code, read.stdout) == (0, query.stdout)
    assert read.stderr == "warning: 'read' is now 'query'\n"
    add = ("-e", ADD, "--params", '{"name": "zoe"}', "--json")
    changed = run("--store", store, "change", *add)
    assert changed.exit_code == 0
    assert changed.stderr == "warning: 'change' is now 'mutate'\n"
    assert json.loads(changed.stdout)["affected_nodes"] == 1


def test_ingest_merges_into_a_branch_that_it_creates(
    run: Run, answer: Answer, store: Path, folder: Path
) -> None:
    data = folder / "people.jsonl"
    line = ("ingest", store, "--data", data, "--branch", "review", "--json", "--quiet")
    ingested = run(*line)
    assert ingested.exit_code == 0, ingested.output
    assert ingested.stderr == "warning: 'ingest' is now 'load'\n"
    document = json.loads(ingested.stdout)
    assert (document["mode"], document["base_branch"]) == ("merge", "main")
    assert (document["branch"], document["branch_created"]) == ("review", True)
    refused = run(*line, "--mode=append")
    assert json.loads(refused.stdout)["reason"] == "key_conflict"
    answer("branch", "delete", "review", "--uri", store)


@pytest.mark.parametrize("words", [("query", "lint"), ("query", "check"), ("check",)])
def test_checks_of_queries_are_lint(run: Run, folder: Path, words: tuple[str, ...]) -> None:
    options = ("--query", folder / "everyone.gq", "--schema", folder / "s.pg")
    old, new = run(*words, *options), run("lint", *options)
    assert (old.exit_code, old.stdout) == (0, new.stdout)
    assert old.stderr.startswith(f"warning: '{' '.join(words)}' is now 'lint'")


def test_a_query_may_be_called_lint_or_check(run: Run, store: Path, folder: Path) -> None:
    path = folder / "check.gq"
    path.write_text(EVERYONE.replace("everyone", "check"))
    ran = run("query", "check", "--store", store, "--query", path)
    assert (ran.exit_code, ran.stderr) == (0, "")
    missing = run("query", "lint", "--store", store, "--query", path)
    assert missing.exit_code == 1
    assert "omnigraph lint --query PATH" in missing.stderr


def test_check_verifies_a_graph(run: Run, store: Path) -> None:
    checked = run("check", store)
    assert (checked.exit_code, checked.stderr) == (0, "")
    assert ": ok (" in checked.stdout


def test_an_export_needs_no_jsonl(run: Run, store: Path) -> None:
    old, new = run("export", store, "--jsonl"), run("export", store)
    assert (old.exit_code, old.stdout) == (0, new.stdout)
    assert old.stderr == "warning: '--jsonl' is not needed: an export is JSON lines\n"

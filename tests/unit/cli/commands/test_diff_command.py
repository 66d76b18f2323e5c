"""`omnigraph diff`: reviews and comparisons, for people, programs and browsers."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

import omnigraph
from unit.cli.small_company import Answer, Run


@pytest.fixture
def reviewed(run: Run, store: Path, folder: Path) -> Path:
    """A graph with a branch on which somebody came and somebody else has a year more."""
    assert run("branch", "create", "review", "--uri", store, "--quiet").exit_code == 0
    path = folder / "more.jsonl"
    path.write_text(
        '{"type": "Person", "data": {"name": "zoë", "age": 7}}\n'
        '{"type": "Person", "data": {"name": "eve", "age": 42}}\n'
    )
    flags = ("--mode", "merge", "--branch", "review", "--quiet")
    assert run("load", store, "--data", path, *flags).exit_code == 0
    add = ("--query", folder / "add.gq", "--params", '{"name": "dan"}', "--quiet")
    assert run("mutate", "--store", store, *add).exit_code == 0
    return store


def test_a_branch_alone_is_reviewed(run: Run, reviewed: Path) -> None:
    shown = run("diff", "review", "--uri", reviewed)
    assert shown.exit_code == 0, shown.output
    assert shown.stderr == ""
    assert shown.stdout.splitlines()[1:] == [
        "",
        "node Person      +1      ~1      -0",
        "",
        "~ node Person eve",
        "    age: 41 -> 42",
        "+ node Person zoë",
        "    age: 7",
        '    name: "zoë"',
    ]
    again = run("diff", "main", "review", "--review", "--store", reviewed)
    assert again.stdout == shown.stdout


def test_two_states_are_compared_directly(run: Run, answer: Answer, reviewed: Path) -> None:
    lines = run("diff", "main", "review", "--uri", reviewed).stdout.splitlines()
    assert [line for line in lines if line.startswith(("+ ", "~ ", "- "))] == [
        "- node Person dan",
        "~ node Person eve",
        "+ node Person zoë",
    ]
    commits = answer("commit", "list", reviewed)["commits"]
    ids = [commit["graph_commit_id"] for commit in commits]
    document = answer("diff", ids[1], ids[0], "--uri", reviewed)
    assert [document["old"], document["new"]] == [commits[1], commits[0]]
    assert [(each["op"], each["id"]) for each in document["changes"]] == [("insert", "dan")]


@pytest.mark.on_disk
def test_the_document_is_that_of_the_library(run: Run, reviewed: Path) -> None:
    with omnigraph.open(str(reviewed)) as graph:
        diff = graph.branch().diff("review")
        whole, header = diff.to_json(), diff.header()
        nothing = graph.diff("main", "main").to_json()
    shown = run("diff", "review", "--uri", reviewed, "--json").stdout
    assert json.loads(shown) == whole
    assert shown in {
        json.dumps(whole, indent=2, ensure_ascii=is_ascii) + "\n" for is_ascii in (True, False)
    }
    assert json.loads(run("diff", "review", "--uri", reviewed, "--stat", "--json").stdout) == header
    same = run("diff", "main", "main", "--uri", reviewed, "--json").stdout
    assert same == json.dumps(nothing, indent=2) + "\n"


def test_filters_choose_changes(run: Run, answer: Answer, reviewed: Path) -> None:
    inserted = answer("diff", "review", "--uri", reviewed, "--op", "insert", "--op", "delete")
    assert [each["id"] for each in inserted["changes"]] == ["zoë"]
    assert answer("diff", "review", "--uri", reviewed, "--kind", "edge")["changes"] == []
    assert run("diff", "review", "--uri", reviewed, "--type", "Knows").stdout.endswith(
        "no changes\n"
    )
    refused = run("diff", "review", "--uri", reviewed, "--type", "Persn")
    assert refused.exit_code == 1
    assert "Persn" in refused.stderr
    wrong = run("diff", "review", "--uri", reviewed, "--op", "upsert")
    assert wrong.exit_code == 2
    assert "'--op'" in wrong.stderr
    assert "'upsert'" in wrong.stderr


def test_counts_alone_are_short(run: Run, reviewed: Path) -> None:
    shown = run("diff", "review", "--uri", reviewed, "--stat").stdout
    assert shown.splitlines()[1:] == ["", "node Person      +1      ~1      -0"]


class Tags(HTMLParser):
    """Sees that every tag is closed, and keeps the texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_is_whole_and_shows_every_change(run: Run, reviewed: Path) -> None:
    page = run("diff", "review", "--uri", reviewed, "--html").stdout
    assert page.startswith("<!doctype html>")
    tags = Tags(page)
    assert tags.open == []
    assert {"zoë", "eve", "41", "42", "insert", "update"} <= set(tags.texts)


@pytest.mark.parametrize("flag", ["--json", "--stat"])
def test_a_page_is_no_document(run: Run, reviewed: Path, flag: str) -> None:
    refused = run("diff", "review", "--uri", reviewed, "--html", flag)
    assert refused.exit_code == 2
    assert "--html excludes --json and --stat" in refused.output


def test_a_name_that_is_nothing_is_refused(run: Run, reviewed: Path) -> None:
    refused = run("diff", "reviwe", "--uri", reviewed)
    assert refused.exit_code == 1
    assert refused.stdout == ""
    assert "'reviwe' is not a branch, a tag or a commit" in refused.stderr
    assert run("diff", "--uri", reviewed).exit_code == 2


def test_the_help_names_the_states_in_the_order_in_which_they_are_compared(
    run: Run, reviewed: Path
) -> None:
    shown = " ".join(run("diff", "--help").stdout.replace("│", " ").split())
    assert "[OLD] NEW" in shown
    assert "what changed from OLD to NEW" in shown
    refused = run("diff", "main", "review", "main", "--uri", reviewed)
    assert refused.exit_code == 2
    assert "3 states cannot be compared" in refused.stderr

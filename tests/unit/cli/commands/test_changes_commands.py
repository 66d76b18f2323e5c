"""`commit changes`, `changes poll`, `changes baseline` and `changes follow`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.cli.local_files import install_file, lock_file
from omnigraph.rows import json_export
from unit.cli.small_company import ADD, SCHEMA, Answer, Run


@pytest.fixture
def busy(run: Run, store: Path) -> Path:
    """A graph with the three people, and one more in a commit of its own."""
    added = run("mutate", "--store", store, "-e", ADD, "--params", '{"name": "dan", "age": 1}')
    assert added.exit_code == 0, added.output
    return store


def newest(answer: Answer, store: Path, at: int = 0) -> str:
    """The id of a commit, counted from the newest."""
    commit: str = answer("commit", "list", store)["commits"][at]["graph_commit_id"]
    return commit


def text_of(run: Run, *arguments: object) -> str:
    """What a command that succeeds prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def known(data: dict[str, Any]) -> dict[str, Any]:
    """The properties that have a value."""
    return {name: value for name, value in data.items() if value is not None}


def as_printed(document: Any) -> str:
    return json.dumps(document, indent=2) + "\n"


def test_a_commit_is_one_document_however_many_pages_it_takes(
    run: Run, answer: Answer, busy: Path
) -> None:
    commit = newest(answer, busy, 1)
    command = ("commit", "changes", commit, "--uri", busy, "--json")
    whole = text_of(run, *command)
    document = json.loads(whole)
    assert whole == as_printed(document)
    assert [change["id"] for change in document["changes"][:3]] == ["ada", "bob", "eve"]
    assert document["changes"][0]["after"]["properties"]["photo"] == "base64:AAECAwQFBgc="
    assert document["cause"]["graph_commit_id"] == commit
    for limit in (1, 2, 3):
        assert text_of(run, *command, "--limit", limit) == whole


@pytest.mark.on_disk
def test_a_page_asked_for_by_its_token_is_printed_as_it_is(
    run: Run, answer: Answer, busy: Path
) -> None:
    commit = newest(answer, busy, 1)
    with omnigraph.open(busy) as graph:
        token = graph.commit_changes(commit, limit=2).next_page_token
    page = answer("commit", "changes", commit, "--uri", busy, "--limit", 1, "--page-token", token)
    assert [change["id"] for change in page["changes"]] == ["eve"]
    assert set(page) == {"cause", "changes", "next_page_token"}
    shown = text_of(run, "commit", "changes", commit, "--uri", busy, "--page-token", token)
    assert "+ node Person eve" in shown
    assert "ada" not in shown.partition("edge")[0]


def test_a_commit_without_changes_has_an_empty_list(run: Run, answer: Answer, busy: Path) -> None:
    commit = newest(answer, busy)
    text = text_of(run, "commit", "changes", commit, "--uri", busy, "--json", "--kind", "edge")
    assert text == as_printed(json.loads(text))
    assert json.loads(text)["changes"] == []


def test_people_read_signs_and_values(run: Run, answer: Answer, busy: Path) -> None:
    commit = newest(answer, busy)
    shown = text_of(run, "commit", "changes", commit, "--uri", busy).splitlines()
    assert shown[0].startswith(f"commit {commit}  ")
    assert shown[1:] == ["+ node Person dan", "    age: 1", '    name: "dan"']


def test_the_first_commit_and_wrong_filters_fail(run: Run, answer: Answer, busy: Path) -> None:
    first = newest(answer, busy, 2)
    refused = run("commit", "changes", first, "--uri", busy, "--json")
    assert (refused.exit_code, refused.stderr) == (1, "")
    document = json.loads(refused.stdout)
    assert (document["code"], document["reason"]) == ("conflict", "commit_has_no_parent")
    refusal = {"reason": "parentless_commit", "graph_commit_id": first}
    assert document["change_diff_refusal"] == refusal
    commit = newest(answer, busy)
    for flags in (("--type", "x"), ("--limit", "8193")):
        assert run("commit", "changes", commit, "--uri", busy, *flags).exit_code == 1
    for flags in (("--kind", "x"), ("--op", "x"), ("--limit", "0")):
        assert run("commit", "changes", commit, "--uri", busy, *flags).exit_code == 2


def test_a_poll_from_now_has_no_blocks_and_a_cursor(run: Run, answer: Answer, busy: Path) -> None:
    now = answer("changes", "poll", "--uri", busy)
    assert (now["blocks"], now["caught_up"]) == ([], True)
    shown = text_of(run, "changes", "poll", "--uri", busy)
    assert shown == f"cursor: {now['cursor']}\ncaught up: yes\n"


def test_a_document_is_printed_whole_or_not_at_all(run: Run, answer: Answer, busy: Path) -> None:
    cursor = answer("changes", "poll", "--uri", busy, "--type", "Person")["cursor"]
    poll = ("changes", "poll", "--uri", busy, "--json")
    rejected = run(*poll, "--cursor", cursor, "--kind", "edge")
    assert (rejected.exit_code, rejected.stderr) == (1, "")
    assert json.loads(rejected.stdout)["reason"] == "change_cursor_rejected"
    # A commit that cannot be compared lies after two that can, on a page of its own.
    without_edges = busy.parent / "without_edges.pg"
    without_edges.write_text(SCHEMA.partition("edge ")[0])
    answer("schema", "apply", busy, "--schema", without_edges)
    boundary = run(*poll, "--start", "beginning", "--limit", 1)
    assert boundary.exit_code == 1
    assert json.loads(boundary.stdout)["change_diff_refusal"]["reason"] == "schema_boundary"
    words = run("changes", "poll", "--uri", busy, "--start", "beginning", "--limit", 1)
    assert "+ node Person dan" in words.stdout
    assert "changed the schema" in words.stderr


def test_a_poll_is_one_document_with_whole_blocks(run: Run, answer: Answer, busy: Path) -> None:
    command = ("changes", "poll", "--uri", busy, "--start", "beginning", "--json")
    whole = text_of(run, *command)
    document = json.loads(whole)
    assert whole == as_printed(document)
    assert [len(block["changes"]) for block in document["blocks"]] == [4, 1]
    for limit in (1, 2, 3, 4):
        assert text_of(run, *command, "--limit", limit) == whole
    commit = newest(answer, busy, 1)
    rest = answer("changes", "poll", "--uri", busy, "--start", f"after:{commit}")
    assert rest["blocks"] == document["blocks"][1:]
    shown = text_of(run, *command[:-1], "--limit", 1)
    assert shown.count("commit 01") == 2
    assert shown.splitlines()[-2:] == [f"cursor: {document['cursor']}", "caught up: yes"]


def test_a_cursor_keeps_its_filters(run: Run, answer: Answer, busy: Path) -> None:
    cursor = answer("changes", "poll", "--uri", busy)["cursor"]
    refused = run("changes", "poll", "--uri", busy, "--cursor", cursor, "--kind", "node")
    assert refused.exit_code == 1
    assert "change cursor rejected: " in refused.stderr
    both = run("changes", "poll", "--uri", busy, "--cursor", cursor, "--start", "now")
    assert both.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("poll", "--start", "tomorrow"), "'tomorrow' is neither now, beginning nor"),
        (("poll", "--start", "after:"), "'after:' is neither now, beginning nor"),
        (("follow", "--every", "nan"), "'--every'"),
        (("follow", "--every", "inf"), "inf is not a time to wait"),
        (("follow", "--every", "soon"), "'--every'"),
    ],
)
def test_a_place_or_a_time_without_a_meaning_is_refused_before_the_graph_is_looked_for(
    run: Run, arguments: tuple[str, ...], told: str
) -> None:
    refused = run("changes", *arguments, "--uri", "nowhere.omni")
    assert refused.exit_code == 2
    assert told in refused.stderr


def test_a_baseline_replaces_a_file_and_prints_where_to_go_on(
    run: Run, answer: Answer, busy: Path, tmp_path: Path
) -> None:
    out = tmp_path / "base.jsonl"
    out.write_text("old")
    handshake = answer("changes", "baseline", "--uri", busy, "--out", out)
    assert handshake == {
        "snapshot_commit_id": newest(answer, busy),
        "resume_cursor": answer("changes", "poll", "--uri", busy)["cursor"],
    }
    records = [json.loads(line) for line in out.read_text().splitlines()]
    exported = [json.loads(line) for line in text_of(run, "export", busy).splitlines()]
    # A baseline has every property, an export those that have a value.
    assert [{**record, "data": known(record["data"])} for record in records] == exported
    assert {"name": "dan", "age": 1, "photo": None} in [record["data"] for record in records]
    some = tmp_path / "some.jsonl"
    text_of(run, "changes", "baseline", "--uri", busy, "--out", some, "--kind", "edge")
    assert [json.loads(line)["edge"] for line in some.read_text().splitlines()] == ["Knows"]
    assert sorted(path.name for path in tmp_path.glob("*.jsonl*")) == [
        "base.jsonl",
        "base.jsonl.lock",
        "people.jsonl",
        "some.jsonl",
        "some.jsonl.lock",
    ]


def test_a_baseline_that_fails_leaves_the_file_and_prints_no_cursor(
    run: Run, busy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "base.jsonl"
    out.write_text("old")
    failing = json_export.encode_lines

    def lines(rows: Any, shape: Any, **options: bool) -> bytes:
        if shape.type_key.name == "Person":
            raise omnigraph.errors.StorageError("scan", "t", "the disk is gone")
        return failing(rows, shape, **options)

    monkeypatch.setattr(json_export, "encode_lines", lines)
    failed = run("changes", "baseline", "--uri", busy, "--out", out, "--json")
    assert (failed.exit_code, out.read_text()) == (1, "old")
    assert (json.loads(failed.stdout)["code"], "cursor" in failed.stdout) == ("internal", False)
    assert [path.name for path in tmp_path.glob(".base*")] == []
    nowhere = tmp_path / "missing" / "base.jsonl"
    failed = run("changes", "baseline", "--uri", busy, "--out", nowhere)
    assert (failed.exit_code, failed.stdout) == (1, "")


def test_baselines_of_one_file_take_turns(tmp_path: Path) -> None:
    out = tmp_path / "base"
    told: list[str] = []

    def write(text: str) -> None:
        with lock_file(out):
            install_file(out, (letter.encode() for letter in text * 1000))
            # Still our turn: nobody else may have replaced it before it is told.
            told.append(out.read_text())

    writers = [threading.Thread(target=write, args=(letter,)) for letter in "abcdefgh"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(told) == [letter * 1000 for letter in "abcdefgh"]
    assert out.read_text() == told[-1]


@pytest.mark.on_disk
def test_a_baseline_is_taken_when_its_turn_has_come(run: Run, busy: Path, tmp_path: Path) -> None:
    out = tmp_path / "base.jsonl"
    with ThreadPoolExecutor() as pool, omnigraph.open(busy) as graph:
        with lock_file(out):
            waiting = pool.submit(run, "changes", "baseline", "--uri", busy, "--out", out, "--json")
            assert wait([waiting], timeout=0.3).done == set()
            added = graph.branch().mutate(ADD, params={"name": "late", "age": 2})
        result = waiting.result()
    assert result.exit_code == 0, result.output
    assert added.commit is not None
    assert json.loads(result.stdout)["snapshot_commit_id"] == added.commit.id
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert "late" in [each["data"].get("name") for each in records]


@pytest.mark.slow
@pytest.mark.on_disk
def test_a_follower_prints_a_line_for_each_commit_until_it_is_interrupted(
    run: Run, answer: Answer, busy: Path
) -> None:
    program = Path(sys.executable).with_name("omnigraph")
    command = [str(program), "changes", "follow", "--uri", str(busy)]
    follower = subprocess.Popen(
        [*command, "--start", "beginning", "--every", "0.05"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout is not None
    lines = [json.loads(follower.stdout.readline()) for _ in range(2)]
    text_of(run, "mutate", "--store", busy, "-e", ADD, "--params", '{"name": "late"}')
    lines.append(json.loads(follower.stdout.readline()))
    follower.send_signal(signal.SIGINT)
    rest, problems = follower.communicate(timeout=60)
    assert (follower.returncode, rest, problems) == (0, "", "")
    assert [len(line["changes"]) for line in lines] == [4, 1, 1]
    assert lines[-1]["changes"][0]["id"] == "late"
    assert lines[-1]["cursor"] == answer("changes", "poll", "--uri", busy)["cursor"]
    rest = answer("changes", "poll", "--uri", busy, "--cursor", lines[0]["cursor"])["blocks"]
    assert [
        {**block, "cursor": line["cursor"]} for block, line in zip(rest, lines[1:], strict=True)
    ] == lines[1:]

"""A graph on S3, in every run of the tests: conditional puts, history, races and commands.

`pytest --on s3` puts the other tests' graphs there too.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

import omnigraph
import places
from faults import race_workers
from faults.race_workers import DONE
from faults.test_races import race
from faults.world import MUTATIONS, SCHEMA, names, person
from omnigraph.cli.app import app
from omnigraph.storage.objects import layout
from stores import S3Server, Seen

ONLY_IF_ABSENT = "*"
DONE_STATUS, REFUSED_STATUS = 200, 412


@pytest.fixture
def uri(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh address; the environment leads this process and its children there."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return places.uri_of("s3")


def test_history_branches_and_time_travel(uri: str) -> None:
    with omnigraph.create(uri, schema=SCHEMA, actor="ada") as graph:
        main = graph.branch()
        first = main.load([person("ada", age=36), person("bob")], mode="append").commit
        review = graph.create_branch("review/x", source=first)
        review.mutate(MUTATIONS, name="add_member", params={"name": "cem", "team": "red"})
        main.mutate(MUTATIONS, name="leave", params={"name": "bob"})
        main.apply_schema(SCHEMA.replace("size: I64?", "size: I64?\n  motto: String?"))
    with omnigraph.open(uri) as again:
        assert again.branches() == ["main", "review/x"]
        assert names(again.branch()) == {"ada"}
        assert names(again.branch("review/x")) == {"ada", "bob", "cem"}
        then = again.snapshot(first.id)
        assert (then.count("Person"), "motto" in then.schema) == (2, False)
        versions = [commit.version for commit in again.branch().commits()]
        assert versions == [3, 2, 1, 0]
        assert again.snapshot(1).commit.id == first.id
        again.delete_branch("review/x")
        assert again.branches() == ["main"]
        assert again.check().problems == ()
        with pytest.raises(omnigraph.errors.GraphExistsError):
            omnigraph.create(uri, schema=SCHEMA)


def test_whatever_is_true_is_put_only_if_absent(uri: str, s3: S3Server) -> None:
    with omnigraph.create(uri, schema=SCHEMA) as graph:
        graph.branch().load([person("ada")], mode="append")
        graph.create_branch("review").load([person("bob")], mode="append")
        graph.delete_branch("review")
    puts = _puts(s3, uri)
    always = [path for path, seen in puts.items() if any(not each.condition for each in seen)]
    # Files of a table have names that nobody else draws; the rest can be made again from records.
    assert [path for path in always if not _is_unshared(path)] == []
    records = [path for path in puts if layout.parse_record_path(path) is not None]
    assert len(records) == 2 + 2
    assert all(each.condition == ONLY_IF_ABSENT for path in records for each in puts[path])


@pytest.mark.slow
def test_of_two_processes_one_creates_each_record(uri: str, s3: S3Server) -> None:
    with omnigraph.create(uri, schema=SCHEMA):
        pass
    runs = race(race_workers.append_one, uri, processes=2, rounds=8)
    for outcomes in zip(*runs, strict=True):
        assert Counter(outcomes) == {DONE: 1, "KeyConflictError": 1}
    puts = _puts(s3, uri)
    records = [path for path in puts if layout.parse_record_path(path) is not None]
    assert len(records) == 1 + 8
    for path in records:
        statuses = Counter(each.status for each in puts[path])
        assert statuses[DONE_STATUS] == 1
        assert set(statuses) <= {DONE_STATUS, REFUSED_STATUS}
    with omnigraph.open(uri) as graph:
        assert names(graph.branch()) == {f"same-{number}" for number in range(8)}
        assert graph.check().problems == ()


def _puts(s3: S3Server, uri: str) -> dict[str, list[Seen]]:
    """The puts below an address, by path."""
    found: dict[str, list[Seen]] = defaultdict(list)
    root = "/" + uri.removeprefix("s3://") + "/"
    for each in s3.seen:
        if each.method == "PUT" and each.path.startswith(root):
            found[each.path.removeprefix(root)].append(each)
    return found


def _is_unshared(path: str) -> bool:
    is_hint = path.endswith("/latest.json") or path == layout.CLOCK
    return is_hint or path.startswith("t/") or layout.parse_checkpoint_path(path) is not None


def test_the_commands_work_on_an_address_of_s3(uri: str, tmp_path: Path) -> None:
    (tmp_path / "schema.pg").write_text(SCHEMA)
    (tmp_path / "changes.gq").write_text(MUTATIONS)
    photo = person("ada", age=36, photo="base64:AAEC")
    (tmp_path / "people.jsonl").write_text(json.dumps(photo) + "\n")
    _run("init", uri, "--schema", str(tmp_path / "schema.pg"))
    _run("load", uri, "--data", str(tmp_path / "people.jsonl"), "--mode", "append")
    _run("branch", "create", "review", "--uri", uri)
    params = json.dumps({"name": "bob", "age": 7})
    mutation = ("--query", str(tmp_path / "changes.gq"), "add_person", "--params", params)
    _run("mutate", *mutation, "--store", uri, "--branch", "review")
    lines = _run("export", "--store", uri, "--branch", "review").splitlines()
    assert [json.loads(line)["data"]["name"] for line in lines] == ["ada", "bob"]
    assert len(_run("export", "--store", uri).splitlines()) == 1
    assert _run("blob", "get", "node", "Person", "ada", "photo", "--store", uri) == b"\x00\x01\x02"
    assert b"ok (2 branches, 3 commits" in _run("check", "--store", uri)


def _run(*arguments: str) -> bytes:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes

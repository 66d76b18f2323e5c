"""Every verb on a graph of storage and on a server: the same exit code, and the same document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine import Diff
from omnigraph.errors import (
    InvalidArgumentError,
    QueryCancelledError,
    QueryTimeoutError,
    TypeNotFoundError,
)
from omnigraph.execution.query_budget import Cancellation
from unit.client.parity_arms import EXACT, Arms, drop_ids, open_arms, read, scrub

NAMES = "query names() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
ONE = "query one($name: String) { match { $p: Person { name: $name } } return { $p } }"
HIRE = 'query hire() { insert Person { name: "eve", age: 7 } }'
HIRE_ALL = """query hire_all($rows: [{ name: String, age: I64? }]) {
  for $row in $rows { upsert Person { name: $row.name, age: $row.age } }
}"""
NOTHING = 'query none() { update Person set { age: 1 } where name = "zoe" }'
BLOB = ("node", "Person", "ada", "avatar")

# Reads of a state that both copies have: equal to the last byte but for addresses.
READS: dict[str, tuple[str, ...]] = {
    "query": ("query", "-e", NAMES, "--json"),
    "query with a parameter": ("query", "-e", ONE, "--params", '{"name": "ada"}', "--json"),
    "query of a branch": ("query", "-e", NAMES, "--branch", "review", "--json"),
    "query as a table": ("query", "-e", NAMES),
    "query as csv": ("query", "-e", NAMES, "--format", "csv"),
    "query as jsonl": ("query", "-e", NAMES, "--format", "jsonl"),
    "query as kv": ("query", "-e", NAMES, "--format", "kv"),
    "query of no row": ("query", "-e", ONE, "--params", '{"name": "zoe"}', "--json"),
    "snapshot": ("snapshot", "--json"),
    "snapshot of a branch": ("snapshot", "--branch", "review", "--json"),
    "schema show": ("schema", "show", "--json"),
    "schema show as text": ("schema", "show"),
    "branch list": ("branch", "list", "--json"),
    "commit list": ("commit", "list", "--json"),
    "commit list of a branch": ("commit", "list", "--branch", "review", "--json"),
    "commit show": ("commit", "show", "main", "--json"),
    "commit show as text": ("commit", "show", "review"),
    "commit changes": ("commit", "changes", "main", "--json"),
    "commit changes in pages": ("commit", "changes", "main", "--limit", "1", "--json"),
    "commit changes filtered": ("commit", "changes", "review", "--kind", "node", "--json"),
    "diff": ("diff", "0", "main", "--json"),
    "diff as text": ("diff", "main", "review"),
    "diff of a branch": ("diff", "review", "--json"),
    "diff without a difference": ("diff", "main", "main"),
    "diff in counts": ("diff", "0", "review", "--stat", "--json"),
    "diff filtered": ("diff", "0", "main", "--kind", "edge", "--op", "insert", "--json"),
    "diff as a page": ("diff", "0", "review", "--type", "Person", "--html"),
    "history": ("history", "Person", "bob", "--branch", "review", "--json"),
    "history as text": ("history", "Person", "bob", "--branch", "review", "--limit", "1"),
    "blame": ("blame", "Person", "bob", "--branch", "review", "--json"),
    "blame as text": ("blame", "Person", "ada", "--kind", "node"),
    "changes poll": ("changes", "poll", "--start", "beginning", "--json"),
    "changes poll in pages": ("changes", "poll", "--start", "beginning", "--limit", "1", "--json"),
    "changes poll from now": ("changes", "poll", "--json"),
    "changes poll of a branch": ("changes", "poll", "--branch", "review", "--json"),
    "export": ("export",),
    "export of a type": ("export", "--type", "Knows"),
    "blob get": ("blob", "get", *BLOB),
    "blob get of a range": ("blob", "get", *BLOB, "--offset", "1", "--length", "4"),
    "blob stat": ("blob", "stat", *BLOB, "--json"),
}
# Failures: the same exit code and the same first line, or the same document.
FAILURES = {
    "query that is wrong": ("query", "-e", "query q() { nonsense }", "--json"),
    "query that is wrong, in words": ("query", "-e", "query q() { nonsense }"),
    "query that writes": ("query", "-e", HIRE),
    "query without its parameter": ("query", "-e", ONE, "--params", '{"other": 1}'),
    "branch that is not there": ("snapshot", "--branch", "gone", "--json"),
    "commit that is not there": ("commit", "show", "bogus", "--json"),
    "merge of an unknown branch": ("branch", "merge", "gone", "--json"),
    "delete of main": ("branch", "delete", "main", "--json"),
    "create of an existing branch": ("branch", "create", "review", "--json"),
    "export of an unknown type": ("export", "--type", "Nothing"),
    "blob of nobody": ("blob", "stat", "node", "Person", "zoe", "avatar", "--json"),
    "blob that is null": ("blob", "get", "node", "Person", "bob", "avatar"),
    "blob of another property": ("blob", "get", "node", "Person", "ada", "age"),
    "blob beyond its end": ("blob", "get", *BLOB, "--offset", "99"),
    "changes of the first commit": ("commit", "changes", "0", "--json"),
    "diff of an unknown commit": ("diff", "main", "gone", "--json"),
    "diff into an unknown branch": ("diff", "gone", "main", "--review"),
    "diff of an unknown type": ("diff", "0", "main", "--type", "Nothing", "--json"),
    "history of nobody": ("history", "Person", "zoe", "--json"),
    "history of an unknown type": ("history", "Nothing", "zoe"),
    "blame of nobody": ("blame", "Person", "zoe", "--json"),
    "blame of another kind": ("blame", "Person", "ada", "--kind", "edge"),
    "cursor of nothing": ("changes", "poll", "--cursor", "nonsense", "--json"),
}
# Sequences of writes: each step is compared, without ids, times and addresses.
WRITES: dict[str, list[tuple[str, ...]]] = {
    "mutate": [
        ("mutate", "-e", HIRE, "--message", "hi", "--json"),
        ("commit", "list", "--json"),
    ],
    "mutate twice with a key": [("mutate", "-e", HIRE, "--key", "k1", "--json")] * 2,
    "mutate nothing": [("mutate", "-e", NOTHING, "--json")],
    "mutate dry": [("mutate", "-e", HIRE, "--dry-run", "--json"), ("branch", "list", "--json")],
    "mutate an existing key": [("mutate", "-e", HIRE, "--json")] * 2,
    "mutate a stale head": [("mutate", "-e", HIRE, "--if-commit", "01J", "--json")],
    "load": [("load", "--data", "{more}", "--mode", "append", "--json"), ("export",)],
    "load into a new branch": [
        (
            "load",
            "--data",
            "{more}",
            "--mode",
            "merge",
            "--branch",
            "n",
            "--from",
            "main",
            "--json",
        ),
        ("query", "-e", NAMES, "--branch", "n", "--format", "csv"),
    ],
    "load of existing ids": [("load", "--data", "{more}", "--mode", "append", "--json")] * 2,
    "load overwrite": [("load", "--data", "{more}", "--mode", "overwrite", "--json")],
    "load of a wrong line": [("load", "--data", "{wrong}", "--mode", "append", "--json")],
    "load of a missing branch": [
        ("load", "--data", "{more}", "--mode", "append", "--branch", "gone", "--json")
    ],
    "records": [
        ("mutate", "-e", HIRE_ALL, "--rows", "{rows}", "--json"),
        ("query", "-e", NAMES, "--format", "csv"),
        ("mutate", "-e", HIRE_ALL, "--rows", "{rows}", "--params", '{"rows": []}', "--json"),
        ("mutate", "-e", HIRE_ALL, "--rows", "rows", "--json"),
        ("mutate", "-e", HIRE_ALL, "--params", '{"rows": [{"name": "gil", "b": 1}]}', "--json"),
        ("mutate", "-e", HIRE_ALL, "--params", '{"rows": "x.csv"}', "--json"),
        ("mutate", "-e", HIRE_ALL, "--json"),
    ],
    "branch create and delete": [
        ("branch", "create", "x/y", "--json"),
        ("branch", "list", "--json"),
        ("branch", "delete", "x/y", "--json"),
        ("branch", "list", "--json"),
    ],
    "branch merge": [("branch", "merge", "review", "--json")] * 2,
    "branch merge and delete": [
        ("mutate", "-e", HIRE, "--json"),
        ("branch", "merge", "review", "--delete-branch", "--message", "m", "--json"),
        ("branch", "list", "--json"),
        ("commit", "list", "--json"),
    ],
    "branch merge with a conflict": [
        ("mutate", "-e", 'query a() { update Person set { age: 1 } where name = "bob" }', "--json"),
        ("branch", "merge", "review", "--json"),
        ("branch", "merge", "review", "--prefer", "ours", "--json"),
    ],
    "plans": [
        ("branch", "merge", "review", "--dry-run", "--json"),
        ("branch", "merge", "review", "--dry-run"),
        ("mutate", "-e", 'query a() { update Person set { age: 1 } where name = "bob" }', "--json"),
        ("branch", "merge", "review", "--dry-run", "--json"),
        ("branch", "merge", "review", "--dry-run", "--prefer", "theirs", "--json"),
        ("branch", "merge", "gone", "--dry-run", "--json"),
        ("revert", "2", "--dry-run", "--json"),
        ("revert", "main", "--dry-run", "--by", "entity", "--json"),
        ("cherry-pick", "review", "--dry-run", "--json"),
        ("cherry-pick", "review", "--branch", "gone", "--dry-run", "--json"),
        ("commit", "list", "--json"),
    ],
    "revert and cherry-pick": [
        ("mutate", "-e", HIRE, "--json"),
        ("revert", "main", "--message", "back", "--json"),
        ("revert", "1", "--json"),
        ("cherry-pick", "review", "--key", "k", "--json"),
        ("cherry-pick", "review", "--json"),
        ("query", "-e", NAMES, "--format", "csv"),
        ("commit", "list", "--json"),
    ],
    "revert what changed since": [
        ("mutate", "-e", HIRE, "--json"),
        ("mutate", "-e", 'query a() { update Person set { age: 1 } where name = "eve" }', "--json"),
        ("revert", "2", "--json"),
        ("revert", "2", "--prefer", "theirs", "--if-commit", "01J", "--json"),
        ("revert", "gone", "--json"),
    ],
    "tags": [
        ("tag", "create", "v1", "--json"),
        ("tag", "create", "v1", "--json"),
        ("tag", "create", "v2", "--at", "review", "--json"),
        ("tag", "create", "v3", "--at", "gone", "--json"),
        ("tag", "list", "--json"),
        ("commit", "show", "v2", "--json"),
        ("tag", "delete", "v1", "--json"),
        ("tag", "delete", "v1", "--json"),
        ("tag", "list", "--json"),
    ],
    "proposals": [
        ("proposal", "open", "review", "--title", "Older", "--body", "b", "--key", "k", "--json"),
        ("proposal", "open", "review", "--title", "Older", "--json"),
        ("proposal", "list", "--json"),
        ("proposal", "comment", "1", "--about", "Person", "bob", "-m", "why?", "--json"),
        ("proposal", "comment", "1", "--resolve", "2"),
        ("proposal", "comment", "1", "--reply-to", "9", "-m", "x", "--json"),
        ("proposal", "request-changes", "1", "-m", "no", "--json"),
        ("proposal", "check", "1", "quality", "pass", "--link", "https://ci/1", "--json"),
        ("proposal", "approve", "1", "--head", "01J", "--json"),
        ("proposal", "approve", "1"),
        ("proposal", "show", "1"),
        ("proposal", "diff", "1", "--json"),
        ("proposal", "merge", "1", "--dry-run", "--json"),
        ("proposal", "sync", "1", "--json"),
        ("proposal", "edit", "1", "--title", "New", "--json"),
        ("proposal", "merge", "1", "--json"),
        ("proposal", "merge", "1", "--delete-branch", "--json"),
        ("proposal", "close", "1", "--json"),
        ("proposal", "diff", "1", "--stat"),
        ("proposal", "list", "--all"),
        ("proposal", "show", "2", "--json"),
    ],
    "proposals by loads": [
        ("load", "--data", "{more}", "--mode", "append", "--propose", "t", "--key", "k", "--json"),
        ("load", "--data", "{more}", "--mode", "append", "--propose", "t", "--key", "k", "--json"),
        ("proposal", "close", "1", "-m", "no", "--json"),
        ("proposal", "show", "1", "--json"),
    ],
    "schema apply": [
        ("schema", "apply", "--schema", "{schema}", "--dry-run", "--json"),
        ("schema", "apply", "--schema", "{schema}", "--json"),
        ("schema", "show"),
        ("snapshot", "--json"),
        ("schema", "apply", "--schema", "{schema}", "--json"),
    ],
    "explain": [
        ("explain", "-e", ONE, "--no-run", "--json"),
        ("explain", "-e", ONE, "--no-run"),
        ("explain", "-e", ONE, "--no-run", "--snapshot", "1", "--json"),
        ("explain", "-e", NAMES, "--branch", "review", "--json"),
        ("explain", "-e", ONE, "--json"),
        ("explain", "-e", NAMES, "--timeout", "0", "--json"),
        ("explain", "-e", HIRE),
        ("query", "-e", f"explain {NAMES}", "--json"),
    ],
    "statements": [
        ("query", "-e", "branch list", "--json"),
        ("mutate", "-e", "branch create s from main", "--json"),
        ("branch", "list", "--json"),
    ],
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "ada-secret")
    for name in ("OMNIGRAPH_PROFILE", "OMNIGRAPH_GRAPH"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arms]:
    with open_arms(tmp_path_factory.mktemp("parity")) as arms:
        yield arms


@pytest.mark.parametrize("name", READS)
def test_a_read_answers_the_same(shared: Arms, name: str) -> None:
    embedded, remote = shared.run(*READS[name])
    assert (embedded.exit_code, remote.exit_code) == (0, 0), remote.output
    if "--json" in READS[name]:
        assert scrub(read(remote), EXACT) == scrub(read(embedded), EXACT)
    elif name.startswith("export"):
        assert sorted(remote.stdout.splitlines()) == sorted(embedded.stdout.splitlines())
    else:
        assert remote.stdout_bytes == embedded.stdout_bytes


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_the_same(shared: Arms, name: str) -> None:
    embedded, remote = shared.run(*FAILURES[name])
    assert (embedded.exit_code, remote.exit_code) == (1, 1), remote.output
    if "--json" in FAILURES[name]:
        assert read(remote) == read(embedded)
    else:
        assert remote.stdout == ""
        # A server also names the route of the other kind of query.
        assert remote.stderr.splitlines()[0].startswith(embedded.stderr.splitlines()[0])


@pytest.mark.parametrize("name", WRITES)
def test_writes_answer_and_do_the_same(tmp_path: Path, name: str) -> None:
    (tmp_path / "more.jsonl").write_text(
        '{"type": "Person", "data": {"name": "fay", "age": 3}}\n'
        '{"type": "Company", "data": {"name": "acme"}}\n'
        '{"edge": "WorksAt", "from": "fay", "to": "acme"}\n'
    )
    (tmp_path / "wrong.jsonl").write_text('{"type": "Person", "data": {"name": "gil", "b": 1}}\n')
    (tmp_path / "schema.pg").write_text(
        "node Person { name: String @key\n  age: I64?\n  avatar: Blob?\n  nick: String? }\n"
        "node Company { name: String @key }\nnode Team { name: String @key }\n"
        "edge Knows: Person -> Person\nedge WorksAt: Person -> Company\n"
    )
    (tmp_path / "people.csv").write_text("name,age\nfay,3\nada,\n")
    files = {"{more}": "more.jsonl", "{wrong}": "wrong.jsonl", "{schema}": "schema.pg"}
    with open_arms(tmp_path) as arms:
        for step in WRITES[name]:
            line = [tmp_path / files[each] if each in files else each for each in step]
            line = [
                f"rows={tmp_path / 'people.csv'}" if each == "{rows}" else each for each in line
            ]
            embedded, remote = arms.run(*line)
            assert remote.exit_code == embedded.exit_code, remote.output
            if "--json" in step:
                assert scrub(read(remote)) == scrub(read(embedded))
            else:
                assert drop_ids(remote.stdout) == drop_ids(embedded.stdout)


def test_a_baseline_is_the_same_file_with_the_same_handshake(shared: Arms) -> None:
    files = [shared.folder / "one.jsonl", shared.folder / "two.jsonl"]
    handshakes = []
    for place, file in enumerate(files):
        result = shared.run("changes", "baseline", "--out", file, "--json")[place]
        assert result.exit_code == 0, result.output
        handshakes.append(json.loads(result.stdout))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert handshakes[0] == handshakes[1]


def test_a_diff_is_the_same_in_python(shared: Arms) -> None:
    with omnigraph.open(shared.store) as local, omnigraph.connect(shared.graph_url) as served:
        ours, theirs = local.diff(0, "review"), served.diff(0, "review")
        assert isinstance(theirs, Diff)
        assert list(theirs) == list(ours)
        assert (len(theirs), bool(theirs), repr(theirs)) == (len(ours), True, repr(ours))
        assert theirs.to_json() == ours.to_json()
        assert theirs.to_arrow() == ours.to_arrow()
        assert b"".join(theirs.to_json_lines()) == b"".join(ours.to_json_lines())
        assert str(served.snapshot("main").diff("review")) == str(local.diff("main", "review"))
        with pytest.raises(QueryTimeoutError):
            served.diff(0, "review", timeout=0)
        stopped = Cancellation()
        begun = served.diff(0, "review", cancel=stopped)
        stopped.cancel()
        with pytest.raises(QueryCancelledError):
            list(begun)


def test_an_entity_is_the_same_in_python(shared: Arms) -> None:
    with omnigraph.open(shared.store) as local, omnigraph.connect(shared.graph_url) as served:
        ours, theirs = local.branch("review"), served.branch("review")
        assert list(theirs.history("Person", "bob")) == list(ours.history("Person", "bob"))
        assert theirs.blame("Person", "bob") == ours.blame("Person", "bob")
        assert theirs.entity("Person", "bob") == ours.entity("Person", "bob")
        assert theirs.entity("Person", "zoe") is None
        with pytest.raises(TypeNotFoundError):
            theirs.history("Nothing", "bob")


def test_a_plan_is_the_same_in_python(shared: Arms) -> None:
    with omnigraph.open(shared.store) as local, omnigraph.connect(shared.graph_url) as served:
        ours, theirs = local.branch(), served.branch()
        assert theirs.merge("review", dry_run=True) == ours.plan_merge("review")
        assert theirs.plan_revert(1) == ours.plan_revert(1)
        assert theirs.cherry_pick("review", dry_run=True) == ours.plan_cherry_pick("review")
        with pytest.raises(InvalidArgumentError, match="dry_run"):
            theirs.merge("review", dry_run=True, message="m")  # type: ignore[call-overload]
        with pytest.raises(InvalidArgumentError, match="neither 'property' nor 'entity'"):
            theirs.plan_merge("review", by="row")


@pytest.mark.parametrize(
    "line",
    [
        *(("optimize",), ("repair",), ("cleanup", "--keep", "1"), ("check",), ("pins",)),
        *(("index", "status"), ("lint", "--query", "q.gq")),
    ],
    ids=lambda line: line[0],
)
def test_verbs_of_storage_are_refused_for_a_server(shared: Arms, line: tuple[str, ...]) -> None:
    _, remote = shared.run(*line)
    assert remote.exit_code == 1
    assert "--server" in remote.stderr

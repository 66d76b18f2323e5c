"""A graph on a server from Python: the classes, results and errors of a graph on storage."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph import errors
from omnigraph.cli.app import app
from omnigraph.client.error_decoding import decode_failure
from omnigraph.client.remote_graph import open_remote
from omnigraph.engine import Branch, Graph, Snapshot
from omnigraph.errors.error_documents import describe_error
from served import serve_people

NAMES = """query names() {
  match { $p: Person } return { $p.name as name, $p.age as age } order { $p.name }
}"""
HIRE = "query hire($name: String) { insert Person { name: $name } }"

ADA = [{"type": "Person", "data": {"name": "ada"}}]
TOKEN = "ada-secret"  # noqa: S105 — of a server that lives for a test


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with serve_people(tmp_path) as running, omnigraph.connect(f"{running.url}/graphs/people") as it:
        yield it


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OMNIGRAPH_BEARER_TOKEN", raising=False)
    monkeypatch.setattr("omnigraph.client.http_transport.BACKOFF_S", 0.01)


def test_the_classes_are_those_of_storage(graph: Graph) -> None:
    main = graph.branch()
    assert isinstance(graph, Graph)
    assert isinstance(main, Branch)
    assert isinstance(main.snapshot(), Snapshot)
    result = main.query(NAMES)
    assert result.to_arrow().schema.field("age").type == pa.int64()
    assert [row["name"] for row in result] == ["ada", "bob", "cyd", "dan"]
    assert graph.snapshot("main").query(NAMES).to_json_rows() == result.to_json_rows()
    assert main.count("Person") == 4
    assert "node Person" in main.schema


def test_a_snapshot_stays_what_it_was(graph: Graph) -> None:
    main = graph.branch()
    before = main.snapshot()
    done = main.mutate(HIRE, params={"name": "eve"})
    assert done.commit is not None
    assert main.head == done.commit == graph.commit(done.commit.id)
    assert (len(before.query(NAMES)), len(main.query(NAMES))) == (4, 5)


@pytest.mark.parametrize(
    "source",
    [
        [{"name": "eve", "age": 1}, {"name": "fay", "age": 2}],
        pa.table({"name": ["eve", "fay"], "age": [1, 2]}),
    ],
    ids=["records", "table"],
)
def test_records_and_tables_of_one_type_are_loaded(graph: Graph, source: Any) -> None:
    loaded = graph.branch().load(source, mode="append", type="Person")
    assert dict(loaded.nodes) == {"Person": 2}
    assert len(graph.branch().query(NAMES)) == 6


def test_an_export_is_loaded_back_and_a_blob_is_read_in_ranges(graph: Graph) -> None:
    lines = b"".join(graph.branch().export())
    assert lines.count(b"\n") == 7
    blob = graph.branch().blob("node", "Person", "ada", "avatar")
    with blob.open() as file:
        file.seek(6)
        assert (file.read(), blob.size, blob.read(0, 5)) == (b"World", 11, b"Hello")
    fork = graph.create_branch("fork")
    fork.load(omnigraph.Text(lines.decode()), mode="overwrite")
    assert b"".join(fork.export()) == lines


def test_conflicts_are_decided_by_lines_or_a_function(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    for branch, age in ((main, 50), (review, 60)):
        branch.mutate(f'query q() {{ update Person set {{ age: {age} }} where name = "ada" }}')
    lines = list(main.plan_merge(review).iter_decision_lines())
    assert (lines[1]["ours"], lines[1]["theirs"]) == (50, 60)
    decided = [lines[0], {**lines[1], "take": "theirs"}]
    assert main.plan_merge(review, resolve=decided).conflict_count == 0
    main.merge(review, resolve=lambda _: {"age": {"value": 55}})
    assert main.query(NAMES).to_pylist()[0] == {"name": "ada", "age": 55}
    [decision] = main.head.decisions
    assert (decision.entity_id, decision.property, decision.take) == ("ada", "age", "value")
    blamed = main.blame("Person", "ada")["age"]
    assert blamed is not None
    assert blamed.decisions == (decision,)
    for branch, age in ((main, 51), (review, 61)):
        branch.mutate(f'query q() {{ update Person set {{ age: {age} }} where name = "ada" }}')
    with pytest.raises(errors.ResolutionStaleError) as caught:
        main.merge(review, resolve=decided)
    assert describe_error(caught.value)["code"] == "conflict"


def test_a_review_has_its_changes_when_its_base_is_merged_or_cleaned_up(tmp_path: Path) -> None:
    with serve_people(tmp_path) as running, omnigraph.connect(f"{running.url}/graphs/people") as it:
        main, review = it.branch(), it.create_branch("review")
        review.mutate(HIRE, params={"name": "eve"})
        merged = main.diff("review")
        main.merge("review")
        review.mutate(HIRE, params={"name": "fay"})
        for name in ("gil", "hal"):
            main.mutate(HIRE, params={"name": name})
        assert [each.id for each in merged] == ["eve"]
        with omnigraph.open(running.serving.state.graphs["people"].uri) as graph:
            graph.cleanup(keep=1, dry_run=False, grace=0)
        assert [each.id for each in main.diff("review")] == ["fay"]


def test_a_feed_is_followed_from_a_baseline(graph: Graph) -> None:
    main = graph.branch()
    baseline = main.baseline()
    with pytest.raises(errors.InvalidArgumentError, match="not read to its end"):
        _ = baseline.resume_cursor
    assert len(list(baseline)) == 7
    done = main.mutate(HIRE, params={"name": "eve"})
    assert done.commit is not None
    [block] = islice(main.follow(cursor=baseline.resume_cursor, poll_s=0), 1)
    assert (block.cause.commit_id, block.changes[0].id) == (done.commit.id, "eve")
    [next_one] = main.changes(cursor=baseline.resume_cursor).blocks
    assert next_one.changes == block.changes


FAILURES: list[tuple[type[errors.OmnigraphError], Callable[[Graph], object]]] = [
    (errors.CompileError, lambda graph: graph.branch().query("query q() { nonsense }")),
    (errors.BranchNotFoundError, lambda graph: graph.branch("gone").head),
    (
        errors.BranchExistsError,
        lambda graph: [graph.create_branch("b") for _ in range(2)],
    ),
    (errors.CommitNotFoundError, lambda graph: graph.commit("01ARZ3NDEKTSV4RRFFQ69G5FAV")),
    (errors.KeyConflictError, lambda graph: graph.branch().load(ADA, mode="append")),
    (errors.ParameterError, lambda graph: graph.branch().mutate(HIRE)),
    (
        errors.PreconditionFailedError,
        lambda graph: graph.branch().mutate(HIRE, params={"name": "x"}, if_commit="01J"),
    ),
    (errors.ChangeCursorRejectedError, lambda graph: graph.branch().changes(cursor="x")),
    (errors.CommitHasNoParentError, lambda graph: graph.commit_changes(0)),
    (errors.RemoteUnsupportedError, lambda graph: graph.check()),
    (errors.RemoteUnsupportedError, lambda graph: graph.branch().optimize()),
    (errors.RemoteUnsupportedError, lambda graph: graph.branch().to_arrow("Person")),
    (errors.RemoteUnsupportedError, lambda graph: graph.branch().load("a.csv", mode="append")),
]


@pytest.mark.parametrize(("kind", "work"), FAILURES)
def test_a_failure_is_an_error_of_the_same_class(
    graph: Graph, kind: type[errors.OmnigraphError], work: Callable[[Graph], object]
) -> None:
    with pytest.raises(kind) as failure:
        work(graph)
    assert type(failure.value) is kind
    assert failure.value.message


def test_fields_of_failures_survive_the_way(graph: Graph) -> None:
    with pytest.raises(errors.KeyConflictError) as conflict:
        graph.branch().load(ADA, mode="append")
    assert (conflict.value.type_name, conflict.value.entity_id) == ("Person", "ada")
    assert conflict.value.violations[0].rule == "key"
    with pytest.raises(errors.PreconditionFailedError) as moved:
        graph.branch().mutate(HIRE, params={"name": "x"}, if_commit="01J")
    assert (moved.value.expected, moved.value.actual) == ("01J", graph.branch().head.id)
    with pytest.raises(errors.CompileError) as wrong:
        graph.branch().query("query q() {\n  nonsense }")
    assert wrong.value.diagnostics[0].position.line == 2


def test_without_a_token_the_hint_says_how_to_get_one(tmp_path: Path) -> None:
    with serve_people(tmp_path, actors=("ada",)) as running:
        url = f"{running.url}/graphs/people"
        with open_remote(url) as stranger, pytest.raises(errors.RemoteRefusedError) as refused:
            stranger.branches()
        assert (refused.value.status, "omnigraph login" in str(refused.value.hint)) == (401, True)
        with open_remote(url, token=TOKEN) as known:
            assert known.branches() == ["main"]


@contextmanager
def answering(*answers: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server of raw answers, one for each connection; None breaks the connection off."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def work() -> None:
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    requests.append(connection.recv(65_536))
                    if answer is not None:
                        connection.sendall(answer)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/graphs/g", requests
        thread.join(10)


def ok(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return f"{head}\r\nconnection: close\r\n\r\n".encode() + body


BRANCHES = ok(b'{"branches": ["main"]}')


def test_a_read_is_sent_again_when_the_connection_breaks() -> None:
    with answering(None, None, BRANCHES) as (url, requests), open_remote(url) as graph:
        assert graph.branches() == ["main"]
        assert len(requests) == 3


def test_a_write_without_a_key_is_never_sent_twice() -> None:
    with answering(None) as (url, requests), open_remote(url) as graph:
        with pytest.raises(errors.InDoubtError):
            graph.branch().mutate(HIRE, params={"name": "x"})
        assert len(requests) == 1


def test_a_condition_that_a_server_does_not_know_fails_and_writes_nothing() -> None:
    body = b'{"error": "not found", "code": "not_found"}'
    head = (
        f"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    )
    missing = f"{head}\r\nconnection: close\r\n\r\n".encode() + body
    with answering(missing) as (url, requests), open_remote(url) as graph:
        with pytest.raises(errors.OmnigraphError, match="not found"):
            graph.branch().mutate(HIRE, params={"name": "x"}, if_commit="01J")
        # The only request goes to the route that a server without conditions does not have.
        assert [each.split(b" HTTP")[0] for each in requests] == [
            b"POST /graphs/g/mutate/if-graph-commit"
        ]


def test_a_write_with_a_key_is_sent_again() -> None:
    done = ok(
        b'{"branch": "main", "query_name": "hire", "affected_nodes": 0, "affected_edges": 0,'
        b' "actor_id": "ada", "commit": null}'
    )
    with answering(None, done) as (url, requests), open_remote(url) as graph:
        assert graph.branch().mutate(HIRE, params={"name": "x"}, key="k").actor == "ada"
        assert (len(requests), graph.actor) == (2, "ada")


TIMED_OUT = b"HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 4\r\nconnection: close\r\n\r\nlate"


def test_a_write_that_a_gateway_gave_up_may_have_happened() -> None:
    with answering(TIMED_OUT) as (url, requests), open_remote(url) as graph:
        with pytest.raises(errors.InDoubtError, match="504"):
            graph.branch().mutate(HIRE, params={"name": "x"})
        assert len(requests) == 1


def test_a_write_with_a_key_that_was_never_answered_may_have_happened() -> None:
    with answering(None, TIMED_OUT, None, None) as (url, requests), open_remote(url) as graph:
        with pytest.raises(errors.InDoubtError):
            graph.branch().mutate(HIRE, params={"name": "x"}, key="k")
        assert len(requests) == 4


def busy(status: str, header: str) -> bytes:
    body = b'{"error": "more than 16 writes are under way", "retryable": true}'
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{header}\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body


BUSY = busy("429 Too Many Requests", "retry-after: 0")
DONE = ok(
    b'{"branch": "main", "query_name": "hire", "affected_nodes": 1, "affected_edges": 0,'
    b' "actor_id": "ada", "commit": null}'
)


def test_a_write_that_a_busy_server_did_not_begin_is_sent_again() -> None:
    again = busy("503 Service Unavailable", "retry-after: 0")
    with answering(BUSY, again, DONE) as (url, requests), open_remote(url) as graph:
        assert graph.branch().mutate(HIRE, params={"name": "x"}).affected_nodes == 1
        assert len(requests) == 3


def test_a_gateway_that_is_not_available_does_not_know_what_happened() -> None:
    gone = busy("503 Service Unavailable", "retry-after: 0").replace(b"true", b"null")
    with answering(gone) as (url, requests), open_remote(url) as graph:
        with pytest.raises(errors.RemoteRefusedError) as refused:
            graph.branch().mutate(HIRE, params={"name": "x"})
        assert (refused.value.retryable, len(requests)) == (False, 1)


def test_a_server_that_stays_busy_did_nothing() -> None:
    with answering(*[BUSY] * 4) as (url, requests), open_remote(url) as graph:
        with pytest.raises(errors.RemoteBusyError, match="16 writes are under way") as refused:
            graph.branch().mutate(HIRE, params={"name": "x"})
        assert len(requests) == 4
    error = refused.value
    assert (error.retryable, error.status, error.code) == (True, 429, "remote_busy")
    assert "nothing was done" in str(error.hint)


@pytest.mark.parametrize("asked_s", ["60", "100000"])
def test_a_wait_that_a_caller_has_no_time_for_is_not_begun(asked_s: str) -> None:
    late = busy("429 Too Many Requests", f"retry-after: {asked_s}")
    timeout = 30.0 if asked_s == "60" else None
    with answering(late) as (url, requests), open_remote(url) as graph:
        with pytest.raises(errors.RemoteBusyError) as refused:
            graph.branch().mutate(HIRE, params={"name": "x"}, timeout=timeout)
        assert (refused.value.retry_after_s, len(requests)) == (float(asked_s), 1)


def test_a_wait_for_a_busy_server_is_cancelled() -> None:
    cancellation = omnigraph.Cancellation()
    late = busy("429 Too Many Requests", "retry-after: 60")
    with answering(late) as (url, _), open_remote(url) as graph:
        timer = threading.Timer(0.1, cancellation.cancel)
        timer.start()
        # Nothing was done, and the caller knows.
        with pytest.raises(errors.QueryCancelledError):
            graph.branch().mutate(HIRE, params={"name": "x"}, cancel=cancellation)
        timer.join()


def test_a_write_that_reached_no_server_did_not_happen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/graphs/g"
    with open_remote(url) as graph, pytest.raises(errors.RemoteUnavailableError):
        graph.branch().mutate(HIRE, params={"name": "x"}, key="k")


def test_a_redirect_is_not_followed_with_the_token() -> None:
    moved = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/x\r\n"
    answer = moved + b"content-length: 0\r\nconnection: close\r\n\r\n"
    with answering(answer) as (url, requests), open_remote(url, token=TOKEN) as graph:
        with pytest.raises(errors.RemoteRefusedError, match="server returned 307"):
            graph.branches()
        assert b"Bearer ada-secret" in requests[0]


@pytest.mark.parametrize(
    "detail",
    [
        {"reason": ["a list"]},
        {"reason": "write_refused", "violations": [{"a_newer_field": 1}]},
        {"change_feed_gap": {}},
        {"merge_conflicts": [{"kind": "unique_violation"}]},
    ],
    ids=lambda detail: next(reversed(detail)),
)
def test_a_failure_with_unknown_details_still_has_its_message(detail: dict[str, Any]) -> None:
    content = json.dumps({"error": "it was refused", **detail}).encode()
    failure = decode_failure(409, content, url="u")
    assert isinstance(failure, errors.RemoteRefusedError)
    assert (failure.message, failure.status) == ("it was refused", 409)


def test_a_branch_with_a_slash_is_one_segment() -> None:
    answer = ok(b'{"uri": "g", "name": "etl/run-1", "actor_id": null}')
    with answering(answer) as (url, requests), open_remote(url) as graph:
        graph.delete_branch("etl/run-1")
        assert requests[0].startswith(b"DELETE /graphs/g/branches/etl%2Frun-1 HTTP/1.1")


def test_the_graphs_of_a_server_are_listed() -> None:
    listed = ok(b'{"graphs": [{"graph_id": "kb", "uri": "s3://b/kb"}]}')
    with answering(listed) as (url, requests):
        place = ("--server", url.removesuffix("/graphs/g"))
        shown = CliRunner().invoke(app, ["graphs", "list", *place])
    assert (shown.exit_code, shown.stdout) == (0, "kb\ts3://b/kb\n")
    assert requests[0].startswith(b"GET /graphs HTTP/1.1")


def test_a_server_without_a_chosen_graph_lists_its_graphs() -> None:
    listed = ok(b'{"graphs": [{"graph_id": "kb", "uri": "x"}]}')
    with answering(listed) as (url, _):
        base = url.removesuffix("/graphs/g")
        with pytest.raises(errors.AddressError, match="no graph of it is chosen") as missing:
            omnigraph.connect(server=base)
        assert "kb" in str(missing.value.hint)


def test_a_server_that_lists_no_graphs_asks_for_one() -> None:
    body = b'{"error": "no", "code": "forbidden", "reason": "policy_denied"}'
    head = "HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\nconnection: close\r\n"
    denied = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    with (
        answering(denied) as (url, _),
        pytest.raises(errors.AddressError, match="no graph of it is chosen") as missing,
    ):
        omnigraph.connect(server=url.removesuffix("/graphs/g"))
    assert missing.value.hint == "give --graph ID"


SLOW = """query slow() {
  match { $a: Person $b: Person $c: Person $d: Person $e: Person $f: Person $g: Person
    $h: Person $i: Person $j: Person $k: Person $l: Person
    $a.name != $b.name  $b.name != $c.name  $c.name != $d.name  $d.name != $e.name
    $e.name != $f.name  $f.name != $g.name  $g.name != $h.name  $h.name != $i.name
    $i.name != $j.name  $j.name != $k.name  $k.name != $l.name }
  return { count($a) as n }
}"""


def test_another_thread_cancels_a_query_of_a_server(graph: Graph) -> None:
    main = graph.branch()
    people = [{"name": f"p{number}"} for number in range(60)]
    main.load(people, type="Person", mode="append")
    for _ in range(2):
        cancellation = omnigraph.Cancellation()
        # A warm connection is cut as a new one is.
        assert len(main.query(NAMES, cancel=cancellation)) == 64
        timer = threading.Timer(0.2, cancellation.cancel)
        timer.start()
        started = time.monotonic()
        with pytest.raises(errors.QueryCancelledError):
            main.query(SLOW, cancel=cancellation)
        assert time.monotonic() - started < 5
        timer.join()
        with pytest.raises(errors.QueryCancelledError):
            main.snapshot().query(NAMES, cancel=cancellation)


def test_a_mutation_of_a_server_has_bounds(graph: Graph) -> None:
    main = graph.branch()
    people = [{"name": f"p{number}"} for number in range(60)]
    main.load(people, type="Person", mode="append")
    before = main.head.id
    text = SLOW.replace("return { count($a) as n }", "update $a set { age: 1 }")
    with pytest.raises(errors.QueryTimeoutError):
        main.mutate(text, timeout=0.1)
    with pytest.raises(errors.ResourceLimitError):
        main.mutate(text, memory=1)
    cancellation = omnigraph.Cancellation()
    cancellation.cancel()
    with pytest.raises(errors.QueryCancelledError):
        main.mutate(text, cancel=cancellation)
    assert main.head.id == before


def test_a_graph_of_a_server_is_awaited(graph: Graph) -> None:
    async def work() -> None:
        async with omnigraph.connect_async(graph.uri) as opened:
            main = await opened.branch()
            await main.load([{"name": f"p{n}"} for n in range(60)], type="Person", mode="append")
            assert len(await main.query(NAMES)) == 64
            query = asyncio.create_task(main.query(SLOW))
            await asyncio.sleep(0.2)
            query.cancel()
            started = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await query
            assert time.monotonic() - started < 5
            done = await main.mutate(HIRE, params={"name": "eve"}, key="once")
            assert (
                await main.mutate(HIRE, params={"name": "eve"}, key="once")
            ).commit == done.commit
            newest = [each.id async for each in main.commits(limit=1)]
            assert done.commit is not None
            assert newest == [done.commit.id]

    asyncio.run(work())

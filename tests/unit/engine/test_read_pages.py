"""Cursors of reads: whose they are, what they may show, and what becomes of them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, Result
from omnigraph.engine.opaque_texts import decode_opaque, encode_opaque
from omnigraph.errors import CursorStaleError, EngineUnsupportedError, PolicyDeniedError
from unit.engine.aging_graph import Aging, add

SCHEMA = "node Note { key: String @key  text: String?  at: DateTime? }"
PAGE = (
    "query page($c: String?, $n: I64 = 2) { match { $p: Note } return { $p.key }"
    " order { $p.key } limit $n after $c total }"
)
PEOPLE = (
    "query people($c: String?) { match { $p: Person } return { $p.name } order { $p.name }"
    " limit 1 after $c }"
)
RULES = """\
version: 1
groups: {readers: [rae], writers: [will]}
protected_branches: [main]
rules:
  - id: writers
    allow: {actors: {group: writers}, actions: [read, change], branch_scope: any}
  - id: readers
    allow: {actors: {group: readers}, actions: [read], branch_scope: unprotected}
"""


def write(graph: Graph, *keys: str, branch: str = "main") -> None:
    records = [{"type": "Note", "data": {"key": key}} for key in keys]
    graph.branch(branch).load(records, mode="merge")


def keys_of(result: Result) -> list[str]:
    return [row["p.key"] for row in result]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.create(str(tmp_path / "notes.omni"), schema=SCHEMA) as graph:
        write(graph, *"abcde")
        yield graph


def test_pages_are_of_the_commit_and_the_branch_of_the_first(graph: Graph) -> None:
    draft = graph.create_branch("draft")
    first = draft.query(PAGE)
    write(graph, "c0", branch="draft")
    write(graph, "c1")
    second = draft.query(PAGE, params={"c": first.cursor})
    assert (keys_of(second), second.total) == (["c", "d"], 5)
    assert second.commit_id == first.commit_id != draft.head.id
    # A snapshot goes on in the commit of the cursor too.
    assert keys_of(draft.snapshot().query(PAGE, params={"c": first.cursor})) == ["c", "d"]
    own = draft.query(PAGE)
    with pytest.raises(CursorStaleError, match=r"another branch|was collected"):
        graph.branch().query(PAGE, params={"c": own.cursor})


def test_a_cursor_does_not_depend_on_how_its_query_is_laid_out(graph: Graph) -> None:
    cursor = graph.branch().query(PAGE).cursor
    spread = "// the same\n" + PAGE.replace(" return", "\n  return")
    assert keys_of(graph.branch().query(spread, params={"c": cursor, "n": 2})) == ["c", "d"]
    for text, params in (
        (PAGE, {"n": 3}),
        (PAGE.replace("query page", "query other"), {}),
        (PAGE.replace("order { $p.key }", "order { $p.key desc }"), {}),
    ):
        with pytest.raises(CursorStaleError, match="another query"):
            graph.branch().query(text, params={"c": cursor, **params})


@pytest.mark.parametrize(
    "forged",
    [
        lambda parts: [*parts[:-1], []],
        lambda parts: [*parts[:-1], [1]],
        lambda parts: [*parts[:-1], ["b", "b"]],
        lambda parts: [*parts[:-2], -1, ["b"]],
        lambda parts: [*parts[:-2], "1", ["b"]],
        lambda parts: [2, *parts[1:]],
        lambda parts: parts[:-1],
        lambda parts: dict.fromkeys(map(str, parts)),
        lambda parts: [*parts[:2], "01M7TW1KWWFCB8YGDQM3F4KYE2", *parts[3:]],
        lambda parts: [*parts[:2], "x", 99, *parts[4:]],
        lambda parts: [*parts[:2], "x", -1, *parts[4:]],
    ],
)
def test_an_altered_cursor_is_refused_or_only_moves_within_the_result(graph, forged) -> None:  # type: ignore[no-untyped-def]  # a function of lists
    cursor = graph.branch().query(PAGE).cursor
    assert cursor is not None
    text = encode_opaque(forged(decode_opaque(cursor)))
    with pytest.raises(CursorStaleError):
        graph.branch().query(PAGE, params={"c": text})
    with pytest.raises(CursorStaleError):
        graph.branch().query(PAGE, params={"c": cursor[:-1]})
    with pytest.raises(CursorStaleError):
        graph.branch().query(PAGE, params={"c": f"{cursor}=="})


def test_a_cursor_that_is_nested_too_deeply_is_refused(graph) -> None:  # type: ignore[no-untyped-def]  # as above
    data = b"[" * 100_000
    text = base64.urlsafe_b64encode(data + hashlib.sha256(data).digest()).decode().rstrip("=")
    with pytest.raises(CursorStaleError):
        graph.branch().query(PAGE, params={"c": text})


def test_a_cursor_gives_no_rights(tmp_path: Path) -> None:
    uri = str(tmp_path / "g.omni")
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    with omnigraph.create(uri, schema=SCHEMA) as plain:
        write(plain, *"abcd")
        plain.create_branch("draft")
        write(plain, "bb", branch="draft")
        main_cursor = plain.branch().query(PAGE).cursor
        draft_cursor = plain.branch("draft").query(PAGE).cursor
    with omnigraph.open(uri, actor="rae", policy=rules) as reader:
        draft = reader.branch("draft")
        assert keys_of(draft.query(PAGE, params={"c": draft_cursor})) == ["bb", "c"]
        with pytest.raises(PolicyDeniedError):
            reader.branch().query(PAGE, params={"c": main_cursor})
        # The draft began at that commit; but main made it, and may have had its reasons.
        with pytest.raises(PolicyDeniedError):
            draft.query(PAGE, params={"c": main_cursor})
    with omnigraph.open(uri, actor="will", policy=rules) as writer:
        write(writer, "a0")
        late = writer.branch().query(PAGE).cursor
    with omnigraph.open(uri, actor="rae", policy=rules) as reader, pytest.raises(CursorStaleError):
        reader.branch("draft").query(PAGE, params={"c": late})


def test_a_page_of_a_collected_commit_is_refused(tmp_path: Path) -> None:
    aging = Aging(tmp_path / "g.omni")
    graph = aging.create()
    add(graph.branch(), "p1", "p2", "p3")
    cursor = graph.branch().query(PEOPLE).cursor
    add(graph.branch(), "p4")
    aging.later()
    graph.cleanup(keep=1, dry_run=False)
    with pytest.raises(CursorStaleError, match="collected") as found:
        aging.open().branch().query(PEOPLE, params={"c": cursor})
    assert found.value.hint is not None


def test_all_pages_are_of_one_instant(graph: Graph) -> None:
    text = (
        "query q($c: String?) { match { $p: Note } return { $p.key, now() as now }"
        " order { $p.key } limit 2 after $c }"
    )
    first = graph.branch().query(text)
    second = graph.branch().query(text, params={"c": first.cursor})
    assert {row["now"] for row in first} == {row["now"] for row in second}


def test_explain_runs_the_page_of_a_cursor(graph: Graph) -> None:
    cursor = graph.branch().query(PAGE, params={"n": 4}).cursor
    found = graph.branch().explain(PAGE, params={"n": 4, "c": cursor})
    assert next(row for row in found.rows if "after $c" in row.detail).actual_rows == 1
    assert graph.branch().explain(PAGE, analyze=False).rows


def test_spark_refuses_pages(graph: Graph) -> None:
    with pytest.raises(EngineUnsupportedError, match="a cursor or a total"):
        graph.branch().query(PAGE, engine="spark")

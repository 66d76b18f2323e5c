"""Tables that merges and picks take over: what they hold is told, and row ids stay unique."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import Branch, Graph, LoadModeName
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning import Bulk, ChangeSet, Record
from omnigraph.writers import prepare, row_staging
from unit.engine.aging_graph import Aging, add, numbered, people
from unit.engine.exported import expected, told

START = "node P { name: String @key }\n"
WIDER = START + "node T { name: String @key\n n: I32? }\n"
MANY = 50


@pytest.fixture(autouse=True)
def _small_bulks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "BULK_ROWS_MIN", MANY)
    monkeypatch.setattr(row_staging, "WAITING_ROWS_MAX", MANY - 1)


def _load(branch: Branch, type_: str = "Person", mode: LoadModeName = "append") -> set[str]:
    names = list(numbered(1, MANY))
    branch.load(pa.table({"name": names}), type=type_, mode=mode)
    return set(names)


def _change(branch: Branch, type_key: str) -> ChangeSet:
    at = branch.snapshot().at
    record = branch.graph._session.resources.log.read(at.ref.stream, at.seq)
    assert isinstance(record, Record)
    return record.changes[type_key]


def _fed(branch: Branch, after: str) -> set[str]:
    blocks = branch.changes(start=f"after:{after}").blocks
    return {change.id for block in blocks for change in block.changes}


def _thing(name: str, number: int) -> dict[str, Any]:
    return {"type": "T", "data": {"name": name, "n": number}}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Aging(tmp_path / "graph").create()


@pytest.fixture
def narrow(tmp_path: Path) -> Graph:
    return Aging(tmp_path / "graph", schema=START).create()


# ---- bulk loads ----


def test_a_bulk_load_that_was_compacted_arrives_everywhere(graph: Graph) -> None:
    main = graph.branch()
    add(main, "a", "b", "c")
    other, review = graph.create_branch("other"), graph.create_branch("review")
    add(other, "d")
    names = _load(review)
    assert isinstance(_change(review, "node:Person"), Bulk)
    review.optimize()
    before = main.snapshot()
    result = main.merge(review)
    assert (result.outcome, *(each.inserted for each in result.done.counts.values())) == (
        "fast_forward",
        MANY,
    )
    assert _fed(main, before.at.commit) == names
    assert told(before.diff(main)) == expected(before, main.snapshot())
    other.merge(main)
    assert set(people(other)) == {*names, "a", "b", "c", "d"}
    assert graph.check().problems == ()


def test_a_bulk_load_that_was_not_rewritten_is_not_looked_at(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    _load(review)
    loaded = _change(review, "node:Person")
    # Of a table with one file, only indexes are made.
    review.optimize()
    read: list[str] = []
    monkeypatch.setattr(Table, "scan_files", lambda self, *_, **__: read.append(self.pin.path))
    main.merge(review)
    assert _change(main, "node:Person") == loaded
    assert read == []


def test_an_overwrite_that_was_indexed_arrives_everywhere(graph: Graph) -> None:
    main = graph.branch()
    add(main, "a", "b", "c")
    other, review = graph.create_branch("other"), graph.create_branch("review")
    add(other, "d")
    names = _load(review, mode="overwrite")
    review.optimize()
    before = main.snapshot()
    main.merge(review)
    assert _fed(main, before.at.commit) == {*names, "a", "b", "c"}
    assert told(before.diff(main)) == expected(before, main.snapshot())
    other.merge(main)
    assert set(people(other)) == {*names, "d"}
    assert graph.check().problems == ()


def test_a_large_type_that_is_new_is_taken_over_without_a_look_at_its_rows(
    narrow: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, review = narrow.branch(), narrow.create_branch("review")
    other = narrow.create_branch("other")
    review.apply_schema(WIDER)
    names = _load(review, "T")
    review.load([_thing("x", 1)], mode="append")
    before, read = main.snapshot(), []
    for name in ("scan", "find", "take", "scan_batches"):
        called = getattr(Table, name)

        def watched(self: Table, *args: Any, _called: Any = called, **options: Any) -> Any:
            read.append(self.pin.path)
            return _called(self, *args, **options)

        monkeypatch.setattr(Table, name, watched)
    result = main.merge(review)
    assert read == []
    assert [each.inserted for each in result.done.counts.values()] == [MANY + 1]
    assert main.snapshot().at.pins["node:T"] == review.snapshot().at.pins["node:T"]
    assert _fed(main, before.at.commit) == {*names, "x"}
    assert len(before.diff(main)) == MANY + 1
    other.load([{"type": "P", "data": {"name": "p"}}], mode="append")
    other.merge(main)
    assert (other.count("T"), narrow.check().problems) == (MANY + 1, ())


# ---- types that come back ----


def test_a_type_that_is_picked_back_begins_with_a_table_of_its_own(narrow: Graph) -> None:
    main = narrow.branch()
    main.apply_schema(WIDER)
    creation = main.head
    main.load([_thing("x", 1), _thing("y", 2)], mode="append")
    before, other = main.snapshot(), narrow.create_branch("other")
    main.apply_schema(START)
    main.cherry_pick(creation)
    main.load([_thing("x", 77), _thing("w", 3)], mode="append")
    assert told(before.diff(main)) == expected(before, main.snapshot())
    assert {op for op, *_ in told(before.diff(main)).values()} == {"insert", "update", "delete"}
    (counts,) = other.merge(main).done.counts.values()
    assert (counts.inserted, counts.updated, counts.deleted) == (1, 1, 1)
    assert expected(main.snapshot(), other.snapshot()) == {}
    assert narrow.check().problems == ()


def test_a_drop_that_is_undone_gives_the_table_back_as_it_was(narrow: Graph) -> None:
    main = narrow.branch()
    main.apply_schema(WIDER)
    main.load([_thing("x", 1), _thing("y", 2)], mode="append")
    before, other = main.snapshot(), narrow.create_branch("other")
    main.mutate('query change() { delete T where name = "y" }')
    last = main.snapshot()
    main.apply_schema(START)
    main.revert(main.head)
    assert main.snapshot().at.pins["node:T"] == last.at.pins["node:T"]
    main.load([_thing("x", 77), _thing("w", 3)], mode="merge")
    assert {op for op, *_ in told(before.diff(main)).values()} == {"insert", "update", "delete"}
    assert told(before.diff(main)) == expected(before, main.snapshot())
    other.merge(main)
    assert expected(main.snapshot(), other.snapshot()) == {}
    assert narrow.check().problems == ()


def test_what_was_deleted_while_a_type_was_away_is_told(narrow: Graph) -> None:
    main = narrow.branch()
    main.apply_schema(WIDER)
    main.load([_thing("x", 1), _thing("y", 2)], mode="append")
    before = main.snapshot()
    main.apply_schema(START)
    drop, review = main.head, narrow.create_branch("review")
    review.revert(drop)
    review.mutate('query change() { delete T where name = "y" }')
    main.load([{"type": "P", "data": {"name": "p"}}], mode="append")
    main.merge(review)
    assert told(before.diff(main)) == expected(before, main.snapshot())
    assert narrow.check().problems == ()

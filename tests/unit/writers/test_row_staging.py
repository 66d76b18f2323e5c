"""Rows that are written ahead stay for the next preparation, and go when the write fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import KeyConflictError, StorageError, WriteRefusedError
from omnigraph.storage.objects.object_store import open_objects
from omnigraph.storage.tables.pins import Staged
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning import Append, Bulk, Changed, Overwrite, Signature, Transaction
from omnigraph.versioning.effects import Replace
from omnigraph.versioning.sweeps import Sweeps
from omnigraph.writers import prepare as prepare_module
from omnigraph.writers import row_staging as staging_module
from omnigraph.writers.graph_change import NO_IDS, GraphChange, RowOrigins, TypeChange, WriteMode
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.prepare import Request, prepare_transaction
from omnigraph.writers.row_staging import RowStaging
from unit.writers.plain_graph import PlainGraph, created, rows_of, type_key

SCHEMA = """
node P { name: String @key  age: I32?  @range(age, 0..9) }
node Q { name: String @key }
edge K: P -> P
edge C: P -> P @card(0..3)
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlainGraph:
    monkeypatch.setattr(staging_module, "AHEAD_ROWS_MIN", 5)
    monkeypatch.setattr(staging_module, "WAITING_ROWS_MAX", 2)
    return created(tmp_path / "g", SCHEMA)


def change(
    graph: PlainGraph, type_: str, rows: list[dict[str, Any]], mode: WriteMode = WriteMode.INSERT
) -> TypeChange:
    shape = graph.view().get_shape(type_key(type_))
    table = rows_of(shape, rows)
    origins = RowOrigins("in.jsonl", pa.array(range(1, len(rows) + 1)))
    return TypeChange(shape, mode, table, NO_IDS, origins=origins)


def people(graph: PlainGraph, *names: str, mode: WriteMode = WriteMode.INSERT) -> GraphChange:
    found = change(graph, "node:P", [{"name": each} for each in names], mode)
    return {type_key("node:P"): found}


def prepared(graph: PlainGraph, changes: GraphChange, staging: RowStaging) -> Transaction:
    keys, request = KeyCache(graph.log), Request(Signature())
    return prepare_transaction(changes, graph.view(), keys, staging=staging, request=request)


def data_files(graph: PlainGraph) -> set[str]:
    return {str(each) for each in Path(graph.uri).rglob("data/*.lance")}


def staged(transaction: Transaction) -> Staged:
    (effect,) = transaction.effects
    assert isinstance(effect, Append | Overwrite | Replace)
    (part,) = effect.new
    assert isinstance(part, Staged)
    return part


@pytest.mark.parametrize("count", [4, 6])
def test_a_second_preparation_writes_nothing_again(graph: PlainGraph, count: int) -> None:
    changes, staging = people(graph, *"abcdef"[:count]), RowStaging(graph.tables)
    first = staged(prepared(graph, changes, staging))
    assert staged(prepared(graph, changes, staging)) is first


@pytest.mark.parametrize("count", [4, 6])
def test_a_refused_second_preparation_removes_what_the_first_one_wrote(
    graph: PlainGraph, count: int
) -> None:
    changes, staging = people(graph, *"abcdef"[:count]), RowStaging(graph.tables)
    before = data_files(graph)
    prepared(graph, changes, staging)
    assert len(data_files(graph)) == len(before) + 1
    graph.insert("node:P", {"name": "a"})
    with pytest.raises(KeyConflictError):
        prepared(graph, changes, staging)
    # The other commit has one.
    assert len(data_files(graph)) == len(before) + 1


def test_rows_of_a_lost_attempt_are_removed_when_the_next_one_has_others(
    graph: PlainGraph,
) -> None:
    staging = RowStaging(graph.tables)
    before = data_files(graph)
    for _ in range(4):
        transaction = prepared(graph, people(graph, *"abcdef"), staging)
    assert len(data_files(graph)) == len(before) + 1
    assert len(staging._written) == 1
    assert graph.committer.publish(transaction) is not None
    assert len(graph.entities("node:P")) == 6


def test_a_failure_after_the_checks_removes_what_was_written_too(
    graph: PlainGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("find", "t", "broken")

    monkeypatch.setattr(prepare_module, "_build_marks", fail)
    before = data_files(graph)
    with pytest.raises(StorageError):
        prepared(graph, people(graph, *"abcdef"), RowStaging(graph.tables))
    assert data_files(graph) == before


@pytest.mark.parametrize("method", ["write", "discard"])
def test_whatever_fails_while_rows_are_removed_does_not_hide_the_refusal(
    graph: PlainGraph, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(graph.tables, method, fail)
    rows = [{"name": each, "age": 99} for each in "abcdef"]
    changes = {type_key("node:P"): change(graph, "node:P", rows)}
    with pytest.raises(WriteRefusedError, match="@range violation"):
        prepared(graph, changes, RowStaging(graph.tables))


def test_rows_that_a_clean_up_may_remove_are_written_again(graph: PlainGraph) -> None:
    changes, staging = people(graph, *"abcdef"), RowStaging(graph.tables)
    first = staged(prepared(graph, changes, staging))
    (written,) = (os.stat(file).st_mtime_ns // 1000 for file in data_files(graph))
    sweeps = Sweeps(open_objects(graph.uri))
    sweeps.declare(written - 1)
    assert staged(prepared(graph, changes, staging)) is first
    # The time of a file in seconds is rounded by a fraction of a microsecond.
    sweeps.declare(written + 2)
    again = staged(prepared(graph, changes, staging))
    assert again.list_files != first.list_files
    assert len(data_files(graph)) == 1


def test_all_conflicts_are_counted_and_the_first_are_told_with_their_places(
    graph: PlainGraph,
) -> None:
    names = [f"n{number:02}" for number in range(15)]
    for type_ in ("node:P", "node:Q"):
        graph.insert(type_, *({"name": each} for each in names))
    changes = {
        type_key(each): change(graph, each, [{"name": "new"}, *({"name": n} for n in names)])
        for each in ("node:P", "node:Q")
    }
    with pytest.raises(KeyConflictError) as failure:
        prepared(graph, changes, RowStaging(graph.tables))
    conflict = failure.value
    assert (conflict.count, len(conflict.violations)) == (30, 20)
    lines = str(conflict).splitlines()
    assert lines[0] == "in.jsonl line 2: P 'n00' already exists"
    assert lines[19] == "in.jsonl line 6: Q 'n04' already exists"
    assert lines[20] == "… and 10 more"
    assert (conflict.type_name, conflict.entity_id) == ("P", "n00")


# ---- what ends ----


def edges(graph: PlainGraph, type_: str, *ends: str, mode: WriteMode) -> GraphChange:
    rows = [{"@id": each, "@src": each[0], "@dst": each[1]} for each in ends]
    return {type_key(type_): change(graph, type_, rows, mode)}


@pytest.fixture
def linked(graph: PlainGraph) -> PlainGraph:
    graph.insert("node:P", *({"name": each} for each in "abcdef"))
    for type_ in ("edge:K", "edge:C"):
        graph.insert(type_, *({"@id": e, "@src": e[0], "@dst": e[1]} for e in ("ab", "bc", "cd")))
    return graph


@pytest.mark.parametrize("type_", ["edge:K", "edge:C"])
@pytest.mark.parametrize("mode", [WriteMode.UPSERT, WriteMode.OVERWRITE])
def test_edges_that_end_are_found_with_their_ends_in_one_look(
    linked: PlainGraph, monkeypatch: pytest.MonkeyPatch, type_: str, mode: WriteMode
) -> None:
    monkeypatch.setattr(Table, "take", None)
    changes = edges(linked, type_, "ab", "de", mode=mode)
    transaction = prepared(linked, changes, RowStaging(linked.tables))
    found = transaction.changes[type_]
    assert isinstance(found, Changed)
    assert list(found.updated) == ["ab"]
    assert list(found.deleted) == (["bc", "cd"] if mode is WriteMode.OVERWRITE else [])
    assert found.marks is not None
    assert len(found.marks) == (8 if mode is WriteMode.OVERWRITE else 4)


def test_a_bulk_overwrite_does_not_look_at_who_ends(
    linked: PlainGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare_module, "BULK_ROWS_MIN", 3)
    changes = edges(linked, "edge:K", "ab", "de", "ef", mode=WriteMode.OVERWRITE)
    scanned: list[str] = []
    scan = Table.scan

    def watched(self: Table, **options: Any) -> pa.Table:
        scanned.append(self.pin.path)
        return scan(self, **options)

    monkeypatch.setattr(Table, "scan", watched)
    transaction = prepared(linked, changes, RowStaging(linked.tables))
    assert isinstance(transaction.changes["edge:K"], Bulk)
    assert not [path for path in scanned if "K" in path]

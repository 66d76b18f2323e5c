"""The tables of commits that are not the newest: opened by every check, however old."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.check import pin_check
from omnigraph.engine.check.graph_check import COMMITS_MAX, check_graph
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning import MAIN
from places import fresh_uri
from unit.engine.damaged_graph import NOTE, PERSON, TEAM, Damaged, found
from unit.writers.plain_graph import created, type_key

OLD = 6


def where(seq: int, type_: str = NOTE) -> str:
    return f"{layout.build_record_path(MAIN.id, seq)} {type_}"


def edit_pin(damaged: Damaged, **fields: Any) -> None:
    path = damaged.record_path(OLD)
    damaged.edit(path, lambda document: document["pins"][NOTE].update(fields))


def test_a_missing_version_of_an_old_commit_is_named(damaged: Damaged) -> None:
    pin = damaged.graph.log.read_snapshot(MAIN, OLD).pins[NOTE]
    damaged.remove(f"{pin.path}/_versions/d{int(pin.version, 16)}.manifest")
    (problem,) = found(damaged)
    assert problem.startswith(f"table: {where(OLD)} ({pin.path}): open failed: ")


def test_a_torn_version_of_an_old_commit_is_named_with_its_file(damaged: Damaged) -> None:
    pin = damaged.graph.log.read_snapshot(MAIN, OLD).pins[NOTE]
    file = f"{pin.path}/_versions/d{int(pin.version, 16)}.manifest"
    damaged.write(file, b"torn")
    (problem,) = found(damaged)
    assert problem == f"table: {file}: its digest is not the one of its record"


def test_a_missing_file_of_an_old_commit_is_named(damaged: Damaged) -> None:
    graph = damaged.graph
    first, then = (graph.log.read_snapshot(MAIN, seq).pins[NOTE] for seq in (OLD - 1, OLD))
    (file,) = (
        path
        for path in graph.tables.list_references(then) - graph.tables.list_references(first)
        if path.endswith(".lance")
    )
    damaged.remove(file)
    problem = found(damaged)[-1]
    assert problem.startswith(
        f"table: {file}: it is missing, and {layout.build_stream_folder(MAIN.id)}/"
    )
    assert problem.endswith(f" {NOTE} needs it")


def test_a_pin_of_an_old_commit_must_say_how_many_rows_there_are(damaged: Damaged) -> None:
    edit_pin(damaged, rows=9)
    path = damaged.graph.log.read_snapshot(MAIN, OLD).pins[NOTE].path
    assert found(damaged) == [f"table: {where(OLD)}: {path} has 2 rows, and its pin says 9"]


def test_a_table_of_an_old_commit_must_have_the_columns_of_its_type(damaged: Damaged) -> None:
    column = damaged.graph.view().get_shape(type_key(NOTE)).columns["text"]
    document = damaged.read(damaged.record_path(OLD))
    edit_pin(damaged, **document["pins"][TEAM])
    assert f"table: {where(OLD)}: the column {column} is missing" in found(damaged)


def test_a_version_that_many_commits_pin_is_told_once(damaged: Damaged) -> None:
    damaged.remove(damaged.graph.log.read_snapshot(MAIN, OLD).pins[TEAM].path)
    told = [each for each in found(damaged) if "open failed" in each]
    assert len(told) == 2, "the empty version, and the one that all later commits share"


def test_rows_that_versions_share_are_counted_once(
    damaged: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        damaged.append(PERSON, {"name": f"new{number}"})
    counted: list[int] = []
    reading = Table.scan_fragments

    def watched(table: Table, chosen: Any, *, columns: list[str]) -> pa.Table:
        found = reading(table, chosen, columns=columns)
        counted.append(found.num_rows)
        return found

    monkeypatch.setattr(Table, "scan_fragments", watched)
    monkeypatch.setattr(pin_check, "_READERS", 1)
    assert found(damaged) == []
    assert damaged.graph.head().pins[PERSON].rows > 1000
    assert 1000 < sum(counted) < 2000


def test_the_contents_of_the_newest_commits_are_compared_unless_all_are_asked_for(
    tmp_path: Path,
) -> None:
    graph = created(fresh_uri(tmp_path / "long"), "node A {}")
    for number in range(COMMITS_MAX + 4):
        graph.insert("node:A", {"@id": f"{number}"})
    graph.branches.create("short", at=graph.head())
    report = check_graph(graph.objects, graph.tables)
    assert (report.commits, report.compared) == (COMMITS_MAX + 5, COMMITS_MAX)
    assert report.to_json()["compared"] == COMMITS_MAX
    whole = check_graph(graph.objects, graph.tables, commits_max=None)
    assert (whole.commits, whole.compared) == (COMMITS_MAX + 5, COMMITS_MAX + 5)

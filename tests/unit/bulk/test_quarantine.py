from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.bulk import bulk_load
from omnigraph.bulk.task_runner import LocalRunner
from omnigraph.engine import LoadResult, load_dispatch
from omnigraph.errors import LoadError, ResourceLimitError, StorageError, WriteRefusedError
from unit.bulk.bulk_world import (
    Twins,
    crowd,
    exported,
    knows,
    note,
    person,
    wrote,
)

U = TypeVar("U")
A = TypeVar("A")


def loaded_without(
    two: Twins, records: list[Any], bad: list[int], mode: Any = "append"
) -> LoadResult:
    """A load in quarantine gives what a load without the bad lines gives; lines count from 1."""
    good = [each for number, each in enumerate(records, 1) if number not in bad]
    two.at_once.load(two.lines(good, "good.jsonl"), mode=mode)
    result = two.bulk(two.lines(records), mode, on_error="quarantine")
    assert exported(two.in_units) == exported(two.at_once)
    assert sorted({row["number"] for row in two.rejected()}) == bad
    assert result.rejected == len(bad)
    assert two.leftovers() == []
    return result


def test_bad_records_are_left_out_and_written_down(two: Twins) -> None:
    records: list[Any] = crowd(100)
    bad = ["not json", person("x", age=200), person("y", tem="red"), person("p5")]
    result = loaded_without(two, [*records, *bad], [201, 202, 203, 204])
    rows = two.rejected()
    assert [row["rule"] for row in rows] == ["json", "range", "member", "unique"]
    assert [row["place"].rpartition(" ")[2] for row in rows] == ["201", "202", "203", "204"]
    assert rows[0]["raw"] == "not json"
    assert (rows[1]["type"], rows[1]["id"], rows[1]["property"]) == ("Person", "x", "age")
    assert rows[2]["id"] == "y"
    assert str(two.folder / "rejects") in str(result.rejects)


def test_edges_of_rejected_nodes_go_with_them(two: Twins) -> None:
    records = [person("ada"), person("bob", age=900), person("eve", age="?"), knows("ada", "bob")]
    records += [knows("eve", "ada"), knows("ada", "ada"), knows("ada", "nobody")]
    loaded_without(two, records, [2, 3, 4, 5, 7])
    reasons = [row["reason"] for row in two.rejected()]
    assert reasons[2] == "dst 'bob' not found in Person: its record was rejected"
    assert reasons[3] == "src 'eve' not found in Person: its record was rejected"
    assert reasons[4] == "dst 'nobody' not found in Person"


def test_a_node_rejected_late_takes_its_edges_too(two: Twins) -> None:
    records = [person("ada", email="a"), person("bob", email="a"), knows("ada", "bob")]
    loaded_without(two, records, [2, 3])


def test_what_exists_is_left_out_of_an_append(two: Twins) -> None:
    two.load(two.lines(crowd(50)))
    loaded_without(two, [person("p3"), person("new"), knows("new", "p3")], [1])


def test_the_first_edges_of_a_source_are_kept(two: Twins) -> None:
    notes = [note(each) for each in "abcde"]
    records = [person("ada"), *notes, *(wrote("ada", each, id=each) for each in "abcde")]
    loaded_without(two, records, [9, 10, 11])


def test_all_but_the_first_of_a_tuple_are_left_out(two: Twins) -> None:
    records = [person(f"p{n}", email="same" if n % 2 else f"e{n}") for n in range(8)]
    loaded_without(two, records, [4, 6, 8])


def test_a_merge_leaves_out_what_another_entity_keeps(two: Twins) -> None:
    two.load(two.lines(crowd(20)))
    records = [person("p1", email="7@example.com"), person("p2", email="free")]
    loaded_without(two, records, [1], "merge")


def test_rows_of_tables_are_left_out_by_their_numbers(two: Twins) -> None:
    ages = [n % 90 if n % 25 else 999 for n in range(200)]
    rows = pa.table({"name": [f"p{n}" for n in range(200)], "age": ages})
    path = two.folder / "people.parquet"
    pq.write_table(rows, path, row_group_size=30)
    result = two.bulk(path, type="Person", on_error="quarantine")
    assert (result.nodes, result.rejected) == ({"Person": 192}, 8)
    assert [row["number"] for row in two.rejected()] == list(range(1, 200, 25))
    assert '"name": "p25"' in two.rejected()[1]["raw"]


def test_a_record_is_written_down_with_every_reason(two: Twins) -> None:
    bad = [person("x", age=200, team="pink", email=3), person("y", team="grey", age="old", nam="y")]
    result = two.bulk(two.lines([*crowd(100)[:100], *bad]), on_error="quarantine")
    assert (result.nodes, result.rejected) == ({"Person": 100}, 2)
    found = [(row["number"], row["rule"], row["property"], row["id"]) for row in two.rejected()]
    assert found == [
        (101, "value", "email", "x"),
        (101, "enum", "team", "x"),
        (101, "range", "age", "x"),
        (102, "member", "nam", "y"),
        (102, "value", "age", "y"),
        (102, "enum", "team", "y"),
    ]


def test_a_row_is_written_down_with_every_reason(two: Twins) -> None:
    path = two.folder / "people.csv"
    path.write_text("name,age,team,email\n,200,pink,a\nbob,old,grey,b\ncleo,3,red,c\n")
    result = two.bulk(path, type="Person", on_error="quarantine")
    assert (result.nodes, result.rejected) == ({"Person": 1}, 2)
    found = [(row["number"], row["rule"], row["property"]) for row in two.rejected()]
    assert found == [
        (2, "required", "name"),
        (2, "enum", "team"),
        (2, "range", "age"),
        (3, "value", "age"),
        (3, "enum", "team"),
    ]


def test_numbers_that_json_does_not_have_are_written_down_as_texts(tmp_path: Path) -> None:
    with omnigraph.create(
        str(tmp_path / "floats"), schema="node F { n: I32 @key  x: F64?  v: Vector(2)? }"
    ) as graph:
        nan, inf = float("nan"), float("inf")
        rows = pa.table({"n": [1, 2], "x": [nan, -inf], "v": [[1.0, nan], [1.0, 2.0]]})
        result = graph.branch().load(
            rows, type="F", mode="append", on_error="quarantine", rejects=tmp_path / "rejects"
        )
        found = pq.read_table(result.rejects).to_pylist()
    assert [row["reason"] for row in found] == [
        "F.v: nan is not a finite number, as F32 needs",
        "F.x: nan is not a finite number, as F64 needs",
        "F.x: -inf is not a finite number, as F64 needs",
    ]
    raws = [json.loads(row["raw"], parse_constant=pytest.fail) for row in found]
    assert raws == [
        {"n": 1, "x": "nan", "v": [1.0, "nan"]},
        {"n": 1, "x": "nan", "v": [1.0, "nan"]},
        {"n": 2, "x": "-inf", "v": [1.0, 2.0]},
    ]


def test_a_file_that_cannot_be_read_is_not_left_out(two: Twins) -> None:
    path = two.folder / "people.parquet"
    path.write_bytes(b"PAR1 but no more")
    with pytest.raises(LoadError, match=r"people.parquet"):
        two.bulk(path, type="Person", on_error="quarantine")
    unknown = pa.table({"nam": ["ada"]})
    with pytest.raises(LoadError, match="unknown column 'nam'"):
        two.bulk(unknown, type="Person", on_error="quarantine")


def test_committed_edges_cannot_be_left_out(two: Twins) -> None:
    two.load(two.lines(crowd(20)))
    with pytest.raises(WriteRefusedError, match="needs it"):
        two.bulk(two.lines([person("p1")]), "overwrite", on_error="quarantine")


def test_too_many_rejects_are_no_quarantine(two: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_load, "REJECTS_MAX", 10)
    records = [person(f"p{n}", age=999) for n in range(20)]
    with pytest.raises(ResourceLimitError, match="reasons to reject records"):
        two.bulk(two.lines(records), on_error="quarantine")
    assert two.in_units.count("Person") == 0


def test_a_load_that_fails_writes_down_why_if_asked(two: Twins) -> None:
    with pytest.raises(WriteRefusedError) as refused:
        two.bulk(two.lines([person("ada", age=999)]))
    assert "rejects-" in str(refused.value.hint)
    assert [row["id"] for row in two.rejected()] == ["ada"]


def test_a_folder_that_cannot_be_written_does_not_hide_the_records(two: Twins) -> None:
    (two.folder / "taken").write_text("a file")
    with pytest.raises(WriteRefusedError, match="@range violation on") as refused:
        two.bulk(two.lines([person("ada", age=999)]), rejects=two.folder / "taken")
    assert "they are written down nowhere" in str(refused.value.hint)


def test_records_that_cannot_be_read_again_are_told_nevertheless(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetful(LocalRunner):
        def run(self, units: Sequence[U], task: Callable[[U], A], *, stage: str) -> list[A]:
            if stage == "rejects":
                raise StorageError("read", "somewhere", "the line is down")
            return super().run(units, task, stage=stage)

    monkeypatch.setattr(load_dispatch, "LocalRunner", Forgetful)
    records = [person("ada", agee=1), knows("ada", "ada"), knows("ada", "nobody")]
    with pytest.raises(LoadError, match="agee") as refused:
        two.bulk(two.lines(records))
    assert "the line is down" in str(refused.value.hint)

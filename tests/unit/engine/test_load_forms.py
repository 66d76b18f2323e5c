"""What a load takes in Python: records, columns, frames by type, and plain JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it has no types of its own
import polars as pl
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Branch
from omnigraph.errors import InvalidArgumentError, LoadError
from omnigraph.ids import generate_ulid
from omnigraph.writers.inputs import Text

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  vec: Vector(2)? }
node Number { value: U32 @key }
node Event { at: DateTime?  day: Date?  note: String?  photo: Blob? }
edge Knows: Person -> Person { since: I32? }
edge Divides: Number -> Number
"""
LINES = 200  # More than Arrow's reader takes up a block for.


@pytest.fixture(params=["at once", "in units"])
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How a load is made: in memory, or as a bulk load."""
    return {} if request.param == "at once" else {"on_error": "quarantine"}


@pytest.fixture
def main() -> Iterator[Branch]:
    with omnigraph.create(f"memory://{generate_ulid()}", schema=SCHEMA) as graph:
        yield graph.branch()


def rows_of(branch: Branch, type_name: str, *names: str) -> list[tuple[Any, ...]]:
    table = branch.snapshot().to_arrow(type_name).select(list(names))
    return sorted(tuple(row.values()) for row in table.to_pylist())


def write_lines(folder: Path, records: list[dict[str, Any]]) -> Path:
    path = folder / "records.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_a_list_of_dicts_is_a_table_of_its_type(main: Branch, engine: dict[str, Any]) -> None:
    people = [{"name": "ada", "age": 36, "born": date(1815, 12, 10)}, {"name": "bob"}]
    loaded = main.load(people, type="Person", mode="append", **engine)
    assert loaded.nodes == {"Person": 2}
    assert rows_of(main, "Person", "name", "age", "born") == [
        ("ada", 36, date(1815, 12, 10)),
        ("bob", None, None),
    ]


def test_a_dict_of_columns_is_a_table_of_its_type(main: Branch, engine: dict[str, Any]) -> None:
    columns = {
        "name": pd.Series(["ada", "bob"]),
        "age": pl.Series([36, None]),
        "born": pa.array([date(1815, 12, 10), None]),
        "vec": np.array([[1.0, 2.0], [3.0, 4.0]]),
    }
    main.load(columns, type="Person", mode="append", **engine)
    assert rows_of(main, "Person", "name", "age", "vec") == [
        ("ada", 36, [1.0, 2.0]),
        ("bob", None, [3.0, 4.0]),
    ]


def test_sources_by_type_are_one_commit(main: Branch, engine: dict[str, Any]) -> None:
    before = main.head
    loaded = main.load(
        {
            "Person": pd.DataFrame({"name": ["ada", "bob"]}),
            "Number": pa.table({"value": [2, 6]}),
            "Knows": pl.DataFrame({"from": ["ada"], "to": ["bob"], "since": [1840]}),
            "Divides": [{"from": 2, "to": 6}],
        },
        mode="append",
        **engine,
    )
    assert (loaded.nodes, loaded.edges) == (
        {"Number": 2, "Person": 2},
        {"Divides": 1, "Knows": 1},
    )
    assert main.head.parents == (before.id,)
    assert rows_of(main, "Knows", "@src", "@dst", "since") == [("ada", "bob", 1840)]
    assert rows_of(main, "Divides", "@src", "@dst") == [("2", "6")]


def test_files_and_frames_by_type_are_one_commit(
    main: Branch, engine: dict[str, Any], tmp_path: Path
) -> None:
    people = tmp_path / "people.csv"
    people.write_text("name,age\nada,36\nbob,40\n")
    edges = {"from": ["ada"], "to": ["bob"]}
    main.load({"Person": people, "Knows": edges}, mode="append", **engine)
    assert (main.count("Person"), main.count("Knows"), main.head.version) == (2, 1, 1)


def test_plain_json_lines_of_a_type_are_loaded(
    main: Branch, engine: dict[str, Any], tmp_path: Path
) -> None:
    people = [{"name": f"p{n}", "age": n, "born": "1815-12-10"} for n in range(LINES)]
    main.load(write_lines(tmp_path, people), type="Person", mode="append", **engine)
    edges = [{"from": f"p{n}", "to": "p0", "since": n} for n in range(LINES)]
    main.load(write_lines(tmp_path, edges), type="Knows", mode="append", **engine)
    text = "".join(f'{{"@src": "p{n}", "@dst": "p1"}}\n' for n in range(3))
    main.load(Text(text), type="Knows", mode="append", **engine)
    assert main.count("Knows") == LINES + 3
    assert rows_of(main, "Person", "name", "age", "born")[1] == ("p1", 1, date(1815, 12, 10))


def test_the_exact_reader_and_that_of_blocks_give_the_same_rows(
    main: Branch, tmp_path: Path
) -> None:
    odd = {"name": 'say "age": 1', "age": None, "vec": [-0.0, 1]}
    people = [{"name": f"p{n}", "vec": [n, 1.5]} | ({"age": n} if n % 3 else {}) for n in range(80)]
    main.load(write_lines(tmp_path, [*people, odd]), type="Person", mode="append")
    many = rows_of(main, "Person", "name", "age", "vec")
    main.load(write_lines(tmp_path, [*people[:9], odd]), type="Person", mode="overwrite")
    few = rows_of(main, "Person", "name", "age", "vec")
    assert [row for row in many if row in few] == few


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "list"])
def test_a_merge_leaves_what_a_record_does_not_mention(
    main: Branch, engine: dict[str, Any], tmp_path: Path, is_file: bool
) -> None:
    everybody = [{"name": f"p{n}", "age": n, "born": date(2000, 1, 1)} for n in range(LINES)]
    main.load(everybody, type="Person", mode="append")
    kinds: list[dict[str, Any]] = [{"age": 99}, {"born": None}, {}]
    changes = [{"name": f"p{n}", **kinds[n % 3]} for n in range(LINES)]
    source = write_lines(tmp_path, changes) if is_file else changes
    main.load(source, type="Person", mode="merge", **engine)
    found = {
        name: (age, born) for name, age, born in rows_of(main, "Person", "name", "age", "born")
    }
    assert found["p3"] == (99, date(2000, 1, 1))
    assert found["p4"] == (4, None)
    assert found["p5"] == (5, date(2000, 1, 1))


def test_an_empty_list_overwrites_its_type(main: Branch) -> None:
    main.load([{"name": "ada"}], type="Person", mode="append")
    main.load([], type="Person", mode="overwrite")
    assert main.count("Person") == 0


def test_the_last_of_several_records_with_one_id_wins(main: Branch) -> None:
    main.load([{"name": "ada"}], type="Person", mode="append")
    edges = [
        {"id": "e", "from": "ada", "to": "ada", "since": 1},
        {"id": "e", "from": "ada", "to": "ada"},
        {"id": "e", "from": "ada", "to": "ada", "since": 3},
    ]
    main.load(edges, type="Knows", mode="merge")
    assert rows_of(main, "Knows", "since") == [(3,)]


FIVE = datetime(2024, 1, 1, 5, tzinfo=UTC)


def test_values_of_several_kinds_in_a_column_keep_what_they_say(main: Branch) -> None:
    main.load([{"at": date(2024, 1, 1)}, {"at": FIVE}], type="Event", mode="append")
    assert rows_of(main, "Event", "at") == [(datetime(2024, 1, 1, tzinfo=UTC),), (FIVE,)]
    with pytest.raises(LoadError, match=r"record 2: Event\.day: invalid Date"):
        main.load([{"day": date(2024, 1, 1)}, {"day": FIVE}], type="Event", mode="append")
    blobs = [{"photo": b"\x01"}, {"photo": "base64:AAAA"}]
    main.load(blobs, type="Event", mode="overwrite")
    ids = [row[0] for row in rows_of(main, "Event", "@id")]
    found = [main.blob("node", "Event", each, "photo").read() for each in ids]
    assert sorted(found) == [bytes(3), b"\x01"]


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_records_without_members_are_rows(main: Branch, mode: Any) -> None:
    assert main.load([{}, {}], type="Event", mode=mode).nodes == {"Event": 2}
    assert main.load([{"note": "x"}, {}], type="Event", mode=mode).nodes == {"Event": 2}


BULK_WRONG: dict[str, tuple[list[Any], str]] = {
    "kinds": ([{"at": date(2024, 1, 1)}, {"at": FIVE}], "'at' has values of different kinds"),
    "no members": ([{}], "the records have no members"),
    "a name that is not text": ([{1: "x"}], "1 is not the name of a column"),
    "not a record": (["x"], "a record is a dict, not a str"),
}


@pytest.mark.parametrize("case", BULK_WRONG)
def test_a_bulk_load_refuses_records_that_are_not_one_table(main: Branch, case: str) -> None:
    records, reason = BULK_WRONG[case]
    with pytest.raises(LoadError) as refused:
        main.load(records, type="Event", mode="append", on_error="quarantine")
    assert reason in str(refused.value)
    assert main.head.version == 0


def test_a_record_of_its_own_type_is_refused_in_the_compatible_dialect_too(main: Branch) -> None:
    records = [{"type": "Person", "data": {"name": "x"}}]
    with pytest.raises(LoadError, match="names its own type"):
        main.load(records, type="Event", mode="append", dialect="compatible")


def test_a_dry_run_writes_no_rejects(main: Branch, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="a dry run writes no file"):
        main.load([], type="Event", mode="append", rejects=str(tmp_path), dry_run=True)


Source = Callable[[], tuple[Any, str | None]]

WRONG: dict[str, tuple[Source, str]] = {
    "no type": (lambda: ([{"name": "x"}], None), "expected 'type' or 'edge'"),
    "another type": (lambda: ([{"name": "x"}], "Persn"), "unknown type 'Persn'; did you mean"),
    "an unknown member": (lambda: ([{"name": "x", "agee": 1}], "Person"), "'agee' of Person"),
    "a wrong value": (
        lambda: ([{"name": "x", "age": 1}, {"name": "y", "age": "old"}], "Person"),
        "records record 2: Person.age: expects Int32, got 'old'",
    ),
    "a type twice": (
        lambda: ([{"type": "Person", "data": {"name": "x"}}], "Person"),
        "names its own type",
    ),
    "no key": (lambda: ([{"age": 1}], "Person"), "non-nullable property 'name'"),
    "no end": (lambda: ([{"from": "x"}], "Knows"), "requires field 'to'"),
    "other things": (lambda: ([1], "Person"), "a record must be one object"),
    "another type of a dict": (lambda: ({"Persn": []}, None), "unknown type 'Persn'"),
    "columns without a type": (lambda: ({"name": ["x"]}, None), "unknown type 'name'"),
    "nothing": (lambda: ({}, None), "an empty dict"),
    "one record": (
        lambda: ({"type": "Person", "data": {}}, None),
        "a single record: give a list",
    ),
    "frames and a type": (
        lambda: ({"Person": pd.DataFrame({"name": ["x"]})}, "Person"),
        "'Person' is a DataFrame, not a column",
    ),
    "columns of two lengths": (
        lambda: ({"name": ["x", "y"], "age": [1]}, "Person"),
        "different lengths: 'name' 2, 'age' 1",
    ),
    "a wrong value of a column": (
        lambda: ({"name": ["x", "y"], "age": [1, "old"]}, "Person"),
        "columns row 2: Person.age: expects Int32, got 'old'",
    ),
    "a number for a type": (lambda: ({"Person": 3}, None), "cannot load a int"),
    "a number as a type": (lambda: ({3: []}, None), "not the name of a type"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_form_is_refused_with_its_reason(main: Branch, case: str) -> None:
    make, reason = WRONG[case]
    source, type_name = make()
    with pytest.raises(LoadError) as refused:
        main.load(source, type=type_name, mode="append")
    assert reason in str(refused.value)
    assert main.head.version == 0


def test_hints_lead_from_the_wrong_form_to_the_right_one(main: Branch) -> None:
    with pytest.raises(LoadError) as plain:
        main.load([{"name": "x"}], mode="append")
    assert plain.value.hint is not None
    assert "type=NAME" in plain.value.hint
    with pytest.raises(LoadError) as columns:
        main.load({"name": ["x"]}, mode="append")
    assert columns.value.hint is not None
    assert "a dict of columns" in columns.value.hint
    with pytest.raises(InvalidArgumentError) as single:
        main.load([{"name": "x"}], mode="append", on_error="quarantine")
    assert single.value.hint is not None
    assert "type=NAME" in single.value.hint

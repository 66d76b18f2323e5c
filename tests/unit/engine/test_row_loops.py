"""What `for $row in $rows` takes in Python, from files, and how often it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # it has no types of its own
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Branch
from omnigraph.errors import AmbiguousUpdateError, ParameterError
from omnigraph.ids import generate_ulid

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  data: String?  vec: Vector(2)? }
node Number { value: U64 @key }
"""
WRITE = """query run($rows: [Person]) {
  for $row in $rows { upsert Person { name: $row.name, age: $row.age, born: $row.born } }
}"""
COUNT = """query run($rows: [Person]) {
  for $row in $rows { upsert Person { name: $row.name, age: coalesce(age, 0) + $row.age } }
}"""
RECORDS = [
    {"name": "ada", "age": 36, "born": date(1815, 12, 10)},
    {"name": "bob", "age": None, "born": None},
]
TABLE = pa.Table.from_pylist(RECORDS)


@pytest.fixture
def main() -> Iterator[Branch]:
    with omnigraph.create(f"memory://{generate_ulid()}", schema=SCHEMA) as graph:
        yield graph.branch()


def write_file(folder: Path, name: str) -> Path:
    path = folder / name
    match path.suffix:
        case ".parquet":
            pq.write_table(TABLE, path)
        case ".csv":
            path.write_text("name,age,born\nada,36,1815-12-10\nbob,,\n")
        case _:
            path.write_text('{"name": "ada", "age": 36, "born": "1815-12-10"}\n{"name": "bob"}\n')
    return path


FORMS: dict[str, Callable[[Path], Any]] = {
    "records": lambda _: RECORDS,
    "a generator": lambda _: iter(RECORDS),
    "a dict of columns": lambda _: TABLE.to_pydict(),
    "an Arrow table": lambda _: TABLE,
    "a reader": lambda _: TABLE.to_reader(),
    "a pandas frame": lambda _: pd.DataFrame(RECORDS),
    "a polars frame": lambda _: pl.DataFrame(RECORDS),
    "a Parquet file": lambda folder: write_file(folder, "p.parquet"),
    "a CSV file": lambda folder: write_file(folder, "p.csv"),
    "JSON lines": lambda folder: write_file(folder, "p.jsonl"),
}


@pytest.mark.parametrize("form", FORMS)
def test_records_come_in_every_form_that_a_load_takes(
    main: Branch, tmp_path: Path, form: str
) -> None:
    done = main.mutate(WRITE, params={"rows": FORMS[form](tmp_path)})
    assert (done.affected_nodes, done.commit is None) == (2, False)
    found = main.query("query q() { match { $p: Person } return { $p.name, $p.age, $p.born } }")
    expected = pa.Table.from_pylist(RECORDS)
    for place, name in enumerate(expected.column_names):
        assert found.to_arrow().column(place).to_pylist() == expected[name].to_pylist()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"name": "ada", "agee": 1}], "unknown column 'agee'"),
        ([{"name": "ada"}, {"name": "bob", "age": "old"}], "rows.age: expects I32"),
        ([{"name": "ada", "age": 2**31}], "exceeds Int32 range"),
        ([{"age": 1}], "'name'"),
        ([{"name": "ada"}, {"age": 1}], "'name'"),
        ([{"id": "x", "name": "ada"}], "no field 'id'"),
        ("people.jsonl", "expected a list of records, got a str"),
        (None, "got null"),
        (7, "got a int"),
    ],
)
def test_records_that_do_not_fit_are_refused_and_nothing_is_written(
    main: Branch, rows: Any, message: str
) -> None:
    head = main.head
    with pytest.raises(ParameterError, match=message):
        main.mutate(WRITE, params={"rows": rows})
    assert main.head == head


def test_a_field_may_have_any_name_and_any_type_of_a_parameter(main: Branch) -> None:
    text = """query run($rows: [{ data: String, id: U64, type: Vector(2)?, from: [String]? }]) {
      for $r in $rows {
        create Person { name: $r.data, data: join($r.from, "-"), vec: $r.type }
        create Number { value: $r.id }
      }
    }"""
    rows = [{"data": "a", "id": 2**64 - 1, "type": [1, 2], "from": ["x", "y"]}]
    assert main.mutate(text, params={"rows": rows}).affected_nodes == 2
    read = "query q() { match { $p: Person  $n: Number } return { $p.data, $p.vec, $n.value } }"
    (row,) = main.query(read).to_arrow().to_pylist()
    assert list(row.values()) == ["x-y", [1.0, 2.0], 2**64 - 1]


def test_a_value_may_read_the_entity_as_it_is(main: Branch) -> None:
    main.mutate(WRITE, params={"rows": RECORDS})
    rows = [{"name": name, "age": 1} for name in ("ada", "new")]
    assert main.mutate(COUNT, params={"rows": rows}).affected_nodes == 2
    again = [{"name": "ada", "age": 1}, {"name": "ada", "age": 2}]
    with pytest.raises(AmbiguousUpdateError, match=r"38.*39"):
        main.mutate(COUNT, params={"rows": again})

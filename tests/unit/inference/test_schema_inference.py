"""Schemas made from data: what is inferred accepts the data it was inferred from."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import errors
from omnigraph.inference import infer_schema
from places import fresh_uri

PEOPLE = """handle,name,born,score,zip,small,active,at
ann,Ann,1975-03-02,1.5,0123,1,true,2024-01-01T00:00:00Z
bob,"Bob, the second",,2,0456,-7,FALSE,2024-01-01T00:00:00.5Z
"""
LINES = """{"type": "Author", "data": {"handle": "ann", "n": 3, "tags": ["sea"]}}
{"type": "Book", "data": {"handle": 5, "n": "three", "day": "2024-01-01"}}

{"edge": "Wrote", "from": "ann", "to": "5", "data": {"role": "lead"}}
"""


def loads_back(sources: Mapping[str, Any], path: Path, **options: Any) -> dict[str, int]:
    """How many rows of each type a graph of the inferred schema takes."""
    with omnigraph.create(
        fresh_uri(path / "back.omni"), schema=infer_schema(sources), durable=False
    ) as graph:
        source = options.pop("source", sources)
        done = graph.branch().load(source, mode="append", **options)
        return {**done.nodes, **done.edges}


def test_texts_of_csv_become_the_narrowest_type_that_keeps_their_spelling(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "knows.csv").write_text("from,to,since\nann,bob,2020-01-01\nbob,ann,\n")
    sources = {"Person": str(tmp_path / "people.csv"), "Knows": str(tmp_path / "knows.csv")}
    assert infer_schema(sources) == (
        "node Person {\n  handle: String @key\n  name: String\n  born: Date?\n  score: F64\n"
        "  zip: String\n  small: I64\n  active: Bool\n  at: DateTime\n}\n\n"
        "edge Knows: Person -> Person {\n  since: Date?\n  @key(@src, @dst)\n}\n"
    )
    assert loads_back(sources, tmp_path) == {"Person": 2, "Knows": 2}


def test_lines_that_name_their_types_are_of_those(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text(LINES)
    assert infer_schema({"ignored": path}) == (
        "node Author {\n  handle: String @key\n  n: I64\n  tags: [String]\n}\n\n"
        "node Book {\n  handle: I64 @key\n  n: String\n  day: Date\n}\n\n"
        "edge Wrote: Author -> Book {\n  role: String\n  @key(@src, @dst)\n}\n"
    )
    assert loads_back({"x": path}, tmp_path, source=path) == {"Author": 1, "Book": 1, "Wrote": 1}


@pytest.mark.parametrize("first", ["", '{"edge": "Knows", "from": "ann", "to": "ann"}\n'])
@pytest.mark.parametrize("data", ["", ', "data": {}', ', "data": null'])
def test_edges_may_have_no_properties(tmp_path: Path, first: str, data: str) -> None:
    path = tmp_path / "all.jsonl"
    node = '{"type": "Person", "data": {"name": "ann"}}\n'
    edge = f'{{"edge": "Knows", "from": "ann", "to": "ann"{data}}}\n'
    path.write_text(first + node + edge * 2)
    assert infer_schema({"x": path}) == (
        "node Person {\n  name: String @key\n}\n\nedge Knows: Person -> Person\n"
    )


def test_types_of_arrow_are_those_of_properties(tmp_path: Path) -> None:
    table = pa.table(
        {
            "label": pa.array(["a", "b"]).dictionary_encode(),
            "tiny": pa.array([1, 2], pa.int8()),
            "big": pa.array([1, 2**63], pa.uint64()),
            "half": pa.array([0.5, None], pa.float32()),
            "price": pa.array([Decimal("1.50"), Decimal("2.25")]),
            "day": pa.array([date(2024, 1, 1)] * 2),
            "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
            "raw": pa.array([b"x", b"y"]),
            "tags": pa.array([["x"], None]),
            "pair": pa.array([[0.5, 1.0], [2.0, 3.0]]),
            "vec": pa.array([np.ones(8).tolist()] * 2),
            "fixed": pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2, 3, 4]), 2),
            "empty": pa.nulls(2),
        }
    )
    lines = infer_schema({"Thing": table}).splitlines()[1:-1]
    assert [line.strip() for line in lines] == [
        "label: String @key",
        "tiny: I32",
        "big: U64",
        "half: F32?",
        "price: F64",
        "day: Date",
        "at: DateTime",
        "raw: Blob",
        "tags: [String]?",
        "pair: [F64]",
        "vec: Vector(8)",
        "fixed: Vector(2)",
        "empty: String?",
    ]
    assert loads_back({"Thing": table}, tmp_path) == {"Thing": 2}


def test_integers_beyond_63_bits_are_unsigned(tmp_path: Path) -> None:
    big = 2**64 - 1
    records = [{"a": big, "b": 1, "c": 1e19, "d": [big], "e": 1.5}]
    path, lines = tmp_path / "t.csv", tmp_path / "t.jsonl"
    path.write_text(f"a,b,c,e\n{big},1,1e19,1.5\n")
    expected = "node T {\n  a: U64 @key\n  b: I64\n  c: F64\n"
    assert infer_schema({"T": path}) == f"{expected}  e: F64\n}}\n"
    lines.write_text(json.dumps({**records[0], "c": 0.25}))
    assert infer_schema({"T": lines}) == f"{expected}  d: [U64]\n  e: F64\n}}\n"
    assert loads_back({"T": lines}, tmp_path) == {"T": 1}
    lines.write_text('{"a": 1, "c": 1e19}')
    assert "  c: F64\n" in infer_schema({"T": lines})
    assert infer_schema({"T": [{"a": big}]}) == "node T {\n  a: U64 @key\n}\n"


def test_files_of_every_kind_are_read(tmp_path: Path) -> None:
    table = pa.table({"code": ["x", "y"], "n": [1, 2]})
    pq.write_table(table, tmp_path / "a.parquet")
    orc.write_table(table, tmp_path / "b.orc")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"code,n\nx,1\ny,2\n"))
    (tmp_path / "d.ndjson").write_text('{"code": "x", "n": 1}\n{"code": "y", "n": 2}\n')
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.csv").write_text("code,n\nx,1\n")
    expected = "node T {\n  code: String @key\n  n: I64\n}\n"
    for name in ("a.parquet", "b.orc", "c.csv.gz", "d.ndjson", "parts"):
        assert infer_schema({"T": tmp_path / name}) == expected, name


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ([{"n": 1.5, "slug": "a", "id": "x"}], "id"),
        ([{"n": 1, "slug": "a"}, {"n": 2, "slug": "a"}], "n"),
        ([{"t_id": 7, "a": 7}], "t_id"),
        ([{"a": 1, "b": None}, {"a": 1, "b": "x"}], None),
        ([{"f": 1.5, "b": True}], None),
    ],
)
def test_the_key_is_a_usual_name_or_the_first_column_that_can_be(
    rows: list[dict[str, Any]], key: str | None
) -> None:
    lines = infer_schema({"T": rows}).splitlines()
    found = [line.partition(":")[0].strip() for line in lines if "@key" in line]
    assert found == ([] if key is None else [key])


def test_an_edge_leads_to_the_nodes_that_most_of_its_ends_are() -> None:
    parallel = {"@src": ["p1", "p2", "p1"], "@dst": ["a1", "a1", "a1"], "@id": ["x", "y", "z"]}
    schema = infer_schema(
        {
            "Cites": parallel,
            "Author": [{"id": "a1"}, {"id": "p1"}],
            "Paper": [{"id": "p1"}, {"id": "p2"}],
        }
    )
    # Two edges join the same nodes: their ends are no key.
    assert schema.endswith("\n\nedge Cites: Paper -> Author\n")


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({}, "no source is given"),
        ({"P": []}, "the records have no members"),
        ({"P": [1]}, "not every element of the list is a record"),
        ({"P": 5}, "a int holds no rows"),
        ({"P": "missing.csv"}, "missing.csv: no such file"),
        ({"P": [{"first name": 1}]}, "'first name' cannot name a property"),
        ({"a b": [{"x": 1}]}, "'a b' cannot name a type"),
        ({"person": [{"x": 1}]}, "'person' cannot name a type: an upper-case letter"),
        ({1: [{"x": 1}]}, "'1' cannot name a type"),
        ({"P": [{"Name": 1}]}, "'Name' cannot name a property: a lower-case letter"),
        ("people.csv", "a str names no types"),
        ({"P": pa.table([[1], [2]], names=["a", "a"])}, "column 'a' is there twice"),
        ({"P": pa.table({})}, "it has no columns"),
        ({"P": [{1: "x"}]}, "1 is not the name of a column"),
        ({"P": [{"o": {1: 2}}]}, "'o': Expected dict key of type str"),
        ({"P": pa.table({"s": [{"x": 1}]})}, "the column 's' is a struct<x: int64>"),
        ({"E": [{"from": "a", "to": "b"}]}, "no node has a key that occurs in the column 'from'"),
    ],
)
def test_what_cannot_be_a_schema_is_refused_by_name(sources: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        infer_schema(sources)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("x.txt", b"a\n", "not a kind of file"),
        ("x.parquet", b"PAR1 no", "Parquet"),
        ("x.jsonl", b'{"a": 1}\n{"a": "x"}\n', "JSON"),
        ("x.jsonl", b"{\n", "line 1: invalid strict JSON"),
        ("x.jsonl", b'\n{"a": 1}\n[1]\n', "line 3: a record must be one object"),
        ("x.jsonl", b'{"a": 1, "a": 2}\n', "line 1: duplicate JSON member 'a'"),
        ("x.jsonl", b'{"a": "\xff"}\n', "column 'a' holds text that is not UTF-8"),
        ("x.jsonl", b"[" * 10_000, "line 1: invalid strict JSON: nested too deeply"),
        ("x.jsonl", b"", "it has no records"),
        ("x.jsonl", b'{"type": "T", "data": 5}\n', "'data' holds the properties of a record"),
        ("x.jsonl", b"{}\n{}\n", "it has no columns"),
        ("x.csv", b"\xff\xfe\n", "the header is not UTF-8"),
        ("x.csv", b"a,b\n\xff,1\n", "column 'a' holds text that is not UTF-8"),
        ("x.csv", b"", "Empty CSV file"),
        ("x.csv", b"a,b,a\n1,2,3\n", "column 'a' is there twice"),
        ("x.csv", b"a,b\n1\n", "line 2: has 1 value, the header names 2 columns: 1"),
        ("x.csv", b'a,b\n"1,2\n3,4\n', "line 2: a value opens with a quote that is never closed"),
        ("x.csv", b"a;b\n1;2\n", "'a;b' cannot name a property"),
        ("x.parquet", b"", "Parquet file size is 0 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(errors.InvalidArgumentError) as refused:
        infer_schema({"T": tmp_path / name})
    assert message in str(refused.value)


def test_only_the_first_rows_are_read(tmp_path: Path) -> None:
    count = 250_000
    path = tmp_path / "long.parquet"
    late = pa.array([None if number == count - 1 else number for number in range(count)])
    pq.write_table(pa.table({"n": late}), path, row_group_size=50_000)
    assert infer_schema({"T": path}) == "node T {\n  n: I64 @key\n}\n"

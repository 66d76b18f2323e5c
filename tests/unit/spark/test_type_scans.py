from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.bulk import splits
from omnigraph.errors import InvalidArgumentError
from omnigraph.spark.spark_types import format_spark_schema, to_carrier
from omnigraph.spark.type_scans import TypeScan, build_type_scan

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  photo: Blob?
}
edge Knows: Person -> Person
"""


def graph_of(folder: Path, loads: int) -> Graph:
    graph = omnigraph.create(folder / "g", schema=SCHEMA)
    for load in range(loads):
        names = [f"p{load}-{number}" for number in range(10)]
        rows = pa.table({"name": names, "age": list(range(10))})
        graph.branch().load(rows, mode="append", type="Person")
    return graph


def scan_of(graph: Graph, type_name: str = "Person", **options: object) -> TypeScan:
    snapshot = graph.branch().snapshot()
    return build_type_scan(snapshot.view, snapshot.type_key(type_name), **options)  # type: ignore[arg-type]  # options of each test


def test_the_units_of_a_scan_hold_every_row_once(tmp_path: Path) -> None:
    with graph_of(tmp_path, 12) as graph:
        scan = scan_of(graph)
        units = scan.plan_splits()
        assert len(units) > 1
        assert len({id_ for unit in units for id_ in unit}) == sum(map(len, units)) == 12
        rows = pa.Table.from_batches([batch for unit in units for batch in scan.read_batches(unit)])
        assert rows.column_names == ["@id", "age", "name"]
        expected = graph.branch().snapshot().to_arrow("Person")
        assert sorted(rows["@id"].to_pylist()) == sorted(expected["@id"].to_pylist())


def test_a_unit_has_no_more_rows_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "SPLIT_ROWS", 25)
    monkeypatch.setattr(splits, "FRAGMENT_GROUPS_MIN", 1)
    with graph_of(tmp_path, 5) as graph:
        assert [len(unit) for unit in scan_of(graph).plan_splits()] == [2, 2, 1]
        assert scan_of(graph, "Knows").plan_splits() == ()


def test_columns_and_conditions_choose_what_is_read(tmp_path: Path) -> None:
    with graph_of(tmp_path, 1) as graph:
        scan = scan_of(graph, columns=["age", "@id"], filter="age > 7")
        rows = pa.Table.from_batches(
            [b for unit in scan.plan_splits() for b in scan.read_batches(unit)]
        )
        assert rows.to_pydict() == {"age": [8, 9], "@id": ["p0-8", "p0-9"]}
        assert format_spark_schema(scan.schema) == "`age` int, `@id` string"
        assert "photo" in [name for name, _ in scan_of(graph, columns=["photo"]).columns]
        wrongs: list[dict[str, object]] = [
            {"columns": []},
            {"columns": ["nme"]},
            {"filter": "nme = 1"},
            {"filter": "age >"},
        ]
        for wrong in wrongs:
            with pytest.raises(InvalidArgumentError):
                scan_of(graph, "Person", **wrong)


def test_values_become_those_that_spark_knows() -> None:
    assert to_carrier(pa.array([2**64 - 1, None], pa.uint64())).to_pylist() == [
        Decimal(2**64 - 1),
        None,
    ]
    assert to_carrier(pa.array([2**32 - 1], pa.uint32())).type == pa.int64()
    expected = [datetime(1970, 1, 1, 0, 0, 1, 234_000, UTC), None]
    assert to_carrier(pa.array([1_234, None], pa.int64()).view(pa.date64())).to_pylist() == expected
    lists = pa.array([[1_234], None], pa.list_(pa.int64()))
    dates = pa.ListArray.from_arrays(lists.offsets, lists.values.view(pa.date64()))
    assert to_carrier(dates)[0].as_py() == expected[:1]
    vectors = pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))
    assert to_carrier(vectors).type == pa.list_(pa.float32())
    assert to_carrier(vectors).to_pylist() == [[1.0, 2.0], None]

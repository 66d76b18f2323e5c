from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgumentError, StorageRefusedError, TypeNotFoundError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  serial: U64?
  score: F32?
  born: Date?
  seen: DateTime?
  tags: [String]?
  place: Vector(2)?
  photo: Blob?
}
node Project { title: String @key  age: String? }
edge Knows: Person -> Person { since: I32? }
edge Works: Person -> Project
"""
ANN: dict[str, object] = {
    "name": "Ann",
    "age": 41,
    "serial": 2**64 - 1,
    "score": 0.5,
    "born": date(1985, 2, 3),
    "seen": datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
    "tags": ["a", "b"],
    "place": [1.0, 2.0],
    "photo": b"png",
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    folder = tmp_path_factory.mktemp("graph")
    with omnigraph.create(folder / "g", schema=SCHEMA) as made:
        main = made.branch()
        serial = pa.array([ANN["serial"]], pa.uint64())
        first = pa.Table.from_pylist([{**ANN, "serial": None}]).set_column(2, "serial", serial)
        main.load(first, mode="append", type="Person")
        main.load(
            pa.table({"name": ["Bob", "Cy"], "age": [29, None]}), mode="append", type="Person"
        )
        main.load(pa.table({"title": ["Moon"], "age": ["old"]}), mode="append", type="Project")
        main.load(
            pa.table({"from": ["Ann", "Bob"], "to": ["Bob", "Cy"], "since": [1, None]}),
            mode="append",
            type="Knows",
        )
        main.load(pa.table({"from": ["Ann"], "to": ["Moon"]}), mode="append", type="Works")
        yield made


@pytest.mark.smoke
def test_every_type_of_value_arrives(graph: Graph, spark: SparkSession) -> None:
    frame = graph.spark.nodes("Person").orderBy("name")
    rows = [row.asDict() for row in frame.collect()]
    assert "photo" not in frame.columns
    assert rows[0] == {
        "@id": "Ann",
        "name": "Ann",
        "age": 41,
        "serial": Decimal(2**64 - 1),
        "score": 0.5,
        "born": date(1985, 2, 3),
        "seen": rows[0]["seen"],
        "tags": ["a", "b"],
        "place": [1.0, 2.0],
    }
    texts = frame.selectExpr("cast(seen as string)").collect()
    assert texts[0][0] == "2026-01-02 03:04:05.678"
    assert rows[2]["age"] is None
    assert spark.getActiveSession() is not None


def test_columns_and_a_filter_are_read_where_the_rows_are(graph: Graph) -> None:
    frame = graph.spark.nodes("Person", columns=["@id", "age"], filter="age > 30 OR name = 'Cy'")
    assert sorted(map(tuple, frame.collect())) == [("Ann", 41), ("Cy", None)]
    blobs = graph.spark.nodes("Person", columns=["photo"], filter="photo IS NOT NULL OR age = 41")
    assert [bytes(row[0]) for row in blobs.collect()] == [b"png"]


def test_edges_have_their_ends(graph: Graph) -> None:
    frame = graph.spark.edges("Knows", columns=["@src", "@dst", "since"], filter="\"@src\" = 'Ann'")
    assert [tuple(row) for row in frame.collect()] == [("Ann", "Bob", 1)]


def test_an_older_state_is_read_as_it_was(graph: Graph) -> None:
    before = graph.branch().snapshot().version
    first = graph.snapshot(1)
    assert before > 1
    assert graph.spark.nodes("Person", at=first).count() == 1
    assert graph.spark.nodes("Person", at=first.commit).count() == 1
    assert graph.spark.edges("Knows", at=first).count() == 0


def test_unknown_names_are_refused_before_a_job_starts(graph: Graph) -> None:
    with pytest.raises(TypeNotFoundError, match="Persom"):
        graph.spark.nodes("Persom")
    with pytest.raises(InvalidArgumentError, match="no property 'agee'"):
        graph.spark.nodes("Person", columns=["agee"])
    with pytest.raises(InvalidArgumentError, match="no property 'agee'"):
        graph.spark.nodes("Person", filter="agee > 3")
    with pytest.raises(InvalidArgumentError, match="is not a condition"):
        graph.spark.nodes("Person", filter="age >")


def test_frames_call_nodes_by_type_and_id(graph: Graph) -> None:
    vertices, edges = graph.spark.frames()
    assert {"id", "type", "key", "name", "title"} <= set(vertices.columns)
    ids = {row["id"]: row["age"] for row in vertices.select("id", "age").collect()}
    assert ids == {"Person:Ann": "41", "Person:Bob": "29", "Person:Cy": None, "Project:Moon": "old"}
    found = {tuple(row) for row in edges.select("src", "dst", "type").collect()}
    assert found == {
        ("Person:Ann", "Person:Bob", "Knows"),
        ("Person:Bob", "Person:Cy", "Knows"),
        ("Person:Ann", "Project:Moon", "Works"),
    }


@pytest.mark.smoke
def test_the_data_source_reads_with_pushed_filters(graph: Graph) -> None:
    spark = graph.spark.session
    reader = spark.read.format("omnigraph").option("uri", graph.uri).option("type", "Person")
    frame = reader.load()
    assert [row["name"] for row in frame.where("age > 30 and born is not null").collect()] == [
        "Ann"
    ]
    assert frame.where("serial = 18446744073709551615").count() == 1
    assert frame.where("seen = timestamp'2026-01-02 03:04:05.678Z'").count() == 1
    few = reader.option("columns", "name,age").option("filter", "age < 30").load()
    assert [tuple(row) for row in few.collect()] == [("Bob", 29)]
    old = spark.read.format("omnigraph").options(uri=graph.uri, type="Person")
    assert old.option("snapshot", graph.snapshot(1).commit.id).load().count() == 1


def test_every_session_of_a_spark_reads_though_one_alone_takes_the_data_source(
    graph: Graph,
) -> None:
    other = graph.spark.session.newSession()
    assert graph.spark.on(other).session is other
    assert graph.spark.on(other).nodes("Person").count() == 3


def test_the_data_source_reads_the_state_at_which_its_frame_was_made(
    spark: SparkSession, tmp_path: Path
) -> None:
    with omnigraph.create(tmp_path / "g", schema="node A { name: String @key }") as graph:
        main = graph.branch()
        main.load(pa.table({"name": ["a"]}), mode="append", type="A")
        reader = graph.spark.on(spark).session.read.format("omnigraph")
        frame = reader.options(uri=graph.uri, type="A").load()
        main.load(pa.table({"name": ["b"]}), mode="append", type="A")
        assert [row["name"] for row in frame.collect()] == ["a"]
        main.apply_schema("node A { name: String @key  age: I32? }")
        assert frame.where("name > ''").count() == 1
        assert reader.load().columns == ["@id", "age", "name"]


@pytest.mark.smoke
def test_changes_are_told_commit_by_commit(graph: Graph) -> None:
    graph.create_branch("fix")
    start = graph.branch("fix").head
    fix = graph.branch("fix")
    fix.mutate('query q() { update Person set { age: 30 } where name = "Bob" }')
    fix.load(pa.table({"name": ["Di"]}), mode="append", type="Person")
    frame = graph.spark.changes(start, fix)
    rows = [(row["op"], row["type"], row["id"]) for row in frame.orderBy("version", "id").collect()]
    assert rows == [("update", "Person", "Bob"), ("insert", "Person", "Di")]
    updated = frame.where("op = 'update'").selectExpr(
        "get_json_object(before, '$.properties.age')", "get_json_object(after, '$.properties.age')"
    )
    assert [tuple(row) for row in updated.collect()] == [("29", "30")]
    assert graph.spark.changes(start, fix, ops=["delete"]).count() == 0
    with pytest.raises(InvalidArgumentError, match="not on the way"):
        graph.spark.changes(fix, "main")


def test_a_graph_in_memory_is_refused() -> None:
    with (
        omnigraph.create("memory://spark-reads", schema="node A { name: String @key }") as graph,
        pytest.raises(StorageRefusedError, match="memory of this process"),
    ):
        graph.spark.nodes("A")

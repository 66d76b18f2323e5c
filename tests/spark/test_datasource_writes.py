"""`format("omnigraph")` as a sink and as a stream, and the errors that Spark passes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException

import omnigraph
from omnigraph import Graph
from omnigraph.bulk.task_runner import LocalRunner
from omnigraph.engine.load_dispatch import LoadRequest, _create_runner
from omnigraph.errors import InvalidArgumentError
from omnigraph.spark.datasource_writers import StagedSource
from omnigraph.writers.inputs import InputOptions
from omnigraph.writers.load_records import LoadMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = "name string, age int"


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.create(tmp_path / "g", schema=SCHEMA) as made:
        yield made


def writer(frame: DataFrame, **options: str) -> DataFrameWriter:
    return frame.write.format("omnigraph").options(**options).mode("append")


def people(graph: Graph) -> list[tuple[Any, ...]]:
    text = "query q() { match { $p: Person } return { $p.name, $p.age, $p.city } }"
    return sorted(tuple(row.values()) for row in graph.branch().query(text).to_pylist())


def staged(graph: Graph) -> list[Path]:
    return [
        path for path in Path(graph.uri).rglob("*") if "staging" in str(path) and path.is_file()
    ]


def test_the_commit_beside_the_driver_starts_no_spark_of_its_own(graph: Graph) -> None:
    rows = StagedSource((), "Person", ("name",))
    request = LoadRequest(LoadMode.APPEND, InputOptions())
    session = graph.branch()._session
    assert isinstance(_create_runner(request, session.resources, rows), LocalRunner)


def test_a_frame_is_appended_merged_and_overwritten_in_one_commit_each(
    graph: Graph, spark: SparkSession
) -> None:
    first = spark.createDataFrame(
        [("Ann", 41, "Bonn"), ("Bob", 29, None)], f"{PEOPLE}, city string"
    )
    before = graph.branch().snapshot().version
    writer(first.repartition(2), type="Person", message="from Spark").save(graph.uri)
    assert graph.branch().snapshot().version == before + 1
    assert graph.branch().head.message == "from Spark"
    # A merge of some columns keeps the values of the others.
    some = spark.createDataFrame([("Ann", 42), ("Cy", 7)], PEOPLE)
    writer(some, uri=graph.uri, type="Person", mode="merge").save()
    assert people(graph) == [("Ann", 42, "Bonn"), ("Bob", 29, None), ("Cy", 7, None)]
    edges = spark.createDataFrame([("Ann", "Bob", 3)], "`from` string, `to` string, since int")
    writer(edges, type="Knows").save(graph.uri)
    writer(edges.limit(0), type="Knows").mode("overwrite").save(graph.uri)
    assert graph.spark.on(spark).edges("Knows").count() == 0
    assert staged(graph) == []


def test_a_write_that_is_repeated_with_its_key_is_one_commit(
    graph: Graph, spark: SparkSession
) -> None:
    frame = spark.createDataFrame([("Ann", 41)], PEOPLE)
    for _ in range(2):
        writer(frame, type="Person", key="monday").save(graph.uri)
    assert graph.branch().snapshot().version == 1
    assert staged(graph) == []


def test_a_write_that_fails_leaves_nothing_and_says_why_with_a_code(
    graph: Graph, spark: SparkSession
) -> None:
    twice = spark.createDataFrame([("Ann", 41), ("Ann", 42)], PEOPLE)
    for frame, options, reason in [
        (twice, {"type": "Person"}, r"\[write_refused\].*Ann"),
        (twice, {"type": "Persom"}, r"\[type_not_found\].*Persom.*did you mean 'Person'"),
        (twice, {"type": "Person", "brunch": "x"}, r"\[invalid_argument\] brunch: there is no"),
        (twice, {"type": "Person", "mode": "upsert"}, r"\[invalid_argument\] mode: 'upsert'"),
        (twice.withColumnRenamed("age", "agee"), {"type": "Person"}, r"\[load_error\].*agee"),
    ]:
        with pytest.raises(PySparkException, match=reason) as failed:
            writer(frame, **options).save(graph.uri)
        assert "Traceback" not in str(failed.value)
    assert graph.branch().snapshot().version == 0
    assert staged(graph) == []


def test_a_task_that_fails_is_tried_again_and_its_rows_count_once(
    graph: Graph, spark: SparkSession, tmp_path: Path
) -> None:
    mark = tmp_path / "failed"

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if not mark.exists():
            mark.touch()
            raise ValueError("the first attempt")

    rows = spark.range(0, 5000, 1, 2).selectExpr(
        "cast(id AS string) AS name", "cast(id AS int) age"
    )
    writer(rows.mapInArrow(fail_once, PEOPLE), type="Person").save(graph.uri)
    assert mark.exists()
    assert len(people(graph)) == 5000
    assert staged(graph) == []


def test_frames_of_several_types_are_one_commit(graph: Graph, spark: SparkSession) -> None:
    nodes = spark.createDataFrame([("Ann", 41), ("Bob", 29)], PEOPLE)
    edges = spark.createDataFrame([("Ann", "Bob")], "`from` string, `to` string")
    result = graph.spark.load({"Person": nodes, "Knows": edges}, mode="append")
    assert (result.nodes, result.edges) == ({"Person": 2}, {"Knows": 1})
    assert graph.branch().snapshot().version == 1
    with pytest.raises(InvalidArgumentError, match="names its types itself"):
        graph.spark.load({"Person": nodes}, type="Person", mode="append")
    with pytest.raises(InvalidArgumentError, match="of which type"):
        graph.spark.load(nodes, mode="append")


def test_a_stream_of_changes_is_written_to_another_graph_exactly_once(
    graph: Graph, spark: SparkSession, tmp_path: Path
) -> None:
    graph.branch().load(
        pa.table({"name": ["Ann", "Bob"], "age": [1, 2]}), mode="append", type="Person"
    )
    graph.branch().load(pa.table({"name": ["Ann"], "age": [3]}), mode="merge", type="Person")
    checkpoint = tmp_path / "checkpoint"

    def run(copy: Graph) -> None:
        changes = spark.readStream.format("omnigraph").options(types="Person", ops="insert,update")
        rows = (
            changes.option("maxRowsPerTrigger", "1")
            .load(graph.uri)
            .selectExpr(
                "id AS name", "cast(get_json_object(after, '$.properties.age') AS int) AS age"
            )
        )
        sink = rows.writeStream.format("omnigraph").options(type="Person", mode="merge")
        sink = sink.option("path", copy.uri).option("checkpointLocation", str(checkpoint))
        sink.trigger(availableNow=True).start().awaitTermination()

    with omnigraph.create(tmp_path / "copy", schema=SCHEMA) as copy:
        run(copy)
        assert people(copy) == [("Ann", 3, None), ("Bob", 2, None)]
        assert copy.branch().snapshot().version == 2
        # As if the query had ended between the commit of the graph and that of Spark.
        for path in (checkpoint / "commits").iterdir():
            if path.name.strip(".").startswith("1"):
                path.unlink()
        run(copy)
        assert copy.branch().snapshot().version == 2
        graph.branch().load(pa.table({"name": ["Cy"], "age": [4]}), mode="append", type="Person")
        run(copy)
        assert people(copy) == [("Ann", 3, None), ("Bob", 2, None), ("Cy", 4, None)]
        assert copy.branch().snapshot().version == 3


def test_without_a_type_the_changes_of_a_branch_are_read(graph: Graph, spark: SparkSession) -> None:
    main = graph.branch()
    main.load(pa.table({"name": ["Ann"]}), mode="append", type="Person")
    first = main.head.id
    main.load(pa.table({"name": ["Bob"]}), mode="append", type="Person")
    reader = spark.read.format("omnigraph")
    assert [
        (row["op"], row["id"]) for row in reader.load(graph.uri).orderBy("version").collect()
    ] == [
        ("insert", "Ann"),
        ("insert", "Bob"),
    ]
    later = reader.option("start", first).load(graph.uri)
    assert [row["id"] for row in later.collect()] == ["Bob"]
    with pytest.raises(AnalysisException, match=r"\[invalid_argument\] typos: there is no"):
        reader.option("typos", "Person").load(graph.uri)


def test_the_source_is_known_to_every_session_without_being_registered(
    graph: Graph, spark: SparkSession
) -> None:
    graph.branch().load(
        pa.table({"name": ["Ann", "Bob"], "age": [41, 29]}), mode="append", type="Person"
    )
    other = spark.newSession()
    # Where filters are not pushed down, Spark evaluates them alone.
    other.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    rows = other.read.format("omnigraph").option("type", "Person").load(graph.uri)
    assert [row["name"] for row in rows.where("age > 30").collect()] == ["Ann"]


def test_types_are_views_of_spark_sql_at_one_commit(graph: Graph, spark: SparkSession) -> None:
    main = graph.branch()
    main.load(pa.table({"name": ["Ann"], "age": [41]}), mode="append", type="Person")
    try:
        assert graph.spark.create_views("og_") == ["og_Person", "og_Knows"]
        main.load(pa.table({"name": ["Bob"], "age": [29]}), mode="append", type="Person")
        assert [row["name"] for row in spark.sql("SELECT name FROM og_Person").collect()] == ["Ann"]
        graph.spark.create_views("og_")
        found = spark.sql("SELECT name FROM og_Person WHERE age < 30 AND name <> 'Cy'").collect()
        assert [row["name"] for row in found] == ["Bob"]
        assert spark.table("og_Knows").count() == 0
    finally:
        for name in ("og_Person", "og_Knows"):
            spark.catalog.dropTempView(name)

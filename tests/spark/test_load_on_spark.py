from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.bulk import splits
from omnigraph.bulk.task_runner import Stage
from omnigraph.engine import load_dispatch
from omnigraph.errors import KeyConflictError, LoadError
from omnigraph.spark.frame_load import load_frames
from omnigraph.spark.spark_jobs import SparkRunner
from spark import load_tasks
from spark.load_tasks import FailingUnit, write_then_fail

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person { name: String @key  age: I32?  @range(age, 0..150) }
edge Knows: Person -> Person { since: I64? }
"""


@pytest.fixture
def graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Graph]]:
    monkeypatch.setattr(splits, "SPLIT_BYTES", 8_000)
    made = [
        omnigraph.create(str(tmp_path / name), schema=SCHEMA, durable=False)
        for name in ("spark", "local")
    ]
    yield made
    for graph in made:
        graph.close()


def crowd(count: int) -> list[Any]:
    people = [{"type": "Person", "data": {"name": f"p{n}", "age": n % 90}} for n in range(count)]
    edges = [
        {"edge": "Knows", "from": f"p{n}", "to": f"p{n * 7 % count}", "id": f"k{n}", "data": {}}
        for n in range(count)
    ]
    return [*people, *edges]


def lines(folder: Path, records: list[Any]) -> Path:
    path = folder / "data.jsonl"
    texts = [each if isinstance(each, str) else json.dumps(each) for each in records]
    path.write_text("\n".join(texts) + "\n")
    return path


def exported(branch: Branch) -> bytes:
    return b"".join(branch.export())


@pytest.mark.smoke
@pytest.mark.usefixtures("spark")
def test_a_load_on_spark_gives_what_a_local_load_gives(graphs: list[Graph], tmp_path: Path) -> None:
    on_spark, local = (graph.branch() for graph in graphs)
    path = lines(tmp_path, crowd(300))
    told: list[Stage] = []
    result = on_spark.load(path, mode="append", engine="spark", stages=told.append)
    assert result.nodes == local.load(path, mode="append", engine="local").nodes
    assert told[-1].total == len(splits.plan_file_ranges(str(path), {}, type_name=None)) > 3
    changed = lines(tmp_path, [{"type": "Person", "data": {"name": f"p{n}"}} for n in range(350)])
    on_spark.load(changed, mode="merge", engine="spark")
    local.load(changed, mode="merge", engine="local")
    assert exported(on_spark) == exported(local)
    assert not list((tmp_path / "spark" / "__manifest" / "staging").rglob("*.hashes"))


def test_a_frame_changes_only_its_columns(spark: SparkSession, graphs: list[Graph]) -> None:
    main = graphs[0].branch()
    main.load(crowd(300), mode="append")
    before = {row["@id"]: row for row in main.snapshot().to_arrow("Person").to_pylist()}
    frame = spark.range(310).selectExpr("concat('p', id) as name", "99 as age")
    main.load(frame, type="Person", mode="merge")
    after = {row["@id"]: row for row in main.snapshot().to_arrow("Person").to_pylist()}
    assert len(after) == 310
    assert all(after[id_] == row | {"age": 99} for id_, row in before.items())


@pytest.mark.usefixtures("spark")
def test_mistakes_are_told_with_their_lines_and_can_be_left_out(
    graphs: list[Graph], tmp_path: Path
) -> None:
    main = graphs[0].branch()
    records: list[Any] = crowd(300)
    records[299] = '{"type": "Person", broken'
    records += [
        {"type": "Person", "data": {"name": "p3"}},
        {"edge": "Knows", "from": "no", "to": "p1"},
    ]
    path = lines(tmp_path, records)
    with pytest.raises(LoadError) as refused:
        main.load(path, mode="append", engine="spark")
    found = [str(each.place).rpartition(" ")[2] for each in refused.value.violations]
    assert {"300", "601", "602"} <= set(found)
    assert main.count("Person") == 0
    result = main.load(
        path, mode="append", engine="spark", on_error="quarantine", rejects=tmp_path / "rejects"
    )
    assert main.count("Person") == 299
    assert result.rejects is not None
    assert pq.read_table(result.rejects).num_rows == result.rejected
    with pytest.raises(KeyConflictError):
        main.load(lines(tmp_path, crowd(2)), mode="append", engine="spark")


@pytest.mark.smoke
def test_frames_of_several_types_are_one_commit(spark: SparkSession, graphs: list[Graph]) -> None:
    on_spark, local = (graph.branch() for graph in graphs)
    people = spark.range(1_000).selectExpr("concat('p', id) as name", "cast(id % 90 as int) as age")
    edges = spark.range(2_000).selectExpr(
        "concat('k', id) as id", "concat('p', id % 1000) as `from`", "concat('p', id % 7) as `to`"
    )
    before = on_spark.head.version
    result = load_frames(on_spark, [("Person", people), ("Knows", edges)], mode="append", key="one")
    assert (result.nodes, result.edges) == ({"Person": 1_000}, {"Knows": 2_000})
    assert on_spark.head.version == before + 1
    again = load_frames(on_spark, [("Person", people), ("Knows", edges)], mode="append", key="one")
    assert again.commit.id == result.commit.id
    local.load(people.toArrow(), type="Person", mode="append")
    local.load(edges.toArrow(), type="Knows", mode="append")
    assert exported(on_spark) == exported(local)


def test_the_rows_of_a_frame_are_staged_by_as_many_tasks_as_are_told(
    spark: SparkSession, graphs: list[Graph]
) -> None:
    told: list[Stage] = []
    frame = spark.range(0, 6, 1, 6).mapInArrow(load_tasks.named_slowly, "name string")
    graphs[0].spark.on(spark).load(frame, type="Person", mode="append", progress=told.append)
    staged = [stage for stage in told if stage.name == "stage Person"]
    assert {stage.total for stage in staged} == {6}
    done = [stage.done for stage in staged]
    assert done == sorted(done)
    assert len(set(done)) > 2, "it is told while the tasks run"
    assert done[-1] == 6


def test_a_frame_is_mapped_by_expressions(spark: SparkSession, graphs: list[Graph]) -> None:
    graph = graphs[0]
    frame = spark.createDataFrame([("ada", "36"), ("bob", None)], "who string, years string")
    mapping = {"name": "upper(who)", "age": "cast(years as int)"}
    graph.spark.load(frame, type="Person", mode="append", mapping=mapping)
    assert exported(graph.branch()).count(b'"name":"ADA"') == 1
    graph.branch().load(frame.selectExpr("who as name"), type="Person", mode="append")
    assert graph.branch().count("Person") == 4


def test_rows_of_a_task_that_failed_after_writing_are_there_once(
    spark: SparkSession, graphs: list[Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        """Runs the writing of units so that each of them fails once."""

        def run(self, units: Sequence[Any], task: Callable[[Any], Any], *, stage: str) -> list[Any]:
            runner = SparkRunner(spark)
            if stage != "write":
                return runner.run(units, task, stage=stage)
            failing = [FailingUnit(unit, str(tmp_path)) for unit in units]
            return runner.run(failing, write_then_fail, stage=stage)

    monkeypatch.setattr(load_dispatch, "_create_runner", lambda *_: Failing())
    main = graphs[0].branch()
    main.load(lines(tmp_path, crowd(300)), mode="append", engine="spark")
    assert (main.count("Person"), main.count("Knows")) == (300, 300)
    assert len(list(tmp_path.glob("failed-*"))) > 3
    assert graphs[0].check().problems == ()

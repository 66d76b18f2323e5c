"""What a program does with a session of a Spark Connect server."""

from __future__ import annotations

from typing import Any

import omnigraph
from omnigraph.bulk.task_runner import Stage
from omnigraph.errors import InvalidArgumentError, StorageError
from omnigraph.spark.spark_jobs import run_tasks
from omnigraph.spark.spark_session import SparkOptions, get_session, is_connect
from spark.spark_tasks import Job, lose_connections


def used(uri: str) -> dict[str, Any]:
    """Read a graph, load into it, and tell what was found."""
    with omnigraph.open(uri) as graph:
        old = graph.spark.nodes("Person", columns=["@id", "age"], filter="age > 40")
        spark = old.sparkSession
        assert is_connect(spark)
        frame = spark.range(5).selectExpr("concat('new', id) as name")
        stages: list[Stage] = []
        loaded = graph.spark.load(frame, type="Person", mode="append", progress=stages.append)
        source = spark.read.format("omnigraph").options(uri=uri, type="Knows")
        vertices, edges = graph.spark.frames()
        return {
            "old": old.count(),
            "least": old.agg({"age": "min"}).collect()[0][0],
            "loaded": dict(loaded.nodes),
            "known": source.load().count(),
            "vertices": vertices.count(),
            "edges": edges.count(),
            "stages": sorted({stage.name for stage in stages}),
            "refused": _refused(),
        }


def _refused() -> str:
    try:
        get_session(SparkOptions(master="local[1]"))
    except InvalidArgumentError as refusal:
        return str(refusal)
    return ""


def failed() -> list[str]:
    """What becomes of an error that another attempt might cure, where there is none."""
    try:
        run_tasks(get_session(), [Job(1), Job(2)], lose_connections, stage="lose")
    except StorageError as error:
        return [type(error).__name__, error.path]
    return []

"""A process whose Java is killed: before a load, a query, an export, and in the middle of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from omnigraph import Graph
from omnigraph.errors import SparkDriverLostError
from omnigraph.pipelines.config.definition import Source
from omnigraph.pipelines.run import pipeline_run as run_module
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.sources import SourceState, open_source
from omnigraph.spark.spark_session import get_session
from spark.pipeline_world import SIMPLE, company, defined, entities, logins

QUERY = "query q() { match { $p: Person } return { $p.handle } }"


def main(folder: Path) -> None:
    """Kill Java several times; each time the error has a type, and the next session is another."""
    logins(folder, "a.jsonl", "ada", "bo")
    with company(folder) as graph:
        _run_that_loses_its_java(folder, graph)
        frame = get_session().createDataFrame(
            [("cy", "Cy", "junior")], "handle string, name string, level string"
        )
        _kill_java()
        _require_lost("stage", lambda: graph.spark.load(frame, type="Person", mode="append"))
        spark = get_session()
        _kill_java()
        _require_lost("use the session", lambda: graph.spark.on(spark).nodes("Person"))
        # Whoever does not hold on to a session gets one that answers.
        rows = graph.branch("main").query(QUERY, engine="spark").to_pylist()
        assert len(rows) == 2, rows
        graph.spark.export(folder / "out")


def _run_that_loses_its_java(folder: Path, graph: Graph) -> None:
    times: list[str] = []

    @contextmanager
    def losing(
        source: Source, found: SourceState, spark: SparkSession, **options: Any
    ) -> Iterator[DataFrame]:
        times.append("opened")
        with open_source(source, found, spark, **options) as rows:
            if len(times) == 1:
                _kill_java()
            yield rows

    setattr(run_module, "open_source", losing)  # noqa: B010 — the module has it from another one
    run = run_pipeline(defined(folder, SIMPLE), RunOptions(wait=lambda _: None))
    (target,) = run.targets
    assert (run.status, target.attempts, times) == ("succeeded", 2, ["opened"] * 2), target
    assert entities(graph) == {"Person": ["ada", "bo"]}


def _kill_java() -> None:
    listed = ["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())]
    for line in subprocess.run(
        listed, capture_output=True, text=True, check=True
    ).stdout.splitlines():
        pid, name = line.split()
        if name == "java":
            os.kill(int(pid), signal.SIGKILL)


def _require_lost(job: str, call: Callable[[], object]) -> None:
    with pytest.raises(
        SparkDriverLostError, match=f"{job}.*the Java process of its driver ended"
    ) as lost:
        call()
    assert lost.value.retryable
    assert "spark.driver.memory" in str(lost.value.hint)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

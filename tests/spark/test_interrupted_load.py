from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import omnigraph
from omnigraph.engine import bulk_loading
from omnigraph.spark.jobs import SparkRunner
from spark.load_tasks import FailingUnit, write_then_wait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "node Person { name: String @key }"


@pytest.fixture(params=[True, False], ids=["handled by PySpark", "handled by nobody"])
def _handled(request: pytest.FixtureRequest) -> Iterator[None]:
    """PySpark cancels all jobs on an interruption, but only if Spark began in the main thread."""
    before = signal.getsignal(signal.SIGINT)
    if not request.param:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("spark", "_handled")
def test_an_interrupted_load_cancels_its_tasks_and_removes_its_notes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Waiting:
        """Runs the writing of units so that none of them ends."""

        def run(self, units: Sequence[Any], task: Callable[[Any], Any], *, stage: str) -> list[Any]:
            assert (task.__name__, stage) == ("write_unit", "write")
            waiting = [FailingUnit(unit, str(tmp_path)) for unit in units]
            return SparkRunner(spark).run(waiting, write_then_wait, stage=stage)

    def interrupt() -> None:
        while not list(tmp_path.glob("waiting-*")):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    path = tmp_path / "people.jsonl"
    path.write_text('{"type": "Person", "data": {"name": "ada"}}\n')
    with omnigraph.create(tmp_path / "graph", schema=SCHEMA, durable=False) as graph:
        main = graph.branch()
        with monkeypatch.context() as patched:
            patched.setattr(bulk_loading, "_runner", lambda *_: Waiting())
            threading.Thread(target=interrupt, daemon=True).start()
            with pytest.raises(KeyboardInterrupt):
                main.load(path, mode="append", engine="spark")
        assert list((tmp_path / "graph" / "__manifest" / "staging").iterdir()) == []
        ended = time.monotonic() + 30
        while spark.sparkContext.statusTracker().getActiveJobsIds():
            assert time.monotonic() < ended, "the job goes on"
            time.sleep(0.05)
        assert main.count("Person") == 0
        main.load(path, mode="append", engine="spark")
        assert main.count("Person") == 1
        assert not graph.check().problems

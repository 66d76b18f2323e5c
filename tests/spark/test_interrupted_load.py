from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine import load_dispatch
from omnigraph.errors import SparkFailedError, WriteRefusedError
from omnigraph.spark.spark_jobs import SparkRunner
from omnigraph.spark.spark_session import handle_interrupts
from spark.load_tasks import FailingUnit, fail_for_good, write_then_wait, write_until_stopped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.load_tasks import SplitResults

SCHEMA = "node Person { name: String @key }"
_WAIT_S = 120


@pytest.fixture(params=[True, False], ids=["handled by the session", "handled by nobody"])
def _handled(request: pytest.FixtureRequest) -> Iterator[None]:
    """A session cancels all jobs on an interruption, but only if it began in the main thread."""
    before = signal.getsignal(signal.SIGINT)
    # Processes of a test run may ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request.param:
        with handle_interrupts():
            pass
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.create(tmp_path / "graph", schema=SCHEMA, durable=False) as found:
        yield found


@dataclass(frozen=True)
class Held:
    """Runs the writing of units by another function, which does not answer."""

    spark: SparkSession
    task: Callable[[FailingUnit], SplitResults]
    folder: Path

    def run(self, units: Sequence[Any], task: Callable[[Any], Any], *, stage: str) -> list[Any]:
        assert (task.__name__, stage) == ("run_tracked", "write")
        held = [FailingUnit(unit, str(self.folder)) for unit in units]
        return SparkRunner(self.spark).run(held, self.task, stage=stage)


@pytest.mark.usefixtures("_handled")
@pytest.mark.parametrize("task", [write_then_wait, write_until_stopped])
def test_an_interrupted_load_cancels_its_tasks_and_removes_what_they_wrote(
    spark: SparkSession,
    graph: Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: Callable[[FailingUnit], SplitResults],
) -> None:
    def interrupt() -> None:
        while not list(tmp_path.glob("waiting-*")):
            time.sleep(0.05)
        assert _data_files(tmp_path / "graph") != []
        os.kill(os.getpid(), signal.SIGINT)

    path = _people(tmp_path, ["ada"])
    main = graph.branch()
    with monkeypatch.context() as patched:
        patched.setattr(load_dispatch, "_create_runner", lambda *_: Held(spark, task, tmp_path))
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            main.load(path, mode="append", engine="spark")
    assert _leftovers(tmp_path / "graph") == []
    ended = time.monotonic() + 30
    while spark.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < ended, "the job goes on"
        time.sleep(0.05)
    assert main.count("Person") == 0
    main.load(path, mode="append", engine="spark")
    assert main.count("Person") == 1
    assert not graph.check().problems


def test_a_load_of_which_a_task_fails_for_good_leaves_nothing(
    spark: SparkSession, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _people(tmp_path, ["ada"])
    with monkeypatch.context() as patched:
        patched.setattr(
            load_dispatch, "_create_runner", lambda *_: Held(spark, fail_for_good, tmp_path)
        )
        with pytest.raises(SparkFailedError):
            graph.branch().load(path, mode="append", engine="spark")
    assert _leftovers(tmp_path / "graph") == []


@pytest.mark.usefixtures("spark")
def test_a_refused_load_leaves_nothing(graph: Graph, tmp_path: Path) -> None:
    path = _people(tmp_path, ["ada", "bob", "ada"])
    with pytest.raises(WriteRefusedError):
        graph.branch().load(path, mode="append", engine="spark")
    assert _leftovers(tmp_path / "graph") == []


@pytest.mark.parametrize("engine", ["spark", "local"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_removes_what_it_wrote(
    graph: Graph, tmp_path: Path, engine: str, number: signal.Signals
) -> None:
    """Many files, so that some are being written when the signal comes."""
    uri = tmp_path / "graph"
    (tmp_path / "in").mkdir()
    for file in range(16):
        _people(
            tmp_path / "in", (f"p{file}-{each}" for each in range(60_000)), name=f"{file}.jsonl"
        )
    program = Path(sys.executable).with_name("omnigraph")
    command = [program, "load", uri, "--data", tmp_path / "in", "--mode", "append"]
    # Lenient: what reads in units.
    command += ["--engine", engine, "--on-error", "quarantine"]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True) as process:
        try:
            _await(lambda: any(uri.glob("__manifest/staging/*/*.staged")))
            process.send_signal(number)
            _, said = process.communicate(timeout=_WAIT_S)
        finally:
            process.kill()
    assert "interrupted; nothing was written" in said
    assert process.returncode == 128 + number
    assert _leftovers(uri) == []
    assert graph.branch().count("Person") == 0


def _people(folder: Path, names: Sequence[str] | Iterator[str], name: str = "people.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f'{{"type":"Person","data":{{"name":"{each}"}}}}\n' for each in names))
    return path


def _data_files(uri: Path) -> list[Path]:
    return list(uri.glob("t/*/data/*"))


def _leftovers(uri: Path) -> list[Path]:
    """What nobody refers to: no commit of these graphs has rows."""
    return [*_data_files(uri), *(uri / "__manifest" / "staging").iterdir()]


def _await(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)

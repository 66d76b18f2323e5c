"""Files as they come: each batch is one commit, however often Spark gives it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.errors import InvalidArgument, RunFailed
from omnigraph.pipelines import stream
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.run import RunOptions
from omnigraph.pipelines.stream import stream_pipeline
from omnigraph.spark.session import session
from omnigraph.storage import Objects, open_objects
from omnigraph.storage.faults import Fault, FaultyObjects, Kind, Steps
from spark.pipeline_world import SIMPLE, company, defined, entities, loads, logins

pytestmark = pytest.mark.usefixtures("spark")


def _crashing(number: int) -> Callable[[str], Objects]:
    steps = Steps(Fault(number, Kind.ERROR, "put_new"))
    return lambda uri: FaultyObjects(open_objects(uri), steps)


def test_new_files_are_taken_once(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        logins(tmp_path, "a.jsonl", "ada")
        pipeline = defined(tmp_path, SIMPLE)
        (first,) = stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        assert (first.status, first.targets[0].rows_read) == ("succeeded", 1)
        assert stream_pipeline(pipeline, RunOptions(), is_available_now=True) == []
        logins(tmp_path, "b.jsonl", "bo")
        # The fourth object of a run tells of the target: the commit is there, the ledger is not.
        with pytest.raises(Exception, match="a fault on purpose"):
            stream_pipeline(pipeline, RunOptions(open_store=_crashing(4)), is_available_now=True)
        assert entities(graph) == {"Person": ["ada", "bo"]}
        (again,) = stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        assert again.targets[0].is_repeated
        assert len(loads(graph)) == 2


def test_a_batch_that_fails_stops_the_stream_and_is_given_again(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        logins(tmp_path, "a.jsonl", "ada", "ada")
        pipeline = defined(tmp_path, SIMPLE)
        with pytest.raises(RunFailed, match="ada"):
            stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        assert entities(graph) == {}
        logins(tmp_path, "a.jsonl", "ada")
        (mended,) = stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        assert mended.status == "succeeded"
        assert entities(graph) == {"Person": ["ada"]}


def test_a_stream_without_an_end_keeps_its_newest_runs_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "RUNS_KEPT_MAX", 1)
    with company(tmp_path) as graph:
        logins(tmp_path, "a.jsonl", "ada")
        pipeline = defined(tmp_path, SIMPLE)
        stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        batches = stream._Batches(
            pipeline, RunOptions(), Resolver.of(pipeline), "source", _noted(tmp_path)
        )
        spark = session()
        for number in (7, 8):
            batches(spark.createDataFrame([(f"p{number}",)], "login string"), number)
        (kept,) = batches.runs
        assert kept.slot.endswith("-00000008")
        assert len(loads(graph)) == 3


def _noted(folder: Path) -> Path:
    """The checkpoint of the stream that ran here."""
    return folder / "company.omni" / "__pipelines" / "people" / "checkpoint"


def test_only_a_folder_of_files_can_be_streamed(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    pipeline = defined(tmp_path, SIMPLE.replace("in/*.jsonl", "in/a.jsonl"))
    with pytest.raises(InvalidArgument, match="a folder or a pattern"):
        stream_pipeline(pipeline, RunOptions())

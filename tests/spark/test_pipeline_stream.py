"""Files as they come: each batch is one commit, however often Spark gives it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.errors import InvalidArgument, RunFailed
from omnigraph.pipelines.run import RunOptions
from omnigraph.pipelines.stream import stream_pipeline
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
        assert first.status == "succeeded"
        assert stream_pipeline(pipeline, RunOptions(), is_available_now=True) == []
        logins(tmp_path, "b.jsonl", "bo")
        # The second event of a run tells of the target: the commit is there, the ledger is not.
        with pytest.raises(Exception, match="a fault on purpose"):
            stream_pipeline(pipeline, RunOptions(open_store=_crashing(2)), is_available_now=True)
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


def test_only_a_folder_of_files_can_be_streamed(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    pipeline = defined(tmp_path, SIMPLE.replace("in/*.jsonl", "in/a.jsonl"))
    with pytest.raises(InvalidArgument, match="a folder or a pattern"):
        stream_pipeline(pipeline, RunOptions())

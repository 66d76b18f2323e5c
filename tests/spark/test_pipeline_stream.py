"""Files as they come: each batch is one commit, however often Spark gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from omnigraph.errors import InvalidArgumentError, RunFailedError, SourceRefusedError
from omnigraph.pipelines.config.definition import FileSource, Pipeline
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.ledger.run_ledger import Ledger
from omnigraph.pipelines.mapping.record_ids import BLOCK, FILE
from omnigraph.pipelines.run import stream_run
from omnigraph.pipelines.run.pipeline_run import RunOptions
from omnigraph.pipelines.run.stream_run import stream_pipeline
from omnigraph.pipelines.sources.file_source import list_files
from omnigraph.spark.spark_session import get_session
from omnigraph.storage import Objects, open_objects
from omnigraph.storage.objects.faults import Fault, FaultKind, FaultyObjects, Steps
from spark.pipeline_world import SIMPLE, company, defined, entities, loads, logins

pytestmark = pytest.mark.usefixtures("spark")


def _crashing(number: int) -> Callable[[str], Objects]:
    steps = Steps(Fault(number, FaultKind.ERROR, "put_new"))
    return lambda uri: FaultyObjects(open_objects(uri), steps)


def test_new_files_are_taken_once(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        logins(tmp_path, "a.jsonl", "ada")
        pipeline = defined(tmp_path, SIMPLE)
        (first,) = stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        assert (first.status, first.targets[0].rows_read) == ("succeeded", 1)
        assert stream_pipeline(pipeline, RunOptions(), is_available_now=True) == []
        logins(tmp_path, "b.jsonl", "bo")
        # The sixth object of a run tells of the target: the commit is there, the ledger is not.
        with pytest.raises(Exception, match="a fault on purpose"):
            stream_pipeline(pipeline, RunOptions(open_store=_crashing(6)), is_available_now=True)
        assert entities(graph) == {"Person": ["ada", "bo"]}
        (again,) = stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        assert again.targets[0].is_repeated
        assert len(loads(graph)) == 2


def test_a_batch_that_fails_stops_the_stream_and_is_given_again(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        logins(tmp_path, "a.jsonl", "ada", "ada")
        pipeline = defined(tmp_path, SIMPLE)
        with pytest.raises(RunFailedError, match="ada"):
            stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        assert entities(graph) == {}
        logins(tmp_path, "a.jsonl", "ada")
        (mended,) = stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        assert mended.status == "succeeded"
        assert entities(graph) == {"Person": ["ada"]}


@pytest.mark.slow
@pytest.mark.smoke
def test_a_file_with_half_of_a_character_stops_the_stream(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        logins(tmp_path, "a.jsonl", "ada")
        path = tmp_path / "in" / "a.jsonl"
        path.write_bytes(path.read_bytes() + rb'{"login": "b\ud800"}')
        pipeline = defined(tmp_path, SIMPLE)
        with pytest.raises(RunFailedError, match="escapes half of a character"):
            stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        assert entities(graph) == {}


def test_a_stream_without_an_end_keeps_its_newest_runs_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_run, "RUNS_KEPT_MAX", 1)
    with company(tmp_path) as graph:
        logins(tmp_path, "a.jsonl", "ada")
        pipeline = defined(tmp_path, SIMPLE)
        stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        batches = _batches(pipeline, tmp_path)
        for number in (7, 8):
            batches(_rows(f"p{number}", tmp_path), number)
        (kept,) = batches.runs
        assert kept.slot.endswith("-00000008")
        assert len(loads(graph)) == 3


class StoppedMeanwhile(Event):
    """A stream whose main thread says that it is stopped when a job of it has failed already."""

    def wait(self, timeout: float | None = None) -> bool:
        """It says so now, not before."""
        assert timeout
        self.set()
        return super().wait(timeout)


def test_a_batch_of_a_stream_that_is_stopped_is_interrupted(tmp_path: Path) -> None:
    with company(tmp_path) as graph:
        logins(tmp_path, "a.jsonl", "ada")
        pipeline = defined(tmp_path, SIMPLE)
        stream_pipeline(pipeline, RunOptions(), is_available_now=True)
        batches = _batches(pipeline, tmp_path)
        batches.stopped = StoppedMeanwhile()
        rows = _rows("bo", tmp_path)
        # The job of a stream that is stopped fails, because it is cancelled.
        with pytest.raises(RunFailedError, match="stopped"):
            batches(rows.mapInArrow(_cancelled, rows.schema), 7)
        # What is tried again after that does not even begin.
        with pytest.raises(RunFailedError, match="stopped"):
            batches(rows, 8)
        ledger = Ledger.open(str(tmp_path / "company.omni"), "people")
        ended = [(run.status, run.targets[0].status) for run in ledger.list_runs()]
        assert ended == [("interrupted", "interrupted")] * 2 + [("succeeded", "succeeded")]
        assert len(loads(graph)) == 1


def _cancelled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        raise ConnectionError("cancelled")
    yield from ()


def _batches(pipeline: Pipeline, folder: Path) -> stream_run._BatchRunner:
    resolver = Resolver.from_environment(pipeline)
    source = resolver.resolve_source("source")
    assert isinstance(source, FileSource)
    streamed = stream_run._StreamSource.open("source", source, list_files(source), get_session())
    return stream_run._BatchRunner(pipeline, RunOptions(), resolver, streamed, _noted(folder))


def _rows(login: str, folder: Path) -> DataFrame:
    path = str(folder / "in" / "a.jsonl")
    columns = f"login string, {FILE} string, {BLOCK} long"
    return get_session().createDataFrame([(login, path, 0)], columns)


def _noted(folder: Path) -> Path:
    """The checkpoint of the stream that ran here."""
    return folder / "company.omni" / "__pipelines" / "people" / "checkpoint"


def test_what_a_stream_raises_tells_no_value_of_the_environment(tmp_path: Path) -> None:
    secret = "s3cret-word"  # noqa: S105 — of this test alone
    options = RunOptions(environment={"PLACE": secret})
    paths = SIMPLE.replace("in/*.jsonl", "${PLACE}/*.jsonl")
    with pytest.raises(SourceRefusedError) as caught:
        stream_pipeline(defined(tmp_path, paths), options)
    assert secret not in str(caught.value)
    assert "${PLACE}" in caught.value.message
    (tmp_path / secret).mkdir()
    (tmp_path / secret / "a.jsonl").write_text('{"login": "ada"}\n{"login": "ada"}\n')
    with company(tmp_path), pytest.raises(RunFailedError) as failed:
        stream_pipeline(defined(tmp_path, paths), options, is_available_now=True)
    assert secret not in str(failed.value)
    assert "${PLACE}/a.jsonl line 2" in failed.value.message


def test_only_a_folder_of_files_can_be_streamed(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    pipeline = defined(tmp_path, SIMPLE.replace("in/*.jsonl", "in/a.jsonl"))
    with pytest.raises(InvalidArgumentError, match="a folder or a pattern"):
        stream_pipeline(pipeline, RunOptions())

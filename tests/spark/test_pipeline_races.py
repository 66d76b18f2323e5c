"""Runs that meet: the same slot twice at once, other graphs, sources that are opened again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from omnigraph.pipelines.config.definition import Source
from omnigraph.pipelines.run import pipeline_run as run_module
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.sources import SourceState, open_source
from spark.pipeline_world import SIMPLE, company, defined, entities, loads, logins

pytestmark = pytest.mark.usefixtures("spark")


def test_a_run_that_another_one_overtakes_ends_with_the_commit_of_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins(tmp_path, "a.jsonl", "ada", "bo")
    pipeline = defined(tmp_path, SIMPLE)

    @contextmanager
    def overtaken(
        source: Source, found: SourceState, spark: SparkSession, **options: Any
    ) -> Iterator[DataFrame]:
        monkeypatch.setattr(run_module, "open_source", open_source)
        # It begins behind the look for the key, and ends before the load.
        assert run_pipeline(pipeline).status == "succeeded"
        with open_source(source, found, spark, **options) as rows:
            yield rows

    monkeypatch.setattr(run_module, "open_source", overtaken)
    with company(tmp_path) as graph:
        (target,) = run_pipeline(pipeline).targets
        assert (target.status, target.is_repeated, target.rows_read) == ("succeeded", True, None)
        assert (target.written, len(loads(graph))) == (2, 1)


def test_a_source_that_was_lost_is_opened_again_unless_a_target_has_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    times: list[str] = []

    @contextmanager
    def lost(
        source: Source, found: SourceState, spark: SparkSession, **options: Any
    ) -> Iterator[DataFrame]:
        times.append("opened")
        with open_source(source, found, spark, **options) as rows:
            is_first = len(times) == 1
            yield rows.mapInArrow(_gone, rows.schema) if is_first else rows
        times.append("closed")

    monkeypatch.setattr(run_module, "open_source", lost)
    with company(tmp_path) as graph:
        run = run_pipeline(defined(tmp_path, SIMPLE), RunOptions(wait=lambda _: None))
        (target,) = run.targets
        assert (target.status, target.attempts, target.rows_read) == ("succeeded", 2, 1)
        assert times == ["opened", "closed", "opened", "closed"]
        assert entities(graph) == {"Person": ["ada"]}


def _gone(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        raise ConnectionError("the snapshot is gone")
    yield from ()


def test_a_graph_that_takes_the_place_of_another_gets_what_that_one_had(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    text = SIMPLE + "ledger: runs\n"
    own = text.replace("mode: append", "run_branch: {name: 'in/{slot}', merge: review}")
    for number, definition in enumerate((text, own)):
        branch = "main" if number == 0 else "in/one"
        with company(tmp_path, f"a{number}.omni"), company(tmp_path, f"b{number}.omni") as other:
            for name in (f"a{number}", f"b{number}"):
                pipeline = defined(tmp_path, definition.replace("company.omni", f"{name}.omni"))
                (target,) = run_pipeline(pipeline, RunOptions(slot="one")).targets
                assert (target.status, target.is_repeated) == ("succeeded", False)
            assert entities(other, branch) == {"Person": ["ada"]}

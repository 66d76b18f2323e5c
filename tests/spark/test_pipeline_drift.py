"""Files whose columns differ, in runs and in streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from omnigraph import Graph
from omnigraph.errors import RunFailedError, SourceRefusedError
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.run.stream_run import stream_pipeline
from omnigraph.pipelines.sources import read_source_state
from omnigraph.pipelines.sources.file_source import read_frame
from spark.pipeline_world import SIMPLE, company, defined

pytestmark = pytest.mark.usefixtures("spark")

AGES = SIMPLE.replace("level: {value: junior}", "level: {value: junior}, age: int(age)")
FIRST = {"login": ["ada"], "age": pa.array([36], pa.int64())}
TEXTS = {"login": ["bo"], "age": ["old"]}
SHORT = {"login": ["cy"]}


def _define(format_: str, drift: str) -> str:
    options = f"format: {format_}, drift: {drift}"
    return AGES.replace('paths: "in/*.jsonl"', f"paths: in, {options}")


def _write(folder: Path, name: str, columns: dict[str, Any]) -> None:
    path, table = folder / "in" / name, pa.table(columns)
    path.parent.mkdir(exist_ok=True)
    if name.endswith("csv"):
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        lines = [table.column_names, *rows]
        path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    elif name.endswith("orc"):
        orc.write_table(table, str(path))
    else:
        pq.write_table(table, str(path))


def _ages(graph: Graph) -> dict[str, int | None]:
    query = "query q() { match { $p: Person } return { $p.handle, $p.age } }"
    rows = graph.branch("main").query(query).to_pylist()
    return {row["p.handle"]: row["p.age"] for row in rows}


@pytest.mark.parametrize("format_", ["parquet", "orc", "csv"])
def test_a_run_fills_columns_that_files_lack(tmp_path: Path, format_: str) -> None:
    _write(tmp_path, f"0.{format_}", SHORT)
    _write(tmp_path, f"1.{format_}", FIRST)
    with company(tmp_path) as graph:
        run = run_pipeline(defined(tmp_path, _define(format_, "{missing: 'null'}")))
        assert (run.status, run.warnings) == ("succeeded", ())
        assert _ages(graph) == {"ada": 36, "cy": None}


@pytest.mark.parametrize("format_", ["parquet", "orc", "csv"])
def test_a_stream_is_not_blocked_by_a_file_that_does_not_fit(tmp_path: Path, format_: str) -> None:
    bad = SHORT if format_ == "csv" else TEXTS
    _write(tmp_path, f"0.{format_}", FIRST)
    with company(tmp_path) as graph:
        strict = defined(tmp_path, _define(format_, "{}"))
        stream_pipeline(strict, RunOptions(), is_available_now=True)
        _write(tmp_path, f"1.{format_}", bad)
        _write(tmp_path, f"2.{format_}", {**FIRST, "login": ["dee"]})
        # It is refused at the start, or by its batch, whenever that is tried.
        refused = (RunFailedError, SourceRefusedError)
        with pytest.raises(refused, match=rf"1\.{format_}.* column age"):
            stream_pipeline(strict, RunOptions(), is_available_now=True)
        lenient = defined(tmp_path, _define(format_, "{missing: skip, changed: skip}"))
        (run,) = stream_pipeline(lenient, RunOptions(), is_available_now=True)
        assert run.status == "succeeded"
        (warning,) = run.warnings
        assert warning.startswith("skipped ")
        assert f"1.{format_}" in warning
        assert _ages(graph) == {"ada": 36, "dee": 36}


@pytest.mark.parametrize("format_", ["parquet", "orc", "csv"])
def test_new_files_have_the_columns_of_the_oldest_one(tmp_path: Path, format_: str) -> None:
    text = _define(format_, "{}").replace("paths: in", "paths: in, new_files: true")
    _write(tmp_path, f"0.{format_}", FIRST)
    with company(tmp_path) as graph:
        pipeline = defined(tmp_path, text)
        assert run_pipeline(pipeline).status == "succeeded"
        _write(tmp_path, f"1.{format_}", {**FIRST, "login": ["bo"], "team": ["core"]})
        _write(tmp_path, f"2.{format_}", {**FIRST, "login": ["dee"]})
        assert run_pipeline(pipeline).status == "succeeded"
        assert _ages(graph) == {"ada": 36, "bo": 36, "dee": 36}
        _write(tmp_path, f"3.{format_}", SHORT)
        run = run_pipeline(pipeline)
        assert f"3.{format_} has no column age" in str(run.targets[0].error)


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_a_number_that_the_first_file_has_no_room_for_is_kept(
    tmp_path: Path, format_: str, spark: SparkSession
) -> None:
    _write(tmp_path, f"0.{format_}", {"size": pa.array([1], pa.int32())})
    _write(tmp_path, f"1.{format_}", {"size": pa.array([2**40], pa.int64())})
    source = FileSource((str(tmp_path / "in"),))
    rows = read_frame(source, read_source_state(source).listing, spark).collect()
    assert sorted(row["size"] for row in rows) == [1, 2**40]

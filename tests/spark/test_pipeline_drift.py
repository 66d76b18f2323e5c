"""Files whose columns differ, in runs and in streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from omnigraph import Graph
from omnigraph.errors import RunFailedError, SourceRefusedError
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.run.stream_run import stream_pipeline
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

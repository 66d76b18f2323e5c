"""A CSV file has the same records, whatever reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph, LoadEngineName
from omnigraph.errors import LoadError
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.run.stream_run import stream_pipeline
from omnigraph.pipelines.sources import csv_frames
from omnigraph.storage.objects.remote_store import create_s3_client
from spark.pipeline_world import defined
from stores import S3Server

pytestmark = pytest.mark.usefixtures("spark")

SCHEMA = "node Person { name: String @key  nick: String?  note: String? }"
SHORT = b"dan,z\r\n"
PEOPLE = (
    b"\xef\xbb\xbfname,nick,note\r\n"
    b'ada,"",1\r\n'
    b'bo,,"a,b"\r\n'
    b'cy,"x\r\ny",\r\n'
    b"\r\n" + SHORT + b'"eve ""e""", ,last'
)
ROWS: list[dict[str, str | None]] = [
    {"name": "ada", "nick": "", "note": "1"},
    {"name": "bo", "nick": None, "note": "a,b"},
    {"name": "cy", "nick": "x\r\ny", "note": None},
    {"name": 'eve "e"', "nick": " ", "note": "last"},
]
SHORT_LINE = 7

PIPELINE = """
graphs: {company: people.omni}
source: {kind: files, paths: PATHS}
into:
  - graph: company
    mode: append
    on_error: quarantine
    rejects: bad
    max_rejected: 50%
    map:
      nodes:
        - {type: Person, set: {name: name, nick: nick, note: note}}
"""

Lines = list[int]


def _load(graph: Graph, folder: Path) -> Lines:
    """A load at once leaves nothing out: it names what it refuses."""
    path = folder / "in" / "people.csv"
    with pytest.raises(LoadError) as refused:
        graph.branch().load(path, type="Person", mode="append")
    assert refused.value.count == 1
    path.write_bytes(PEOPLE.replace(SHORT, b""))
    graph.branch().load(path, type="Person", mode="append")
    return [refused.value.record]


def _load_in_bulk(engine: LoadEngineName) -> Callable[[Graph, Path], Lines]:
    def load(graph: Graph, folder: Path) -> Lines:
        result = graph.branch().load(
            folder / "in" / "people.csv",
            type="Person",
            mode="append",
            engine=engine,
            on_error="quarantine",
            rejects=folder / "bad",
        )
        return _rejected_lines(result.rejects)

    return load


def _run(paths: str) -> Callable[[Graph, Path], Lines]:
    def run(_graph: Graph, folder: Path) -> Lines:
        options = RunOptions(environment={"SECRET": "test", "ID": "test"})
        (target,) = run_pipeline(defined(folder, PIPELINE.replace("PATHS", paths)), options).targets
        assert target.error is None
        # The run shows no value of the environment, of which the path may hold one.
        return _rejected_lines(str(folder / "bad"))

    return run


def _stream(_graph: Graph, folder: Path) -> Lines:
    pipeline = defined(folder, PIPELINE.replace("PATHS", "in/*.csv"))
    (run,) = stream_pipeline(pipeline, RunOptions(), is_available_now=True)
    return _rejected_lines(run.targets[0].rejects)


def _rejected_lines(rejects: str | None) -> Lines:
    assert rejects is not None
    lines: Lines = pq.read_table(rejects)["number"].to_pylist()
    return lines


WAYS: dict[str, Callable[[Graph, Path], Lines]] = {
    "load": _load,
    "bulk": _load_in_bulk("local"),
    "bulk on Spark": _load_in_bulk("spark"),
    "pipeline": _run("in/people.csv"),
    "pipeline with an encoding": _run("in/wide.csv, encoding: utf-16"),
    "pipeline with columns": _run(
        "in/people.csv, columns: 'name string, nick string, note string'"
    ),
    "stream": _stream,
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "people.csv").write_bytes(PEOPLE)
    return omnigraph.create(tmp_path / "people.omni", schema=SCHEMA, durable=False)


@pytest.mark.parametrize("way", list(WAYS))
def test_a_csv_file_has_the_same_rows_in_loads_and_pipelines(
    tmp_path: Path, graph: Graph, way: str
) -> None:
    if "encoding" in way:
        (tmp_path / "in" / "wide.csv").write_bytes(PEOPLE.decode("utf-8-sig").encode("utf-16"))
    with graph:
        lines = WAYS[way](graph, tmp_path)
        assert (_rows(graph), lines) == (ROWS, [SHORT_LINE])


@pytest.mark.parametrize("range_bytes", [7, 64 * 1024**2])
def test_a_csv_file_has_the_same_rows_on_s3_and_in_ranges(
    tmp_path: Path,
    graph: Graph,
    s3: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    range_bytes: int,
) -> None:
    monkeypatch.setattr(csv_frames, "_RANGE_BYTES", range_bytes)
    bucket = s3.new_bucket()
    obstore.put(create_s3_client(f"s3://{bucket}", s3.options), "people.csv", PEOPLE)
    options = dict(s3.options) | {
        "aws_secret_access_key": "${SECRET}",
        "aws_access_key_id": "${ID}",
    }
    paths = f"'s3://{bucket}/people.csv', options: {json.dumps(options)}"
    with graph:
        lines = _run(paths)(graph, tmp_path)
        assert (_rows(graph), lines) == (ROWS, [SHORT_LINE])
    s3.forget(bucket)


def _rows(graph: Graph) -> list[dict[str, Any]]:
    lines = [line for part in graph.branch().export() for line in part.splitlines()]
    found = [json.loads(line)["data"] for line in lines]
    return sorted(({name: each.get(name) for name in ROWS[0]} for each in found), key=_name_of)


def _name_of(row: dict[str, Any]) -> str:
    return str(row["name"])

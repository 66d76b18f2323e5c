"""A merge changes what a mapping sets, and nothing else, whatever a file lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph import Graph
from omnigraph.pipelines.ledger.run_ledger import TargetRun
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from spark.pipeline_world import company, defined

pytestmark = pytest.mark.usefixtures("spark")

HEAD = "graphs: {company: company.omni}\n"
PEOPLE = (
    HEAD
    + """
source: {kind: files, paths: people.csv}
into:
  - graph: company
    map:
      nodes:
        - {type: Person, set: {handle: login, name: full, level: {value: junior}}}
"""
)
AGES = (
    HEAD
    + """
sources:
  ages: {kind: files, paths: ages.csv}
  starts: {kind: files, paths: "starts/*.parquet"}
into:
  - graph: company
    map:
      nodes:
        - {type: Person, source: ages, set: {handle: login, age: int(age)}}
        - {type: Person, source: starts, set: {handle: login, startedOn: started}}
"""
)
QUERY = """query q() { match { $p: Person }
  return { $p.handle, $p.name, $p.level, $p.age, $p.startedOn } order { $p.handle asc } }"""


def _run(folder: Path, text: str, name: str) -> TargetRun:
    pipeline = defined(folder, text, name=name)
    (target,) = run_pipeline(pipeline, RunOptions(wait=lambda _: None)).targets
    return target


def _people(graph: Graph) -> list[tuple[Any, ...]]:
    rows = graph.branch("main").query(QUERY).to_pylist()
    return [tuple(None if each is None else str(each) for each in row.values()) for row in rows]


def _starts(folder: Path, name: str, columns: dict[str, list[Any]]) -> None:
    (folder / "starts").mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / "starts" / name)


def test_one_node_is_fed_from_several_sources(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("login,full\nada,Ada\nbo,Bo\n")
    (tmp_path / "ages.csv").write_text("login,age\nada,36\n")
    _starts(tmp_path, "a.parquet", {"login": ["bo"], "started": ["2020-01-02"]})
    with company(tmp_path) as graph:
        assert _run(tmp_path, PEOPLE, "people").status == "succeeded"
        merged = _run(tmp_path, AGES, "ages")
        assert (merged.status, merged.error) == ("succeeded", None)
        both = [
            ("ada", "Ada", "junior", "36", None),
            ("bo", "Bo", "junior", None, "2020-01-02"),
        ]
        assert _people(graph) == both
        (tmp_path / "people.csv").write_text("login,full\nada,Ada L\nbo,Bo\n")
        assert _run(tmp_path, PEOPLE, "people").status == "succeeded"
        assert _people(graph) == [("ada", "Ada L", *both[0][2:]), both[1]]
        # An entity that is new cannot be made of some of its properties.
        (tmp_path / "ages.csv").write_text("login,age\ncy,50\n")
        failed = _run(tmp_path, AGES, "ages")
        assert failed.status == "failed"
        assert "name" in str(failed.error)
        # A table that lacks a column of the others does not set it to null.
        _starts(tmp_path, "b.parquet", {"login": ["ada"]})
        failed = _run(tmp_path, AGES, "ages")
        assert failed.status == "failed"
        assert "b.parquet has no column started" in str(failed.error)
        (tmp_path / "ages.jsonl").write_text(json.dumps({"login": "ada"}) + "\n")
        declared = 'paths: ages.jsonl, columns: "login string, age int"'
        text = PEOPLE.replace("paths: people.csv", declared)
        text = text.replace("name: full, level: {value: junior}", "age: age")
        failed = _run(tmp_path, text, "declared")
        assert "no record of the source has age" in str(failed.error)
        assert _people(graph)[0][3] == "36"

"""Which record of an entity counts, and files whose numbers have several widths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from omnigraph.errors import PipelineInvalidError, SourceRefusedError
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.run.pipeline_run import run_pipeline
from omnigraph.pipelines.sources import open_source, read_source_state
from spark.pipeline_world import company, defined

pytestmark = pytest.mark.usefixtures("spark")

TEXT = """
graphs: {company: company.omni}
source: {kind: files, paths: "in/*.csv"}
into:
  - graph: company
    on_error: quarantine
    rejects: rejects
    max_rejected: 50%
    map:
      nodes:
        - type: Person
          latest: [at, number]
          set: {handle: login, name: name, level: {value: junior}, age: int(age)}
        - {type: Team, distinct: true, set: {slug: team, name: team}}
      edges:
        - {type: MemberOf, latest: at, from: login, to: team}
"""


def test_the_last_record_of_an_entity_counts(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = ["login,name,age,team,at,number"]
    lines += ["ada,old,1,core,2026-01-01,1", "ada,new,2,core,2026-01-02,1"]
    lines += ["ada,tie,3,core,2026-01-02,0", "bo,bo,4,core,,1", "bo,bad,x,core,2026-01-03,1"]
    (tmp_path / "in" / "a.csv").write_text("\n".join(lines) + "\n")
    with company(tmp_path) as graph:
        done = run_pipeline(defined(tmp_path, TEXT)).targets[0]
        assert done.status == "succeeded", done.error
        # A record that cannot be mapped is reported, and hides no other.
        assert done.rejected == 1
        text = "query q() { match { $p: Person } return { $p.handle, $p.name, $p.age } }"
        found: Any = graph.branch("main").query(text).to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in found) == [("ada", "new", 2), ("bo", "bo", 4)]
        assert done.entities["edge:MemberOf"] == 2


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("login,name,age,team,at,number\n")
    with company(tmp_path):
        wrong = TEXT.replace("latest: at,", "latest: when_it_was,")
        failed = run_pipeline(defined(tmp_path, wrong)).targets[0]
        assert failed.status == "failed"
        assert "MemberOf: latest: " in (failed.error or "")
        keyless = "{type: Note, latest: at, set: {text: name}}"
        with pytest.raises(PipelineInvalidError, match="the schema has no node type 'Note'"):
            run_pipeline(defined(tmp_path, TEXT.replace("edges:", f"  - {keyless}\n      edges:")))


def test_numbers_of_several_widths_are_read_as_the_widest(
    tmp_path: Path, spark: SparkSession
) -> None:
    tables = [
        pa.table({"id": pa.array([1], pa.int32()), "x": pa.array([1.5], pa.float32())}),
        pa.table({"id": pa.array([2**40], pa.int64()), "x": pa.array([2.5], pa.float64())}),
    ]
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    source = FileSource((str(tmp_path),))
    with open_source(source, read_source_state(source), spark) as rows:
        found = rows.select("id", "x").orderBy("id").toArrow().to_pylist()
    assert found == [{"id": 1, "x": 1.5}, {"id": 2**40, "x": 2.5}]
    pq.write_table(pa.table({"id": ["a"], "x": [1.0]}), tmp_path / "2.parquet")
    state = read_source_state(source)
    with (
        pytest.raises(SourceRefusedError, match=r"2.parquet: column id is of type string, not int"),
        open_source(source, state, spark),
    ):
        pass

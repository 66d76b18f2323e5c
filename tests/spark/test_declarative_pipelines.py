"""A graph as a source and as a sink of Spark Declarative Pipelines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import omnigraph

PROGRAM = Path(__file__).with_name("declarative_program.py")
SCHEMA = "node Person { name: String @key  age: I32? }"
FLOW = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
sink = {{"path": "{copy}", "type": "Person", "mode": "merge"}}
dp.create_sink("people", "omnigraph", sink)

@dp.append_flow(target="people")
def copy_people():
    changes = spark.readStream.format("omnigraph").option("types", "Person").load("{team}")
    age = "cast(get_json_object(after, '$.properties.age') AS int) AS age"
    return changes.selectExpr("id AS name", age)
"""
SPEC = """
name: copy
storage: file://{folder}/storage
libraries: [{{glob: {{include: flows/**}}}}]
"""


def test_a_flow_follows_one_graph_and_writes_to_another(tmp_path: Path) -> None:
    team, copy = tmp_path / "team", tmp_path / "copy"
    with omnigraph.create(team, schema=SCHEMA) as graph:
        rows = pa.table({"name": ["ada", "bob"], "age": [36, 40]})
        graph.branch().load(rows, mode="append", type="Person")
    omnigraph.create(copy, schema=SCHEMA).close()
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "people.py").write_text(FLOW.format(team=team, copy=copy))
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text(SPEC.format(folder=tmp_path))
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(spec)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    with omnigraph.open(copy) as graph:
        text = "query q() { match { $p: Person } return { $p.name, $p.age } }"
        found = sorted(tuple(row.values()) for row in graph.branch().query(text).to_pylist())
        assert found == [("ada", 36), ("bob", 40)]
        assert graph.branch().snapshot().version == 1

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.bulk.task_runner import Stage
from omnigraph.cli.app import app
from omnigraph.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person { name: String @key  age: I32? @index }
edge Knows: Person -> Person
"""


def test_files_and_indexes_are_made_by_tasks(tmp_path: Path, spark: SparkSession) -> None:
    with omnigraph.create(tmp_path / "g", schema=SCHEMA) as graph:
        main = graph.branch()
        for number in range(6):
            names = [f"p{number}-{each}" for each in range(100)]
            main.load(
                pa.table({"name": names, "age": list(range(100))}), mode="append", type="Person"
            )
        main.load(pa.table({"from": ["p0-0"], "to": ["p1-1"]}), mode="append", type="Knows")
        before = b"".join(main.export())
        stages: list[Stage] = []
        result = graph.spark.on(spark).export(tmp_path / "out", progress=stages.append)
        assert (result.nodes, result.edges) == ({"Person": 600}, {"Knows": 1})
        assert stages[-1].done == stages[-1].total > 1
        found = pyarrow.parquet.read_table(tmp_path / "out" / "nodes" / "Person")
        assert found.num_rows == len(set(found["@id"].to_pylist())) == 600
        assert json.loads((tmp_path / "out" / "_SUCCESS").read_text())["commit"] == main.head.id
        with pytest.raises(InvalidArgumentError, match="'xml' is not one of"):
            graph.spark.export(tmp_path / "other", format="xml")
        done = graph.spark.optimize()
        assert done.commit is not None
        assert done.commit.is_maintenance
        assert {str(each.state) for each in graph.index_status()} == {"fresh"}
        assert b"".join(main.export()) == before
        assert not graph.check().problems
        arguments = ["export", str(tmp_path / "g"), "--engine", "spark", "--format", "jsonl"]
        answer = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "lines")])
        assert answer.exit_code == 0, answer.output
        assert "node  Person  600" in answer.stdout
        lines = [
            line
            for file in (tmp_path / "lines").rglob("*.jsonl")
            for line in file.read_bytes().splitlines(keepends=True)
        ]
        assert sorted(lines) == sorted(before.splitlines(keepends=True))
        again = CliRunner().invoke(app, ["optimize", str(tmp_path / "g"), "--engine", "spark"])
        assert again.exit_code == 0, again.output

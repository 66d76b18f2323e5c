from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.app import app
from omnigraph.writers.inputs import Text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = "query q() { match { $p: Person } return { $p.name } order { $p.name desc } }"


@pytest.mark.smoke
def test_a_query_on_the_command_line_is_answered_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert spark is not None
    with omnigraph.create(tmp_path / "g", schema="node Person { name: String @key }") as graph:
        lines = [json.dumps({"type": "Person", "data": {"name": name}}) for name in ("ann", "bob")]
        graph.branch().load(Text("\n".join(lines)), mode="append")
    arguments = ["query", "--store", str(tmp_path / "g"), "-e", TEXT, "--json"]
    local = CliRunner().invoke(app, arguments)
    found = CliRunner().invoke(app, [*arguments, "--engine", "spark"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout) == json.loads(local.stdout)
    assert [row["p.name"] for row in json.loads(found.stdout)["rows"]] == ["bob", "ann"]

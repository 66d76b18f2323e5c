from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.app import app

SCHEMA = "node Person { name: String @key  age: I32?  @range(age, 0..150) }"


def prepared(folder: Path) -> tuple[str, str]:
    """A graph, and a file with a good and a bad line."""
    omnigraph.create(str(folder / "graph"), schema=SCHEMA, durable=False).close()
    path = folder / "people.jsonl"
    records = [{"type": "Person", "data": {"name": name, "age": age}} for name, age in PEOPLE]
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    return str(folder / "graph"), str(path)


PEOPLE = [("ada", 36), ("bob", 999)]


def test_records_that_cannot_be_written_are_left_out_if_asked(tmp_path: Path) -> None:
    graph, path = prepared(tmp_path)
    asked = ["--on-error", "quarantine", "--rejects", str(tmp_path / "rejects"), "--json"]
    ran = CliRunner().invoke(app, ["load", "--data", path, "--mode", "append", *asked, graph])
    assert ran.exit_code == 0, ran.output
    document = json.loads(ran.stdout)
    assert document["nodes"] == [{"name": "Person", "entities_loaded": 1}]
    assert document["rejected"] == 1
    assert pq.read_table(document["rejects"])["id"].to_pylist() == ["bob"]


def test_people_are_told_how_many_were_left_out(tmp_path: Path) -> None:
    graph, path = prepared(tmp_path)
    asked = ["--on-error", "quarantine"]
    ran = CliRunner().invoke(app, ["load", "--data", path, "--mode", "append", *asked, graph])
    assert "left out 1 record" in ran.stdout


@pytest.mark.parametrize(
    "asked",
    [
        ["--engine", "spark"],
        ["--on-error", "quarantine"],
        ["--rejects", "r"],
        ["--spark-conf", "spark.ui.enabled=false"],
    ],
)
def test_the_compatible_dialect_excludes_what_reads_in_units(
    tmp_path: Path, asked: list[str]
) -> None:
    graph, path = prepared(tmp_path)
    asked = ["--dialect", "compatible", *asked]
    ran = CliRunner().invoke(app, ["load", "--data", path, "--mode", "append", *asked, graph])
    assert ran.exit_code == 2
    assert "--dialect compatible excludes" in ran.output


def test_options_about_spark_need_spark(tmp_path: Path) -> None:
    graph, path = prepared(tmp_path)
    asked = ["--engine", "local", "--master", "spark://nowhere:7077"]
    ran = CliRunner().invoke(app, ["load", "--data", path, "--mode", "append", *asked, graph])
    assert ran.exit_code == 2
    assert "need --engine spark" in ran.output


def test_a_patch_leaves_out_who_does_not_exist(tmp_path: Path) -> None:
    graph, _ = prepared(tmp_path)
    path = tmp_path / "ada.jsonl"
    path.write_text('{"type": "Person", "data": {"name": "ada", "age": 36}}\n')
    load = ["load", "--data", str(path), "--json", graph]
    skipped = CliRunner().invoke(app, [*load, "--mode", "patch", "--missing", "skip"])
    assert json.loads(skipped.stdout)["nodes"] == []
    refused = CliRunner().invoke(app, [*load, "--mode", "patch", "--missing", "error"])
    assert refused.exit_code == 1
    assert "Person 'ada' does not exist" in refused.stdout
    elsewhere = CliRunner().invoke(app, [*load, "--mode", "merge", "--missing", "skip"])
    assert elsewhere.exit_code != 0

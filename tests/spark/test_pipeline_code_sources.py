"""Sources that Spark, a query or a function reads."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from pyspark.sql import SparkSession

import omnigraph
from omnigraph.errors import (
    OmnigraphError,
    PipelineInvalidError,
    SourceFailedError,
    SourceRefusedError,
)
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.pipelines.ledger.run_ledger import Run
from omnigraph.pipelines.run.pipeline_run import run_pipeline

pytestmark = pytest.mark.usefixtures("spark")

SCHEMA = """
node Person { name: String @key  age: I32?  day: Date?  team: String? }
"""
# A separator, a quote, an escape, a comment and a null of its own, in folders by day.
CSV = "# people\nname;age\n'O\\'Hara; Ann';41\nBob;-\n"
FUNCTION = """
import pyarrow as pa

def yield_batches(spark, options):
    for name in options["names"].split(","):
        yield pa.record_batch({"name": [name], "age": [len(name)]})

def make_frame(spark, options):
    return spark.createDataFrame([("Ann", 41)], "name string, age int")

def fail(spark, options):
    raise ValueError("no such customer")

def return_text(spark, options):
    return "Ann"
"""


def run(folder: Path, sources: str, rule: str) -> Run:
    if not (folder / "g").exists():
        omnigraph.create(folder / "g", schema=SCHEMA).close()
    definition = f"""
graphs: {{g: g}}
sources:
{sources}
into:
  - graph: g
    map:
      nodes:
        - {rule}
"""
    (folder / "p.yaml").write_text(definition)
    return run_pipeline(read_pipeline(folder / "p.yaml"))


def rows(folder: Path) -> list[list[object]]:
    text = "query q() { match { $p: Person } return { $p.name, $p.age, $p.day, $p.team } }"
    with omnigraph.open(folder / "g") as graph:
        found = graph.branch().query(text).to_json_rows()
    return sorted(list(row.values()) for row in found)


def test_any_format_of_spark_is_read_with_its_options_and_its_folders(tmp_path: Path) -> None:
    for day in ("2026-01-01", "2026-01-02"):
        folder = tmp_path / "in" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(CSV if day.endswith("1") else "name;age\nCy;7\n")
    source = """\
  people:
    kind: spark
    format: csv
    paths: in
    options: {sep: ";", quote: "'", escape: "\\\\", header: "true", comment: "#", nullValue: "-"}"""
    done = run(tmp_path, source, "{type: Person, set: {name: name, age: int(age), day: day}}")
    assert done.status == "succeeded"
    assert rows(tmp_path) == [
        ["Bob", None, "2026-01-01", None],
        ["Cy", 7, "2026-01-02", None],
        ["O'Hara; Ann", 41, "2026-01-01", None],
    ]


def test_an_unknown_option_of_csv_is_reported_with_its_place(tmp_path: Path) -> None:
    source = (
        "  people: {kind: spark, format: csv, paths: in, options: {separator: ';', heder: 'true'}}"
    )
    with pytest.raises(
        PipelineInvalidError, match=r"p.yaml:4:.*no option 'heder'.*did you mean 'header'"
    ):
        run(tmp_path, source, "{type: Person, set: {name: name}}")


def test_a_query_joins_other_sources(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "people.csv").write_text("name,team\nAnn,1\nBob,2\n")
    (tmp_path / "teams.jsonl").write_text('{"id": 1, "title": "Core"}\n{"id": 2, "title": "Web"}\n')
    sources = """\
  joined:
    kind: sql
    query: >
      SELECT name, title, row_number() OVER (ORDER BY name) AS number
      FROM people JOIN teams ON int(team) = id
  people: {kind: files, paths: people.csv}
  teams: {kind: files, paths: teams.jsonl}"""
    rule = "{type: Person, source: joined, set: {name: name, team: title, age: number}}"
    assert run(tmp_path, sources, rule).status == "succeeded"
    assert rows(tmp_path) == [["Ann", 1, None, "Core"], ["Bob", 2, None, "Web"]]
    # The files are those of the last run, and so is the query.
    assert run(tmp_path, sources, rule).targets[0].is_repeated
    assert not spark.catalog.tableExists("people")
    (tmp_path / "teams.jsonl").write_text('{"id": 1, "title": "Core"}\n{"id": \n')
    failed = run(tmp_path, sources, rule)
    assert "source 'teams' has a record that cannot be read" in str(failed.targets[0].error)


def test_a_function_yields_batches_or_returns_a_frame(tmp_path: Path) -> None:
    (tmp_path / "crm.py").write_text(dedent(FUNCTION))
    rule = "{type: Person, set: {name: name, age: int(age)}}"
    source = "  crm: {kind: python, function: 'crm:yield_batches', options: {names: 'Ann,Bo'}}"
    assert run(tmp_path, source, rule).status == "succeeded"
    assert rows(tmp_path) == [["Ann", 3, None, None], ["Bo", 2, None, None]]
    assert (
        run(tmp_path, "  crm: {kind: python, function: 'crm:make_frame'}", rule).status
        == "succeeded"
    )
    assert rows(tmp_path)[0] == ["Ann", 41, None, None]


@pytest.mark.parametrize(
    ("function", "error", "reason"),
    [
        ("fail", SourceFailedError, "crm:fail failed: ValueError: no such customer"),
        ("return_text", SourceRefusedError, "returned no DataFrame"),
        ("nothing", SourceRefusedError, "function 'crm:nothing' is not found"),
    ],
)
def test_what_is_wrong_with_a_function_is_reported(
    tmp_path: Path, function: str, error: type[OmnigraphError], reason: str
) -> None:
    (tmp_path / "crm.py").write_text(dedent(FUNCTION))
    source = f"  crm: {{kind: python, function: 'crm:{function}'}}"
    done = run(tmp_path, source + "\nretry: {attempts: 1}", "{type: Person, set: {name: name}}")
    assert done.status == "failed"
    assert reason in str(done.targets[0].error)
    assert done.targets[0].error_code == error.code

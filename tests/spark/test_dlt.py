"""Load packages of dlt as commits, and sources of dlt as sources of pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from threading import BoundedSemaphore
from typing import Any

import dlt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dlt.common.schema import Schema
from dlt.common.schema.utils import new_table
from dlt.pipeline.exceptions import PipelineStepFailed

import omnigraph
from omnigraph.errors import RunFailedError, SourceRefusedError
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.pipelines.run.dlt_destination import GraphDestination
from omnigraph.pipelines.run.pipeline_run import run_pipeline
from omnigraph.pipelines.sources.dlt_packages import PackageDestination, StageFile
from omnigraph.pipelines.sources.dlt_source import extract_table
from omnigraph.storage.objects.source_files import list_source_files

pytestmark = pytest.mark.usefixtures("spark")

SCHEMA = """
node Person { name: String @key  age: I32?  @range(age, 0..150) }
node Tag { name: String @key }
edge Has: Person -> Tag { @key(@src, @dst) }
"""
DEFINITION = """
graphs: {g: g.omni}
sources:
  people: {kind: dlt}
  tags: {kind: dlt, table: people__tags}
  pairs:
    kind: sql
    query: SELECT name, value FROM people JOIN tags ON tags._dlt_parent_id = people._dlt_id
into:
  - graph: g
    map:
      nodes:
        - {type: Person, source: people, set: {name: name, age: int(age)}}
        - {type: Tag, source: tags, distinct: true, set: {name: value}}
      edges:
        - {type: Has, source: pairs, from: name, to: value}
"""
FUNCTION = """
import dlt

@dlt.source
def crm(region):
    @dlt.resource
    def people():
        yield [{"name": f"ada of {region}", "age": 36}, {"name": "bo"}]

    @dlt.resource
    def accounts():
        if region == "Kent":
            raise ValueError("it is not asked for")
        yield {"number": 1}

    return people, accounts

def fail(region):
    return dlt.resource([1 / 0], name="people")
"""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No reports to the makers of dlt, and no active pipeline afterwards."""
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    yield
    if (active := dlt.current.pipeline()) is not None:
        active.deactivate()


def rows(folder: Path) -> list[tuple[object, ...]]:
    text = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name asc } }"
    with omnigraph.open(folder / "g.omni") as graph:
        return [tuple(row.values()) for row in graph.branch().query(text).to_json_rows()]


def version(folder: Path) -> int:
    with omnigraph.open(folder / "g.omni") as graph:
        return graph.branch().head.version


def test_a_load_package_is_one_commit_however_often_dlt_completes_it(tmp_path: Path) -> None:
    omnigraph.create(tmp_path / "g.omni", schema=SCHEMA).close()
    (tmp_path / "crm.yaml").write_text(DEFINITION)
    pipeline = dlt.pipeline(
        "crm",
        pipelines_dir=str(tmp_path / "work"),
        destination=GraphDestination(str(tmp_path / "crm.yaml"), actor="ada"),
    )

    def deliver(*items: dict[str, Any]) -> list[str]:
        done = pipeline.run(dlt.resource(list(items), name="people"))
        assert done is not None
        return done.loads_ids

    deliver({"name": "ada", "age": 36, "tags": ["x", "y"]}, {"name": "bo", "tags": ["y"]})
    assert rows(tmp_path) == [("ada", 36), ("bo", None)]
    assert version(tmp_path) == 1
    (tmp_path / "dlt-packages" / "crm" / "notes.txt").write_text("not a package")
    # No list this time: the table of its elements is there, and has no rows.
    (load,) = deliver({"name": "bo", "age": 40})
    assert rows(tmp_path) == [("ada", 36), ("bo", 40)]
    with pipeline.destination_client() as client:
        client.complete_load(load)
    assert version(tmp_path) == 2
    packages = tmp_path / "dlt-packages" / "crm"
    assert [each.name for each in packages.iterdir() if each.is_dir()] == [load]
    # What the graph refuses waits in dlt, and is loaded when the mapping makes it fit.
    with pytest.raises(PipelineStepFailed, match=r"range violation on Person\.age: 200") as failed:
        deliver({"name": "cy", "age": 200})
    assert isinstance(failed.value.__cause__, RunFailedError)
    assert version(tmp_path) == 2
    (tmp_path / "crm.yaml").write_text(DEFINITION.replace("int(age)", '"least(int(age), 150)"'))
    pipeline.run()
    assert rows(tmp_path)[2] == ("cy", 150)


def test_a_copy_that_fails_leaves_nothing_that_is_read(tmp_path: Path) -> None:
    given, staged = tmp_path / "people.1.0.parquet", tmp_path / "staged"
    pq.write_table(pa.table({"name": ["ada" * 100]}), given, compression="none")
    damaged = given.read_bytes().replace(b"ada" * 100, b"", 1)
    given.write_bytes(damaged)
    schema = Schema("crm")
    schema.update_table(new_table("people", columns=[{"name": "age", "data_type": "bigint"}]))
    with PackageDestination(str(staged)).client(schema) as client:
        table = client.prepare_load_table("people")
        job = client.create_load_job(table, str(given), "1")
        assert isinstance(job, StageFile)
        job.set_run_vars("1", schema, table)
        # As dlt does, which takes the semaphore before.
        done = BoundedSemaphore()
        done.acquire()
        job.run_managed(client, done)
    assert job.state() == "retry"
    assert list((staged / "1" / "people").iterdir())
    assert list_source_files(str(staged / "1" / "people"), {})[0] == []


def test_a_run_extracts_the_resource_of_a_table(tmp_path: Path) -> None:
    omnigraph.create(tmp_path / "g.omni", schema=SCHEMA).close()
    (tmp_path / "crm.py").write_text(dedent(FUNCTION))
    source = "source: {kind: dlt, function: 'crm:crm', table: people, options: {region: Kent}}"
    definition = f"""
graphs: {{g: g.omni}}
{source}
into:
  - graph: g
    map: {{nodes: [{{type: Person, set: {{name: name, age: int(age)}}}}]}}
"""
    (tmp_path / "p.yaml").write_text(definition)
    pipeline = read_pipeline(tmp_path / "p.yaml")
    done = run_pipeline(pipeline)
    assert done.status == "succeeded", done.targets[0].error
    assert rows(tmp_path) == [("ada of Kent", 36), ("bo", None)]
    failing = definition.replace("crm:crm", "crm:fail") + "retry: {attempts: 1}"
    (tmp_path / "p.yaml").write_text(failing)
    (target,) = run_pipeline(read_pipeline(tmp_path / "p.yaml")).targets
    assert "crm:fail failed: ZeroDivisionError" in str(target.error)
    assert target.error_code == "source_failed"
    (tmp_path / "p.yaml").write_text(
        definition.replace("people,", "poeple,").replace("Kent", "Rome")
    )
    with pytest.raises(SourceRefusedError, match="no table 'poeple'") as refused:
        extract_table(read_pipeline(tmp_path / "p.yaml").sources["source"])  # type: ignore[arg-type]  # a source of dlt
    assert refused.value.hint == "did you mean 'people'?"
    (tmp_path / "p.yaml").write_text(
        definition.replace("function: 'crm:crm', ", "").replace(", options: {region: Kent}", "")
    )
    with pytest.raises(SourceRefusedError, match="table 'people' is delivered by dlt"):
        run_pipeline(read_pipeline(tmp_path / "p.yaml"))

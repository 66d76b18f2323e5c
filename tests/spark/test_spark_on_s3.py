"""Loads, exports and pipelines whose files and graphs are on S3, read and written by tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import InvalidArgumentError
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.storage.objects.remote_store import create_s3_client
from spark.pipeline_world import SIMPLE, company, defined, entities, loads
from stores import S3Server

pytestmark = pytest.mark.usefixtures("spark")

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""


@pytest.fixture
def bucket(s3: S3Server) -> Iterator[str]:
    name = s3.new_bucket()
    yield name
    s3.forget(name)


def _put(s3: S3Server, bucket: str, path: str, data: bytes) -> None:
    obstore.put(create_s3_client(f"s3://{bucket}", s3.options), path, data)


def _parquet(**columns: list[str]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue())


def test_files_on_s3_are_loaded_into_a_graph_on_s3_and_exported_there(
    s3: S3Server, bucket: str
) -> None:
    people = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(50)]
    _put(s3, bucket, "in/a.jsonl", "".join(json.dumps(each) + "\n" for each in people).encode())
    edges = {"from": [f"p{n}" for n in range(50)], "to": ["p0"] * 50}
    _put(s3, bucket, "knows/b.parquet", _parquet(**edges))
    uri = f"s3://{bucket}/g"
    with omnigraph.create(uri, schema=SCHEMA, storage_options=s3.options) as graph:
        main = graph.branch()
        main.load(f"s3://{bucket}/in/*.jsonl", mode="append", engine="spark")
        main.load({"Knows": f"s3://{bucket}/knows"}, mode="append", engine="spark")
        assert (main.count("Person"), main.count("Knows")) == (50, 50)
        result = graph.spark.export(f"s3://{bucket}/out", format="jsonl")
        assert (result.nodes, result.edges) == ({"Person": 50}, {"Knows": 50})
        with pytest.raises(InvalidArgumentError, match="is not empty"):
            graph.spark.export(f"s3://{bucket}/out", format="jsonl")
        store = create_s3_client(f"s3://{bucket}", s3.options)
        paths = [each["path"] for page in obstore.list(store, "out") for each in page]
        done = json.loads(bytes(obstore.get(store, "out/_SUCCESS").bytes()))
        assert sorted(paths) == sorted(["out/_SUCCESS", *(f"out/{p}" for p in done["paths"])])
        lines = [
            line
            for path in done["paths"]
            for line in bytes(obstore.get(store, f"out/{path}").bytes()).splitlines()
        ]
        assert sorted(lines) == sorted(b"".join(main.export()).splitlines())
        assert graph.check().problems == ()


def test_a_pipeline_reads_files_on_s3_and_refuses_their_bad_records(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    _put(s3, bucket, "in/b.csv", b"years,login\n40,cy\n1,di,more\n")
    options = dict(s3.options) | {
        "aws_secret_access_key": "${SECRET}",
        "aws_access_key_id": "${ID}",
    }
    columns = ", columns: 'login string, years int'"
    source = f"{{kind: files, paths: 's3://{bucket}/in/*.csv', options: {json.dumps(options)}%s}}"
    text = SIMPLE.replace('{kind: files, paths: "in/*.jsonl"}', source).replace(
        "mode: append",
        "mode: merge\n    on_error: quarantine\n    rejects: bad\n    max_rejected: 100%%",
    )
    asked = RunOptions(environment={"SECRET": "test", "ID": "test"})
    with company(tmp_path) as graph:
        cast = text.replace("set: {", "set: {age: int(years), ")
        declared = text.replace("set: {", "set: {age: years, ")
        # The second run finds one row that the first one did not write.
        for definition, years, written in ((cast % "", 36, 2), (declared % columns, 37, 1)):
            _put(s3, bucket, "in/a.csv", f"login,years\nada,{years}\nbo,x\n".encode())
            run = run_pipeline(defined(tmp_path, definition), asked)
            assert run.targets[0].error is None
            assert (run.targets[0].written, run.targets[0].rejected) == (written, 2)
            assert entities(graph) == {"Person": ["ada", "cy"]}
        assert len(loads(graph)) == 2
        rejects = pq.read_table(tmp_path / "bad").to_pylist()
        assert sorted(each["raw"] for each in rejects) == [
            "1,di,more",
            "1,di,more",
            '{"login":"bo","years":"x"}',
            '{"login":"bo","years":"x"}',
        ]

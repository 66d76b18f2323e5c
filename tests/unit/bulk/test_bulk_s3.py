from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
import places
from omnigraph.bulk import splits
from omnigraph.errors import LoadError
from omnigraph.storage.objects.remote_store import open_s3
from omnigraph.storage.objects.source_files import list_source_files
from omnigraph.writers.inputs import Text
from unit.bulk.bulk_world import SCHEMA, crowd, person


def test_files_on_s3_are_loaded_into_a_graph_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "SPLIT_BYTES", 4_000)
    server = places.server()
    bucket, options = server.new_bucket(), server.options
    objects = open_s3(f"s3://{bucket}", options)
    lines = "".join(f"{json.dumps(each)}\n" for each in crowd(100))
    objects.put("in/people.jsonl", lines.encode())
    objects.put("in/_SUCCESS", b"")
    parquet = tmp_path / "more.parquet"
    pq.write_table(pa.table({"name": [f"q{n}" for n in range(50)]}), parquet)
    objects.put("more/a.parquet", parquet.read_bytes())
    graph = omnigraph.create(f"s3://{bucket}/graph", schema=SCHEMA, storage_options=options)
    main = graph.branch()
    main.load(f"s3://{bucket}/in/*.jsonl", mode="append")
    main.load(f"s3://{bucket}/more", mode="append", type="Person")
    assert (main.count("Person"), main.count("Knows")) == (150, 100)
    with pytest.raises(LoadError, match="no file matches"):
        main.load(f"s3://{bucket}/in/*.csv", mode="append")
    result = main.load(
        Text(json.dumps(person("old", age=999)), "inline"),
        mode="append",
        on_error="quarantine",
        rejects=f"s3://{bucket}/rejects",
    )
    assert [entry.path for entry in objects.list("rejects")] == [
        str(result.rejects).removeprefix(f"s3://{bucket}/")
    ]
    found, _ = list_source_files(f"s3://{bucket}/in/", options)
    assert [file.uri for file in found] == [f"s3://{bucket}/in/people.jsonl"]
    assert not list(objects.list("graph/__manifest/staging"))
    graph.close()

"""Records that a run leaves out: where they are in their source, and what is in them there."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from omnigraph.bulk.bulk_sources import OriginRecord
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.ledger.run_ledger import TargetRun
from omnigraph.pipelines.mapping.record_ids import PART, ROW
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.run.stream_run import stream_pipeline
from omnigraph.pipelines.sources import open_source, read_source_state
from omnigraph.pipelines.sources.postgres_source import open_cursor
from omnigraph.pipelines.sources.provenance import OpenSource
from omnigraph.storage.objects.remote_store import create_s3_client
from spark.pipeline_world import SIMPLE, company, defined, entities, logins
from spark.postgres_server import running
from stores import S3Server

pytestmark = pytest.mark.usefixtures("spark")

RULES = SIMPLE.replace(
    "mode: append",
    """on_error: quarantine
    rejects: bad
    max_rejected: 100%
    mode: append""",
).replace("name: login", "name: full")
# Each file has a person without a name.
# A value that needs another column than the rest of the rule.
LEVEL = "\"CASE WHEN n > 0 THEN 'junior' ELSE 'senior' END\""
NAMELESS = "non-nullable property 'name'"


def _with(source: str, *, more: str = "") -> str:
    return RULES.replace('{kind: files, paths: "in/*.jsonl"}', source) + more


def _rejects(target: TargetRun) -> list[dict[str, Any]]:
    assert target.error is None
    assert target.rejects is not None
    rows: list[dict[str, Any]] = pq.read_table(target.rejects).to_pylist()
    assert len({(row["place"], row["type"]) for row in rows}) == target.rejected
    return rows


def _left_out(folder: Path, text: str, *, slot: str | None = None) -> list[dict[str, Any]]:
    (target,) = run_pipeline(defined(folder, text), RunOptions(slot=slot)).targets
    return _rejects(target)


def _lines(*records: dict[str, object] | None) -> str:
    """Records as JSON lines, and blank lines."""
    return "".join(json.dumps(each) + "\n" if each else " \n" for each in records)


@pytest.fixture
def _partition_bytes_as_before(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.usefixtures("_partition_bytes_as_before")
def test_a_rejected_record_of_json_lines_has_its_file_and_line_in_every_run(
    tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "in").mkdir()
    first, second = tmp_path / "in" / "a b.jsonl", tmp_path / "in" / "b.jsonl"
    first.write_text(_lines({"login": "ada", "full": "Ada"}, None, {"login": "bo", "x": 1}))
    people: list[dict[str, object]] = [{"login": f"p{n}", "full": "P"} for n in range(500)]
    second.write_text(_lines(None, *people, {"login": "cy"}, {"login": "di", "full": "D"}))
    found = []
    # Other partitions are other numbers of rows: many files in one, many parts of one file.
    for size in ("1000", "128m"):
        spark.conf.set("spark.sql.files.maxPartitionBytes", size)
        folder = tmp_path / size
        folder.mkdir()
        with company(folder):
            text = _with(f"{{kind: files, paths: '{tmp_path}/in/*.jsonl'}}")
            found.append(_left_out(folder, text))
    assert found[0] == found[1]
    assert [(row["place"], row["file"], row["number"]) for row in found[0]] == [
        (f"{first} line 3", str(first), 3),
        (f"{second} line 502", str(second), 502),
    ]
    assert [json.loads(row["raw"]) for row in found[0]] == [
        {"login": "bo", "x": 1},
        {"login": "cy"},
    ]
    assert all(NAMELESS in row["reason"] for row in found[0])


def test_an_edge_falls_with_the_record_of_its_node(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(
        "login,full,team,since\nada,Ada,core,1\n\nbo,,core,2\ncy,Cy,core,x\n"
    )
    more = (
        "        - {type: Team, distinct: true, set: {slug: team, name: team}}\n"
        "      edges:\n        - {type: MemberOf, from: login, to: team}\n"
    )
    text = _with("{kind: files, paths: people.csv}", more=more)
    text = text.replace("handle: login", 'handle: {template: "{login}"}, age: int(since)')
    with company(tmp_path) as graph:
        rows = _left_out(tmp_path, text)
        assert entities(graph) == {
            "MemberOf": ['["ada","core"]'],
            "Person": ["ada"],
            "Team": ["core"],
        }
    place = f"{tmp_path / 'people.csv'} line"
    assert [(row["place"], row["type"]) for row in rows] == [
        (f"{place} 4", "Person"),
        (f"{place} 4", "MemberOf"),
        (f"{place} 5", "Person"),
        (f"{place} 5", "MemberOf"),
    ]
    assert {row["raw"] for row in rows[:2]} == {'{"login":"bo","team":"core","since":"2"}'}
    for row in rows[1::2]:
        assert row["reason"].endswith("its record was rejected")


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_a_rejected_record_of_a_table_has_its_file_and_row(tmp_path: Path, format_: str) -> None:
    columns = {"login": ["ada", "bo", "cy"], "full": ["A", None, "C"], "n": [1, 2, 3]}
    path = tmp_path / f"people.{format_}"
    {"parquet": pq.write_table, "orc": orc.write_table}[format_](pa.table(columns), str(path))
    with company(tmp_path):
        (row,) = _left_out(tmp_path, _with(f"{{kind: files, paths: people.{format_}}}"))
    assert (row["place"], row["number"]) == (f"{path} row 2", 2)
    assert json.loads(row["raw"]) == {"login": "bo", "n": 2}


def test_records_that_go_over_lines_are_counted_as_records(tmp_path: Path) -> None:
    path = tmp_path / "people.json"
    path.write_text(
        '[{"login": "ada",\n "full": "A"},\n{"login": "bo"},\n{"login": "cy", "full": "C"}]'
    )
    with company(tmp_path):
        source = "{kind: files, paths: people.json, multiline: true}"
        (row,) = _left_out(tmp_path, _with(source))
    assert (row["place"], row["raw"]) == (f"{path} record 2", '{"login":"bo"}')


def test_rejected_records_of_files_on_s3_have_their_file_and_line(
    s3: S3Server, spark: SparkSession
) -> None:
    bucket = s3.new_bucket()
    first = {"a.jsonl": _lines({"login": "ada", "full": "A"}), "b.jsonl": ""}
    files = {**first, "c.jsonl": _lines(None, {"login": "cy", "full": "C"}, {"login": "bo"})}
    for name, text in files.items():
        obstore.put(create_s3_client(f"s3://{bucket}", s3.options), f"in/{name}", text.encode())
    source = FileSource((f"s3://{bucket}/in/*.jsonl",), options=s3.options)
    found = read_source_state(source)
    with open_source(source, found, spark) as records:
        bad = records.where("full IS NULL").selectExpr(PART, ROW).toArrow().to_pylist()
        wanted = [(row[PART], row[ROW]) for row in bad]
        ((_, place),) = OpenSource.from_records("people", source, found, records).locate(wanted)
    uri = f"s3://{bucket}/in/c.jsonl"
    assert place == OriginRecord(f"{uri} line 3", uri, 3, '{"login":"bo"}')
    s3.forget(bucket)


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        pages = {"page=1": [{"login": "ada", "full": "A"}], "page=2": [{"login": "bo", "x": [1]}]}
        body = next((found for name, found in pages.items() if name in self.path), [])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing of it belongs into the output of a test."""


def test_a_rejected_record_of_a_service_has_its_page(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server, company(tmp_path):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/people"
        (row,) = _left_out(tmp_path, _with(f"{{kind: http, url: '{url}', paging: {{page: page}}}}"))
        server.shutdown()
    assert (row["place"], row["file"]) == ("source 'source' page 2 record 1", "source")
    assert (row["number"], json.loads(row["raw"])) == (1, {"login": "bo", "x": [1]})


def test_a_rejected_change_of_a_graph_has_its_commit_and_entity(tmp_path: Path) -> None:
    text = _with("{kind: graph, uri: other.omni, types: Person}")
    text = text.replace("handle: login, name: full", "handle: id, name: properties.name, age: x")
    text = text.replace("age: x", "age: int(properties.name)")
    with company(tmp_path), company(tmp_path, "other.omni") as other:
        for name, age in (("ada", "1"), ("bo", "x")):
            data = {"handle": name, "name": age, "level": "junior"}
            made = other.branch("main").load([{"type": "Person", "data": data}], mode="append")
        (row,) = _left_out(tmp_path, text)
    assert row["place"] == f"source 'source' commit {made.commit.id} Person bo"
    assert json.loads(row["raw"])["properties"]["name"] == "x"


def test_a_rejected_message_has_its_topic_partition_and_offset(tmp_path: Path) -> None:
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": "0"})
    brokers = producer.list_topics(timeout=10).brokers.values()
    servers = ",".join(f"{each.host}:{each.port}" for each in brokers)
    for name in ("ada", "bo"):
        full = {"full": name} if name == "ada" else {}
        producer.produce("people", json.dumps({"login": name, **full}), key="k", partition=0)
    assert producer.flush(10) == 0
    columns = "columns: 'login string, full string'"
    text = _with(f"{{kind: kafka, servers: '{servers}', topics: people, {columns}}}")
    with company(tmp_path):
        (row,) = _left_out(tmp_path, text)
    assert (row["place"], row["number"]) == ("source 'source' people/0 offset 1", 1)
    assert json.loads(row["raw"])["login"] == "bo"


def test_a_rejected_row_of_postgres_has_its_key(tmp_path: Path) -> None:
    with running(tmp_path) as url, company(tmp_path):
        with open_cursor(url) as cursor:
            cursor.execute('CREATE TABLE people (login text, "full" text, id int PRIMARY KEY)')
            cursor.execute("INSERT INTO people VALUES ('ada', 'A', 1), ('bo', NULL, 7)")
        options = RunOptions(environment={"CRM": url})
        pipeline = defined(tmp_path, _with("{kind: postgres, url: '${CRM}', table: people}"))
        (target,) = run_pipeline(pipeline, options).targets
        (row,) = _rejects(target)
    assert (row["place"], row["number"]) == ("source 'source' people id 7", None)
    assert json.loads(row["raw"]) == {"login": "bo", "id": 7}


def test_rejected_records_of_a_stream_have_their_lines(tmp_path: Path) -> None:
    with company(tmp_path):
        logins(tmp_path, "a.jsonl", "ada")
        (tmp_path / "in" / "a.jsonl").write_text(
            _lines({"login": "ada", "full": "A"}, None, {"login": "bo", "full": None})
        )
        (run,) = stream_pipeline(defined(tmp_path, RULES), RunOptions(), is_available_now=True)
        (row,) = _rejects(run.targets[0])
    assert row["place"] == f"{tmp_path / 'in' / 'a.jsonl'} line 3"


def test_a_refused_run_names_the_lines_of_its_bad_records(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada", "bo", "ada")
    with company(tmp_path):
        (target,) = run_pipeline(defined(tmp_path, SIMPLE)).targets
    assert target.error is not None
    file = tmp_path / "in" / "a.jsonl"
    assert (
        f"{file} line 3: @unique violation on Person.handle: ada (also {file} line 1)"
        in target.error
    )


def test_all_columns_of_a_record_are_those_of_its_source(tmp_path: Path) -> None:
    logins(tmp_path, "a.jsonl", "ada")
    with company(tmp_path) as graph:
        text = SIMPLE.replace("name: login", "name: to_json(struct(*))")
        assert run_pipeline(defined(tmp_path, text)).status == "succeeded"
        rows = graph.branch("main").query("query q() { match { $p: Person } return { $p.name } }")
        assert rows.to_pylist() == [{"p.name": '{"login":"ada"}'}]


def test_whether_a_record_can_be_read_does_not_depend_on_the_columns_of_a_rule(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    bad: list[dict[str, object] | None] = [
        {"login": name, "full": name, "n": n} for name, n in (("bo", "12x"), ("cy", 2**40))
    ]
    (tmp_path / "in" / "a.jsonl").write_text(_lines({"login": "ada", "full": "A", "n": 1}, *bad))
    (tmp_path / "in" / "a.csv").write_text("login,full,n\ndi,D,1\njo,J,1,more\nshort,S\n")
    graph = company(tmp_path)
    json_lines = '{kind: files, paths: "in/*.jsonl", columns: "login string, full string, n int"}'
    rejects = _left_out(tmp_path, _with(json_lines))
    rejects += _left_out(tmp_path, _with('{kind: files, paths: "in/*.csv"}'))
    places = sorted((Path(each["file"]).name, each["number"]) for each in rejects)
    assert places == [("a.csv", 3), ("a.csv", 4), ("a.jsonl", 2), ("a.jsonl", 3)]
    assert all("cannot be read" in each["reason"] for each in rejects)
    assert sorted(entities(graph)["Person"]) == ["ada", "di"]


def test_a_record_that_cannot_be_read_gives_no_row_of_any_rule(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = _lines({"login": "ada", "full": "A", "n": 1}, {"login": "bo", "full": "B", "n": "12x"})
    (tmp_path / "in" / "a.jsonl").write_text(lines)
    graph = company(tmp_path)
    source = '{kind: files, paths: "in/*.jsonl", columns: "login string, full string, n int"}'
    team = "- {type: Team, set: {slug: full, name: full}}"
    rejects = _left_out(
        tmp_path,
        _with(source)
        .replace("nodes:\n", f"nodes:\n        {team}\n")
        .replace("{value: junior}", LEVEL),
    )
    assert [each["raw"] for each in rejects] == [lines.splitlines()[1]]
    assert entities(graph) == {"Person": ["ada"], "Team": ["A"]}

"""Sources of pipelines, each against the real thing: servers on the loopback interface."""

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

from omnigraph.bulk.task_runner import Stage
from omnigraph.errors import SourceFailedError, SourceRefusedError
from omnigraph.pipelines.config.definition import FileSource, Incremental, PostgresSource
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.sources import open_source, read_source_state
from omnigraph.pipelines.sources.postgres_source import open_cursor
from omnigraph.storage.objects.remote_store import create_s3_client
from spark.pipeline_world import SIMPLE, company, defined, entities, loads
from spark.postgres_server import running
from stores import S3Server

pytestmark = pytest.mark.usefixtures("spark")

_ROWS = 5000


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("pg")) as url:
        with open_cursor(url) as cursor:
            cursor.execute(
                "CREATE TABLE people (id bigint, login text, paid numeric(10,2), at timestamptz,"
                " born date, tags text[], extra jsonb, mark uuid, gap interval, odd real,"
                " noon time, host inet, marks uuid[], third numeric)"
            )
            cursor.execute(
                f"INSERT INTO people SELECT i, 'p' || i, i * 1.5, now(), current_date,"
                f" array['a','b'], '{{\"x\": 1}}', gen_random_uuid(), '1 day', 1.5,"
                f" '12:30', '10.0.0.1', array[gen_random_uuid()], i / 3.0"
                f" FROM generate_series(1, {_ROWS}) i"
            )
            cursor.execute("CREATE VIEW odd_people AS SELECT * FROM people WHERE id % 2 = 1")
        yield url


def _with(source: str) -> str:
    return SIMPLE.replace('{kind: files, paths: "in/*.jsonl"}', source)


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({"table": "people", "ranges": 4}, _ROWS),
        ({"table": "public.people", "ranges": 1000}, _ROWS),
        ({"table": "odd_people", "key": "id", "ranges": 3}, _ROWS // 2),
        ({"query": "SELECT id, login FROM people WHERE id <= 10;"}, 10),
        ({"query": "SELECT id FROM people WHERE id < 0", "key": "id"}, 0),
        ({"query": "SELECT id FROM people UNION SELECT NULL", "key": "id"}, _ROWS + 1),
        ({"table": "odd_people", "key": '"id"', "ranges": 1}, _ROWS // 2),
    ],
)
def test_every_row_of_postgres_is_read_once(
    postgres: str, spark: SparkSession, given: dict[str, Any], rows: int
) -> None:
    source = PostgresSource(postgres, **given)
    with open_source(source, read_source_state(source), spark) as found:
        ids = found.select("id").toArrow()["id"].to_pylist()
    assert len(ids) == len(set(ids)) == rows


def test_numbers_of_postgres_keep_all_their_digits(postgres: str, spark: SparkSession) -> None:
    """Their type has no bound that Spark could have: they are texts, to be cast as is wanted."""
    query = "SELECT id, paid, third, 12345678901234567890123456789012345678901234567890.5 AS far"
    source = PostgresSource(postgres, query=f"{query} FROM people WHERE id = 1")
    with open_source(source, read_source_state(source), spark) as found:
        (row,) = found.select("paid", "third", "far").toArrow().to_pylist()
    assert row == {
        "paid": "1.50",
        "third": "0.33333333333333333333",
        "far": "12345678901234567890123456789012345678901234567890.5",
    }


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("third", "the key 'third' is of type .*, not of integers"),
        ("login", "the key 'login' is of type string, not of integers"),
        ("nothing", "no column 'nothing' to cut by"),
    ],
)
def test_a_key_that_could_lose_rows_is_refused(
    postgres: str, spark: SparkSession, key: str, message: str
) -> None:
    source = PostgresSource(postgres, table="people", key=key)
    with (
        pytest.raises(SourceRefusedError, match=message),
        open_source(source, read_source_state(source), spark),
    ):
        pass


def test_a_login_that_is_refused_is_not_tried_again(postgres: str) -> None:
    with (
        pytest.raises(SourceRefusedError, match=r'database "nothing" does not exist') as caught,
        open_cursor(f"{postgres.rpartition('/')[0]}/nothing"),
    ):
        pass
    assert not caught.value.retryable


def test_all_ranges_see_one_snapshot(postgres: str, spark: SparkSession) -> None:
    source = PostgresSource(postgres, table="people", ranges=3)
    with open_source(source, read_source_state(source), spark) as found:
        with open_cursor(postgres) as cursor:
            cursor.execute("INSERT INTO people (id, login) VALUES (999999, 'late')")
        assert found.where("login = 'late'").count() == 0
        first = found.where("id = 2").toArrow().to_pylist()[0]
        assert (first["paid"], first["gap"], first["tags"], first["extra"]) == (
            "3.00",
            "1 day",
            ["a", "b"],
            '{"x": 1}',
        )
        assert (first["noon"], first["host"]) == ("12:30:00", "10.0.0.1/32")
        assert len(first["mark"]) == len(first["marks"][0]) == 36
    with open_cursor(postgres) as cursor:
        cursor.execute("DELETE FROM people WHERE id = 999999")


def test_a_table_of_postgres_becomes_nodes_and_a_failed_run_is_taken_up(
    postgres: str, tmp_path: Path
) -> None:
    text = _with("{kind: postgres, url: '${CRM}', query: SELECT login FROM people WHERE id < 9}")
    with company(tmp_path) as graph:
        graph.branch("main").load(
            [{"type": "Person", "data": {"handle": "p3", "name": "P", "level": "junior"}}],
            mode="append",
        )
        pipeline = defined(tmp_path, text)
        options = RunOptions(environment={"CRM": postgres})
        failed = run_pipeline(pipeline, options)
        assert failed.status == "failed"
        graph.branch("main").mutate('query d() { delete Person where handle = "p3" }')
        taken_up = run_pipeline(pipeline, options)
        assert (taken_up.status, taken_up.slot) == ("succeeded", failed.slot)
        assert len(entities(graph)["Person"]) == 8
        # A run behind one that succeeded is another one.
        assert run_pipeline(pipeline, options).slot != failed.slot
        assert postgres not in json.dumps(taken_up.to_json())


def test_a_postgres_that_is_not_there_or_refuses_is_told(
    postgres: str, spark: SparkSession
) -> None:
    gone = PostgresSource("postgresql://me:secret@127.0.0.1:1/x", table="people")
    with (
        pytest.raises(SourceFailedError, match="PostgreSQL cannot be read") as caught,
        open_source(gone, read_source_state(gone), spark),
    ):
        pass
    assert "secret" not in caught.value.message
    wrong = PostgresSource(postgres, table="peple")
    with (
        pytest.raises(SourceRefusedError, match='relation "peple" does not exist'),
        open_source(wrong, read_source_state(wrong), spark),
    ):
        pass


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        second = "page=2" in self.path
        found = (
            [{"login": "cy", "more": {"x": 1}}] if second else [{"login": "ada"}, {"login": "bo"}]
        )
        body = [] if "page=3" in self.path else found
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"people": body}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing of it belongs into the output of a test."""


def test_pages_of_an_http_service_become_nodes(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server, company(tmp_path) as graph:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/people"
        run = run_pipeline(
            defined(
                tmp_path,
                _with(f"{{kind: http, url: '{url}', records: people, paging: {{page: page}}}}"),
            )
        )
        server.shutdown()
        assert (run.status, run.rows_read) == ("succeeded", 3)
        assert entities(graph) == {"Person": ["ada", "bo", "cy"]}


def test_the_feed_of_another_graph_is_followed(tmp_path: Path) -> None:
    feed = "{kind: graph, uri: other.omni, types: Person, changes_max: 1}"
    text = _with(feed).replace("mode: append", "mode: merge").replace("login", "id")
    with company(tmp_path) as graph, company(tmp_path, "other.omni") as other:
        main = other.branch("main")
        for name in ("ada", "bo"):
            row = {"type": "Person", "data": {"handle": name, "name": name, "level": "junior"}}
            main.load([row], mode="append")
        pipeline = defined(tmp_path, text)
        first = run_pipeline(pipeline)
        assert (first.slot[:15], first.status) == ("batch-00000000-", "succeeded")
        assert entities(graph) == {"Person": ["ada"]}
        assert run_pipeline(pipeline).slot.startswith("batch-00000001-")
        assert entities(graph) == {"Person": ["ada", "bo"]}
        third = run_pipeline(pipeline)
        assert [target.status for target in third.targets] == ["unchanged"]
        main.load(
            [{"type": "Person", "data": {"handle": "cy", "name": "c", "level": "senior"}}],
            mode="append",
        )
        assert run_pipeline(pipeline).slot.startswith("batch-00000002-")
        assert len(loads(graph)) == 3


def test_messages_of_kafka_are_read_in_ranges(tmp_path: Path) -> None:
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": "0"})
    brokers = producer.list_topics(timeout=10).brokers.values()
    servers = ",".join(f"{each.host}:{each.port}" for each in brokers)

    def produce(*names: str) -> None:
        for name in names:
            producer.produce("people", json.dumps({"login": name}), key=name)
        assert producer.flush(10) == 0

    text = _with(f"{{kind: kafka, servers: '{servers}', topics: people, columns: login string}}")
    with company(tmp_path) as graph:
        pipeline = defined(tmp_path, text)
        produce("ada", "bo", "cy")
        first = run_pipeline(pipeline)
        assert (first.targets[0].error, first.rows_read) == (None, 3)
        produce("di")
        assert run_pipeline(pipeline).rows_read == 1
        assert entities(graph) == {"Person": ["ada", "bo", "cy", "di"]}


def test_files_that_change_while_they_are_staged_are_not_committed(tmp_path: Path) -> None:
    file = tmp_path / "in" / "a.jsonl"
    file.parent.mkdir()
    file.write_text('{"login": "ada"}\n')
    changes: list[str] = []

    def change(stage: Stage) -> None:
        if not changes and stage.name.startswith("stage"):
            changes.append(stage.name)
            file.write_text('{"login": "ada"}\n{"login": "bo"}\n')

    with company(tmp_path) as graph:
        pipeline = defined(tmp_path, SIMPLE)
        run = run_pipeline(pipeline, RunOptions(progress=change, wait=lambda _: None))
        assert changes
        assert run.status == "failed"
        assert "files changed while they were read" in (run.targets[0].error or "")
        assert entities(graph) == {}
        again = run_pipeline(pipeline)
        assert (again.status, again.slot == run.slot) == ("succeeded", False)
        assert entities(graph) == {"Person": ["ada", "bo"]}


def _file(format_: str, columns: dict[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    {"parquet": pq.write_table, "orc": orc.write_table}[format_](pa.table(columns), sink)
    return bytes(sink.getvalue())


def test_files_on_s3_are_read_by_tasks(s3: S3Server, spark: SparkSession) -> None:
    bucket = s3.new_bucket()
    store = create_s3_client(f"s3://{bucket}", s3.options)
    files = {
        "c.jsonl": b'{"login": "cy"}\n\n{"login": "di", "age": 3}\n',
        "d.jsonl": '{"age": 4, "login": "zoë"}'.encode(),
        "e.csv": b'login,age\n"e,\nf",4\ngy,\n',
        "f.csv": b"age,login\n5,hal\n",
    }
    for format_ in ("parquet", "orc"):
        files[f"a.{format_}"] = _file(format_, {"login": ["ada", "bo"], "age": [1, 2]})
        # The columns of the second file lie in another order.
        files[f"b.{format_}"] = _file(format_, {"age": [3], "login": ["cy"]})
    for name, data in files.items():
        obstore.put(store, f"in/{name}", data)
    expected = {
        "parquet": [("ada", 1), ("bo", 2), ("cy", 3)],
        "orc": [("ada", 1), ("bo", 2), ("cy", 3)],
        "jsonl": [("cy", None), ("di", 3), ("zoë", 4)],
        "csv": [("e,\nf", "4"), ("gy", None), ("hal", "5")],
    }
    for ending, rows in expected.items():
        source = FileSource((f"s3://{bucket}/in/*.{ending}",), options=s3.options)
        with open_source(source, read_source_state(source), spark) as found:
            records = found.select("login", "age").toArrow().to_pylist()
        assert [(each["login"], each["age"]) for each in records] == rows
    s3.forget(bucket)


def test_a_cursor_reads_the_new_rows_of_postgres(postgres: str, spark: SparkSession) -> None:
    with open_cursor(postgres) as cursor:
        cursor.execute("CREATE TABLE changed (id int, at timestamptz)")
        cursor.execute(
            "INSERT INTO changed SELECT i, '2026-01-01Z'::timestamptz FROM generate_series(1, 50) i"
        )
        cursor.execute("INSERT INTO changed VALUES (51, NULL)")

    def read(source: PostgresSource, after: Any) -> tuple[list[int], Any]:
        state = read_source_state(source, after=after)
        with open_source(source, state, spark) as found:
            ids = found.select("id").toArrow()["id"].to_pylist()
        assert state.is_empty == (not ids)
        return sorted(ids), state.position

    by_time = PostgresSource(postgres, table="changed", incremental=Incremental("at", lag_s=60))
    by_key = PostgresSource(
        postgres, query="SELECT * FROM changed", key="id", incremental=Incremental("id")
    )
    first, at = read(by_time, None)
    assert first == list(range(1, 52))
    keys, key_at = read(by_key, None)
    assert keys == first
    # Nothing is new: within the lag there is what there was.
    assert read_source_state(by_time, after=at).is_empty
    assert read(by_key, key_at)[0] == []
    with open_cursor(postgres) as cursor:
        cursor.execute(
            "INSERT INTO changed VALUES (52, '2025-12-31 23:59:30Z'), (53, '2025-01-01Z')"
        )
    late, at = read(by_time, at)
    assert late == [*range(1, 51), 52]
    assert read_source_state(by_time, after=at).is_empty
    with open_cursor(postgres) as cursor:
        cursor.execute("UPDATE changed SET at = '2026-01-02Z' WHERE id = 7")
    # The window reaches down to the lag before the last position, and up to the new row.
    assert 7 in read(by_time, at)[0]
    assert read(by_key, key_at)[0] == [52, 53]
    wrong = PostgresSource(postgres, table="changed", incremental=Incremental("id", lag_s=1))
    with pytest.raises(SourceRefusedError, match="'lag' is for times; 'id' is of type integer"):
        read_source_state(wrong)

"""A load, a query and reads through a Spark Connect server in a process of its own."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph
from spark import connect_program
from spark.standalone import HOST, Cluster, Driver, free_port

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I64?  @key(@src, @dst) }
"""
PEOPLE = 2_000
QUERY = """
query q() {
  match { $a: Person  $a knows $b  $b.age > 20 }
  return { $b.age as age, count($a) as ways }
  order { age desc }
}
"""
PIPELINE = """
graphs: {people: by-pipeline}
source: {kind: files, paths: "records/*.jsonl"}
into:
  - graph: people
    mode: append
    map:
      nodes:
        - {type: Person, set: {name: name, age: int(age)}}
      edges:
        - {type: Knows, explode: friends as friend, from: name, to: friend}
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A client of a server on which a task is tried once; both run until the end."""
    port = free_port()
    programs = Cluster(tmp_path_factory.mktemp("connect"))
    try:
        programs.start_connect(port, "local[2]")
        programs.await_that(lambda: _listens(port), "the server")
        yield programs.driver(SPARK_REMOTE=f"sc://{HOST}:{port}")
    finally:
        programs.end()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graph")
    omnigraph.create(folder / "g", schema=SCHEMA).close()
    people = [
        {"type": "Person", "data": {"name": f"p{number}", "age": number % 50}}
        for number in range(PEOPLE)
    ]
    edges = [
        {"edge": "Knows", "from": f"p{number}", "to": f"p{number * 7 % PEOPLE}", "data": {}}
        for number in range(PEOPLE)
    ]
    for name, records in (("people", people), ("edges", edges)):
        lines = (json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text("".join(lines))
    return folder


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port)):
        return True
    return False


def test_a_server_loads_queries_and_reads(client: Driver, place: Path) -> None:
    graph, data = str(place / "g"), str(place / "*.jsonl")
    on_spark = ("--engine", "spark", "--json")
    client.ran("load", graph, "--data", data, "--mode", "append", *on_spark)
    query = client.ran("query", "--store", graph, "-e", QUERY, *on_spark)
    with omnigraph.open(graph) as opened, omnigraph.create("memory://c", schema=SCHEMA) as local:
        main = opened.branch()
        local.branch().load(data, mode="append", engine="local")
        assert main.head.version == 1
        assert b"".join(main.export()) == b"".join(local.branch().export())
        assert json.loads(query)["rows"] == list(main.query(QUERY).to_json_rows())
    told = client.called(connect_program.used, graph)
    assert "this process already has a Spark Connect session" in told.pop("refused")
    assert {"stage Person", "write"} <= set(told.pop("stages"))
    assert told == {
        "old": PEOPLE * 9 // 50,
        "least": 41,
        "loaded": {"Person": 5},
        "known": PEOPLE,
        "vertices": PEOPLE + 5,
        "edges": PEOPLE,
    }


def test_a_server_runs_pipelines_but_no_streams(client: Driver, place: Path) -> None:
    (place / "records").mkdir()
    records = [{"name": name, "age": "7", "friends": ["ann"]} for name in ("ann", "bob")]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (place / "records" / "a.jsonl").write_text(lines)
    (place / "people.yaml").write_text(PIPELINE)
    omnigraph.create(place / "by-pipeline", schema=SCHEMA).close()
    command = ("pipeline", "run", str(place / "people.yaml"))
    client.ran(*command)
    with omnigraph.open(place / "by-pipeline") as graph:
        assert graph.branch().head.version == 1
        assert (graph.branch().count("Person"), graph.branch().count("Knows")) == (2, 2)
    assert "files as they come need a session without a server" in client.refused(
        *command, "--stream"
    )


def test_an_error_that_cannot_be_tried_again_keeps_its_kind(client: Driver) -> None:
    assert client.called(connect_program.failed) == ["StorageError", "object-1"]

"""A load, a query and reads through a Spark Connect server in a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph
from spark.standalone import HOST, Cluster, free_port

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
COMMAND = "from omnigraph.cli.app import main; main()"
# What a program does with a session of a server, told as JSON.
PROGRAM = """
import json, sys
import omnigraph
from omnigraph.errors import InvalidArgument, SparkFailed
from omnigraph.spark.session import SparkOptions, is_connect, session

with omnigraph.open(sys.argv[1]) as graph:
    old = graph.spark.nodes("Person", columns=["@id", "age"], filter="age > 40")
    assert is_connect(old.sparkSession)
    frame = old.sparkSession.range(5).selectExpr("concat('new', id) as name")
    stages = []
    loaded = graph.spark.load(frame, type="Person", mode="append", progress=stages.append)
    source = old.sparkSession.read.format("omnigraph").options(uri=sys.argv[1], type="Knows")
    vertices, edges = graph.spark.frames()
    try:
        session(SparkOptions(master="local[1]"))
    except InvalidArgument as failure:
        refused = str(failure)
    print(json.dumps({
        "old": old.count(),
        "least": old.agg({"age": "min"}).collect()[0][0],
        "loaded": dict(loaded.nodes),
        "known": source.load().count(),
        "vertices": vertices.count(),
        "edges": edges.count(),
        "stages": sorted({stage.name for stage in stages}),
        "refused": refused,
    }))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs until the end."""
    port = free_port()
    programs = Cluster(tmp_path_factory.mktemp("connect"))
    try:
        programs.start_connect(port, "local[2,4]")
        programs.await_that(lambda: _listens(port), "the server")
        yield f"sc://{HOST}:{port}"
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


def _ran(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", *command],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_server_loads_queries_and_reads(server: str, place: Path) -> None:
    graph, data = str(place / "g"), str(place / "*.jsonl")
    remote = ("--engine", "spark", "--spark-remote", server, "--json")
    load = _ran(COMMAND, "load", graph, "--data", data, "--mode", "append", *remote)
    assert load.returncode == 0, load.stderr
    query = _ran(COMMAND, "query", "--store", graph, "-e", QUERY, *remote)
    assert query.returncode == 0, query.stderr
    with omnigraph.open(graph) as opened, omnigraph.create("memory://c", schema=SCHEMA) as local:
        main = opened.branch()
        local.branch().load(data, mode="append", engine="local")
        assert main.head.version == 1
        assert b"".join(main.export()) == b"".join(local.branch().export())
        assert json.loads(query.stdout)["rows"] == list(main.query(QUERY).to_json_rows())
    program = _ran(PROGRAM, graph, SPARK_REMOTE=server)
    assert program.returncode == 0, program.stderr
    told = json.loads(program.stdout)
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


def test_a_server_runs_pipelines_but_no_streams(server: str, place: Path) -> None:
    (place / "records").mkdir()
    records = [{"name": name, "age": "7", "friends": ["ann"]} for name in ("ann", "bob")]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (place / "records" / "a.jsonl").write_text(lines)
    (place / "people.yaml").write_text(PIPELINE)
    omnigraph.create(place / "by-pipeline", schema=SCHEMA).close()
    command = ("pipeline", "run", str(place / "people.yaml"))
    run = _ran(COMMAND, *command, SPARK_REMOTE=server)
    assert run.returncode == 0, run.stderr
    with omnigraph.open(place / "by-pipeline") as graph:
        assert graph.branch().head.version == 1
        assert (graph.branch().count("Person"), graph.branch().count("Knows")) == (2, 2)
    stream = _ran(COMMAND, *command, "--stream", "--spark-remote", server)
    assert stream.returncode != 0
    assert "files as they come need a session without a server" in stream.stderr

"""Load, query and pipeline on a cluster of real processes, of which a worker dies meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph
from omnigraph.pipelines.reading import read_pipeline
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.review import runs_of
from spark.standalone import Cluster, running

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I64?  @key(@src, @dst) }
"""
PIPELINE = """
graphs: {company: by-pipeline.omni}
source: {kind: files, paths: "records/*.jsonl"}
into:
  - graph: company
    mode: append
    map:
      nodes:
        - {type: Person, distinct: true, set: {name: name, age: int(age)}}
      edges:
        - type: Knows
          explode: friends as friend
          from: name
          to: friend
          set: {since: since}
"""
QUERY = """
query q() {
  match { $a: Person  $a knows $b  $b knows $c  $c.age > 20 }
  return { $c.age as age, count($a) as ways, max($a.name) as last }
  order { age desc }
}
"""
PEOPLE = 100_000
FILES = 10
# So small parts that every worker gets several tasks.
PARTS = ("spark.sql.files.maxPartitionBytes=400k", "spark.sql.shuffle.partitions=8")


@dataclass(frozen=True)
class World:
    """A folder with the same data as entities and as records, and what a load of it exports."""

    folder: Path
    exported: bytes

    def graph(self, name: str) -> Path:
        """A new graph without entities."""
        place = self.folder / name
        omnigraph.create(place, schema=SCHEMA).close()
        return place


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    (folder / "entities").mkdir()
    (folder / "records").mkdir()
    share = PEOPLE // FILES
    for number in range(FILES):
        people = range(number * share, (number + 1) * share)
        (folder / "entities" / f"people-{number}.jsonl").write_text("".join(map(_person, people)))
        (folder / "entities" / f"edges-{number}.jsonl").write_text("".join(map(_edges, people)))
        (folder / "records" / f"{number}.jsonl").write_text("".join(map(_record, people)))
    with omnigraph.create(folder / "in-process.omni", schema=SCHEMA, durable=False) as graph:
        graph.branch().load(folder / "entities", mode="append", engine="local")
        return World(folder, b"".join(graph.branch().export()))


def _friends(number: int) -> tuple[int, int]:
    return (number * 7 + 1) % PEOPLE, (number * 7 + 2) % PEOPLE


def _person(number: int) -> str:
    return f'{{"type":"Person","data":{{"name":"p{number}","age":{number % 90}}}}}\n'


def _edges(number: int) -> str:
    since = number % 30
    return "".join(
        f'{{"edge":"Knows","from":"p{number}","to":"p{to}","data":{{"since":{since}}}}}\n'
        for to in _friends(number)
    )


def _record(number: int) -> str:
    friends = [f"p{to}" for to in _friends(number)]
    data = {"name": f"p{number}", "age": number % 90, "since": number % 30, "friends": friends}
    return json.dumps(data) + "\n"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """The cluster with two workers, whatever became of them before."""
    while len(started.workers) < 2:
        started.add_worker()
    started.await_workers()
    return started


@pytest.fixture(scope="module")
def loaded(world: World, started: Cluster) -> Path:
    """A graph that was loaded on the cluster, while one of its workers died."""
    place = world.graph("by-load.omni")
    data = ["--data", str(world.folder / "entities"), "--mode", "append", "--key", "once"]
    output = outliving_a_worker(started, ["load", str(place), *data, "--engine", "spark", "--json"])
    assert '"total_entities": 300000' in output
    return place


def outliving_a_worker(cluster: Cluster, arguments: Sequence[str], *, done: int = 1) -> str:
    """What a command prints on whose tasks a worker dies; so many of them it has done before."""
    driver = cluster.begin(arguments, PARTS)
    worker = cluster.await_that(lambda: driver.busy(cluster, done=done), "a task on a worker")
    cluster.kill(worker)
    assert driver.started.process.poll() is None, "the worker died before the job ended"
    output = driver.result()
    assert driver.executors_lost == 1
    return output


def test_a_load_outlives_a_worker_and_its_rows_are_there_once(loaded: Path, world: World) -> None:
    with omnigraph.open(loaded) as graph:
        main = graph.branch()
        assert len(list(main.commits())) == 2, "the creation, and one load"
        assert main.head.version == 1
        assert (main.count("Person"), main.count("Knows")) == (PEOPLE, 2 * PEOPLE)
        assert b"".join(main.export()) == world.exported
        assert graph.check().problems == ()


def test_a_query_outlives_a_worker_and_its_answer_is_that_of_one_process(
    loaded: Path, cluster: Cluster
) -> None:
    arguments = ["query", "--store", str(loaded), "-e", QUERY, "--engine", "spark", "--json"]
    output = outliving_a_worker(cluster, arguments)
    with omnigraph.open(loaded) as graph:
        expected = graph.branch().query(QUERY).to_json_rows()
    assert len(expected) == 69
    assert json.loads(output[output.index("{") :])["rows"] == list(expected)


def test_a_pipeline_outlives_a_worker_and_makes_one_commit(world: World, cluster: Cluster) -> None:
    place = world.graph("by-pipeline.omni")
    definition = world.folder / "friends.yaml"
    definition.write_text(PIPELINE)
    outliving_a_worker(cluster, ["pipeline", "run", str(definition)], done=3)
    pipeline = read_pipeline(definition)
    (run,) = runs_of(pipeline, Resolver.of(pipeline), limit=None)
    assert (run.status, run.rows_read) == ("succeeded", PEOPLE)
    with omnigraph.open(place) as graph:
        main = graph.branch()
        assert [target.commit for target in run.targets] == [main.head.id]
        assert main.head.version == 1
        assert b"".join(main.export()) == world.exported
        assert graph.check().problems == ()

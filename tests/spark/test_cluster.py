"""Load, query and pipeline on a cluster of real processes, of which a worker dies meanwhile.

The worker that dies is one on which a task has done its work and is held, so that every job loses
exactly that, however fast the machine is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.run.pipeline_inspection import read_runs
from spark.holding import FOLDER_VARIABLE, FOR_LONG, UNTIL_DEATH
from spark.standalone import Cluster, Driver, running

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
# More than a query reads without a task.
PEOPLE = 3_000
FILES = 3


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


@dataclass(frozen=True)
class Commands:
    """Commands that one driver runs on a cluster, of whose tasks one can be held."""

    cluster: Cluster
    driver: Driver
    folder: Path

    def ran(self, *command: str) -> str:
        """What a command prints."""
        return self.driver.ran(*command, *self._options())

    def outliving_a_worker(self, *command: str) -> str:
        """What a command prints, of which a worker dies with a task that has done its work."""
        with self._armed(UNTIL_DEATH):
            self.driver.begin(*command, *self._options())
            self.cluster.kill_worker_of(self._held())
            output = self.driver.output()
            assert (self.folder / "again").exists(), "the task that was lost ran again"
        return output

    def passing_a_straggler(self, *command: str) -> str:
        """What a command prints, of which a task is so slow that it is begun a second time."""
        with self._armed(FOR_LONG):
            output = self.ran(*command)
            assert self._held()
            assert (self.folder / "again").exists(), "the slow task was begun a second time"
        return output

    def _options(self) -> list[str]:
        return self.cluster.options(**{FOLDER_VARIABLE: str(self.folder)})

    @contextmanager
    def _armed(self, how: str) -> Iterator[None]:
        (self.folder / "armed").write_text(how)
        yield
        for each in self.folder.iterdir():
            each.unlink()

    def _held(self) -> int:
        """The process of the task that is held."""
        place = self.folder / "held"

        def found() -> str | None:
            return place.read_text() if place.exists() else None

        return int(json.loads(self.cluster.await_that(found, "a task to be held"))["pid"])


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    folder = tmp_path_factory.mktemp("held")
    with running(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield Commands(cluster, cluster.driver(), folder)


@pytest.fixture(scope="module")
def loaded(world: World, commands: Commands) -> Path:
    """A graph that was loaded on the cluster, while one of its workers died."""
    place = world.graph("by-load.omni")
    output = commands.outliving_a_worker(*loading(place, world))
    assert f'"total_entities": {3 * PEOPLE}' in output
    return place


def loading(place: Path, world: World) -> list[str]:
    data = ["--data", str(world.folder / "entities"), "--mode", "append"]
    return ["load", str(place), *data, "--engine", "spark", "--json"]


def is_loaded_once(place: Path, world: World) -> bool:
    with omnigraph.open(place) as graph:
        main = graph.branch()
        assert len(list(main.commits())) == 2, "the creation, and one load"
        assert main.head.version == 1
        assert (main.count("Person"), main.count("Knows")) == (PEOPLE, 2 * PEOPLE)
        assert b"".join(main.export()) == world.exported
        assert graph.check().problems == ()
    return True


def test_a_task_that_runs_twice_at_once_gives_its_rows_once(
    world: World, commands: Commands
) -> None:
    place = world.graph("by-straggler.omni")
    commands.passing_a_straggler(*loading(place, world))
    assert is_loaded_once(place, world)


def test_a_load_outlives_a_worker_and_its_rows_are_there_once(loaded: Path, world: World) -> None:
    assert is_loaded_once(loaded, world)


def test_a_query_outlives_a_worker_and_its_answer_is_that_of_one_process(
    loaded: Path, commands: Commands
) -> None:
    arguments = ["query", "--store", str(loaded), "-e", QUERY, "--engine", "spark", "--json"]
    output = commands.outliving_a_worker(*arguments)
    with omnigraph.open(loaded) as graph:
        expected = graph.branch().query(QUERY).to_json_rows()
    assert len(expected) == 69
    assert json.loads(output[output.index("{") :])["rows"] == list(expected)


def test_a_pipeline_outlives_a_worker_and_makes_one_commit(
    world: World, commands: Commands
) -> None:
    place = world.graph("by-pipeline.omni")
    definition = world.folder / "friends.yaml"
    definition.write_text(PIPELINE)
    commands.outliving_a_worker("pipeline", "run", str(definition))
    pipeline = read_pipeline(definition)
    (run,) = read_runs(pipeline, Resolver.from_environment(pipeline), limit=None)
    assert (run.status, run.rows_read) == ("succeeded", PEOPLE)
    with omnigraph.open(place) as graph:
        main = graph.branch()
        assert [target.commit for target in run.targets] == [main.head.id]
        assert main.head.version == 1
        assert b"".join(main.export()) == world.exported
        assert graph.check().problems == ()

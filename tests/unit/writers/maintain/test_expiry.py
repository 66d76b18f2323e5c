"""Files of maintenance that a clean-up overtakes are made again, not published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.engine.graph import create_on
from omnigraph.engine.resources import Environment, Storage
from omnigraph.errors import ConflictError
from omnigraph.storage.objects.object_store import open_objects
from omnigraph.storage.tables import fragment_compaction
from omnigraph.storage.tables.lance_tables import Compacted, Tables
from omnigraph.versioning import MAIN, Committer, Log, Settings, compact
from omnigraph.writers.maintain import index_builder
from omnigraph.writers.maintain.maintenance_commit import COMMIT_ATTEMPTS_MAX
from places import fresh_uri, options

SCHEMA = "node Person { name: String @key  age: I32? @index }"
PERSON = "node:Person"


@dataclass(eq=False)
class OvertakenTables:
    """Tables that a clean-up fences off after their maintenance, so many times."""

    inner: Tables
    fences: int = 0
    fence: Callable[[], object] | None = None
    made: list[Any] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:  # the wrapped class decides
        found = getattr(self.inner, name)
        names = ("build_indexes", "build_parts", "compact")
        return self._overtaken(found) if name in names else found

    def _overtaken(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **named: Any) -> Any:
            result = make(*arguments, **named)
            if result is not None:
                self.made.append(result)
                if self.fences and self.fence is not None:
                    self.fences -= 1
                    self.fence()
            return result

        return made


@dataclass
class World:
    graph: Graph
    tables: OvertakenTables

    def refers_to(self, names: list[str]) -> bool:
        """Whether the newest version refers to files of its table, all of them."""
        pin = self.graph.branch().snapshot().at.pins[PERSON]
        known = self.tables.inner.list_references(pin)
        return {f"{pin.path}/{name}" for name in names} <= known


@pytest.fixture
def world() -> World:
    uri = fresh_uri()
    overtaken: Any = OvertakenTables(Tables(uri, is_durable=False, options=options(uri)))
    objects = open_objects(uri, is_durable=False, options=options(uri))
    environment = Environment(settings=Settings(pause=lambda _: None))
    graph = create_on(Storage(objects, overtaken), schema=SCHEMA, environment=environment)
    committer = Committer(Log(objects), overtaken, Settings(pause=lambda _: None))
    overtaken.fence = lambda: committer.fence(MAIN)
    graph._session.resources.publishers.on_published = None
    for number in range(3):
        load(graph, f"p{number}-", 4)
    return World(graph, overtaken)


def load(graph: Graph, prefix: str, count: int) -> None:
    people: list[dict[str, object]] = [
        {"type": "Person", "data": {"name": f"{prefix}{number}", "age": number}}
        for number in range(count)
    ]
    graph.branch().load(people, mode="append")


@pytest.mark.parametrize(("fences", "builds"), [(0, 1), (1, 2)])
def test_indexes_that_a_clean_up_overtakes_are_built_again(
    world: World, fences: int, builds: int
) -> None:
    world.tables.fences = fences
    assert world.graph.branch().ensure_indices().commit is not None
    assert {status.state for status in world.graph.index_status()} == {"fresh"}
    assert len(world.tables.made) == builds
    assert [world.refers_to(each.folders) for each in world.tables.made] == [False, True][-builds:]


def test_an_optimization_that_a_clean_up_overtakes_is_done_again(world: World) -> None:
    world.tables.fences = 1
    result = world.graph.branch().optimize()
    assert result.commit is not None
    assert {status.state for status in world.graph.index_status()} == {"fresh"}
    compacted = [each for each in world.tables.made if isinstance(each, Compacted)]
    files = [[f"data/{name}" for name in each.files] for each in compacted]
    assert [world.refers_to(each) for each in files] == [False, True]


def test_a_compaction_that_a_clean_up_overtakes_is_done_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragment_compaction, "FANOUT", 2)
    world.tables.fences = 1
    resources = world.graph._session.resources
    stream = world.graph.branch().snapshot().at.stream
    assert compact(resources.publishers, stream, PERSON) is not None
    files = [[f"data/{name}" for name in each.files] for each in world.tables.made]
    assert [world.refers_to(each) for each in files] == [False, True]


def test_an_extension_that_a_clean_up_overtakes_is_left_to_a_later_commit(world: World) -> None:
    world.graph.branch().ensure_indices()
    load(world.graph, "more", 20)
    for fences, state in [(1, "stale"), (0, "fresh")]:
        world.tables.fences = fences
        view = world.graph.branch().snapshot().view
        publishers = world.graph._session.resources.publishers
        index_builder.build_index_step(view, publishers, tail_rows_min=10)
        assert {status.state for status in world.graph.index_status()} == {state}


def test_maintenance_that_is_always_overtaken_is_a_conflict_and_changes_nothing(
    world: World,
) -> None:
    world.tables.fences = COMMIT_ATTEMPTS_MAX
    with pytest.raises(ConflictError):
        world.graph.branch().ensure_indices()
    assert len(world.tables.made) == COMMIT_ATTEMPTS_MAX
    assert {status.state for status in world.graph.index_status()} == {"absent"}

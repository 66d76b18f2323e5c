"""Files of maintenance that waited too long for their commit are made again, not published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.engine.graph import create_on
from omnigraph.engine.resources import Environment, Storage
from omnigraph.errors import Conflict
from omnigraph.storage import compaction_files
from omnigraph.storage.objects import open_objects
from omnigraph.storage.tables import Compacted, Tables
from omnigraph.versioning import Settings, compact
from omnigraph.writers.maintain import keeper
from omnigraph.writers.maintain.run import ROUNDS_MAX
from places import fresh_uri, options

SCHEMA = "node Person { name: String @key  age: I32? @index }"
HOUR_S = 3600.0
PERSON = "node:Person"


@dataclass
class Clock:
    """A clock that stands still until somebody waits."""

    now_s: float = 1_800_000_000.0

    def micros(self) -> int:
        return round(self.now_s * 1_000_000)


@dataclass(eq=False)
class SlowTables:
    """Tables whose maintenance takes so many hours, one after the other, and then none."""

    inner: Tables
    clock: Clock
    hours: list[float] = field(default_factory=list)
    made: list[Any] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:  # the wrapped class decides
        found = getattr(self.inner, name)
        return self._slow(found) if name in ("build_indexes", "build_parts", "compact") else found

    def _slow(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **named: Any) -> Any:
            result = make(*arguments, **named)
            if result is not None:
                self.made.append(result)
                self.clock.now_s += HOUR_S * self.hours.pop(0) if self.hours else 0
            return result

        return made


@dataclass
class World:
    graph: Graph
    tables: SlowTables
    clock: Clock

    def refers_to(self, names: list[str]) -> bool:
        """Whether the newest version refers to files of its table, all of them."""
        pin = self.graph.branch().snapshot().at.pins[PERSON]
        known = self.tables.inner.references(pin)
        return {f"{pin.path}/{name}" for name in names} <= known


@pytest.fixture
def world() -> World:
    uri, clock = fresh_uri(), Clock()
    inner = Tables(uri, is_durable=False, options=options(uri), clock=lambda: clock.now_s)
    slow: Any = SlowTables(inner, clock)
    objects = open_objects(uri, is_durable=False, options=options(uri))
    settings = Settings(now_us=clock.micros, pause=lambda _: None)
    environment = Environment(settings=settings)
    graph = create_on(Storage(objects, slow), schema=SCHEMA, environment=environment)
    graph._session.resources.publishers.on_published = None
    for number in range(3):
        load(graph, f"p{number}-", 4)
    return World(graph, slow, clock)


def load(graph: Graph, prefix: str, count: int) -> None:
    people: list[dict[str, object]] = [
        {"type": "Person", "data": {"name": f"{prefix}{number}", "age": number}}
        for number in range(count)
    ]
    graph.branch().load(people, mode="append")


def test_half_the_grace_is_twelve_hours() -> None:
    assert Settings().grace_s / 2 == 12 * HOUR_S


@pytest.mark.parametrize(("hours", "builds"), [(11.0, 1), (13.0, 2)])
def test_indexes_that_waited_half_the_grace_are_built_again(
    world: World, hours: float, builds: int
) -> None:
    world.tables.hours = [hours]
    assert world.graph.branch().ensure_indices().commit is not None
    assert {status.state for status in world.graph.index_status()} == {"fresh"}
    assert len(world.tables.made) == builds
    assert [world.refers_to(each.folders) for each in world.tables.made] == [False, True][-builds:]


def test_an_optimization_that_waited_half_the_grace_is_done_again(world: World) -> None:
    world.tables.hours = [7.0, 7.0]
    result = world.graph.branch().optimize()
    assert result.commit is not None
    assert {status.state for status in world.graph.index_status()} == {"fresh"}
    compacted = [each for each in world.tables.made if isinstance(each, Compacted)]
    files = [[f"data/{name}" for name in each.files] for each in compacted]
    assert [world.refers_to(each) for each in files] == [False, True]


def test_a_compaction_that_waited_half_the_grace_is_done_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction_files, "FANOUT", 2)
    world.tables.hours = [13.0]
    resources = world.graph._session.resources
    stream = world.graph.branch().snapshot().at.stream
    assert compact(resources.publishers, stream, PERSON) is not None
    files = [[f"data/{name}" for name in each.files] for each in world.tables.made]
    assert [world.refers_to(each) for each in files] == [False, True]


def test_an_extension_that_waited_half_the_grace_is_left_to_a_later_commit(world: World) -> None:
    world.graph.branch().ensure_indices()
    load(world.graph, "more", 20)
    before = world.graph.branch().head.id
    for hours, state in [(13.0, "stale"), (1.0, "fresh")]:
        world.tables.hours = [hours]
        view = world.graph.branch().snapshot().view
        publishers = world.graph._session.resources.publishers
        keeper.index_piece(view, publishers, tail_rows_min=10)
        assert {status.state for status in world.graph.index_status()} == {state}
        assert (world.graph.branch().head.id == before) == (state == "stale")


def test_maintenance_that_always_takes_too_long_is_a_conflict_and_changes_nothing(
    world: World,
) -> None:
    world.tables.hours = [13.0] * ROUNDS_MAX
    before = world.graph.branch().head.id
    with pytest.raises(Conflict):
        world.graph.branch().ensure_indices()
    assert len(world.tables.made) == ROUNDS_MAX
    assert world.graph.branch().head.id == before

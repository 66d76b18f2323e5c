"""Maintenance beside writers, and maintenance that dies half way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph
import places
from omnigraph import Branch, Graph
from omnigraph.engine.graph import create_on, open_on
from omnigraph.engine.resources import Environment
from omnigraph.errors import OmnigraphError
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.objects.faults import (
    CRASHES,
    FAILURES,
    Fault,
    FaultKind,
    SimulatedCrash,
    Steps,
)
from omnigraph.versioning import Settings

SCHEMA = """
node Person { name: String @key  bio: String? @index  age: I32? @index }
edge Knows: Person -> Person
"""
CHANGES = """
query age($name: String, $age: I32) { update Person set { age: $age } where name = $name }
query leave($name: String) { delete Person where name = $name }
"""
WRITERS, WRITES = 4, 12
QUIET = Environment(settings=Settings(pause=lambda _: None))


@pytest.mark.slow
@pytest.mark.parametrize("maintain", [Branch.ensure_indices, Branch.optimize])
def test_maintenance_beside_writers_loses_nothing(maintain: Callable[[Branch], object]) -> None:
    with omnigraph.create(places.fresh_uri(), schema=SCHEMA, durable=False) as graph:
        main = graph.branch()
        for number in range(4):
            main.load([person(f"old{number}-{each}") for each in range(5)], mode="append")
        failures: list[BaseException] = []
        is_done = threading.Event()
        writers = [
            threading.Thread(target=_write, args=(graph, number, failures))
            for number in range(WRITERS)
        ]
        keeper = threading.Thread(target=_keep, args=(maintain, main, is_done, failures))
        for thread in (keeper, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        is_done.set()
        keeper.join()
        assert failures == []
        assert graph.check(commits_max=None).problems == ()
        names = {f"w{writer}-{number}" for writer in range(WRITERS) for number in range(WRITES)}
        gone = {
            f"w{writer}-{number}" for writer in range(WRITERS) for number in range(0, WRITES, 3)
        }
        old = {f"old{number}-{each}" for number in range(4) for each in range(5)}
        table = main.snapshot().view.open_table(_person(main))
        rows = table.scan()
        assert set(rows["__id"].to_pylist()) == old | names - gone
        maintain(main)
        indexed = main.snapshot().view.open_table(_person(main))
        assert indexed.indexes
        for row in indexed.scan(columns=["__id"]).to_pylist():
            found = indexed.scan(columns=["__id"], filter=f"`__id` = '{row['__id']}'")
            assert found["__id"].to_pylist() == [row["__id"]]


def _write(graph: Graph, writer: int, failures: list[BaseException]) -> None:
    try:
        branch = graph.branch()
        for number in range(WRITES):
            name = f"w{writer}-{number}"
            branch.load(
                [person(name), {"edge": "Knows", "from": name, "to": "old0-0"}], mode="append"
            )
            if number % 3 == 0:
                branch.mutate(CHANGES, name="leave", params={"name": name})
            else:
                branch.mutate(CHANGES, name="age", params={"name": name, "age": number})
    except BaseException as error:  # noqa: BLE001 — the test looks at it
        failures.append(error)


def _keep(
    maintain: Callable[[Branch], object],
    branch: Branch,
    is_done: threading.Event,
    failures: list[BaseException],
) -> None:
    try:
        while not is_done.is_set():
            maintain(branch)
    except BaseException as error:  # noqa: BLE001 — the test looks at it
        failures.append(error)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*CRASHES, *FAILURES])
@pytest.mark.parametrize("maintain", [Branch.ensure_indices, Branch.optimize])
def test_maintenance_that_dies_at_any_step_leaves_the_old_state_or_the_new_one(
    maintain: Callable[[Branch], object], kind: FaultKind, tmp_path: Path
) -> None:
    uri = _seeded(tmp_path)
    counted = Steps()
    maintain(_opened(uri, counted).branch())
    steps = counted.taken
    assert {step.operation for step in steps} >= {"build_indexes", "replay", "put_new"}
    for number, step in enumerate(steps, 1):
        uri = _seeded(tmp_path)
        before = _exported(_opened(uri))
        fault = Fault(number, kind, step.operation).create_steps()
        with suppress(SimulatedCrash, OmnigraphError):
            maintain(_opened(uri, fault).branch())
        assert fault.has_fired
        with _opened(uri) as graph:
            assert _exported(graph) == before
            assert graph.check().problems == ()
            states = {status.state for status in graph.index_status() if status.total_rows}
            assert len(states) == 1, "all indexes of the commit, or none"
            maintain(graph.branch())
            assert {one.state for one in graph.index_status() if one.total_rows} == {"fresh"}
            assert _exported(graph) == before


def _seeded(folder: Path) -> str:
    uri = places.uri_of(places.quick_kind(), folder)
    with _quiet(create_on(places.storage_of(uri), schema=SCHEMA, environment=QUIET)) as graph:
        for number in range(3):
            graph.branch().load([person(f"p{number}"), person(f"q{number}")], mode="append")
    return uri


def _opened(uri: str, steps: Steps | None = None) -> Graph:
    return _quiet(open_on(places.storage_of(uri, steps), environment=QUIET))


def _quiet(graph: Graph) -> Graph:
    graph._session.resources.publishers.on_published = None
    return graph


def _exported(graph: Graph) -> list[bytes]:
    return sorted(b"".join(graph.branch().export()).splitlines())


def _person(branch: Branch) -> TypeKey:
    return next(key for key in branch.snapshot().view.types if key.name == "Person")


def person(name: str) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, "bio": "The running cat", "age": 1}}

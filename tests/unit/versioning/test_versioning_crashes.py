"""Every durable step of every operation dies, before and after: all or nothing, and on it goes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import places
from omnigraph.errors import GraphExistsError, GraphNotFoundError, StorageError
from omnigraph.storage import open_objects
from omnigraph.storage.objects.faults import (
    CRASHES,
    FAILURES,
    FaultyObjects,
    FaultyTables,
    SimulatedCrash,
    Steps,
    iter_faults,
)
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import Publishers, Settings, compact
from unit.versioning.memory_storage import MemoryObjects, MemoryTables
from unit.versioning.small_graph import (
    CITY,
    PERSON,
    SCHEMA,
    SmallGraph,
    create_graph,
    created_tables,
    inserting,
    upserting,
)

MANY = {f"n{number:04}": "x" for number in range(1_200)}


def _write_two_tables(graph: SmallGraph) -> None:
    people = upserting(graph, {**MANY, "p1": "y"})(graph.head())
    cities = inserting(graph, {"paris": "1"}, CITY)(graph.head())
    graph.committer.publish(
        replace(
            people,
            effects=people.effects + cities.effects,
            changes={**people.changes, **cities.changes},
        )
    )


OPERATIONS: dict[str, Callable[[SmallGraph], object]] = {
    "write": _write_two_tables,
    "compact": lambda graph: compact(
        Publishers(graph.committer), graph.branches.resolve("main"), PERSON
    ),
    "create branch": lambda graph: graph.branches.create("new", at=graph.head()),
    "delete branch": lambda graph: graph.branches.delete("old"),
}


@dataclass
class Storage:
    """One kind of storage, and how to open it again."""

    objects: Objects
    tables: Any

    def graph(self, steps: Steps | None = None) -> SmallGraph:
        settings = Settings(pause=lambda _: None)
        if steps is None:
            return SmallGraph(self.objects, self.tables, settings)
        faulty = FaultyObjects(self.objects, steps), FaultyTables(self.tables, steps)
        return SmallGraph(*faulty, settings)


@pytest.fixture(params=["stand-in", *places.kinds()])
def new_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    """Makes fresh storage, again and again."""

    def new() -> Storage:
        if request.param == "stand-in":
            return Storage(MemoryObjects(), MemoryTables())
        uri = places.uri_of(request.param, tmp_path)
        return Storage(open_objects(uri, is_durable=False), Tables(uri, is_durable=False))

    return new


def _filled(storage: Storage, operation: str) -> None:
    graph = create_graph(storage.objects, storage.tables)
    for number in range(33 if operation == "compact" else 3):
        graph.insert({f"p{number}": "x"})
    graph.branches.create("old", at=graph.head())


def _state(graph: SmallGraph) -> dict[str, object]:
    """Everything a reader can see: the entities of every branch."""
    heads = {name: graph.branches.read_head(name).snapshot for name in graph.branches.list()}
    return {
        name: (graph.rows(head, PERSON), graph.rows(head, CITY)) for name, head in heads.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_that_dies_or_fails_at_any_step_happened_or_did_not(
    new_storage: Callable[[], Storage], operation: str
) -> None:
    act = OPERATIONS[operation]

    def scenario(steps: Steps) -> None:
        storage = new_storage()
        _filled(storage, operation)
        act(storage.graph(steps))

    whole = new_storage()
    _filled(whole, operation)
    before = _state(whole.graph())
    act(whole.graph())
    after = _state(whole.graph())
    faults = list(iter_faults(scenario, (*CRASHES, *FAILURES)))
    assert len(faults) >= 10
    for fault in faults:
        storage, steps = new_storage(), fault.create_steps()
        _filled(storage, operation)
        with suppress(SimulatedCrash, StorageError):
            act(storage.graph(steps))
        assert steps.has_fired
        assert _state(storage.graph()) in (before, after), fault
        parent = storage.graph().head()
        record = storage.graph().insert({"next": "x"})
        assert (record.parent, record.seq) == (parent.commit, parent.seq + 1)
        assert storage.graph().people()["next"] == "x"


def test_the_creation_of_a_graph_that_dies_at_any_step_can_be_repeated(
    new_storage: Callable[[], Storage],
) -> None:
    def create(graph: SmallGraph) -> None:
        pins = created_tables(graph.tables)
        graph.committer.create_graph(schema=SCHEMA, pins=pins)

    for fault in iter_faults(lambda steps: create(new_storage().graph(steps))):
        storage, steps = new_storage(), fault.create_steps()
        with pytest.raises(SimulatedCrash):
            create(storage.graph(steps))
        try:
            storage.graph().log.require_graph()
        except GraphNotFoundError:
            # Somebody who comes later uses tables of their own.
            pins = created_tables(storage.tables, "00000002")
            storage.graph().committer.create_graph(schema=SCHEMA, pins=pins)
        else:
            with pytest.raises(GraphExistsError):
                storage.graph().committer.create_graph(schema=SCHEMA, pins={})
        assert storage.graph().insert({"ada": "1"}).seq == 1

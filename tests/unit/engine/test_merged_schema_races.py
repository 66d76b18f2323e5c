"""Merges of migrated branches beside writers of their target."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from omnigraph import Graph
from unit.engine.migrated_branches import (
    PEOPLE,
    changed,
    contents,
    entity,
    people,
    people_graph,
)

_ROUNDS = 4


@pytest.fixture
def graph() -> Iterator[Graph]:
    """Ada and Bob in Rome, and a branch called review."""
    with people_graph() as graph:
        yield graph


def test_loads_and_merges_that_change_the_schema_lose_nothing(graph: Graph) -> None:
    main, is_over = graph.branch(), threading.Event()
    loaded: list[str] = []
    failures: list[BaseException] = []

    def load() -> None:
        try:
            while not is_over.is_set():
                name = f"w{len(loaded)}"
                main.load([entity("Person", name=name, age=len(loaded))], mode="append")
                loaded.append(name)
        except BaseException as error:
            failures.append(error)
            raise

    writer = threading.Thread(target=load)
    writer.start()
    expected = {}
    try:
        for number in range(_ROUNDS):
            branch = graph.create_branch(f"b{number}")
            name = f"p{number}"
            schema = changed(branch.schema, ("age: I32?", f"age: I32?\n  {name}: I32?"))
            branch.apply_schema(schema)
            branch.load([entity("Person", name=name, **{name: number})], mode="append")
            main.merge(branch)
            expected[name] = number
    finally:
        is_over.set()
        writer.join()
    assert not failures
    names = [f"p{number}" for number in range(_ROUNDS)]
    found = people(main, "age", *names)
    assert {each: found[each][0] for each in loaded} == {
        each: number for number, each in enumerate(loaded)
    }
    for number, name in enumerate(names):
        assert found[name][1 + number] == expected[name]
    for number in range(_ROUNDS):
        branch = graph.branch(f"b{number}")
        branch.merge(main)
        assert contents(branch) == contents(main)


def test_merges_into_one_branch_from_several_threads_are_all_there(graph: Graph) -> None:
    main = graph.branch()
    names = [f"p{number}" for number in range(_ROUNDS)]
    for name in names:
        branch = graph.create_branch(name)
        branch.apply_schema(changed(PEOPLE, ("age: I32?", f"age: I32?\n  {name}: I32?")))
        branch.load([entity("Person", name=name, **{name: 1})], mode="append")
    threads = [threading.Thread(target=main.merge, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = people(main, *names)
    for number, name in enumerate(names):
        assert found[name][number] == 1
        assert f"{name}: I32?" in main.schema

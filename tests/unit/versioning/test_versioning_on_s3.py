"""The life of a graph on an S3 server with real conditional puts."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from omnigraph.errors import BranchGoneError, GraphExistsError, KeyConflictError
from omnigraph.storage import open_objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import MAIN, Publishers, Settings
from stores import S3Server
from unit.versioning.small_graph import (
    SCHEMA,
    SmallGraph,
    create_graph,
    inserting,
    updating,
    upserting,
)


@pytest.fixture
def reopen(s3: S3Server) -> Callable[[], SmallGraph]:
    """Opens one fresh graph, as another process would."""
    uri = f"s3://{s3.new_bucket()}/graphs/one"

    def opened() -> SmallGraph:
        objects = open_objects(uri, options=s3.options)
        return SmallGraph(objects, Tables(uri, options=s3.options), Settings())

    first = opened()
    create_graph(first.objects, first.tables)
    return opened


def test_commits_branches_and_time_travel(reopen: Callable[[], SmallGraph]) -> None:
    graph, other = reopen(), reopen()
    record = graph.insert({"ada": "1"})
    with pytest.raises(KeyConflictError):
        other.insert({"ada": "2"})
    other.write(upserting(other, {"ada": "2", "bob": "2"}))
    stream = graph.branches.create("review/x", at=graph.history.read_by_commit(record.commit))
    other.insert({"cy": "3"}, other.branches.resolve("review/x"))
    assert graph.people() == {"ada": "2", "bob": "2"}
    assert graph.people(stream) == {"ada": "1", "cy": "3"}
    assert reopen().branches.list() == ["main", "review/x"]
    other.branches.delete("review/x")
    with pytest.raises(BranchGoneError):
        graph.insert({"dan": "4"}, stream)
    with pytest.raises(GraphExistsError):
        graph.committer.create_graph(schema=SCHEMA, pins={})


def test_a_head_is_found_when_the_hint_lags(reopen: Callable[[], SmallGraph]) -> None:
    graph = reopen()
    for number in range(11):
        graph.insert({f"p{number}": "x"})
        assert reopen().head().seq == number + 1


def test_threads_and_handles_that_write_together_lose_nothing(
    reopen: Callable[[], SmallGraph],
) -> None:
    graph, rival = reopen(), reopen()
    graph.insert({"counter": "0"})
    publishers = Publishers(graph.committer)
    errors: list[BaseException] = []

    def insert(number: int) -> None:
        prepare = inserting(graph, {f"p{number}": "x"})
        try:
            publishers.get_publisher(MAIN).publish(prepare(graph.head()), prepare_again=prepare)
            rival.write(inserting(rival, {f"q{number}": "x"}))
        except BaseException as error:  # noqa: BLE001 — it is what the test looks at
            errors.append(error)

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    rival.strict(updating(rival, lambda people: {"counter": str(len(people))}))
    people = reopen().people()
    assert (len(people), people["counter"]) == (9, "9")

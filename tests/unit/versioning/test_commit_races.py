"""Races: threads and processes that commit to one branch lose nothing and invent nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.errors import ConflictError, KeyConflictError
from omnigraph.storage import open_objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning import MAIN, Changed, Publishers, Record, Settings
from unit.versioning.small_graph import (
    PERSON,
    SmallGraph,
    connecting,
    deleting,
    inserting,
    local_graph,
    updating,
)

THREADS = 8
PROCESSES = 4
_CHILD = """
import sys
from pathlib import Path
from unit.versioning.test_commit_races import insert_people
insert_people(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
"""


def _together(work: Callable[[int], object]) -> list[object]:
    """The results of threads that start at the same moment; errors are results too."""
    start, results = threading.Barrier(THREADS), list[object]([None] * THREADS)

    def run(number: int) -> None:
        start.wait()
        try:
            results[number] = work(number)
        except Exception as error:  # noqa: BLE001 — it is what the test looks at
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _assert_history_is_linear(graph: SmallGraph) -> list[Record]:
    """Every record follows the one before it, and together they inserted exactly the people."""
    records = list(graph.history.iter_commits(MAIN))[::-1]
    assert [record.seq for record in records] == list(range(len(records)))
    assert [record.parent for record in records[1:]] == [r.commit for r in records[:-1]]
    changes = [record.changes.get(PERSON) for record in records]
    inserted = [i for change in changes if isinstance(change, Changed) for i in change.inserted]
    assert Counter(inserted) == Counter(set(graph.people()))
    return records


@pytest.mark.parametrize("are_handles_shared", [True, False])
def test_threads_that_insert_different_people_all_succeed(
    graph: SmallGraph, are_handles_shared: bool
) -> None:
    publishers = Publishers(graph.committer)

    def insert(number: int) -> None:
        own = graph if are_handles_shared else graph.reopened()
        for turn in range(5):
            prepare = inserting(own, {f"p{number}-{turn}": "x"})
            if are_handles_shared:
                publishers.get_publisher(MAIN).publish(prepare(own.head()), prepare_again=prepare)
            else:
                own.write(prepare)

    assert _together(insert) == [None] * THREADS
    assert len(graph.people()) == THREADS * 5
    records = _assert_history_is_linear(graph.reopened())
    assert sum(record.members for record in records[1:]) == THREADS * 5


def test_of_threads_that_insert_one_person_one_succeeds(graph: SmallGraph) -> None:
    results = _together(lambda number: graph.reopened().insert({"ada": str(number)}))
    assert Counter(type(result) for result in results) == {Record: 1, KeyConflictError: THREADS - 1}
    assert len(graph.people()) == 1


def test_strict_updates_of_one_person_are_never_lost(graph: SmallGraph) -> None:
    graph.insert({"ada": "0"})

    def count_up(_: int) -> int:
        own, done = graph.reopened(), 0
        for _ in range(5):
            try:
                own.strict(updating(own, lambda people: {"ada": str(int(people["ada"]) + 1)}))
                done += 1
            except ConflictError:
                continue
        return done

    results = _together(count_up)
    assert all(isinstance(result, int) for result in results), results
    assert graph.people() == {"ada": str(sum(r for r in results if isinstance(r, int)))}


def test_edges_and_deletions_of_their_ends_never_both_happen(graph: SmallGraph) -> None:
    people = [f"p{number}" for number in range(THREADS)]
    graph.insert(dict.fromkeys([*people, "hub"], "x"))

    def connect_or_delete(number: int) -> object:
        own = graph.reopened()
        name = people[number // 2 * 2]
        if number % 2:
            return own.strict(connecting(own, {f"e{number}": ("hub", name)}))
        return own.strict(deleting(own, [name]))

    results = _together(connect_or_delete)
    assert {type(result) for result in results} <= {Record, ConflictError}
    head = graph.head()
    edges = graph.tables.open(head.pins["edge:Knows"]).scan().to_pylist()
    left = graph.rows(head)
    assert [edge for edge in edges if edge["__dst"] not in left] == []
    made = sum(isinstance(result, Record) for result in results)
    assert len(edges) + len(people) + 1 - len(left) == made >= THREADS // 2


def insert_people(folder: Path, prefix: str, count: int) -> None:
    """What one of several processes does: insert people, one commit each."""
    objects = open_objects(str(folder), is_durable=False)
    graph = SmallGraph(objects, Tables(str(folder), is_durable=False), Settings())
    for number in range(count):
        graph.insert({f"{prefix}-{number}": "x"})


@pytest.mark.slow
def test_processes_that_insert_different_people_all_succeed(tmp_path: Path) -> None:
    graph = local_graph(tmp_path)
    paths = [str(Path(__file__).parents[2]), str(Path(__file__).parents[3] / "src")]
    script = f"import sys; sys.path[:0] = {paths!r}\n{_CHILD}"
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path), f"p{number}", "12"])
        for number in range(PROCESSES)
    ]
    assert [child.wait(120) for child in children] == [0] * PROCESSES
    assert len(graph.people()) == PROCESSES * 12
    _assert_history_is_linear(graph.reopened())

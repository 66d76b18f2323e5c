"""Compaction after commits keeps tables small, and changes nothing anybody can see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from omnigraph.errors import StorageError
from omnigraph.versioning import MAIN, Compactor, Publishers, compact
from omnigraph.versioning.auto_compaction import FRAGMENTS_MIN
from unit.versioning.small_graph import PERSON, SmallGraph, deleting, inserting, updating


class AtOnce(Executor):
    """Runs what is submitted, at once, in the same thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def _renamed(name: str, _: Mapping[str, str]) -> dict[str, str]:
    return {name: "y"}


def _fill(graph: SmallGraph, publishers: Publishers, commits: int) -> None:
    for number in range(commits):
        transaction = inserting(graph, {f"p{number:03}": "x", f"q{number:03}": "x"})(graph.head())
        publishers.get_publisher(MAIN).publish(transaction)


def test_commits_are_compacted_as_they_add_up(graph: SmallGraph) -> None:
    publishers = Publishers(graph.committer)
    compactor = Compactor(publishers, AtOnce())
    _fill(graph, publishers, 2 * FRAGMENTS_MIN + 8)
    assert compactor.last_error is None
    assert graph.head().pins[PERSON].fragments < FRAGMENTS_MIN
    assert len(graph.people()) == 2 * (2 * FRAGMENTS_MIN + 8)
    maintenance = [r for r in graph.history.iter_commits(MAIN) if r.is_maintenance]
    assert len(maintenance) >= 2
    assert {record.signature.message for record in maintenance} == {"compaction"}


def test_compaction_beside_writers_loses_and_revives_nothing(graph: SmallGraph) -> None:
    publishers = Publishers(graph.committer)
    with ThreadPoolExecutor(max_workers=1) as executor:
        compactor = Compactor(publishers, executor)
        _fill(graph, publishers, 2 * FRAGMENTS_MIN)
        for number in range(0, 2 * FRAGMENTS_MIN, 4):
            update = updating(graph, partial(_renamed, f"p{number:03}"))
            publishers.get_publisher(MAIN).publish(update(graph.head()))
            publishers.get_publisher(MAIN).publish(deleting(graph, [f"q{number:03}"])(graph.head()))
    assert compactor.last_error is None
    people = graph.people()
    assert len(people) == 4 * FRAGMENTS_MIN - FRAGMENTS_MIN // 2
    assert sorted(value for value in people.values()) == ["x"] * (len(people) - 16) + ["y"] * 16
    assert any(record.is_maintenance for record in graph.history.iter_commits(MAIN))


def test_nothing_to_compact_makes_no_commit(graph: SmallGraph) -> None:
    assert compact(Publishers(graph.committer), MAIN, PERSON) is None
    assert compact(Publishers(graph.committer), MAIN, "node:Nobody") is None
    assert graph.head().seq == 0


def test_a_failing_compaction_is_no_writers_error_and_is_not_repeated_at_once(
    fast_graph: SmallGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[object] = []

    def fail(pin: object) -> None:
        attempts.append(pin)
        raise StorageError("plan", "t", "a fault on purpose")

    monkeypatch.setattr(fast_graph.tables, "plan_compaction", fail)
    publishers = Publishers(fast_graph.committer)
    compactor = Compactor(publishers, AtOnce())
    _fill(fast_graph, publishers, FRAGMENTS_MIN + 7)
    assert isinstance(compactor.last_error, StorageError)
    assert len(attempts) == 1
    assert len(fast_graph.people()) == 2 * (FRAGMENTS_MIN + 7)


def test_a_program_that_ends_does_not_compact(fast_graph: SmallGraph) -> None:
    executor = ThreadPoolExecutor(max_workers=1)
    executor.shutdown()
    publishers = Publishers(fast_graph.committer)
    Compactor(publishers, executor)
    _fill(fast_graph, publishers, FRAGMENTS_MIN + 1)
    assert len(fast_graph.people()) == 2 * (FRAGMENTS_MIN + 1)

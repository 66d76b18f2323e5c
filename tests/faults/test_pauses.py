"""Processes that are stopped for longer than any grace, and clocks that are wrong by days.

Whatever the pauses and the clocks, an acknowledged commit is never lost, a branch never goes back,
and a reader is not silently stale beyond the bound that the log states.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import places
from faults.matrix_writers import WRITERS, Place, Writer, collect_all, state
from faults.pauses import NAMING, check_naming, check_overlaps, check_pauses
from faults.world import SCHEMA, exported, person, problems
from omnigraph import Graph
from omnigraph.engine.graph import create_on, open_on
from omnigraph.engine.resources import Environment
from omnigraph.errors import OmnigraphError
from omnigraph.storage.objects import advisory_lock
from omnigraph.storage.objects.faults import PAUSES, Fault, FaultKind, Steps
from omnigraph.versioning import Settings
from omnigraph.versioning.gc.collector import Collector
from omnigraph.versioning.gc.gc_roots import Policy
from omnigraph.versioning.log import STALE_S_MAX

DAY_S = 86_400.0


@pytest.fixture(params=places.kinds())
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    uri = places.uri_of(request.param, tmp_path)
    with _quiet(create_on(places.storage_of(uri), schema=SCHEMA)) as graph:
        graph.branch().load([person("ada")], mode="append")
    return uri


def _quiet(graph: Graph) -> Graph:
    graph._session.resources.publishers.on_published = None
    return graph


def _opened(uri: str, steps: Steps | None = None, *, clock_off_s: float = 0.0) -> Graph:
    """The graph in another process, whose clock may be wrong."""

    def now_us() -> int:
        return time.time_ns() // 1000 + int(clock_off_s * 1_000_000)

    settings = Settings(now_us=now_us, pause=lambda _: None)
    return _quiet(
        open_on(places.storage_of(uri, steps), environment=Environment(settings=settings))
    )


def _commit(uri: str, count: int) -> None:
    with _opened(uri) as graph:
        for number in range(count):
            graph.branch().load([person(f"other{number}")], mode="append")


def _clean_up(uri: str, *, clock_off_s: float = 2 * DAY_S) -> None:
    """Keep one commit; the clock of the collecting machine is days ahead."""
    with _opened(uri, clock_off_s=clock_off_s) as graph:
        resources = graph._session.resources
        storage = resources.storage
        Collector(
            storage.objects,
            storage.tables,
            tracer=storage.reopen or (lambda: storage.tables),
            settings=resources.committer.settings,
        ).collect(Policy(keep=1), is_dry=False)


def _commit_and_clean_up(uri: str) -> None:
    _commit(uri, 21)
    _clean_up(uri)


def _names(graph: Graph) -> set[str]:
    return {
        line.partition(b'"name":"')[2].partition(b'"')[0].decode()
        for line in exported(graph).splitlines()
        if b'"Person"' in line
    }


def _require_whole(uri: str, names: set[str], *, least: int) -> None:
    with _opened(uri) as graph:
        assert graph.branch().head.version >= least, "the branch went back"
        assert names <= _names(graph), "an acknowledged commit is lost"
        assert list(problems(graph)) == []
        graph.branch().load([person("next")], mode="append")
        assert "next" in _names(graph)


@pytest.mark.parametrize("is_tagged", [True, False], ids=["tagged", "untagged"])
def test_a_process_that_sleeps_through_a_clean_up_does_not_take_a_branch_back(
    uri: str, *, is_tagged: bool
) -> None:
    with _opened(uri) as sleeper:
        if is_tagged:
            sleeper.tag("v1")
        assert sleeper.branch().head.version == 1
        _commit_and_clean_up(uri)
        sleeper.branch().load([person("late")], mode="append")
    _require_whole(uri, {"ada", "late", *(f"other{n}" for n in range(21))}, least=23)


@pytest.mark.parametrize("is_tagged", [True, False], ids=["tagged", "untagged"])
def test_a_reader_that_sleeps_through_a_clean_up_is_stale_no_longer_than_the_bound(
    uri: str, *, is_tagged: bool
) -> None:
    with _opened(uri) as sleeper:
        if is_tagged:
            sleeper.tag("v1")
        assert _names(sleeper) == {"ada"}
        _commit_and_clean_up(uri)
        time.sleep(STALE_S_MAX)
        assert sleeper.branch().head.version >= 22
        assert "other20" in _names(sleeper)


def _is_acknowledged(write: Callable[[], object]) -> bool:
    """Whether a write was made; one that was not must say that it can be repeated."""
    try:
        write()
    except OmnigraphError as error:
        if not error.retryable:
            raise
        return False
    return True


OTHERS: dict[str, Callable[[str], None]] = {
    "commits-and-clean-up": _commit_and_clean_up,
    "clean-up": _clean_up,
}


@pytest.mark.slow
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("kind", [FaultKind.PAUSE_BEFORE, FaultKind.PAUSE_AFTER])
def test_a_writer_that_is_stopped_at_any_durable_step_loses_nothing(
    tmp_path: Path, kind: FaultKind, others: str
) -> None:
    def write(graph: Graph) -> None:
        graph.branch().load([person("late"), person("ada", age=9)], mode="merge")

    seed = places.uri_of("local", tmp_path)
    with _quiet(create_on(places.storage_of(seed), schema=SCHEMA)) as graph:
        graph.branch().load([person("ada")], mode="append")
    counted = Steps()
    with _opened(places.copy_of(seed, tmp_path), counted) as graph:
        write(graph)
    for number, step in enumerate(counted.taken, 1):
        uri = places.copy_of(seed, tmp_path)
        steps = Fault(number, kind, step.operation).create_steps(partial(OTHERS[others], uri))
        with _opened(uri, steps) as graph:
            is_acknowledged = _is_acknowledged(partial(write, graph))
        assert steps.has_fired
        done = {f"other{n}" for n in range(21)} if others.startswith("commits") else set()
        _require_whole(uri, {"ada", *(["late"] if is_acknowledged else []), *done}, least=1)


@pytest.mark.slow
@pytest.mark.parametrize("writer", [*WRITERS, *NAMING], ids=lambda writer: writer.name)
def test_every_writer_may_be_stopped_at_each_step_of_the_log(
    tmp_path: Path, writer: Writer
) -> None:
    windows = check_pauses(Place(places.kinds()[0], tmp_path), writer, is_whole=False)
    assert windows or writer.name == "empty-load"


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAUSES)
def test_a_writer_and_a_collector_may_be_stopped_while_another_collector_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: FaultKind
) -> None:
    # Others would wait for the turn of a writer that is stopped.
    monkeypatch.setattr(advisory_lock, "WAIT_S_MAX", 0.0)
    writer = next(each for each in WRITERS if each.name == "append")
    assert check_overlaps(Place("local", tmp_path), writer, kind, is_whole=False) == 4


@pytest.mark.slow
@pytest.mark.parametrize("writer", NAMING, ids=lambda writer: writer.name)
def test_a_creator_and_a_collector_may_be_stopped_while_others_commit_on_the_new_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Writer
) -> None:
    monkeypatch.setattr(advisory_lock, "WAIT_S_MAX", 0.0)
    assert check_naming(Place("local", tmp_path), writer, is_whole=False) == 6


_STARTING_AGAIN = ("append", "append-many", "merge-many", "overwrite", "insert", "update", "delete")


@pytest.mark.slow
@pytest.mark.parametrize(
    "writer", [each for each in WRITERS if each.name in _STARTING_AGAIN], ids=lambda each: each.name
)
def test_a_write_whose_step_fails_beside_a_clean_up_starts_again(
    tmp_path: Path, writer: Writer
) -> None:
    """A clean-up without grace may remove a file while it is written: then the write fails."""
    place = Place("local", tmp_path)
    place.seeded(writer)
    counted = Steps()
    writer.write(place.opened(counted))
    expected = state(place.opened())
    for number, step in enumerate(counted.taken, 1):
        place.seeded(writer)
        steps = Fault(number, FaultKind.ERROR, step.operation).create_steps(
            lambda: collect_all(place.opened()),
        )
        with place.opened(steps) as graph:
            writer.write(graph)
        assert steps.has_fired
        with place.opened() as graph:
            assert state(graph) == expected, step
            assert list(problems(graph)) == [], step

"""Every writer, crashed before and after each of its durable steps, wherever a graph may live.

The graph that is opened afterwards shows the whole write or nothing of it, `check` finds nothing,
and the next write succeeds. The windows are generated: a scenario is run once to count its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import places
from faults.bulk_writers import BULK_LOADS
from faults.matrix_writers import (
    IN_UNITS,
    QUIET,
    SEED,
    WRITERS,
    Place,
    Writer,
    create_collector,
    is_any_step,
    is_log_step,
    is_other_step,
    list_windows,
    state,
)
from faults.world import SCHEMA, exported, problems
from omnigraph import Graph
from omnigraph.engine.graph import create_on
from omnigraph.errors import OmnigraphError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.faults import (
    CRASHES,
    FAILURES,
    DurableStep,
    Fault,
    SimulatedCrash,
    Steps,
)


@pytest.fixture(params=places.kinds())
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


def _ends(place: Place, writer: Writer) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What the graph shows before and after the write."""
    place.seeded(writer)
    before = state(place.opened())
    writer.write(place.opened())
    return before, state(place.opened())


def _survives(place: Place, ends: tuple[dict[str, bytes], dict[str, bytes]]) -> None:
    with place.opened() as graph:
        found = state(graph)
        assert found in ends
        assert list(problems(graph)) == []
        main = graph.branch()
        main.load([{"type": "Team", "data": {"name": "next"}}], mode="append")
        assert b'"next"' in exported(graph)
        assert list(problems(graph)) == []


def _leaves_no_notes(place: Place) -> None:
    """What a load left behind goes with a clean-up, and nothing else does."""
    with place.opened() as graph:
        before = state(graph)
        create_collector(graph).collect(is_dry=False)
        assert list(graph._session.resources.storage.objects.list(layout.STAGING)) == []
        assert create_collector(graph).collect().swept == ()
        assert state(graph) == before


# All of their steps are steps of the log.
ONLY_IN_THE_LOG = {
    *("create-branch", "delete-branch", "create-tag", "delete-tag"),
    *("empty-load", "fast-forward", "cleanup", "open-proposal"),
}


# One of each kind: rows, merges, schemas, names and splits. All others are left to the slow tests.
IN_THE_QUICK_SUITE = {
    *("insert", "merge", "merge-branch", "apply-schema", "create-branch", "units-append"),
}


# The steps between those of the log, and other kinds of storage, are left to the slow tests.
@pytest.mark.parametrize("place", [places.quick_kind()], indirect=True)
@pytest.mark.parametrize(
    "writer",
    [
        pytest.param(
            writer,
            id=writer.name,
            marks=[] if writer.name in IN_THE_QUICK_SUITE else [pytest.mark.slow],
        )
        for writer in WRITERS
    ],
)
def test_a_crash_at_a_step_of_the_log_shows_all_or_nothing(place: Place, writer: Writer) -> None:
    assert _check_crashes(place, writer, is_log_step) >= 2


# What is cut into units has many steps, of which none knows where the graph is.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "writer"),
    [
        pytest.param(kind, writer, id=f"{kind}-{writer.name}")
        for kind in places.kinds()
        for writer in WRITERS
        if kind == places.kinds()[0] or writer not in IN_UNITS
        if kind != places.quick_kind() or writer.name not in ONLY_IN_THE_LOG
    ],
    indirect=["place"],
)
def test_a_crash_at_any_durable_step_shows_all_or_nothing(place: Place, writer: Writer) -> None:
    is_tried = is_other_step if place.kind == places.quick_kind() else is_any_step
    assert _check_crashes(place, writer, is_tried) >= 2


@pytest.mark.slow
@pytest.mark.skipif(places.is_on_s3(), reason="every writer is tried there")
def test_a_crash_of_a_writer_on_s3_shows_all_or_nothing(tmp_path: Path) -> None:
    delete = next(each for each in WRITERS if each.name == "delete")
    assert _check_crashes(Place("s3", tmp_path), delete, is_any_step) >= 2


def _check_crashes(place: Place, writer: Writer, is_tried: Callable[[DurableStep], bool]) -> int:
    """Try every window at such steps; how many there are."""
    windows = list_windows(place, writer, CRASHES, is_tried)
    ends = _ends(place, writer)
    cleaned_after: set[str] = set()
    for fault in windows:
        place.seeded(writer)
        steps = fault.create_steps()
        graph = place.opened(steps)
        # What dies after its record has gone through may still answer: only derived steps follow.
        with suppress(SimulatedCrash):
            writer.write(graph)
        assert steps.has_fired, fault
        _survives(place, ends)
        if writer.name in BULK_LOADS and fault.operation not in cleaned_after:
            cleaned_after.add(fault.operation)
            _leaves_no_notes(place)
    return len(windows)


# One kind: what a failed step leaves behind is no other in memory than on a disk.
@pytest.mark.slow
@pytest.mark.parametrize("place", places.kinds()[:1], indirect=True)
@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_a_failing_store_at_any_durable_step_leaves_the_old_state_or_the_new_one(
    place: Place, writer: Writer
) -> None:
    ends = _ends(place, writer)
    for fault in list_windows(place, writer, FAILURES):
        place.seeded(writer)
        graph = place.opened(fault.create_steps())
        is_acknowledged = False
        with suppress(OmnigraphError):
            writer.write(graph)
            is_acknowledged = True
        with place.opened() as reopened:
            found = state(reopened)
            assert found in ends, fault
            assert found == ends[1] or not is_acknowledged, "an acknowledged write is lost"
        _survives(place, ends)


def test_a_crash_during_creation_leaves_nothing_or_a_graph(place: Place) -> None:
    def create(steps: Steps | None) -> Graph:
        return create_on(place.storage(steps), schema=SCHEMA, environment=QUIET)

    place.fresh()
    counted = Steps()
    create(counted)
    for number, step in enumerate(counted.taken, 1):
        for kind in CRASHES:
            place.fresh()
            steps = Fault(number, kind, step.operation).create_steps()
            with suppress(SimulatedCrash):
                create(steps)
            assert steps.has_fired
            try:
                graph = place.opened()
            except OmnigraphError:
                graph = create(None)
            assert list(problems(graph)) == []
            graph.branch().load(SEED, mode="append")

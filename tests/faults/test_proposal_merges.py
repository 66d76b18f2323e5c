"""A proposal is merged once: crashed at each durable step, and by two processes at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import places
from faults.matrix_writers import QUIET
from faults.proposal_soak import SCHEMA, list_merge_commits, read_state, soak
from omnigraph import Graph
from omnigraph.engine.graph import create_on, open_on
from omnigraph.engine.resources import Storage
from omnigraph.errors import OmnigraphError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.faults import (
    CRASHES,
    FAILURES,
    DurableStep,
    FaultKind,
    SimulatedCrash,
    Steps,
    iter_faults,
)
from omnigraph.versioning.proposals import ProposalStatus


class World:
    """A graph in memory with one proposal, new for each fault."""

    def __init__(self) -> None:
        self.uri = places.uri_of("memory", Path())
        with _quiet(create_on(self._storage(), schema=SCHEMA, environment=QUIET)) as graph:
            graph.branch().load([{"name": "ada"}], type="Person", mode="append")
            draft = graph.branch().propose("Add bob")
            draft.load([{"name": "bob", "age": 2}], type="Person", mode="append")
            graph.branch().load([{"name": "cyd"}], type="Person", mode="append")

    def open(self, steps: Steps | None = None) -> Graph:
        """The graph as another process sees it."""
        return _quiet(open_on(self._storage(steps), environment=QUIET))

    def _storage(self, steps: Steps | None = None) -> Storage:
        return places.storage_of(self.uri, steps)


def _quiet(graph: Graph) -> Graph:
    graph._session.resources.publishers.on_published = None
    return graph


def _merge(steps: Steps) -> None:
    World().open(steps).proposal(1).merge(delete_branch=True)


def _is_deciding(step: DurableStep) -> bool:
    """Whether a step puts an event of a proposal, or a commit of main."""
    return step.path.startswith(layout.PROPOSALS) or step.path.startswith("__manifest/main.0/0")


def _iter_windows(kinds: tuple[FaultKind, ...], *, is_every: bool) -> Iterator[Steps]:
    counted = Steps()
    _merge(counted)
    for fault in iter_faults(_merge, kinds):
        if is_every or _is_deciding(counted.taken[fault.number - 1]):
            yield fault.create_steps()


@pytest.mark.parametrize(
    ("kinds", "is_every"),
    [
        pytest.param(CRASHES[1:], False, id="crashes after deciding steps"),
        pytest.param(CRASHES, True, id="crashes", marks=pytest.mark.slow),
        pytest.param(FAILURES, True, id="failures", marks=pytest.mark.slow),
    ],
)
def test_a_merge_that_stops_at_any_step_is_found_or_made_once(
    kinds: tuple[FaultKind, ...], is_every: bool
) -> None:
    windows = 0
    for steps in _iter_windows(kinds, is_every=is_every):
        world, windows = World(), windows + 1
        with suppress(SimulatedCrash, OmnigraphError):
            world.open(steps).proposal(1).merge(delete_branch=True)
        assert steps.has_fired
        with world.open() as graph:
            made = list_merge_commits(graph, read_state(graph, 1))
            # What a reader sees is right before any call has put the missing event.
            info = graph.proposal(1).read()
            assert (info.status, info.merge_commit) == (
                ("merged", made[0]) if made else ("open", None)
            )
            assert [each.status for each in graph.proposals()] == [info.status]
            result = graph.proposal(1).merge()
            assert made in ([], [result.id])
            state = read_state(graph, 1)
            assert state.merged is not None
            assert list_merge_commits(graph, state) == [result.id] == [state.merged.commit]
            assert graph.branch().count("Person") == 3
            assert not graph.check().problems
    assert windows >= (10 if is_every else 3)


def test_a_close_does_not_undo_a_merge_that_stopped_before_its_last_event() -> None:
    world = World()
    counted = Steps()
    World().open(counted).proposal(1).merge()
    last = max(at for at, step in enumerate(counted.taken, 1) if "__proposals" in step.path)
    fault = next(
        each
        for each in iter_faults(lambda steps: World().open(steps).proposal(1).merge(), CRASHES)
        if (each.number, each.kind) == (last, FaultKind.CRASH_BEFORE)
    )
    with suppress(SimulatedCrash):
        world.open(fault.create_steps()).proposal(1).merge()
    with world.open() as graph:
        assert read_state(graph, 1).status is ProposalStatus.OPEN
        with pytest.raises(OmnigraphError, match="proposal 1: it is merged"):
            graph.proposal(1).close()
        assert read_state(graph, 1).status is ProposalStatus.MERGED


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_two_processes_merge_a_proposal_once_although_one_is_killed(tmp_path: Path) -> None:
    assert soak(tmp_path, rounds=4).rounds == 4

"""Names that are being created, and collectors that give up waiting for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from omnigraph.errors import (
    BranchNotFoundError,
    InDoubtError,
    StagingExpiredError,
    StorageUnknownError,
    TagNotFoundError,
)
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.faults import (
    CRASHES,
    PAUSES,
    Fault,
    FaultKind,
    FaultyObjects,
    SimulatedCrash,
    Steps,
)
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.tags import CREATIONS_MAX
from unit.versioning.small_graph import SmallGraph

NAME: Final = "late"
Create = Callable[[SmallGraph], object]
CREATE: dict[str, Create] = {
    "branch": lambda graph: graph.branches.create(NAME, at=graph.head()),
    "tag": lambda graph: graph.branches.tags.create(NAME, at=graph.head()),
}


def _with_steps(graph: SmallGraph, steps: Steps) -> SmallGraph:
    return SmallGraph(FaultyObjects(graph.objects, steps), graph.tables, graph.settings)


def _end_leases(graph: SmallGraph) -> None:
    """What a collector does with leases that are older than its grace."""
    leases = graph.branches.leases
    leases.end(leases.list())


def _count_steps(graph: SmallGraph, kind: str) -> int:
    steps = Steps()
    CREATE[kind](_with_steps(graph, steps))
    _delete(graph, kind)
    return len(steps.taken)


def _crash_creation(graph: SmallGraph, kind: str, fault: Fault) -> None:
    with pytest.raises(SimulatedCrash):
        CREATE[kind](_with_steps(graph, fault.create_steps()))


def _delete(graph: SmallGraph, kind: str) -> None:
    names = graph.reopened().branches
    (names.delete if kind == "branch" else names.tags.delete)(NAME)


def _found(graph: SmallGraph) -> tuple[list[str], list[str]]:
    branches = graph.reopened().branches
    return branches.list()[1:], [tag.name for tag in branches.tags.list()]


def _is_complete(graph: SmallGraph) -> bool:
    """Whether a name has each of its events, and no lease is left."""
    objects = graph.objects
    paths = (entry.path for entry in objects.list(layout.build_branch_folder(NAME)))
    events = [found[1] for path in paths if (found := layout.parse_ref_event_path(path))]
    has_all = sorted(events) == list(range(1, max(events) + 1))
    return has_all and not list(objects.list(layout.LEASES))


@pytest.mark.parametrize("kind", CREATE)
@pytest.mark.parametrize("pause", PAUSES)
def test_a_name_whose_lease_ends_during_any_step_of_its_creation_is_created_once(
    fast_graph: SmallGraph, kind: str, pause: FaultKind
) -> None:
    fast_graph.insert({"ada": "1"})
    for number in range(1, _count_steps(fast_graph, kind) + 1):
        steps = Steps(Fault(number, pause, ""), during=lambda: _end_leases(fast_graph.reopened()))
        CREATE[kind](_with_steps(fast_graph, steps))
        assert steps.has_fired
        assert _found(fast_graph) == (([NAME], []) if kind == "branch" else ([], [NAME]))
        assert _is_complete(fast_graph)
        _delete(fast_graph, kind)


@pytest.mark.parametrize("kind", CREATE)
@pytest.mark.parametrize("crash", CRASHES)
def test_a_collector_that_stops_while_it_ends_a_lease_leaves_the_name_free(
    fast_graph: SmallGraph, kind: str, crash: FaultKind
) -> None:
    # An announcement, a refusal, its end, and the removal of the lease.
    for number in range(1, 5):
        # The first step of a creation is its lease.
        _crash_creation(fast_graph, kind, Fault(1, FaultKind.CRASH_AFTER, ""))
        with pytest.raises(SimulatedCrash):
            _end_leases(_with_steps(fast_graph, Fault(number, crash, "").create_steps()))
        assert _found(fast_graph) == ([], [])
        branches = fast_graph.reopened().branches
        with pytest.raises(BranchNotFoundError):
            branches.resolve(NAME)
        with pytest.raises(TagNotFoundError):
            branches.tags.get(NAME)
        CREATE[kind](fast_graph.reopened())
        _end_leases(fast_graph.reopened())
        assert _is_complete(fast_graph)
        assert _found(fast_graph) == (([NAME], []) if kind == "branch" else ([], [NAME]))
        _delete(fast_graph, kind)


@pytest.mark.parametrize("kind", CREATE)
def test_the_lease_of_a_name_that_was_created_ends_without_it(
    fast_graph: SmallGraph, kind: str
) -> None:
    last = _count_steps(fast_graph, kind)
    _crash_creation(fast_graph, kind, Fault(last, FaultKind.CRASH_BEFORE, ""))
    _end_leases(fast_graph.reopened())
    assert _found(fast_graph) == (([NAME], []) if kind == "branch" else ([], [NAME]))
    assert _is_complete(fast_graph)


class Impatient:
    """A store on which every lease ends before its event is put."""

    def __init__(self, graph: SmallGraph) -> None:
        self.graph = graph
        self.uri = graph.objects.uri
        for name in ("get", "get_range", "put", "list", "delete"):
            setattr(self, name, getattr(graph.objects, name))

    def put_new(self, path: str, data: bytes) -> bool:
        if layout.parse_ref_event_path(path) is not None and b'"refused"' not in data:
            _end_leases(self.graph.reopened())
        return self.graph.objects.put_new(path, data)


@pytest.mark.parametrize("kind", CREATE)
def test_a_creation_that_every_clean_up_overtakes_is_refused_as_retryable(
    fast_graph: SmallGraph, kind: str
) -> None:
    objects: Objects = Impatient(fast_graph)  # type: ignore[assignment] # its methods are set late
    with pytest.raises(StagingExpiredError, match=f"{CREATIONS_MAX} times") as refused:
        CREATE[kind](SmallGraph(objects, fast_graph.tables, fast_graph.settings))
    assert refused.value.retryable
    assert _found(fast_graph) == ([], [])
    assert _is_complete(fast_graph)


class Silent(FaultyObjects):
    """A store that says of no event whether it was put, and shows none."""

    def put_new(self, path: str, data: bytes) -> bool:
        if layout.parse_ref_event_path(path) is not None:
            raise StorageUnknownError("put_new", path, "no answer")
        return super().put_new(path, data)


@pytest.mark.parametrize("kind", CREATE)
def test_a_name_in_doubt_keeps_its_lease_until_a_collector_decides(
    fast_graph: SmallGraph, kind: str
) -> None:
    silent = Silent(fast_graph.objects, Steps())
    with pytest.raises(InDoubtError):
        CREATE[kind](SmallGraph(silent, fast_graph.tables, fast_graph.settings))
    assert len(list(fast_graph.objects.list(layout.LEASES))) == 1
    _end_leases(fast_graph.reopened())
    # The put that had no answer arrives now, and finds its place taken.
    assert not fast_graph.objects.put_new(layout.build_ref_event_path(NAME, 1), b"late")
    assert _found(fast_graph) == ([], [])
    assert _is_complete(fast_graph)

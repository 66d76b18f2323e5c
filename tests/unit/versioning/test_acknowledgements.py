"""Stores that fail, repeat themselves or do not answer: never an unknown commit without a name."""

from __future__ import annotations

import pytest

from omnigraph.errors import ConflictError, InDoubtError, StorageError, StorageUnknownError
from omnigraph.storage.objects.faults import Fault, FaultKind, FaultyObjects, Steps
from omnigraph.versioning import MAIN, Settings
from omnigraph.versioning.committer import ATTEMPTS_MAX
from omnigraph.versioning.puts import PUTS_MAX
from unit.versioning.memory_storage import MemoryObjects
from unit.versioning.small_graph import SmallGraph, inserting


def _failing(graph: SmallGraph, number: int, kind: FaultKind) -> SmallGraph:
    objects = FaultyObjects(graph.objects, Steps(Fault(number, kind, "")))
    return SmallGraph(objects, graph.tables, graph.settings)


@pytest.mark.parametrize("kind", [FaultKind.UNKNOWN_BEFORE, FaultKind.UNKNOWN_AFTER])
def test_a_lost_acknowledgement_is_found_out(graph: SmallGraph, kind: FaultKind) -> None:
    record = _failing(graph, 1, kind).insert({"ada": "1"})
    assert graph.reopened().log.read(MAIN.id, 1) == record
    assert graph.people() == {"ada": "1"}
    assert graph.head().seq == 1


def test_a_lost_acknowledgement_of_a_lost_race_is_found_out(fast_graph: SmallGraph) -> None:
    late = inserting(fast_graph, {"ada": "1"})(fast_graph.head())
    fast_graph.reopened().insert({"bob": "1"})
    record = _failing(fast_graph, 1, FaultKind.UNKNOWN_AFTER).committer.publish(late)
    assert record is not None
    assert record.seq == 2
    assert fast_graph.people() == {"ada": "1", "bob": "1"}


def test_a_store_that_repeats_a_put_by_itself_does_not_make_a_lost_race(
    fast_graph: SmallGraph,
) -> None:
    class Repeating(MemoryObjects):
        def put_new(self, path: str, data: bytes) -> bool:
            super().put_new(path, data)
            return False

    assert isinstance(fast_graph.objects, MemoryObjects)
    objects = Repeating(data=fast_graph.objects.data)
    record = SmallGraph(objects, fast_graph.tables, fast_graph.settings).insert({"ada": "1"})
    assert record.seq == 1
    assert fast_graph.head().seq == 1


def test_a_store_that_never_answers_leaves_a_named_commit_in_doubt(fast_graph: SmallGraph) -> None:
    class Silent(MemoryObjects):
        def put_new(self, path: str, data: bytes) -> bool:
            self.calls.append(("put_new", path))
            raise StorageUnknownError("put_new", path, f"no answer about {len(data)} bytes")

    transaction = inserting(fast_graph, {"ada": "1"})(fast_graph.head())
    assert isinstance(fast_graph.objects, MemoryObjects)
    objects = Silent(data=fast_graph.objects.data)
    silent = SmallGraph(objects, fast_graph.tables, fast_graph.settings)
    with pytest.raises(InDoubtError) as doubt:
        silent.committer.publish(transaction)
    assert doubt.value.commit is not None
    assert doubt.value.commit in str(doubt.value)
    assert [name for name, _ in objects.calls].count("put_new") == PUTS_MAX


def test_a_failed_put_is_the_callers_error_and_the_next_write_works(graph: SmallGraph) -> None:
    with pytest.raises(StorageError):
        _failing(graph, 1, FaultKind.ERROR).insert({"ada": "1"})
    assert graph.people() == {}
    assert graph.insert({"ada": "1"}).seq == 1


def test_a_failed_hint_or_checkpoint_is_nobodys_error(graph: SmallGraph) -> None:
    assert _failing(graph, 2, FaultKind.ERROR).insert({"ada": "1"}).seq == 1
    assert graph.reopened().people() == {"ada": "1"}


def test_a_write_gives_up_after_its_budget(fast_graph: SmallGraph) -> None:
    class Crowded(MemoryObjects):
        def put_new(self, path: str, data: bytes) -> bool:
            number = len(self.calls)
            rival.insert({f"r{number}": "x"})
            return super().put_new(path, data)

    rival = fast_graph.reopened()
    assert isinstance(fast_graph.objects, MemoryObjects)
    objects = Crowded(data=fast_graph.objects.data)
    pauses: list[float] = []
    settings = Settings(pause=pauses.append, retry_s_max=0)
    with pytest.raises(ConflictError, match="moved 32 times"):
        SmallGraph(objects, fast_graph.tables, settings).insert({"ada": "1"})
    assert len(pauses) == ATTEMPTS_MAX
    assert max(pauses) <= 0.05
    assert fast_graph.reopened().head().seq == ATTEMPTS_MAX

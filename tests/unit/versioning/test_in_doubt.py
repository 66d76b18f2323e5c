"""Failures on top of failures: what is reported is true, and nobody waits for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.errors import ConflictError, StorageError, StorageUnknownError
from omnigraph.versioning import (
    MAIN,
    Append,
    BranchAt,
    Changed,
    IdSet,
    Publisher,
    Rename,
    Signature,
    Transaction,
)
from unit.versioning.memory_storage import MemoryObjects
from unit.versioning.small_graph import CITY, KNOWS, PERSON, SmallGraph, inserting


class Landing(MemoryObjects):
    """Does not answer the first put, which lands after the second, which is refused."""

    attempts = 0

    def put_new(self, path: str, data: bytes) -> bool:
        self.attempts += 1
        if self.attempts == 1:
            raise StorageUnknownError("put_new", path, "no answer")
        if self.attempts == 2:
            super().put_new(path, data)
            raise StorageError("put_new", path, "too many requests")
        return super().put_new(path, data)


def _landing(graph: SmallGraph) -> SmallGraph:
    assert isinstance(graph.objects, MemoryObjects)
    return SmallGraph(Landing(data=graph.objects.data), graph.tables, graph.settings)


def test_a_refused_put_after_an_unanswered_one_is_not_called_a_failure(
    fast_graph: SmallGraph,
) -> None:
    record = _landing(fast_graph).insert({"ada": "1"})
    assert fast_graph.reopened().log.read(MAIN.id, 1) == record
    assert fast_graph.reopened().people() == {"ada": "1"}


def test_a_branch_event_that_landed_late_is_found(fast_graph: SmallGraph) -> None:
    graph = _landing(fast_graph)
    assert isinstance(graph.objects, Landing)
    at = graph.head()
    # The first puts of a branch are its lease and its checkpoint; the event is the one to lose.
    graph.objects.attempts = -2
    stream = graph.branches.create("review", at=at)
    assert fast_graph.reopened().branches.resolve("review") == stream


def test_a_broken_transaction_fails_in_the_thread_of_its_author(fast_graph: SmallGraph) -> None:
    publisher = Publisher(fast_graph.committer, MAIN)
    head = fast_graph.head()
    rows = (object(),)
    broken = Transaction(
        head,
        (Append(PERSON, rows),),
        {PERSON: Changed(inserted=IdSet(["x"]), marks=IdSet())},
    )
    with pytest.raises(AttributeError):
        publisher.publish(broken)
    prepare = inserting(fast_graph, {"ada": "1"})
    assert publisher.publish(prepare(head), prepare_again=prepare) is not None


def test_an_error_after_a_commit_does_not_make_it_fail(
    fast_graph: SmallGraph, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(_: object) -> None:
        raise ValueError("the hook is broken")

    publisher = Publisher(fast_graph.committer, MAIN, on_published=explode)
    record = publisher.publish(inserting(fast_graph, {"ada": "1"})(fast_graph.head()))
    assert record is not None
    assert "the hook is broken" in caplog.text


def test_a_repeated_request_gets_its_commit_although_the_branch_moved(
    fast_graph: SmallGraph,
) -> None:
    head = fast_graph.head()
    transaction = replace(
        inserting(fast_graph, {"ada": "1"})(head),
        requires=(BranchAt(head.commit),),
        signature=Signature(key="once"),
    )
    first = fast_graph.committer.publish(transaction)
    again = fast_graph.reopened().committer.publish(transaction)
    assert again == first


def test_types_may_swap_their_names(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"ada": "1"})
    head = fast_graph.head()
    renames = (Rename(PERSON, CITY), Rename(CITY, PERSON))
    fast_graph.committer.publish(Transaction(head, renames, {}, schema="sha256:swapped"))
    pins = fast_graph.reopened().head().pins
    assert (pins[CITY], pins[PERSON]) == (head.pins[PERSON], head.pins[CITY])


def test_a_rename_never_replaces_a_living_type(fast_graph: SmallGraph) -> None:
    head = fast_graph.head()
    with pytest.raises(ConflictError, match="edge:Knows exists already"):
        fast_graph.committer.publish(
            Transaction(head, (Rename(PERSON, KNOWS),), {}, schema="sha256:other")
        )

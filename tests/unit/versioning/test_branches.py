"""Branches: names for streams, created, deleted and used again."""

from __future__ import annotations

import threading

import pytest

from omnigraph.errors import (
    BranchExistsError,
    BranchGoneError,
    BranchNotFoundError,
    BranchRefusedError,
    CommitNotFoundError,
    ResourceLimitError,
)
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.faults import Fault, FaultKind, FaultyObjects, SimulatedCrash, Steps
from omnigraph.versioning import MAIN, Stream
from unit.versioning.memory_storage import MemoryObjects, MemoryTables
from unit.versioning.small_graph import SmallGraph, inserting, memory_graph


def test_a_branch_starts_with_the_people_of_its_source_and_goes_its_own_way(
    graph: SmallGraph,
) -> None:
    graph.insert({"ada": "1"})
    review = graph.branches.create("review", at=graph.head())
    graph.insert({"bob": "2"}, review)
    graph.insert({"cy": "3"})
    assert graph.people(review) == {"ada": "1", "bob": "2"}
    assert graph.people() == {"ada": "1", "cy": "3"}
    again = graph.reopened()
    assert again.rows(again.branches.read_head("review").snapshot) == {"ada": "1", "bob": "2"}


def test_creating_a_branch_touches_no_table_and_makes_no_commit() -> None:
    graph = memory_graph()
    objects, tables = graph.objects, graph.tables
    assert isinstance(objects, MemoryObjects)
    assert isinstance(tables, MemoryTables)
    before = dict(tables.versions)
    objects.calls.clear()
    graph.branches.create("review", at=graph.head())
    assert tables.versions == before
    writes = [path for operation, path in objects.calls if operation.startswith("put")]
    assert len(set(writes)) == 3, "a lease, a checkpoint and an event"
    assert graph.head().seq == 0


def test_names_may_nest_freely_and_are_listed_after_main(fast_graph: SmallGraph) -> None:
    names = ["review/x/y", "review", "Review", "review/x", "ä b", "a/000001.json", "a"]
    for name in names:
        fast_graph.branches.create(name, at=fast_graph.head())
    assert fast_graph.reopened().branches.list() == ["main", *sorted(names)]
    for name in names:
        assert fast_graph.reopened().branches.resolve(name).branch == name


def test_a_list_of_branches_is_one_listing() -> None:
    graph = memory_graph()
    for number in range(31):
        graph.branches.create(f"b{number:02}", at=graph.head())
    assert isinstance(graph.objects, MemoryObjects)
    graph.objects.calls.clear()
    assert len(graph.branches.list()) == 32
    assert [operation for operation, _ in graph.objects.calls] == ["list"]


@pytest.mark.parametrize(
    "name", ["", "main", " a", "a ", "a//b", "/a", "a/", "..", "a/../b", "a\nb", "a\\b", "x" * 201]
)
def test_a_name_must_be_one(fast_graph: SmallGraph, name: str) -> None:
    with pytest.raises(BranchRefusedError, match="is not a branch name"):
        fast_graph.branches.create(name, at=fast_graph.head())


def test_a_name_that_is_too_long_to_store_is_refused(fast_graph: SmallGraph) -> None:
    with pytest.raises(ResourceLimitError):
        fast_graph.branches.create("ä" * 100, at=fast_graph.head())


def test_a_live_name_cannot_be_created_again(fast_graph: SmallGraph) -> None:
    fast_graph.branches.create("review", at=fast_graph.head())
    with pytest.raises(BranchExistsError):
        fast_graph.reopened().branches.create("review", at=fast_graph.head())


def test_what_does_not_exist_cannot_be_found_or_deleted(fast_graph: SmallGraph) -> None:
    with pytest.raises(BranchNotFoundError):
        fast_graph.branches.resolve("review")
    with pytest.raises(BranchNotFoundError):
        fast_graph.branches.delete("review")
    with pytest.raises(BranchRefusedError, match="cannot be deleted"):
        fast_graph.branches.delete("main")


def test_a_recreated_name_is_a_new_stream(fast_graph: SmallGraph) -> None:
    old = fast_graph.branches.create("review", at=fast_graph.head())
    record = fast_graph.insert({"ada": "1"}, old)
    other = fast_graph.reopened()
    assert other.branches.resolve("review") == old
    fast_graph.branches.delete("review")
    assert fast_graph.branches.list() == ["main"]
    new = fast_graph.branches.create("review", at=fast_graph.head())
    assert new.id != old.id
    assert other.branches.resolve("review") == new
    assert other.people(new) == {}
    with pytest.raises(CommitNotFoundError):
        other.history.read_by_commit(record.commit)
    with pytest.raises(BranchGoneError, match="'review' was deleted"):
        other.insert({"bob": "2"}, old)


def test_a_write_under_way_when_its_branch_is_deleted_fails(graph: SmallGraph) -> None:
    stream = graph.branches.create("review", at=graph.head())
    transaction = inserting(graph, {"ada": "1"})(graph.head(stream))
    graph.reopened().branches.delete("review")
    with pytest.raises(BranchGoneError):
        graph.committer.publish(transaction)


def test_any_commit_can_be_a_branch_point(fast_graph: SmallGraph) -> None:
    for number in range(5):
        fast_graph.insert({f"p{number}": "x"})
    old = fast_graph.history.read_by_seq(MAIN, 2)
    stream = fast_graph.branches.create("past", at=old)
    assert list(fast_graph.people(stream)) == ["p0", "p1"]
    record = fast_graph.insert({"q": "x"}, stream)
    assert (record.seq, record.parent) == (3, old.commit)


def test_a_branch_of_a_branch_survives_the_branch_between(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"a": "1"})
    middle = fast_graph.branches.create("middle", at=fast_graph.head())
    fast_graph.insert({"b": "2"}, middle)
    last = fast_graph.branches.create("last", at=fast_graph.head(middle))
    fast_graph.insert({"c": "3"}, last)
    fast_graph.branches.delete("middle")
    again = fast_graph.reopened()
    stream = again.branches.resolve("last")
    assert again.people(stream) == {"a": "1", "b": "2", "c": "3"}
    commits = list(again.history.iter_commits(stream))
    assert [(record.branch, record.seq) for record in commits] == [
        ("last", 3),
        ("middle", 2),
        ("main", 1),
        ("main", 0),
    ]
    assert again.history.read_commit(commits[1].commit) == commits[1]


def test_an_untouched_branch_of_an_untouched_branch_starts_at_the_owner_of_the_commit(
    fast_graph: SmallGraph,
) -> None:
    middle = fast_graph.branches.create("middle", at=fast_graph.head())
    last = fast_graph.branches.create("last", at=fast_graph.head(middle))
    assert last.origins == middle.origins
    assert last.origins[0].stream == MAIN.id


def test_a_torn_first_checkpoint_is_read_from_the_commit_itself(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"a": "1"})
    stream = fast_graph.branches.create("review", at=fast_graph.head())
    assert isinstance(fast_graph.objects, MemoryObjects)
    fast_graph.objects.put(layout.build_checkpoint_path(stream.id, 1), b"torn")
    again = fast_graph.reopened()
    assert again.people(again.branches.resolve("review")) == {"a": "1"}
    assert again.head(stream).stream == stream


def test_a_branch_outlives_the_collected_record_it_started_from(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"a": "1"})
    fast_graph.branches.create("review", at=fast_graph.head())
    fast_graph.objects.delete([layout.build_record_path(MAIN.id, 1)])
    again = fast_graph.reopened()
    stream = again.branches.resolve("review")
    assert again.people(stream) == {"a": "1"}
    assert again.log.read_snapshot(stream, 1).commit == again.head(stream).commit


def test_one_of_many_creators_wins(fast_graph: SmallGraph) -> None:
    start, won, lost = threading.Barrier(8), [], []

    def create() -> None:
        graph = fast_graph.reopened()
        head = graph.head()
        start.wait()
        try:
            won.append(graph.branches.create("review", at=head))
        except BranchExistsError as error:
            lost.append(error)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 7)
    assert fast_graph.reopened().branches.resolve("review") == won[0]


def _with_fault(graph: SmallGraph, number: int, kind: FaultKind) -> SmallGraph:
    objects = FaultyObjects(graph.objects, Steps(Fault(number, kind, "")))
    return SmallGraph(objects, graph.tables, graph.settings)


@pytest.mark.parametrize("kind", [FaultKind.UNKNOWN_BEFORE, FaultKind.UNKNOWN_AFTER])
def test_a_lost_acknowledgement_of_an_event_is_no_failure(
    fast_graph: SmallGraph, kind: FaultKind
) -> None:
    stream = _with_fault(fast_graph, 3, kind).branches.create("review", at=fast_graph.head())
    assert fast_graph.reopened().branches.resolve("review") == stream
    _with_fault(fast_graph, 3, kind).branches.delete("review")
    assert fast_graph.reopened().branches.list() == ["main"]


def test_a_creation_that_dies_before_its_event_leaves_the_name_free(
    fast_graph: SmallGraph,
) -> None:
    with pytest.raises(SimulatedCrash):
        _with_fault(fast_graph, 1, FaultKind.CRASH_AFTER).branches.create(
            "review", at=fast_graph.head()
        )
    assert fast_graph.reopened().branches.list() == ["main"]
    fast_graph.reopened().branches.create("review", at=fast_graph.head())


def test_a_branch_whose_first_checkpoint_is_lost_can_be_written(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"ada": "1"})
    stream = fast_graph.branches.create("review", at=fast_graph.head())
    fast_graph.objects.delete([layout.build_checkpoint_path(stream.id, 1)])
    again = fast_graph.reopened()
    again.insert({"bob": "2"}, again.branches.resolve("review"))
    assert again.reopened().people(stream) == {"ada": "1", "bob": "2"}
    empty = again.branches.create("empty", at=again.head())
    again.objects.delete([layout.build_checkpoint_path(empty.id, 1)])
    again.reopened().branches.delete("empty")


def test_a_deletion_that_dies_after_closing_can_be_finished(fast_graph: SmallGraph) -> None:
    stream: Stream = fast_graph.branches.create("review", at=fast_graph.head())
    fast_graph.insert({"ada": "1"}, stream)
    with pytest.raises(SimulatedCrash):
        _with_fault(fast_graph, 1, FaultKind.CRASH_AFTER).branches.delete("review")
    again = fast_graph.reopened()
    assert again.branches.list() == ["main", "review"]
    assert again.people(stream) == {"ada": "1"}
    assert again.branches.read_head("review").is_closed
    with pytest.raises(BranchGoneError):
        again.insert({"bob": "2"}, stream)
    with pytest.raises(BranchExistsError):
        again.branches.create("review", at=again.head())
    again.branches.delete("review")
    assert again.reopened().branches.list() == ["main"]


def test_a_branch_starts_at_a_commit_of_its_own_graph_only(fast_graph: SmallGraph) -> None:
    other = memory_graph()
    for graph in (fast_graph, other):
        graph.insert({"ada": "1"})
    foreign = other.branches.create("review", at=other.head())
    for at in (other.head(), other.head(foreign)):
        with pytest.raises(CommitNotFoundError, match=r"commit|version"):
            fast_graph.branches.create("ghost", at=at)
    other.insert({"bob": "1"})
    with pytest.raises(CommitNotFoundError):
        fast_graph.branches.create("ghost", at=other.head())
    assert fast_graph.branches.list() == ["main"]

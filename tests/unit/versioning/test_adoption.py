"""Adopting what another branch made of a table, as a merge does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.errors import ConflictError, PreconditionFailedError
from omnigraph.versioning import (
    Adopt,
    BranchAt,
    Changed,
    IdSet,
    Maintain,
    Maintenance,
    Record,
    Snapshot,
    Stream,
    Transaction,
)
from unit.versioning.small_graph import PERSON, SmallGraph, inserting, upserting


def _review(graph: SmallGraph) -> Stream:
    """A branch with a person more than main."""
    graph.insert({"ada": "1"})
    review = graph.branches.create("review", at=graph.head())
    graph.insert({"bob": "2"}, review)
    return review


def _adopting(graph: SmallGraph, review: Stream) -> Transaction:
    ours, theirs = graph.head(), graph.head(review)
    return Transaction(
        ours,
        (Adopt(PERSON, ours.pins[PERSON], theirs.pins[PERSON]),),
        {PERSON: Changed(inserted=IdSet(["bob"]), marks=IdSet())},
        merged=theirs.ref,
        preferred={"divergent_update": "ours"},
    )


def test_an_adopted_table_is_the_other_one_itself(graph: SmallGraph) -> None:
    review = _review(graph)
    record = graph.committer.publish(_adopting(graph, review))
    assert isinstance(record, Record)
    assert graph.head().pins[PERSON] == graph.head(review).pins[PERSON]
    again = graph.reopened()
    assert again.people() == {"ada": "1", "bob": "2"}
    stored = again.log.read(record.stream, record.seq)
    assert isinstance(stored, Record)
    assert stored.merged == graph.head(review).ref
    assert stored.preferred == {"divergent_update": "ours"}


def test_a_table_that_moved_meanwhile_is_not_replaced(fast_graph: SmallGraph) -> None:
    late = _adopting(fast_graph, _review(fast_graph))
    fast_graph.reopened().insert({"cy": "3"})
    with pytest.raises(ConflictError):
        fast_graph.committer.publish(late)
    assert fast_graph.people() == {"ada": "1", "cy": "3"}


def test_maintenance_of_the_table_is_not_lost_either(graph: SmallGraph) -> None:
    """It changes no entity, so nothing is met; but what it made would be replaced."""
    review = _review(graph)
    for number in range(40):
        graph.insert({f"p{number}": "x"})
    review = graph.branches.create("other", at=graph.head())
    graph.insert({"bob": "2"}, review)
    late = _adopting(graph, review)
    other = graph.reopened()
    plan = other.tables.plan_compaction(other.head().pins[PERSON])
    work = Maintain(PERSON, other.tables.compact(plan))
    other.committer.publish(Transaction(other.head(), (work,), {PERSON: Maintenance()}))
    with pytest.raises(ConflictError, match="no longer at the version"):
        graph.committer.publish(late)
    prepared: list[Snapshot] = []

    def again(snapshot: Snapshot) -> Transaction:
        prepared.append(snapshot)
        return replace(inserting(graph, {"bob": "2"})(snapshot), merged=graph.head(review).ref)

    graph.committer.publish(late, prepare_again=again)
    assert [each.seq for each in prepared] == [graph.head().seq - 1]
    assert graph.people()["bob"] == "2"


def test_a_write_prepared_before_an_adoption_finds_its_rows_after_it(graph: SmallGraph) -> None:
    review = _review(graph)
    late = upserting(graph, {"ada": "9"})(graph.head())
    graph.committer.publish(_adopting(graph, review))
    graph.committer.publish(late)
    assert graph.people() == {"ada": "9", "bob": "2"}


def test_a_merge_is_younger_than_both_of_its_parents(fast_graph: SmallGraph) -> None:
    review = _review(fast_graph)
    merged = _adopting(fast_graph, review)
    behind = fast_graph.head(review).created_at - 5_000_000
    settings = replace(fast_graph.settings, now_us=lambda: behind)
    record = SmallGraph(fast_graph.objects, fast_graph.tables, settings).committer.publish(merged)
    assert isinstance(record, Record)
    assert record.created_at > fast_graph.head(review).created_at


def test_a_branch_ends_only_at_the_commit_it_should_be_at(fast_graph: SmallGraph) -> None:
    review = _review(fast_graph)
    seen = fast_graph.head(review).commit
    fast_graph.insert({"cy": "3"}, review)
    with pytest.raises(PreconditionFailedError):
        fast_graph.branches.delete("review", requires=(BranchAt(seen),))
    assert fast_graph.branches.list() == ["main", "review"]
    newest = fast_graph.head(review).commit
    fast_graph.branches.delete("review", requires=(BranchAt(newest),))
    assert fast_graph.branches.list() == ["main"]

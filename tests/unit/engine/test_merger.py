"""Merges as callers make them: sources, plans, races, and the end of the merged branch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
import places
from omnigraph import Branch, Graph, errors
from omnigraph.changes.type_difference import Counts
from omnigraph.engine import merger
from omnigraph.engine.commit_loop import WriteOutcome, write
from omnigraph.engine.merge_operations import MergeOperation
from omnigraph.rows.view import View
from omnigraph.versioning import Transaction
from omnigraph.versioning.lineage import Lineage
from omnigraph.writers.prepare import Request
from unit.writers.merge.merge_world import (
    ages,
    change,
    edge,
    entities,
    four_people,
    new_graph,
    person,
    problems,
    put,
    remove,
    set_age,
)


@pytest.fixture
def graph() -> Iterator[Graph]:
    with four_people() as graph:
        yield graph


# ---- what is merged ----


@pytest.mark.parametrize("kind", places.kinds())
def test_a_merge_works_wherever_a_graph_lives(kind: places.Kind, tmp_path: Path) -> None:
    with new_graph(person("ada"), uri=places.uri_of(kind, tmp_path)) as graph:
        main, review = graph.branch(), graph.create_branch("review")
        put(review, person("bob"), edge("Knows", "bob", "ada"))
        put(main, person("cem"))
        assert main.merge(review).outcome == "merged"
        assert set(ages(main)) == {"ada", "bob", "cem"}
        assert problems(graph) == []


def test_a_branch_its_name_a_commit_and_a_snapshot_can_be_merged(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    first = review.head
    set_age(review, "bob", 2)
    snapshot = review.snapshot()
    set_age(review, "bob", 3)
    for source, age in ((first, 1), (snapshot, 2), ("review", 3)):
        assert main.merge(source).commit is not None
        assert ages(main)["bob"] == age
    assert main.merge(first.id).outcome == "already_up_to_date"


def test_the_captured_commit_is_merged_however_far_its_branch_goes(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    captured = review.head
    prepare = MergeOperation.prepare

    def later(self: MergeOperation, view: View, request: Request) -> Transaction | None:
        set_age(review, "bob", 2)
        return prepare(self, view, request)

    monkeypatch.setattr(MergeOperation, "prepare", later)
    assert main.merge(review).parents[1] == captured.id
    assert ages(main)["bob"] == 1


def test_a_branch_cannot_be_merged_into_itself(graph: Graph) -> None:
    with pytest.raises(errors.BranchRefusedError, match="cannot be merged into itself"):
        graph.branch().merge("main")


def test_a_tag_can_be_merged_and_branched_from(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    graph.tag("rel", review)
    set_age(review, "bob", 2)
    assert ages(graph.create_branch("again", source="rel"))["bob"] == 1
    assert main.merge("rel").source == "rel"
    assert ages(main)["bob"] == 1
    with pytest.raises(errors.InvalidArgumentError, match="rel is not a branch"):
        main.merge("rel", delete_branch=True)
    with pytest.raises(errors.BranchNotFoundError, match="nowhere"):
        graph.create_branch("other", source="nowhere")


def test_an_unknown_source_is_named(graph: Graph) -> None:
    with pytest.raises(errors.BranchNotFoundError, match="nowhere"):
        graph.branch().merge("nowhere")


@pytest.mark.parametrize(
    "prefer", ["mine", {"divergent_update": "mine"}, {"orphan_edge": "ours"}, 7], ids=str
)
def test_a_preference_that_means_nothing_is_refused(graph: Graph, prefer: object) -> None:
    graph.create_branch("review")
    with pytest.raises(errors.InvalidArgumentError, match="prefer"):
        graph.branch().merge("review", prefer=prefer)  # type: ignore[call-overload]


def test_a_merge_may_require_the_head_it_was_decided_on(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    head = main.head
    set_age(main, "dan", 1)
    with pytest.raises(errors.PreconditionFailedError):
        main.merge(review, if_commit=head)
    assert main.merge(review, if_commit=main.head, message="go").outcome == "merged"
    assert main.head.message == "go"


def test_maintenance_of_either_side_changes_no_outcome(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    assert main.optimize().commit is not None
    assert review.optimize().commit is not None
    assert main.merge(review).outcome == "fast_forward"
    set_age(main, "dan", 5)
    set_age(review, "bob", 2)
    assert main.merge(review).outcome == "merged"
    review.optimize()
    assert main.merge(review).outcome == "already_up_to_date"
    assert ages(main) == {"alice": 30, "bob": 2, "carol": None, "dan": 5}
    assert problems(graph) == []


def test_a_table_that_only_theirs_changed_is_adopted_with_its_files(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    change(main, 'insert Knows { from: "dan", to: "bob" }')
    assert main.merge(review).outcome == "merged"
    assert main.snapshot().at.pins["node:Person"] == review.snapshot().at.pins["node:Person"]


def test_rows_that_a_merge_does_not_change_keep_their_place(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    set_age(main, "dan", 1)

    def places_of(branch: Branch) -> dict[str, int]:
        table = branch.snapshot().view.tables.open(branch.snapshot().at.pins["node:Person"])
        rows = table.scan(columns=["__id", "_rowid"]).to_pylist()
        return {row["__id"]: row["_rowid"] for row in rows}

    before = places_of(main)
    main.merge(review)
    after = places_of(main)
    assert {name for name in before if before[name] != after[name]} == {"bob"}


def test_an_edge_merge_is_found_by_traversals_at_once(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    text = 'query known() { match { $p: Person { name: "dan" } $p knows $q } return { $q.name } }'
    assert main.query(text).to_pylist() == []
    put(review, person("eve"), edge("Knows", "dan", "eve"))
    put(main, edge("Knows", "dan", "bob"))
    main.merge(review)
    assert sorted(row["q.name"] for row in main.query(text).to_pylist()) == ["bob", "eve"]


@pytest.mark.slow
def test_many_rows_are_merged_by_adoption_and_by_rows() -> None:
    with new_graph(person("ada")) as graph:
        main, review = graph.branch(), graph.create_branch("review")
        put(review, *(person(f"p{number}", age=number % 100) for number in range(20_000)))
        other = graph.create_branch("other")
        put(other, person("bob"))
        assert main.merge(review).outcome == "fast_forward"
        assert other.merge(review).outcome == "merged"
        bob = '{"data": {"name": "bob"}, "id": "bob", "type": "Person"}'
        assert entities(other) == entities(main) | {bob}
        assert problems(graph) == []


def test_a_merge_does_without_records_that_are_gone(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    remove(review, "carol")
    put(review, person("eve"))
    set_age(main, "dan", 2)

    def gone(*_: object, **__: object) -> None:
        raise errors.HistoryGoneError("records were collected")

    monkeypatch.setattr(Lineage, "read_between", gone)
    result = main.merge(review)
    assert result.summary["node:Person"] == Counts(inserted=1, updated=1, deleted=1)
    assert ages(main) == {"alice": 30, "bob": 1, "dan": 2, "eve": None}
    assert main.count("Knows") == 0


def test_a_type_that_ours_replaced_whole_is_compared_by_values(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    set_age(review, "carol", 3)
    main.load([person("bob"), person("alice", age=30), person("carol", age=4)], mode="overwrite")
    with pytest.raises(errors.MergeConflictError) as caught:
        main.merge(review)
    assert [each.entity_id for each in caught.value.conflicts] == ["carol"]
    main.merge(review, prefer="ours")
    assert ages(main) == {"alice": 30, "bob": 1, "carol": 4}


# ---- plans ----


def test_a_plan_tells_what_a_merge_would_do_and_does_nothing(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    base = main.head
    set_age(review, "bob", 1)
    put(review, person("eve"))
    plan = main.plan_merge(review)
    assert (plan.outcome, plan.base, plan.conflicts) == ("fast_forward", base, ())
    assert plan.to_json()["changes"] == [
        {"entity_kind": "node", "type_name": "Person", "inserted": 1, "updated": 1, "deleted": 0}
    ]
    set_age(main, "bob", 2)
    planned = main.plan_merge(review)
    assert [each.kind for each in planned.conflicts] == ["divergent_update"]
    assert main.plan_merge(review, prefer="ours").conflicts == ()
    assert graph.branch().head.parents == (base.id,)
    assert ages(main)["bob"] == 2


# ---- races ----


def test_a_target_that_moves_meanwhile_is_merged_as_it_is_by_then(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fast-forward that lost the race is a merge, and what it would have lost is there."""
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    prepare = MergeOperation.prepare
    calls: list[object] = []

    def overtaken(self: MergeOperation, view: View, request: Request) -> Transaction | None:
        made = prepare(self, view, request)
        if not calls:
            calls.append(self.state.outcome)
            set_age_elsewhere(graph, "dan", 9)
        return made

    monkeypatch.setattr(MergeOperation, "prepare", overtaken)
    assert main.merge(review).outcome == "merged"
    assert calls == ["fast_forward"]
    assert ages(main) == {"alice": 30, "bob": 1, "carol": None, "dan": 9}
    assert problems(graph) == []


def set_age_elsewhere(graph: Graph, name: str, age: int) -> None:
    """Write through the committer at once: the publisher of this process is busy with us."""
    thread = threading.Thread(target=set_age, args=(graph.branch(), name, age))
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ('update Person set { age: 2 } where name = "bob"', "divergent_update"),
        ('delete Person where name = "bob"', "delete_vs_update"),
    ],
)
def test_a_conflict_that_arises_meanwhile_is_reported(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, statement: str, kind: str
) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    set_age(main, "dan", 9)
    prepare = MergeOperation.prepare
    calls: list[object] = []

    def overtaken(self: MergeOperation, view: View, request: Request) -> Transaction | None:
        made = prepare(self, view, request)
        if not calls:
            calls.append(made)
            thread = threading.Thread(target=change, args=(graph.branch(), statement))
            thread.start()
            thread.join()
        return made

    monkeypatch.setattr(MergeOperation, "prepare", overtaken)
    with pytest.raises(errors.MergeConflictError) as caught:
        main.merge(review)
    assert [each.kind for each in caught.value.conflicts] == [kind]


def test_an_edge_that_arrives_meanwhile_at_a_deleted_node_is_a_conflict(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    remove(review, "dan")
    set_age(main, "bob", 9)
    prepare = MergeOperation.prepare
    calls: list[object] = []

    def overtaken(self: MergeOperation, view: View, request: Request) -> Transaction | None:
        made = prepare(self, view, request)
        if not calls:
            calls.append(made)
            statement = 'insert Knows { from: "alice", to: "dan" }'
            thread = threading.Thread(target=change, args=(graph.branch(), statement))
            thread.start()
            thread.join()
        return made

    monkeypatch.setattr(MergeOperation, "prepare", overtaken)
    with pytest.raises(errors.MergeConflictError) as caught:
        main.merge(review)
    assert [each.kind for each in caught.value.conflicts] == ["orphan_edge"]


def test_two_who_merge_the_same_branch_merge_it_once(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    outcomes: list[str] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(graph.branch().merge("review").outcome))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["already_up_to_date"] * 3 + ["fast_forward"]
    assert ages(main)["bob"] == 1


def test_a_target_that_was_deleted_meanwhile_is_refused(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, review = graph.create_branch("target"), graph.create_branch("review")
    set_age(review, "bob", 1)
    prepare = MergeOperation.prepare

    def gone(self: MergeOperation, view: View, request: Request) -> Transaction | None:
        made = prepare(self, view, request)
        graph.delete_branch("target")
        graph.create_branch("target")
        return made

    monkeypatch.setattr(MergeOperation, "prepare", gone)
    with pytest.raises(errors.BranchGoneError):
        target.merge(review)
    assert ages(graph.branch("target"))["bob"] is None


# ---- the end of the merged branch ----


def test_a_merged_branch_can_be_deleted_with_its_merge(graph: Graph) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)
    result = main.merge(review, delete_branch=True)
    assert result.branch_deleted is True
    assert result.to_json()["branch_deleted"] is True
    assert graph.branches() == ["main"]
    assert ages(main)["bob"] == 1


def test_a_branch_with_newer_commits_is_not_deleted(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, review = graph.branch(), graph.create_branch("review")
    set_age(review, "bob", 1)

    def then_more(*arguments: Any) -> WriteOutcome:
        written = write(*arguments)
        set_age(review, "bob", 2)
        return written

    monkeypatch.setattr(merger, "write", then_more)
    result = main.merge(review, delete_branch=True)
    assert (result.outcome, result.branch_deleted) == ("fast_forward", False)
    assert "review" in str(result.branch_delete_error)
    assert ages(graph.branch("review"))["bob"] == 2


def test_main_is_merged_but_not_deleted(graph: Graph) -> None:
    review = graph.create_branch("review")
    set_age(graph.branch(), "bob", 1)
    result = review.merge("main", delete_branch=True)
    assert (result.outcome, result.branch_deleted) == ("fast_forward", False)
    assert result.to_json()["branch_delete_error"] == "branch 'main' cannot be deleted"


def test_only_a_branch_can_be_deleted_with_its_merge(graph: Graph) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="delete_branch"):
        graph.branch().merge(graph.branch().head, delete_branch=True)


def test_a_merge_through_another_handle_is_seen_by_all() -> None:
    with new_graph(person("ada")) as graph:
        review = graph.create_branch("review")
        put(review, person("bob"))
        with omnigraph.open(graph.uri, durable=False) as other:
            other.branch().merge("review")
        assert set(ages(graph.branch())) == {"ada", "bob"}

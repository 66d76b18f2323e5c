"""The row rules of merges: what counts as a change, and whose entity it becomes."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from omnigraph import Branch, Graph
from omnigraph.errors import MergeConflictError
from unit.writers.merge.merge_world import (
    ages,
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


def _blob(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


@pytest.fixture
def graph() -> Iterator[Graph]:
    with new_graph(
        person("ada", age=1, tags=["a, b"], vec=[1, 2, 3, 4], photo=_blob(b"abc"), first=""),
        person("bob", age=2),
        {**edge("Knows", "ada", "bob"), "id": "k1"},
    ) as graph:
        yield graph


def _sides(graph: Graph) -> tuple[Branch, Branch]:
    """The branch that is merged into, and the one that is merged."""
    return graph.branch(), graph.create_branch("review")


def _conflicts(main: Branch, review: Branch) -> list[tuple[str, str | None]]:
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    return [(each.kind, each.entity_id) for each in caught.value.conflicts]


ADA = {"age": 1, "tags": ["a, b"], "vec": [1, 2, 3, 4], "photo": _blob(b"abc"), "first": ""}


@pytest.mark.parametrize(
    "values",
    [
        {"first": None},
        {"tags": ["a", "b"]},
        {"tags": None},
        {"tags": []},
        {"vec": [1, 2, 3, 5]},
        {"vec": None},
        {"photo": _blob(b"abd")},
        {"photo": _blob(b"")},
        {"photo": None},
        {"first": "a\x1fb"},
    ],
    ids=str,
)
def test_a_change_of_any_value_is_seen(graph: Graph, values: dict[str, object]) -> None:
    main, review = _sides(graph)
    put(main, person("cem"))
    put(review, person("ada", **{**ADA, **values}))
    assert dict(main.merge(review).summary)["node:Person"].updated == 1
    assert entities(main) == entities(review) | {next(x for x in entities(main) if "cem" in x)}
    assert problems(graph) == []


@pytest.mark.parametrize("values", [{"vec": [1, 2, 3, 5]}, {"photo": _blob(b"abd")}], ids=str)
def test_a_heavy_value_that_both_sides_changed_conflicts(
    graph: Graph, values: dict[str, object]
) -> None:
    main, review = _sides(graph)
    put(main, person("ada", **{**ADA, **dict.fromkeys(values)}))
    put(review, person("ada", **{**ADA, **values}))
    assert _conflicts(main, review) == [("divergent_update", "ada")]


def test_a_row_written_again_with_its_values_is_no_change(graph: Graph) -> None:
    main, review = _sides(graph)
    put(review, person("ada", **ADA))
    set_age(main, "ada", 9)
    before = main.snapshot().at.pins
    assert main.merge(review).summary == {}
    assert main.snapshot().at.pins == before
    assert ages(main)["ada"] == 9


def test_equal_changes_of_both_sides_stay(graph: Graph) -> None:
    main, review = _sides(graph)
    for branch in (main, review):
        set_age(branch, "ada", 5)
        put(branch, person("eve", age=3, vec=[0, 0, 0, 1], photo=_blob(b"x")))
        remove(branch, "bob")
    result = main.merge(review)
    assert (result.outcome, result.summary) == ("merged", {})
    assert ages(main) == {"ada": 5, "eve": 3}


def test_an_edge_that_moved_on_one_side_moves_on_the_other(graph: Graph) -> None:
    main, review = _sides(graph)
    put(main, person("cem"))
    put(review, {**edge("Knows", "bob", "ada"), "id": "k1"})
    main.merge(review)
    ends = main.snapshot().to_arrow("Knows", "edge").select(["@src", "@dst"]).to_pylist()
    assert ends == [{"@src": "bob", "@dst": "ada"}]


def test_an_edge_that_moved_to_different_ends_conflicts(graph: Graph) -> None:
    main, review = _sides(graph)
    put(main, {**edge("Knows", "ada", "ada"), "id": "k1"})
    put(review, {**edge("Knows", "bob", "ada"), "id": "k1"})
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.entity_kind) == ("divergent_update", "edge")
    assert conflict.base == {"@src": "ada", "@dst": "bob"}
    assert conflict.ours == {"@src": "ada", "@dst": "ada"}
    assert conflict.theirs == {"@src": "bob", "@dst": "ada"}


def test_a_conflict_shows_what_each_side_has(graph: Graph) -> None:
    main, review = _sides(graph)
    set_age(main, "ada", 31)
    put(review, person("ada", **{**ADA, "age": 32, "email": "a@x"}))
    remove(main, "bob")
    set_age(review, "bob", 8)
    put(main, person("eve", age=1))
    put(review, person("eve", age=2, email="e@x"))
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    by_id = {each.entity_id: each for each in caught.value.conflicts}
    assert by_id["ada"].base == {"age": 1}
    assert by_id["ada"].ours == {"age": 31}
    assert by_id["ada"].theirs == {"age": 32}
    assert by_id["ada"].properties == ("age",)
    assert by_id["bob"].kind == "delete_vs_update"
    assert by_id["bob"].ours is None
    assert by_id["bob"].theirs == {"name": "bob", "age": 8}
    assert by_id["eve"].base is None
    assert by_id["eve"].theirs == {"name": "eve", "age": 2, "email": "e@x"}
    assert str(caught.value).startswith("merge conflicts: divergent_update Person 'ada'")
    assert caught.value.count == 3


def test_a_message_tells_three_conflicts_and_counts_the_others() -> None:
    names = [f"p{number:02}" for number in range(12)]
    with new_graph(*(person(name, age=0) for name in names)) as graph:
        main, review = _sides(graph)
        put(main, *(person(name, age=1) for name in names))
        put(review, *(person(name, age=2) for name in names))
        with pytest.raises(MergeConflictError, match="and 9 more") as caught:
            main.merge(review)
        assert [each.entity_id for each in caught.value.conflicts] == names


# ---- preferences ----


def test_a_preferred_side_wins_and_the_commit_says_so(graph: Graph) -> None:
    main, review = _sides(graph)
    set_age(main, "ada", 31)
    set_age(review, "ada", 32)
    remove(review, "bob")
    set_age(main, "bob", 8)
    result = main.merge(review, prefer={"divergent_update": "theirs", "delete_vs_update": "ours"})
    assert ages(main) == {"ada": 32, "bob": 8}
    assert result.commit is not None
    preferred = {"divergent_update": "theirs", "delete_vs_update": "ours"}
    assert dict(result.commit.preferred) == preferred
    assert graph.commit(result.commit.id).to_json()["preferred"] == preferred
    assert problems(graph) == []


def test_preferring_theirs_brings_back_what_ours_deleted(graph: Graph) -> None:
    main, review = _sides(graph)
    remove(main, "bob")
    set_age(review, "bob", 8)
    main.merge(review, prefer="theirs")
    assert ages(main)["bob"] == 8
    assert main.count("Knows") == 0


def test_a_kind_without_a_preference_still_conflicts(graph: Graph) -> None:
    main, review = _sides(graph)
    set_age(main, "ada", 31)
    set_age(review, "ada", 32)
    remove(review, "bob")
    set_age(main, "bob", 8)
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review, prefer={"divergent_update": "ours"})
    assert [each.kind for each in caught.value.conflicts] == ["delete_vs_update"]


def test_a_preference_that_decided_nothing_is_not_recorded(graph: Graph) -> None:
    main, review = _sides(graph)
    set_age(review, "ada", 32)
    result = main.merge(review, prefer="theirs")
    assert result.commit is not None
    assert result.commit.preferred == ()


def test_a_broken_rule_cannot_be_preferred_away(graph: Graph) -> None:
    main, review = _sides(graph)
    put(main, person("eve", email="e@x"))
    put(review, person("fay", email="e@x"))
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review, prefer="theirs")
    assert [each.kind for each in caught.value.conflicts] == ["unique_violation"]


# ---- rules of the merged state ----


def test_a_unique_value_taken_on_both_sides_conflicts(graph: Graph) -> None:
    main, review = _sides(graph)
    put(main, person("eve", email="e@x"))
    put(review, person("fay", email="e@x"))
    with pytest.raises(MergeConflictError, match="which ours has in Person 'eve'") as caught:
        main.merge(review)
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.entity_id) == ("unique_violation", "fay")
    assert conflict.ours == {"name": "eve", "email": "e@x"}
    assert conflict.theirs == {"name": "fay", "email": "e@x"}


def test_a_unique_pair_conflicts_and_different_pairs_do_not(graph: Graph) -> None:
    main, review = _sides(graph)
    put(main, person("eve", first="a", last="b"))
    put(review, person("fay", first="a", last="c"))
    assert main.merge(review).outcome == "merged"
    put(review, person("fay", first="a", last="b"))
    assert _conflicts(main, review) == [("unique_violation", "fay")]


def test_a_unique_value_that_moved_to_another_entity_merges(graph: Graph) -> None:
    put(graph.branch(), person("bob", age=2, email="b@x"))
    main, review = _sides(graph)
    put(review, person("bob", age=2), person("cem", email="b@x"))
    put(main, person("dov"))
    assert main.merge(review).outcome == "merged"


def test_too_many_edges_together_conflict(graph: Graph) -> None:
    main, review = _sides(graph)
    put(main, edge("Leads", "ada", "bob"))
    put(review, edge("Leads", "ada", "ada"))
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.type_name) == ("cardinality_violation", "Leads")
    assert conflict.theirs == {"@src": "ada", "@dst": "ada"}


def test_an_edge_of_ours_at_a_node_that_theirs_deleted_conflicts(graph: Graph) -> None:
    main, review = _sides(graph)
    remove(review, "bob")
    put(main, {**edge("Knows", "bob", "ada"), "id": "k2"})
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.entity_id) == ("orphan_edge", "k2")
    assert conflict.ours == {"@src": "bob", "@dst": "ada"}
    assert conflict.theirs is None


def test_an_edge_of_theirs_at_a_node_that_ours_deleted_conflicts(graph: Graph) -> None:
    main, review = _sides(graph)
    remove(main, "bob")
    put(review, {**edge("Leads", "bob", "ada"), "id": "l1"})
    assert _conflicts(main, review) == [("orphan_edge", "l1")]


def test_conflicts_of_all_kinds_come_in_one_report(graph: Graph) -> None:
    main, review = _sides(graph)
    set_age(main, "ada", 31)
    set_age(review, "ada", 32)
    put(main, person("eve", email="e@x"), edge("Leads", "ada", "bob"))
    put(review, person("fay", email="e@x"), edge("Leads", "ada", "ada"))
    remove(review, "bob")
    kinds = {kind for kind, _ in _conflicts(main, review)}
    expected = {"divergent_update", "unique_violation", "cardinality_violation", "orphan_edge"}
    assert kinds == expected


# ---- shapes of history ----


def test_a_nested_branch_merges_into_its_parent() -> None:
    with four_people() as graph:
        outer = graph.create_branch("outer")
        set_age(outer, "bob", 1)
        inner = graph.create_branch("inner", source=outer)
        set_age(inner, "carol", 2)
        set_age(outer, "dan", 3)
        main = entities(graph.branch())
        assert outer.merge(inner).outcome == "merged"
        assert ages(outer) == {"alice": 30, "bob": 1, "carol": 2, "dan": 3}
        assert entities(graph.branch()) == main
        assert graph.branch().merge(outer).outcome == "fast_forward"
        assert entities(graph.branch()) == entities(outer)
        assert problems(graph) == []


def test_branches_that_merge_each_other_again_and_again_agree() -> None:
    with four_people() as graph:
        main, review = graph.branch(), graph.create_branch("review")
        for turn in range(4):
            set_age(main, "alice", 40 + turn)
            put(main, person(f"m{turn}"), {**edge("Knows", f"m{turn}", "bob"), "id": f"m{turn}"})
            set_age(review, "bob", 50 + turn)
            put(review, person(f"r{turn}"))
            assert review.merge(main).outcome == "merged"
            set_age(review, "carol", turn)
            put(main, person(f"late{turn}"))
            assert main.merge(review).outcome == "merged"
            assert problems(graph) == []
        review.merge(main)
        assert entities(main) == entities(review)


def test_a_fast_forward_to_a_branch_that_merged_us_keeps_our_copies_apart() -> None:
    """Row ids of two lines coincide: a write prepared before must not hit another row."""
    with four_people() as graph:
        main, review = graph.branch(), graph.create_branch("review")
        put(review, person("rea"), person("rex"))
        put(main, person("max"), person("mia"))
        review.merge(main)
        before = main.snapshot().at.pins["node:Person"]
        assert main.merge(review).outcome == "fast_forward"
        remove(main, "max")
        assert set(ages(main)) == {"alice", "bob", "carol", "dan", "mia", "rea", "rex"}
        assert before.path == main.snapshot().at.pins["node:Person"].path
        assert problems(graph) == []


def test_time_travel_sees_each_of_several_merges() -> None:
    with four_people() as graph:
        main = graph.branch()
        seen = []
        for number in range(3):
            branch = graph.create_branch(f"b{number}")
            set_age(branch, "alice", number)
            put(branch, person(f"new{number}"))
            put(main, person(f"own{number}"))
            main.merge(branch)
            set_age(main, "dan", number)
            seen.append((main.head.id, ages(main)))
        for commit, expected in seen:
            assert ages(graph.snapshot(commit)) == expected
        assert problems(graph) == []

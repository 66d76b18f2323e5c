"""Merges of branches whose schemas changed: rows find their columns, tables their types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Branch, Graph
from omnigraph.errors import MergeConflictError
from unit.writers.merge.merge_world import (
    ages,
    change,
    entities,
    new_graph,
    person,
    problems,
    put,
    remove,
    set_age,
)

SCHEMA = """
node Person {
  name: String @key
  age: I32?
}
edge Knows: Person -> Person
"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    with new_graph(person("ada", age=1), person("bob", age=2), schema=SCHEMA) as graph:
        yield graph


def _sides(graph: Graph) -> tuple[Branch, Branch]:
    return graph.branch(), graph.create_branch("review")


def _with(property_: str, schema: str = SCHEMA) -> str:
    return schema.replace("  age: I32?", f"  age: I32?\n  {property_}")


def _values(branch: Branch, name: str) -> dict[str, object]:
    text = f"query q() {{ match {{ $p: Person }} return {{ $p.name, $p.{name} }} }}"
    return {row["p.name"]: row[f"p.{name}"] for row in branch.query(text).to_pylist()}


@pytest.mark.parametrize("is_ours_moved", [False, True], ids=["fast-forward", "merge"])
def test_a_property_that_theirs_added_comes_with_its_values(
    graph: Graph, is_ours_moved: bool
) -> None:
    main, review = _sides(graph)
    review.apply_schema(_with("city: String?"))
    put(review, person("ada", age=1, city="Rome"), person("cem", city="Oslo"))
    if is_ours_moved:
        set_age(main, "bob", 7)
    main.merge(review)
    assert _values(main, "city") == {"ada": "Rome", "bob": None, "cem": "Oslo"}
    assert ages(main)["bob"] == (7 if is_ours_moved else 2)
    assert main.merge(review).outcome == "already_up_to_date"
    assert problems(graph) == []


def test_properties_that_both_sides_added_are_both_there(graph: Graph) -> None:
    main, review = _sides(graph)
    review.apply_schema(_with("city: String?"))
    put(review, person("ada", age=1, city="Rome"))
    main.apply_schema(_with("email: String?"))
    put(main, person("bob", age=2, email="b@x"))
    main.merge(review)
    assert _values(main, "city") == {"ada": "Rome", "bob": None}
    assert _values(main, "email") == {"ada": None, "bob": "b@x"}
    put(main, person("cem", city="Oslo", email="c@x"))
    assert review.merge(main).outcome == "fast_forward"
    assert entities(review) == entities(main)
    assert problems(graph) == []


def test_the_same_property_added_on_both_sides_is_one(graph: Graph) -> None:
    main, review = _sides(graph)
    for branch, name in ((main, "ada"), (review, "bob")):
        branch.apply_schema(_with("city: String?"))
        change(branch, f'update Person set {{ city: "{name}s" }} where name = "{name}"')
    main.merge(review)
    assert _values(main, "city") == {"ada": "adas", "bob": "bobs"}
    assert problems(graph) == []


@pytest.mark.parametrize("is_ours_moved", [False, True], ids=["fast-forward", "merge"])
def test_a_type_that_theirs_added_comes_with_its_entities(
    graph: Graph, is_ours_moved: bool
) -> None:
    main, review = _sides(graph)
    review.apply_schema(f"{SCHEMA}node Team {{ name: String @key }}\nedge In: Person -> Team\n")
    put(
        review,
        {"type": "Team", "data": {"name": "red"}},
        {"edge": "In", "from": "bob", "to": "red"},
    )
    if is_ours_moved:
        put(main, person("cem"))
    result = main.merge(review)
    assert result.summary["node:Team"].inserted == 1
    assert (main.count("Team"), main.count("In")) == (1, 1)
    put(main, {"type": "Team", "data": {"name": "blue"}})
    put(review, {"type": "Team", "data": {"name": "green"}})
    main.merge(review)
    assert main.count("Team") == 3
    assert problems(graph) == []


def test_an_edge_of_a_new_type_at_a_node_that_ours_deleted_conflicts(graph: Graph) -> None:
    main, review = _sides(graph)
    review.apply_schema(f"{SCHEMA}edge Likes: Person -> Person\n")
    put(review, {"edge": "Likes", "from": "ada", "to": "bob", "id": "l1"})
    remove(main, "bob")
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.type_name) == ("orphan_edge", "Likes")
    assert conflict.theirs == {"@src": "ada", "@dst": "bob"}


def test_renames_are_followed(graph: Graph) -> None:
    main, review = _sides(graph)
    renamed = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {').replace(
        "Person -> Person", "Human -> Human"
    )
    review.apply_schema(renamed.replace("age: I32?", 'years: I32? @rename_from("age")'))
    change(review, 'update Human set { years: 9 } where name = "ada"')
    set_age(main, "bob", 7)
    main.merge(review)
    text = "query q() { match { $p: Human } return { $p.name, $p.years } }"
    found = {row["p.name"]: row["p.years"] for row in main.query(text).to_pylist()}
    assert found == {"ada": 9, "bob": 7}
    assert problems(graph) == []


def test_a_value_in_a_property_that_ours_dropped_vanishes_with_a_warning(graph: Graph) -> None:
    main, review = _sides(graph)
    main.apply_schema(SCHEMA.replace("  age: I32?\n", ""))
    set_age(review, "ada", 9)
    put(review, person("cem", age=4))
    plan = main.plan_merge(review)
    assert plan.conflicts == ()
    assert any("age" in warning for warning in plan.done.warnings)
    main.merge(review)
    assert main.count("Person") == 3
    assert problems(graph) == []


def test_incompatible_schemas_are_a_conflict_with_their_definitions(graph: Graph) -> None:
    main, review = _sides(graph)
    main.apply_schema(_with("city: String?"))
    review.apply_schema(_with("city: I32?"))
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.entity_kind) == ("schema_conflict", "schema")
    assert "city" in conflict.type_name
    assert conflict.ours != conflict.theirs


def test_a_value_outside_what_ours_still_allows_is_a_conflict() -> None:
    """Both widen an enum; a cherry-picked row needs a word that only theirs knows."""
    schema = "node Task { name: String @key\n  state: enum(open, done)? }\n"
    with new_graph(schema=schema) as graph:
        main, review = _sides(graph)
        review.apply_schema(schema.replace("open, done", "open, done, late"))
        put(review, {"type": "Task", "data": {"name": "t", "state": "late"}})
        with pytest.raises(MergeConflictError) as caught:
            main.cherry_pick(review.head)
        (conflict,) = caught.value.conflicts
        assert conflict.kind == "value_constraint_violation"
        assert conflict.theirs == {"name": "t", "state": "late"}
        main.merge(review)
        assert main.count("Task") == 1


def test_a_revert_takes_back_a_schema_change(graph: Graph) -> None:
    main = graph.branch()
    main.apply_schema(_with("city: String?"))
    added = main.head
    put(main, person("cem", city="Oslo"))
    main.revert(added)
    assert "city" not in main.schema
    assert set(ages(main)) == {"ada", "bob", "cem"}
    assert problems(graph) == []


def test_a_type_dropped_and_added_again_does_not_meet_the_old_one(graph: Graph) -> None:
    main, review = _sides(graph)
    review.apply_schema("node Other { name: String @key }\n")
    review.apply_schema(SCHEMA)
    put(review, person("zed"))
    set_age(main, "ada", 9)
    with pytest.raises(MergeConflictError) as caught:
        main.merge(review)
    assert {each.kind for each in caught.value.conflicts} == {"schema_conflict"}


def test_a_property_that_is_there_already_needs_no_cherry_pick(graph: Graph) -> None:
    main, review = _sides(graph)
    for branch in (main, review):
        branch.apply_schema(_with("city: String?"))
    result = main.cherry_pick(review.head)
    assert (result.outcome, result.commit) == ("nothing_to_do", None)
    put(review, person("ada", age=1, city="Rome"))
    assert main.cherry_pick(review.head).outcome == "cherry_picked"
    assert _values(main, "city")["ada"] == "Rome"
    assert problems(graph) == []


def test_a_cherry_pick_finds_a_type_that_both_sides_added(graph: Graph) -> None:
    main, review = _sides(graph)
    for branch in (main, review):
        branch.apply_schema(f"{SCHEMA}node Team {{ name: String @key\n  size: I32? }}\n")
    put(review, {"type": "Team", "data": {"name": "red", "size": 3}})
    assert main.cherry_pick(review.head).outcome == "cherry_picked"
    text = "query q() { match { $t: Team } return { $t.name, $t.size } }"
    assert main.query(text).to_pylist() == [{"t.name": "red", "t.size": 3}]
    assert problems(graph) == []

"""Fast-forwards, criss-cross merges and reverts of branches that migrate separately."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Graph
from unit.engine.migrated_branches import (
    PEOPLE,
    WITH_EMAIL,
    WITH_PHONE,
    both_directions,
    changed,
    contents,
    entity,
    people,
    people_graph,
    sides,
)


@pytest.fixture
def graph() -> Iterator[Graph]:
    """Ada and Bob in Rome, and a branch called review."""
    with people_graph() as graph:
        yield graph


# ---- histories ----


@both_directions
def test_a_fast_forward_goes_over_migrations(graph: Graph, *, is_reversed: bool) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    source.apply_schema(WITH_EMAIL)
    source.load([entity("Person", name="Ada", email="a@x")], mode="merge")
    source.apply_schema(
        changed(WITH_EMAIL, ("node Person {", 'node Human @rename_from("Person") {'))
        .replace("Person -> City", "Human -> City")
        .replace("\nedge", "\nnode Tag {\n  name: String @key\n}\n\nedge")
    )
    source.load([entity("Tag", name="t"), entity("Human", name="Cyd", age=3)], mode="append")
    assert target.merge(source).outcome == "fast_forward"
    assert contents(target) == contents(source)
    assert target.schema == source.schema


def test_criss_cross_merges_of_migrated_branches_end_in_one_content(graph: Graph) -> None:
    main, review = sides(graph, is_reversed=False)
    main.apply_schema(WITH_EMAIL)
    main.load([entity("Person", name="Ada", age=36, email="a@x")], mode="merge")
    review.apply_schema(changed(WITH_PHONE, ("phone: String?", "phone: String?\n  email: String?")))
    review.load([entity("Person", name="Bob", age=41, phone="7", email="b@x")], mode="merge")
    main_before, review_before = main.snapshot(), review.snapshot()
    main.merge(review_before)
    review.merge(main_before)
    assert contents(main) == contents(review)
    main.load([entity("Person", name="Cyd", phone="1", email="c@x")], mode="merge")
    review.apply_schema(
        changed(review.schema, ("phone: String?", 'mobile: String? @rename_from("phone")'))
    )
    review.load([entity("Person", name="Dov", mobile="2", email="d@x")], mode="merge")
    main.merge(review)
    review.merge(main)
    assert contents(main) == contents(review)
    assert people(main, "email", "mobile") == {
        "Ada": ("a@x", None),
        "Bob": ("b@x", "7"),
        "Cyd": ("c@x", "1"),
        "Dov": ("d@x", "2"),
    }


def test_three_branches_that_number_alike_are_merged_one_after_the_other(graph: Graph) -> None:
    main = graph.branch()
    names = ("one", "two", "three")
    for name in names:
        branch = graph.create_branch(name, source=graph.branch("review"))
        branch.apply_schema(changed(PEOPLE, ("age: I32?", f"age: I32?\n  {name}: String?")))
        branch.load([entity("Person", name=name, **{name: name})], mode="append")
    for name in names:
        main.merge(name)
    assert people(main, *names) == {
        "Ada": (None, None, None),
        "Bob": (None, None, None),
        "one": ("one", None, None),
        "two": (None, "two", None),
        "three": (None, None, "three"),
    }
    for name in names:
        graph.branch(name).merge(main)
        assert contents(graph.branch(name)) == contents(main)


# ---- undoing ----


def test_undoing_a_drop_brings_the_values_back(graph: Graph) -> None:
    main = graph.branch()
    main.apply_schema(changed(PEOPLE, ("  age: I32?\n", "")))
    drop = main.head
    main.load([entity("Person", name="Cyd")], mode="append")
    assert main.revert(drop).outcome == "reverted"
    assert people(main, "age") == {"Ada": (36,), "Bob": (41,), "Cyd": (None,)}
    main.load([entity("Person", name="Cyd", age=1)], mode="merge")
    assert people(main, "age")["Cyd"] == (1,)


def test_undoing_the_drop_of_a_type_brings_its_entities_back(graph: Graph) -> None:
    main = graph.branch()
    before = contents(main)
    main.apply_schema("node Person {\n  name: String @key\n  age: I32?\n}\n")
    main.revert(main.head)
    assert contents(main) == before


def test_undoing_an_addition_removes_it(graph: Graph) -> None:
    main = graph.branch()
    main.apply_schema(WITH_EMAIL)
    added = main.head
    main.load([entity("Person", name="Cyd", email="c@x")], mode="append")
    main.revert(added)
    assert main.schema == PEOPLE
    assert set(people(main)) == {"Ada", "Bob", "Cyd"}


def test_a_picked_migration_is_the_same_one_when_its_branch_is_merged(graph: Graph) -> None:
    main, review = sides(graph, is_reversed=False)
    main.apply_schema(WITH_PHONE)
    review.apply_schema(WITH_EMAIL)
    picked = review.head
    review.load([entity("Person", name="Ada", email="a@x")], mode="merge")
    main.cherry_pick(picked)
    assert "email: String?" in main.schema
    main.merge(review)
    assert people(main, "email") == {"Ada": ("a@x",), "Bob": (None,)}

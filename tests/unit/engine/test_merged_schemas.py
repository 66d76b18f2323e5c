"""Branches that migrate separately and are merged: their schemas, entities and later lives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Graph, errors
from unit.engine.migrated_branches import (
    PEOPLE,
    WITH_EMAIL,
    WITH_PHONE,
    both_directions,
    changed,
    contents,
    entity,
    lives,
    people,
    people_graph,
    sides,
)


@pytest.fixture
def graph() -> Iterator[Graph]:
    """Ada and Bob in Rome, and a branch called review."""
    with people_graph() as graph:
        yield graph


# ---- properties ----


@both_directions
def test_properties_that_each_branch_added_have_their_values_in_the_merged_graph(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    target.apply_schema(WITH_EMAIL)
    target.load([entity("Person", name="Ada", age=36, email="a@x")], mode="merge")
    source.apply_schema(WITH_PHONE)
    source.load(
        [entity("Person", name="Bob", age=42, phone="7"), entity("Person", name="Cyd", phone="9")],
        mode="merge",
    )
    result = target.merge(source)
    assert result.outcome == "merged"
    assert people(target, "age", "email", "phone") == {
        "Ada": (36, "a@x", None),
        "Bob": (42, None, "7"),
        "Cyd": (None, None, "9"),
    }
    assert target.merge(source).outcome == "already_up_to_date"
    # And back: the source has nothing of its own any more.
    assert source.merge(target).outcome == "fast_forward"
    assert contents(source) == contents(target)
    assert source.schema == target.schema


@both_directions
def test_a_property_that_both_branches_added_is_one_property_ever_after(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    for branch, name, mail in ((target, "Ada", "a@x"), (source, "Bob", "b@x")):
        branch.apply_schema(WITH_EMAIL)
        branch.load([entity("Person", name=name, age=1, email=mail)], mode="merge")
    target.merge(source)
    assert people(target, "email") == {"Ada": ("a@x",), "Bob": ("b@x",)}
    # The next changes are told apart from what was merged, on whichever side they happen.
    source.load([entity("Person", name="Bob", age=1, email="b@y")], mode="merge")
    target.load([entity("Person", name="Cyd", email="c@x")], mode="merge")
    target.merge(source)
    assert people(target, "email") == {"Ada": ("a@x",), "Bob": ("b@y",), "Cyd": ("c@x",)}
    source.merge(target)
    assert contents(source) == contents(target)


@both_directions
def test_a_rename_meets_new_values_and_a_new_property(graph: Graph, *, is_reversed: bool) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    target.apply_schema(
        changed(
            PEOPLE,
            ("node Person {", 'node Human @rename_from("Person") {'),
            ("age: I32?", 'years: I32? @rename_from("age")'),
            ("Person -> City", "Human -> City"),
        )
    )
    target.load([entity("Human", name="Ada", years=37)], mode="merge")
    source.apply_schema(WITH_PHONE)
    source.load(
        [
            entity("Person", name="Bob", age=42, phone="7"),
            entity("City", name="Oslo"),
            lives("Bob", "Oslo", since=2),
        ],
        mode="merge",
    )
    target.merge(source)
    found = people(target, "years", "phone", type_name="Human")
    assert found == {"Ada": (37, None), "Bob": (42, "7")}
    assert target.count("LivesIn") == 2
    assert target.merge(source).outcome == "already_up_to_date"
    target.load([lives("Bob", "Rome")], mode="append")
    source.merge(target)
    assert contents(source) == contents(target)


@both_directions
def test_a_dropped_property_is_gone_and_the_merge_says_whose_values(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    target.apply_schema(changed(PEOPLE, ("  age: I32?\n", "")))
    source.load([entity("Person", name="Ada", age=99), entity("City", name="Oslo")], mode="merge")
    target.merge(source)
    assert "age" not in target.schema
    assert people(target, type_name="City") == {"Rome": (), "Oslo": ()}
    source.merge(target)
    assert contents(source) == contents(target)


def test_wider_enums_of_both_branches_hold_the_values_of_both(graph: Graph) -> None:
    main = graph.branch()
    moods = changed(PEOPLE, ("age: I32?", "age: I32?\n  mood: enum(glad, sad)?"))
    main.apply_schema(moods)
    one, two = graph.create_branch("one"), graph.create_branch("two")
    for branch, name, mood in ((one, "Ada", "mad"), (two, "Bob", "calm")):
        branch.apply_schema(changed(moods, ("glad, sad", f"glad, sad, {mood}")))
        branch.load([entity("Person", name=name, mood=mood)], mode="merge")
    main.merge(one)
    main.merge(two)
    assert people(main, "mood") == {"Ada": ("mad",), "Bob": ("calm",)}


@both_directions
def test_vectors_and_blobs_of_new_properties_come_along(graph: Graph, *, is_reversed: bool) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    target.apply_schema(changed(PEOPLE, ("age: I32?", "age: I32?\n  photo: Blob?")))
    target.load([entity("Person", name="Ada", photo="base64:AAEC")], mode="merge")
    source.apply_schema(
        changed(PEOPLE, ("age: I32?", "age: I32?\n  face: Vector(2)?\n  voice: Blob?"))
    )
    source.load([entity("Person", name="Bob", face=[1, 2], voice="base64:/w==")], mode="merge")
    target.merge(source)
    assert people(target, "photo", "face", "voice") == {
        "Ada": ("base64:AAEC", None, None),
        "Bob": (None, [1.0, 2.0], "base64:/w=="),
    }
    source.merge(target)
    assert contents(source) == contents(target)


@both_directions
def test_an_interface_that_grew_gives_its_property_to_new_types_of_the_other_branch(
    graph: Graph, *, is_reversed: bool
) -> None:
    start = (
        PEOPLE
        + "\ninterface Named {\n  label: String?\n}\n"
        + "\nnode Place implements Named {\n  name: String @key\n}\n"
    )
    main = graph.branch()
    main.apply_schema(start)
    other = graph.create_branch("other")
    target, source = (other, main) if is_reversed else (main, other)
    source.apply_schema(changed(start, ("label: String?", "label: String?\n  motto: String?")))
    source.load([entity("Place", name="Bay", motto="wet")], mode="append")
    target.apply_schema(start + "\nnode Team implements Named {\n  name: String @key\n}\n")
    target.load([entity("Team", name="Reds")], mode="append")
    target.merge(source)
    target.load([entity("Team", name="Blues", motto="cold")], mode="append")
    assert people(target, "motto", type_name="Place") == {"Bay": ("wet",)}
    assert people(target, "motto", type_name="Team") == {"Reds": (None,), "Blues": ("cold",)}
    source.merge(target)
    assert contents(source) == contents(target)


# ---- types ----

WITH_TAGS = PEOPLE + "\nnode Tag {\n  name: String @key\n  size: I32?\n}\n"


@both_directions
def test_types_that_each_branch_added_are_there_with_their_entities(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    target.apply_schema(PEOPLE + "\nnode Team {\n  name: String @key\n}\n")
    target.load([entity("Team", name="Reds")], mode="append")
    source.apply_schema(WITH_TAGS + "\nedge Tagged: City -> Tag\n")
    source.load(
        [
            entity("Tag", name="old", size=1),
            {"edge": "Tagged", "from": "Rome", "to": "old", "data": {}},
        ],
        mode="append",
    )
    target.merge(source)
    assert (target.count("Team"), target.count("Tag"), target.count("Tagged")) == (1, 1, 1)
    source.merge(target)
    assert contents(source) == contents(target)


@both_directions
def test_a_type_that_both_branches_added_has_the_entities_of_both(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    for branch, names in ((target, "ab"), (source, "bc")):
        branch.apply_schema(WITH_TAGS)
        branch.load([entity("Tag", name=name, size=7) for name in names], mode="append")
    target.merge(source)
    assert people(target, "size", type_name="Tag") == {"a": (7,), "b": (7,), "c": (7,)}
    source.load([entity("Tag", name="c", size=8)], mode="merge")
    target.load([entity("Tag", name="a", size=9)], mode="merge")
    target.merge(source)
    assert people(target, "size", type_name="Tag") == {"a": (9,), "b": (7,), "c": (8,)}
    source.merge(target)
    assert contents(source) == contents(target)


@both_directions
def test_a_new_type_may_take_the_name_that_another_one_gave_up(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    renamed = changed(
        PEOPLE, ("node City {", 'node Town @rename_from("City") {'), ("-> City", "-> Town")
    )
    source.apply_schema(renamed)
    source.apply_schema(renamed + "\nnode City {\n  name: String @key\n  size: I32?\n}\n")
    source.load(
        [entity("Town", name="Ulm"), entity("City", name="Paris", size=2), lives("Bob", "Ulm")],
        mode="append",
    )
    target.load([entity("City", name="Oslo"), lives("Bob", "Oslo")], mode="append")
    target.merge(source)
    assert set(people(target, type_name="Town")) == {"Rome", "Oslo", "Ulm"}
    assert people(target, "size", type_name="City") == {"Paris": (2,)}
    assert target.count("LivesIn") == 3
    source.merge(target)
    assert contents(source) == contents(target)


@both_directions
def test_a_dropped_type_is_gone_with_its_entities(graph: Graph, *, is_reversed: bool) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    without = "node Person {\n  name: String @key\n  age: I32?\n}\n"
    source.apply_schema(without)
    target.load([entity("Person", name="Cyd")], mode="append")
    target.merge(source)
    assert target.schema == without
    assert set(people(target)) == {"Ada", "Bob", "Cyd"}


@both_directions
def test_a_type_dropped_and_added_again_is_refused_if_both_lives_changed(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    recreated, other = graph.branch("main"), graph.branch("review")
    recreated.apply_schema("node Person {\n  name: String @key\n  age: I32?\n}\n")
    recreated.apply_schema(PEOPLE)
    recreated.load([entity("City", name="Bern")], mode="append")
    other.load([entity("Person", name="Cyd")], mode="append")
    # Nothing happened to cities on the other branch: the new ones are taken.
    plan = target.plan_merge(source)
    assert plan.conflicts == ()
    other.load([entity("City", name="Oslo")], mode="append")
    with pytest.raises(errors.MergeConflictError) as refusal:
        target.merge(source)
    kinds = {(each.kind, each.type_name) for each in refusal.value.conflicts}
    assert ("schema_conflict", "node:City") in kinds


@both_directions
def test_the_new_life_of_a_type_is_merged_where_the_old_one_was_left_alone(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    recreated, other = graph.branch("main"), graph.branch("review")
    recreated.apply_schema("node Person {\n  name: String @key\n  age: I32?\n}\n")
    recreated.apply_schema(PEOPLE)
    recreated.load([entity("City", name="Bern"), lives("Bob", "Bern")], mode="append")
    other.load([entity("Person", name="Cyd")], mode="append")
    target.merge(source)
    assert set(people(target)) == {"Ada", "Bob", "Cyd"}
    assert set(people(target, type_name="City")) == {"Bern"}
    assert target.count("LivesIn") == 1
    source.merge(target)
    assert contents(source) == contents(target)


# ---- conflicts ----


@both_directions
def test_schemas_that_disagree_are_refused_and_nothing_changes(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    target.apply_schema(WITH_EMAIL)
    source.apply_schema(changed(PEOPLE, ("age: I32?", "age: I32?\n  email: [String]?")))
    before = target.head, contents(target)
    with pytest.raises(errors.MergeConflictError) as refusal:
        target.merge(source)
    (conflict,) = refusal.value.conflicts
    assert (conflict.kind, conflict.type_name) == ("schema_conflict", "node:Person.email")
    assert (target.head, contents(target)) == before
    with pytest.raises(errors.MergeConflictError):
        target.merge(source, prefer="theirs")


def test_unique_values_of_a_type_that_both_branches_added_are_compared(graph: Graph) -> None:
    main, review = sides(graph, is_reversed=False)
    badges = PEOPLE + "\nnode Badge {\n  name: String @key\n  code: I32? @unique\n}\n"
    for branch, name in ((main, "a"), (review, "b")):
        branch.apply_schema(badges)
        branch.load([entity("Badge", name=name, code=7)], mode="append")
    with pytest.raises(errors.MergeConflictError) as refusal:
        main.merge(review)
    assert {each.kind for each in refusal.value.conflicts} == {"unique_violation"}

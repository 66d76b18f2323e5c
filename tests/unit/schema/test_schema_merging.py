"""Which schema two branches have together."""

from __future__ import annotations

import pytest

from omnigraph.schema import evolve_schema, hash_shape, load_catalog
from omnigraph.schema.accepted_decoder import decode_accepted
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.identity_map import map_identities
from omnigraph.schema.merging import (
    DroppedElement,
    NewNumbers,
    UntouchedTypes,
    WrittenSchema,
    merge_written_schemas,
)
from unit.schema.merges import (
    conflicts,
    first,
    merged,
    merged_text,
    migrated,
    numbers,
)

CITY = "node City {\n  name: String @key\n  size: I32?\n}\n"
CITY_KEY = TypeKey(TypeKind.NODE, "City")


def city(*members: str, header: str = "node City") -> str:
    return "\n".join([f"{header} {{", "  name: String @key", *(f"  {m}" for m in members), "}\n"])


# ---- one side changes ----


@pytest.mark.parametrize(
    "changed",
    [
        city("size: I32?", "mayor: String?"),
        city(),
        city("size: I32? @index"),
        city("size: I32? merge counter"),
        city('size: I32? @description("people")'),
        city('extent: I32? @rename_from("size")'),
        city("size: I32?", header='node Town @rename_from("City")'),
        city("size: I32?", header='node City @description("a place")'),
        CITY + "\nnode Road {\n  name: String @key\n}\n",
        CITY + "\ninterface Named {\n  label: String?\n}\n",
        "// a comment\n" + CITY,
    ],
)
def test_what_one_branch_changes_is_taken_whichever_it_is(changed: str) -> None:
    assert merged_text(CITY, changed, CITY) == changed
    assert merged_text(CITY, CITY, changed) == changed


def test_commas_between_members_do_not_hinder_a_merge() -> None:
    base = "node City { name: String @key, size: I32?, mayor: String? }\n"
    ours = base.replace("mayor", "chief: String?, mayor")
    theirs = base.replace("size: I32?, ", "")
    assert merged_text(base, ours, theirs) == city("chief: String?", "mayor: String?")


def test_what_both_branches_change_in_the_same_way_is_taken_once() -> None:
    changed = city("size: I32?", "mayor: String?", header='node Town @rename_from("City")')
    found = merged(CITY, changed, changed)
    assert found.conflicts == ()
    assert found.schema.source == changed
    assert numbers(found.schema.accepted, "Town")["mayor"] == 1_000
    assert found.schema.accepted.aliases == {2_000: 1_000}


# ---- both sides change ----


def test_additions_of_both_branches_are_there_together() -> None:
    ours = city("size: I32?", "mayor: String?")
    theirs = city("size: I32?", "river: String?") + "\nnode Road {\n  name: String @key\n}\n"
    assert merged_text(CITY, ours, theirs) == (
        city("size: I32?", "mayor: String?", "river: String?")
        + "\nnode Road {\n  name: String @key\n}\n"
    )


def test_a_rename_here_and_an_addition_there_meet_in_one_type() -> None:
    ours = city("size: I32?", header='node Town @rename_from("City")')
    theirs = city("size: I32?", "river: String?") + "\nedge Road: City -> City\n"
    text = merged_text(CITY, ours, theirs)
    catalog = load_catalog(text)
    assert list(catalog.nodes["Town"].properties) == ["name", "size", "river"]
    assert (catalog.edges["Road"].source, catalog.edges["Road"].target) == ("Town", "Town")
    assert hash_shape(catalog) == hash_shape(load_catalog(merged_text(CITY, theirs, ours)))


def test_a_renamed_property_keeps_its_name_in_what_the_other_branch_says_about_it() -> None:
    ours = city('extent: I32? @rename_from("size")')
    theirs = city("size: I32?", "@index(size, name)", "@together(name, size)")
    merged = merged_text(CITY, ours, theirs)
    assert "@index(extent, name)" in merged
    assert "@together(name, extent)" in merged
    assert "@index(extent, name)" in merged_text(CITY, theirs, ours)


def test_a_renamed_text_is_still_the_source_of_its_vector() -> None:
    base = city("text: String?")
    ours = city('body: String? @rename_from("text")')
    theirs = city("text: String?", "vector: Vector(2)? @embed(text)")
    assert "vector: Vector(2)? @embed(body)" in merged_text(base, ours, theirs)


def test_two_enums_that_grow_have_the_values_of_both() -> None:
    base, ours = city("mood: enum(sad, glad)"), city("mood: enum(mad, sad, glad)")
    theirs = city("mood: enum(sad, glad, calm)")
    assert "mood: enum(mad, sad, glad, calm)" in merged_text(base, ours, theirs)


def test_a_rename_and_a_wider_enum_of_one_property_are_both_taken() -> None:
    base, ours = city("mood: enum(sad)?"), city('feel: enum(sad)? @rename_from("mood")')
    assert "feel: enum(sad, glad)?" in merged_text(base, ours, city("mood: enum(sad, glad)?"))


def test_documentation_and_indexes_of_different_elements_are_all_taken() -> None:
    ours = city("size: I32? @index", header='node City @instruction("be brief")')
    theirs = city('size: I32? @description("people")', header='node City @description("place")')
    text = merged_text(CITY, ours, theirs)
    assert 'node City @instruction("be brief") @description("place")' in text
    assert 'size: I32? @index @description("people")' in text


def test_the_same_property_with_documentation_on_one_branch_only_is_one_property() -> None:
    ours = city("size: I32?", "mayor: String?")
    theirs = city("size: I32?", 'mayor: String? @description("who rules")')
    assert 'mayor: String? @description("who rules")' in merged_text(CITY, ours, theirs)


def test_an_interface_that_grows_gives_its_property_to_the_nodes_of_both_branches() -> None:
    base = "interface Named {\n  label: String?\n}\n\nnode City implements Named {\n  x: I32?\n}\n"
    ours = base + "\nnode Road implements Named {\n  y: I32?\n}\n"
    theirs = base.replace("label: String?", "label: String?\n  alias: String?")
    found = merged(base, ours, theirs)
    assert found.conflicts == ()
    accepted = found.schema.accepted
    theirs_accepted = migrated(first(base), theirs, numbers_from=2_000).accepted
    assert numbers(accepted, "City")["alias"] == numbers(theirs_accepted, "City")["alias"]
    # Nobody has numbered what the new interface property is on a type that theirs does not know.
    assert numbers(accepted, "Road")["alias"] >= 9_000
    assert decode_accepted(accepted.to_json()) == accepted


def test_a_renamed_interface_property_is_renamed_in_constraints_of_nodes() -> None:
    base = "interface Named {\n  label: String?\n}\n\nnode City implements Named {\n  x: I32?\n}\n"
    ours = base.replace("x: I32?", "x: I32?\n  @index(label, x)")
    theirs = base.replace("label: String?", 'title: String? @rename_from("label")')
    text = merged_text(base, ours, theirs)
    assert "@index(title, x)" in text


# ---- drops ----


def test_what_a_branch_drops_is_gone_and_reported_with_who_kept_it() -> None:
    ours = city("size: I32?", "mayor: String?")
    found = merged(CITY, ours, city())
    assert found.schema.source == city("mayor: String?")
    assert found.dropped == (DroppedElement("theirs", CITY_KEY, "size"),)
    assert merged(CITY, city(), ours).dropped == (DroppedElement("ours", CITY_KEY, "size"),)


def test_a_dropped_type_is_gone_and_reported() -> None:
    base = CITY + "\nnode Road {\n  name: String @key\n}\n"
    ours = city("size: I32?", "mayor: String?") + "\nnode Road {\n  name: String @key\n}\n"
    found = merged(base, ours, CITY)
    assert found.schema.source == city("size: I32?", "mayor: String?")
    assert found.dropped == (DroppedElement("theirs", TypeKey(TypeKind.NODE, "Road")),)


def test_what_both_branches_drop_is_gone_without_a_word() -> None:
    found = merged(CITY, city(), city())
    assert (found.dropped, found.conflicts) == ((), ())


def test_a_property_dropped_and_added_again_is_a_new_one_and_the_old_one_is_reported() -> None:
    start = first(CITY)
    theirs = migrated(start, city(), numbers_from=2_000)
    theirs = migrated(theirs, CITY, numbers_from=3_000)
    ours = migrated(start, city("size: I32?", "mayor: String?"), numbers_from=1_000)
    found = merge_written_schemas(start, ours, theirs, numbers=NewNumbers(9_000))
    assert found.dropped == (DroppedElement("theirs", CITY_KEY, "size"),)
    assert numbers(found.schema.accepted, "City")["size"] == 3_000


def test_a_type_dropped_and_added_again_conflicts_unless_the_other_branch_left_it_alone() -> None:
    road = CITY + "\nnode Road {\n  name: String @key\n}\n"
    start = first(road)
    theirs = migrated(start, CITY, numbers_from=2_000)
    theirs = migrated(theirs, road, numbers_from=3_000)
    for ours in (start, migrated(start, "// ours\n" + road, numbers_from=1_000)):
        for sides in ((ours, theirs), (theirs, ours)):
            found = merge_written_schemas(start, *sides, numbers=NewNumbers(9_000))
            assert [each.element for each in found.conflicts] == ["node:Road"]
            assert "dropped the type and created it again" in found.conflicts[0].message
            quiet = frozenset({TypeKey(TypeKind.NODE, "Road")})
            alone = merge_written_schemas(start, *sides, untouched=UntouchedTypes(quiet, quiet))
            assert alone.conflicts == ()
            assert numbers(alone.schema.accepted, "Road")["*"] == 3_000


# ---- conflicts ----


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (
            city("size: I32?", "mayor: String?"),
            city("size: I32?", "mayor: I32?"),
            "node:City.mayor: its type is not the same on both branches",
        ),
        (
            city("size: I32?", "mayor: enum(a)?"),
            city("size: I32?", "mayor: enum(b)?"),
            "node:City.mayor: its type is not the same on both branches",
        ),
        (
            city("size: I32?", "mayor: String? @index"),
            city("size: I32?", "mayor: String?"),
            "node:City.mayor: its @index is not the same on both branches",
        ),
        (
            city('extent: I32? @rename_from("size")'),
            city('area: I32? @rename_from("size")'),
            "node:City.extent: this branch calls it 'extent', and the other one 'area'",
        ),
        (
            city("size: I32?", header='node Town @rename_from("City")'),
            city("size: I32?", header='node Place @rename_from("City")'),
            "node:Town: this branch calls it 'Town', and the other one 'Place'",
        ),
        (
            city("size: I32?", header='node City @description("a")'),
            city("size: I32?", header='node City @description("b")'),
            "node:City: its @description is not the same on both branches",
        ),
        (
            city('extent: I32? @rename_from("size")'),
            city("size: I32?", "extent: I32?"),
            "node:City.extent: the branches use the name for different properties",
        ),
        (
            city(),
            city("size: I32? @index"),
            "node:City.size: this branch dropped it, and the other one changed its declaration",
        ),
        (
            city("size: I32? @index"),
            city(),
            "node:City.size: the other branch dropped it, and this one changed its declaration",
        ),
        (
            CITY + "node Road {\n  a: I32?\n}\n",
            CITY + "node Road {\n  a: I32?\n  b: I32?\n}\n",
            "node:Road.b: both branches added the type, and only one of them with this property",
        ),
        (
            CITY + "node Road {\n  a: I32?\n}\n",
            city("size: I32?", header='node Road @rename_from("City")'),
            "node:Road: the branches use the name for different types",
        ),
        (
            CITY + "edge Road: City -> City\n",
            CITY + "edge Road: City -> City @card(0..1)\n",
            "edge:Road: its @card is not the same on both branches",
        ),
    ],
)
def test_what_both_branches_change_differently_is_a_conflict(
    ours: str, theirs: str, expected: str
) -> None:
    assert expected in conflicts(CITY, ours, theirs)


def test_all_conflicts_are_reported_with_all_three_texts() -> None:
    ours = city("size: I32?", "a: I32?", "b: I32?")
    found = merged(CITY, ours, city("size: I32?", "a: I64?", "b: Bool?"))
    assert [(each.element, each.base, each.ours, each.theirs) for each in found.conflicts] == [
        ("node:City.a", None, "a: I32?", "a: I64?"),
        ("node:City.b", None, "b: I32?", "b: Bool?"),
    ]


def test_an_edge_to_a_type_that_the_other_branch_dropped_is_a_conflict() -> None:
    base = CITY + "node Road {\n  a: I32?\n}\n"
    theirs = base + "edge Along: Road -> City\n"
    assert conflicts(base, CITY, theirs) == [
        "schema: edge 'Along': unknown source node type 'Road'"
    ]


def test_a_type_that_is_dropped_here_and_extended_there_is_a_conflict() -> None:
    base = CITY + "node Road {\n  a: I32?\n}\n"
    theirs = CITY + "node Road {\n  a: I32?\n  b: I32?\n}\n"
    found = merged(base, CITY, theirs)
    assert [each.element for each in found.conflicts] == ["node:Road"]
    assert found.conflicts[0].ours is None


# ---- numbers ----


def test_ours_keep_their_numbers_and_theirs_do_where_ours_never_counted_as_far() -> None:
    ours, theirs = city("size: I32?", "a: I32?"), city("size: I32?", "b: I32?")
    start = first(CITY)
    low = migrated(start, ours, numbers_from=1_000)
    high = migrated(start, theirs, numbers_from=2_000)
    upwards = merge_written_schemas(start, low, high).schema.accepted
    assert (numbers(upwards, "City")["a"], numbers(upwards, "City")["b"]) == (1_000, 2_000)
    assert (upwards.aliases, upwards.next_identity_id) == ({}, 2_001)
    downwards = merge_written_schemas(start, high, low, numbers=NewNumbers(5_000)).schema.accepted
    assert (numbers(downwards, "City")["b"], numbers(downwards, "City")["a"]) == (2_000, 5_000)
    assert (downwards.aliases, downwards.next_identity_id) == ({1_000: 5_000}, 5_001)


def test_the_key_of_a_renumbered_type_keeps_its_order() -> None:
    start = first(CITY)
    road = "node Road {\n  b: String\n  a: String\n  @key(b, a)\n}\n"
    theirs = migrated(start, CITY + road, numbers_from=1_000)
    ours = migrated(start, city("size: I32?", "c: I32?"), numbers_from=2_000)
    found = numbers(merge_written_schemas(start, ours, theirs).schema.accepted, "Road")
    assert found["a"] < found["b"]
    assert min(found.values()) > 2_000


def test_what_a_merge_renumbered_is_still_the_same_in_the_next_merge() -> None:
    start = first(CITY)
    theirs = migrated(start, city("size: I32?", "b: I32?"), numbers_from=1_000)
    ours = migrated(start, city("size: I32?", "a: I32?"), numbers_from=2_000)
    once = merge_written_schemas(start, ours, theirs).schema
    # The next merge has their old head as its base, where the property has its old number.
    later = migrated(theirs, city("size: I32?", 'c: I32? @rename_from("b")'), numbers_from=3_000)
    for sides in ((once, later), (later, once)):
        twice = merge_written_schemas(theirs, *sides, numbers=NewNumbers(9_000))
        assert twice.conflicts == ()
        assert sorted(load_catalog(twice.schema.source).nodes["City"].properties) == [
            "a",
            "c",
            "name",
            "size",
        ]


def test_what_was_joined_by_name_is_one_thing_in_every_later_merge() -> None:
    start = first(CITY)
    both = city("size: I32?", "b: I32?")
    one, two = (migrated(start, both, numbers_from=number) for number in (1_000, 2_000))
    ours = merge_written_schemas(start, one, two).schema
    theirs = merge_written_schemas(start, two, one).schema
    assert numbers(ours.accepted, "City")["b"] != numbers(theirs.accepted, "City")["b"]
    for base in (start, one, two):
        crossed = merge_written_schemas(base, ours, theirs)
        assert (crossed.conflicts, crossed.dropped) == ((), ())
        assert crossed.schema.source == both
        assert numbers(crossed.schema.accepted, "City") == numbers(ours.accepted, "City")
        assert map_identities(theirs.accepted, crossed.schema.accepted).properties_of(CITY_KEY) == {
            "name": "name",
            "size": "size",
            "b": "b",
        }


def test_merging_a_schema_again_changes_nothing() -> None:
    start = first(CITY)
    ours = migrated(start, city("size: I32?", "a: I32?"), numbers_from=1_000)
    theirs = migrated(start, city("size: I32?", "b: I32?"), numbers_from=2_000)
    once = merge_written_schemas(start, ours, theirs).schema
    assert merge_written_schemas(theirs, once, theirs).schema == once


def test_a_required_property_that_the_entities_of_a_branch_lack_is_a_conflict() -> None:
    # No migration does this: it would leave entities without a value.
    start, text = first(CITY), city("size: I32?", "mayor: String")
    evolved = evolve_schema(start.accepted, load_catalog(text), numbers_from=2_000).schema
    assert evolved is not None
    found = merge_written_schemas(start, start, WrittenSchema(text, evolved))
    assert [str(each) for each in found.conflicts] == [
        "node:City.mayor: it is required, and the entities of one branch have no values of it"
    ]


# ---- changes that are picked from a branch which ours does not come from ----


def test_what_a_stranger_of_the_same_name_changes_is_done_to_ours() -> None:
    start = first(CITY)
    ours = migrated(start, city("size: I32?", "mood: enum(sad)?"), numbers_from=1_000)
    base = migrated(start, city("size: I32?", "mood: enum(sad)?"), numbers_from=2_000)
    theirs = migrated(base, city("size: I32?", "mood: enum(sad, glad)?"), numbers_from=3_000)
    # Of a base that ours comes from, ours would have dropped the property, and added another one.
    assert merge_written_schemas(base, ours, theirs).conflicts
    picked = merge_written_schemas(base, ours, theirs, is_descended=False)
    assert (picked.conflicts, picked.dropped) == ((), ())
    assert "mood: enum(sad, glad)?" in picked.schema.source
    assert numbers(picked.schema.accepted, "City")["mood"] == 1_000
    assert picked.schema.accepted.aliases == {2_000: 1_000}


def test_a_stranger_that_is_something_else_under_the_same_name_is_a_conflict() -> None:
    start = first(CITY)
    ours = migrated(start, city("size: I32?", "mood: String?"), numbers_from=1_000)
    base = migrated(start, city("size: I32?", "mood: I32?"), numbers_from=2_000)
    theirs = migrated(base, city("size: I32?", "mood: I32? @index"), numbers_from=3_000)
    found = merge_written_schemas(base, ours, theirs, is_descended=False)
    assert [each.element for each in found.conflicts] == ["node:City.mood"]


def test_a_type_of_a_stranger_may_have_more_or_less_properties_than_ours() -> None:
    start = first(CITY)
    ours = migrated(start, CITY + "node Road {\n  a: I32?\n  o: I32?\n}\n", numbers_from=1_000)
    base = migrated(start, CITY + "node Road {\n  a: I32?\n  t: I32?\n}\n", numbers_from=2_000)
    theirs = migrated(
        base, base.source.replace("t: I32?", "t: I32?\n  n: I32?"), numbers_from=3_000
    )
    picked = merge_written_schemas(base, ours, theirs, is_descended=False)
    assert picked.conflicts == ()
    assert list(load_catalog(picked.schema.source).nodes["Road"].properties) == ["a", "o", "n"]
    assert [str(each) for each in picked.dropped] == ["node:Road.t"]


def test_different_merge_rules_of_two_branches_conflict() -> None:
    ours, theirs = (city(f"size: I32? merge {rule}") for rule in ("max", "min"))
    [found] = conflicts(CITY, ours, theirs)
    assert str(found) == "node:City.size: its merge rule is not the same on both branches"
    other = city("size: I32? merge max @index")
    assert merged_text(CITY, ours, city("size: I32? @index")) == other

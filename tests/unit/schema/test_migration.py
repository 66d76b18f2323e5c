from __future__ import annotations

import pytest

from omnigraph.errors import CompileError
from omnigraph.schema import load_catalog
from omnigraph.schema.migration import (
    AddIndex,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    ReembedProperty,
    RenameProperty,
    RenameType,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    plan_migration,
)
from omnigraph.schema.property_types import Scalar, make_scalar_type
from omnigraph.schema.schema_identity import (
    TypeKey,
    TypeKind,
)
from unit.schema.migrations import CITY, NAMED, ROAD, accept, city, plan, refusals, steps


def test_an_unchanged_schema_needs_nothing() -> None:
    text = city("code: String @key  state: enum(b, a)")
    assert steps(text, city("state: enum(a, b)  /* same */  code: String @key")) == []


def test_a_nullable_property_is_added() -> None:
    assert steps(city(""), city("size: I32?")) == [
        AddProperty(CITY, "size", make_scalar_type(Scalar.I32, is_nullable=True))
    ]


def test_a_required_property_needs_a_backfill() -> None:
    assert refusals(city(""), city("size: I32")) == [("node:City.size", "OG-MF-103")]
    assert refusals(
        "node City {} edge Road: City -> City", "node City {} edge Road: City -> City { w: I32 }"
    ) == [("edge:Road.w", "OG-MF-103")]


def test_a_required_property_of_an_interface_is_refused_there_and_on_its_nodes() -> None:
    old = "interface Named {}  node City implements Named {}"
    new = "interface Named { name: String }  node City implements Named {}"
    assert refusals(old, new) == [
        ("interface:Named.name", "OG-MF-103"),
        ("node:City.name", "OG-MF-103"),
    ]


def test_a_nullable_property_of_an_interface_is_added_there_and_on_its_nodes() -> None:
    old = "interface Named {}  node City implements Named {}  node Town implements Named {}"
    new = old.replace("Named {}", "Named { name: String? }", 1)
    text = make_scalar_type(Scalar.STRING, is_nullable=True)
    assert steps(old, new) == [
        AddProperty(NAMED, "name", text),
        AddProperty(CITY, "name", text),
        AddProperty(TypeKey(TypeKind.NODE, "Town"), "name", text),
    ]


def test_an_enum_may_get_more_values() -> None:
    assert steps(city("s: enum(b, d)?"), city("s: enum(e, d, b, a)?")) == [
        ExtendEnum(CITY, "s", ("a", "e"))
    ]


def test_a_renamed_enum_is_extended_under_its_new_name() -> None:
    assert steps(city("s: enum(a)"), city('t: enum(a, b) @rename_from("s")')) == [
        RenameProperty(CITY, "s", "t"),
        ExtendEnum(CITY, "t", ("b",)),
    ]


def test_a_type_is_renamed_and_its_edges_are_unaffected() -> None:
    old = "node Town { a: I32? }  edge Road: Town -> Town"
    new = 'node City @rename_from("Town") { b: I32? @rename_from("a") }  edge Road: City -> City'
    assert steps(old, new) == [RenameType(CITY, "Town"), RenameProperty(CITY, "a", "b")]


def test_an_edge_type_is_renamed() -> None:
    old = "node City {}  edge Way: City -> City"
    new = 'node City {}  edge Road: City -> City @rename_from("Way")'
    assert steps(old, new) == [RenameType(ROAD, "Way")]


def test_a_rename_hint_that_resolves_to_nothing_is_unsupported() -> None:
    found = plan("node City {}", 'node Town @rename_from("Nope") {}')
    assert [
        (step.entity, step.code) for step in found.steps if isinstance(step, UnsupportedChange)
    ] == [("node:Town", "S030")]
    assert not found.supported
    assert found.schema is None
    assert (found.violations, found.is_checked) == ((), False)


def test_an_ignored_rename_hint_is_a_finding_and_no_step() -> None:
    found = plan("node City {}", 'node City @rename_from("Town") {}')
    assert found.steps == ()
    assert [(hint.code, hint.entity) for hint in found.findings] == [("S036", "node:City")]


def test_a_property_is_dropped_softly() -> None:
    assert steps(city("a: I32  b: I32?"), city("a: I32")) == [DropProperty(CITY, "b")]


def test_the_data_loss_option_warns_and_drops_stay_soft() -> None:
    found = plan_migration(accept(city("a: I32?")), load_catalog(city("")), allow_data_loss=True)
    assert found.steps == (DropProperty(CITY, "a", "soft"),)
    assert found.to_json()["steps"][0]["mode"] == "soft"
    assert ["allow_data_loss" in warning for warning in found.warnings] == [True]
    assert plan(city("a: I32?"), city("")).warnings == ()


def test_a_node_is_dropped_with_its_edges() -> None:
    old = "node City {}  node Town {}  edge Road: City -> Town"
    assert steps(old, "node Town {}") == [DropType(CITY), DropType(ROAD)]


def test_a_node_cannot_be_dropped_without_its_edges() -> None:
    with pytest.raises(CompileError, match="City"):
        load_catalog("edge Road: City -> City")


def test_an_index_is_added_once_in_either_spelling() -> None:
    old = city("a: I32?  b: I32?")
    assert steps(old, city("a: I32? @index  b: I32?")) == [AddIndex(CITY, ("a",))]
    assert steps(old, city("a: I32?  b: I32?  @index(a)")) == [AddIndex(CITY, ("a",))]
    assert steps(old, city("a: I32? @index  b: I32?  @index(a)")) == [AddIndex(CITY, ("a",))]
    assert steps(old, city("a: I32?  b: I32?  @index(b, a)")) == [AddIndex(CITY, ("a", "b"))]


def test_a_second_spelling_of_an_index_is_a_step_of_its_own() -> None:
    old = city("a: I32? @index")
    assert steps(old, city("a: I32? @index  @index(a)")) == [AddIndex(CITY, ("a",))]


def test_a_nullable_property_is_added_together_with_its_index() -> None:
    assert steps(city(""), city("a: I32? @index")) == [
        AddProperty(CITY, "a", make_scalar_type(Scalar.I32, is_nullable=True)),
        AddIndex(CITY, ("a",)),
    ]


def test_constraints_follow_the_renames_of_their_properties() -> None:
    old = city('a: I32  b: String @index  @key(a, b)  @range(a, 0..1)  @check(b, "x")')
    new = city(
        'z: I32 @rename_from("a")  c: String @index @rename_from("b")'
        '  @key(c, z)  @range(z, 0..1)  @check(c, "x")'
    )
    assert steps(old, new) == [RenameProperty(CITY, "b", "c"), RenameProperty(CITY, "a", "z")]


def test_an_edge_key_belongs_to_the_creation_of_its_type() -> None:
    keyless = "node City {}  edge Road: City -> City"
    keyed = "node City {}  edge Road: City -> City { @key(@src, @dst) }"
    assert refusals(keyless, keyed) == [("edge:Road", None)]
    assert steps("node City {}", keyed) == [AddType(ROAD)]


def test_an_interface_property_is_dropped_there_and_on_its_nodes() -> None:
    old = "interface Named { name: String? }  node City implements Named {}"
    new = "interface Named {}  node City implements Named {}"
    assert steps(old, new) == [DropProperty(NAMED, "name"), DropProperty(CITY, "name")]


def test_an_index_on_an_interface_property_is_added_there_and_on_its_nodes() -> None:
    old = "interface Named { name: String? }  node City implements Named {}"
    assert steps(old, old.replace("String?", "String? @index")) == [
        AddIndex(NAMED, ("name",)),
        AddIndex(CITY, ("name",)),
    ]


def test_documentation_may_change() -> None:
    old = 'node City @description("a") @instruction("i") { size: I32? @description("x") }'
    new = 'node City @description("b") @instruction("i") { size: I32? }'
    found = plan(old, new)
    assert found.supported
    assert found.to_json()["steps"] == [
        {
            "kind": "update_type_metadata",
            "type_kind": "node",
            "name": "City",
            "annotations": [
                {"name": "description", "value": "b"},
                {"name": "instruction", "value": "i"},
            ],
        },
        {
            "kind": "update_property_metadata",
            "type_kind": "node",
            "type_name": "City",
            "property_name": "size",
            "annotations": [],
        },
    ]
    assert [type(step) for step in found.steps] == [UpdateTypeMetadata, UpdatePropertyMetadata]


@pytest.mark.parametrize(
    ("old", "new", "entity"),
    [
        ("node City {}", "node City @pii {}", "node:City"),
        ("node City @pii {}", "node City {}", "node:City"),
        ("node City @unit(1) {}", "node City @unit(2) {}", "node:City"),
        ("node City { a: I32? }", "node City { a: I32? @pii }", "node:City.a"),
        ("node City { a: I32? @u(1, x=2) }", "node City { a: I32? @u(1, x=3) }", "node:City.a"),
    ],
)
def test_other_annotations_cannot_change(old: str, new: str, entity: str) -> None:
    assert refusals(old, new) == [(entity, None)]


EMBEDDED = 'blurb: String?  title: String?  vec: Vector(2)? @embed(blurb, model="m")'


@pytest.mark.parametrize("embed", ["", "@embed(blurb)"])
def test_vectors_begin_and_end_with_a_model_as_new_properties(embed: str) -> None:
    new = EMBEDDED.replace('@embed(blurb, model="m")', embed)
    assert refusals(city(EMBEDDED), city(new)) == [("node:City.vec", None)]
    assert refusals(city(new), city(EMBEDDED)) == [("node:City.vec", None)]


@pytest.mark.parametrize("embed", ['@embed(title, model="m")', '@embed(blurb, model="n")'])
def test_another_source_or_model_makes_the_vectors_anew(embed: str) -> None:
    new = EMBEDDED.replace('@embed(blurb, model="m")', embed)
    model = "n" if '"n"' in embed else "m"
    assert steps(city(EMBEDDED), city(new)) == [ReembedProperty(CITY, "vec", "m", model)]
    required = new.replace("Vector(2)?", "Vector(2)")
    assert refusals(city(EMBEDDED), city(required)) == [("node:City.vec", "OG-MF-103")]


def test_the_source_of_stored_vectors_may_be_renamed() -> None:
    new = EMBEDDED.replace("blurb: String?", 'text: String? @rename_from("blurb")')
    assert steps(city(EMBEDDED), city(new.replace("@embed(blurb", "@embed(text"))) == [
        RenameProperty(CITY, "blurb", "text")
    ]

from __future__ import annotations

import hashlib
import json

from hypothesis import given

from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import (
    AnnotationValue,
    Catalog,
    Check,
    ConstraintKind,
    Constraints,
    InterfaceType,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.property_types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
    make_scalar_type,
)
from omnigraph.schema.schema_shape import (
    canonicalize_catalog,
    encode_annotation,
    encode_check,
    encode_member_constraint,
    encode_range,
    encode_shape,
    encode_type,
    hash_document,
    hash_shape,
)
from unit.schema.catalogs import backwards, catalogs, steady

SCHEMA = """
interface Named { name: String @index }
node City @description("A town") implements Named {
  code: String @key
  size: I32?
  state: enum(open, done)
  @range(size, 0..)
  @unique(size, name)
}
edge Road: City -> City @card(0..2) { length: F64?  @unique(@src, @dst) }
"""
SAME_SCHEMA = """
// Roads first.
edge Road: City -> City @card(0..2) { @unique(@dst, @src) length: F64? @rename_from("len") }
node City @rename_from("Town") @description("A town") implements Named, Named {
  @unique(name, size)   /* either order */
  state: enum(done, open)
  size: I32?
  code: String @key
  @range(size, 0..)
}
interface Named { name: String @index }
"""


def test_order_comments_and_rename_hints_do_not_change_the_shape() -> None:
    assert encode_shape(load_catalog(SCHEMA)) == encode_shape(load_catalog(SAME_SCHEMA))
    assert hash_shape(load_catalog(SCHEMA)) == hash_shape(load_catalog(SAME_SCHEMA))


def test_a_different_meaning_has_a_different_hash() -> None:
    texts = [
        "node A { x: I32? }",
        "node A { x: I64? }",
        "node A { x: I32 }",
        "node A { x: I32? @index }",
        "node A { x: I32? @index(x) }",
        "node A { x: I32? @pii }",
        'node A @description("a") { x: I32? }',
        "node A { y: I32? }",
        "node B { x: I32? }",
        "interface A { x: I32? }",
    ]
    assert len({hash_shape(load_catalog(text)) for text in texts}) == len(texts)


def test_the_hash_is_over_the_compact_json_text() -> None:
    document = encode_shape(load_catalog(SCHEMA))
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    assert hash_shape(load_catalog(SCHEMA)) == "sha256:" + hashlib.sha256(text).hexdigest()


def test_a_text_that_is_no_unicode_still_has_a_hash() -> None:
    hashes = {hash_document({"value": text}) for text in ("\ud800", "\ud801", "?")}
    assert len(hashes) == 3


def test_the_shape_of_a_schema_is_sorted_by_name() -> None:
    document = encode_shape(load_catalog(SCHEMA))
    [city] = document["nodes"]
    assert [declared["name"] for declared in city["properties"]] == [
        "code",
        "name",
        "size",
        "state",
    ]
    assert city["implements"] == ["Named"]
    assert city["constraints"] == [
        {"Range": {"property": "size", "min": {"Integer": 0}, "max": None}},
        {"Unique": ["name", "size"]},
    ]
    [road] = document["edges"]
    assert (road["source"], road["target"]) == ("City", "City")
    assert road["cardinality"] == {"min": 0, "max": 2}
    assert road["constraints"] == [{"Unique": ["@src", "@dst"]}]


def test_property_types_have_their_published_json_forms() -> None:
    assert encode_type(make_scalar_type(Scalar.I32, is_nullable=True)) == {
        "scalar": "I32",
        "nullable": True,
        "list": False,
        "enum_values": None,
    }
    assert encode_type(PropertyType(VectorType(8)))["scalar"] == {"Vector": 8}
    assert encode_type(PropertyType(ListType(Scalar.DATE)))["list"] is True
    enum = encode_type(PropertyType(EnumType(("a", "b"))))
    assert (enum["scalar"], enum["enum_values"]) == ("String", ["a", "b"])


def test_annotations_have_kwargs_only_when_there_are_options() -> None:
    assert encode_annotation(AnnotationValue("description", "x")) == {
        "name": "description",
        "value": "x",
    }
    assert encode_annotation(AnnotationValue("f", "7", (("x", "y"),)))["kwargs"] == {"x": "y"}


def test_constraints_have_their_published_json_forms() -> None:
    assert encode_member_constraint(ConstraintKind.INDEX, ["age"]) == {"Index": ["age"]}
    assert encode_member_constraint(ConstraintKind.UNIQUE, ["a", "b"]) == {"Unique": ["a", "b"]}
    assert encode_member_constraint(ConstraintKind.KEY, ["k"]) == {"Key": ["k"]}
    assert encode_range(Range("p", 0, None)) == {
        "Range": {"property": "p", "min": {"Integer": 0}, "max": None}
    }
    assert encode_range(Range("p", None, 0.5))["Range"]["max"] == {"Float": 0.5}
    assert encode_check(Check("p", "^x")) == {"Check": {"property": "p", "pattern": "^x"}}


def test_an_infinite_bound_is_written_as_json_text() -> None:
    bounds = encode_range(Range("p", None, float("inf")))
    assert bounds["Range"]["max"] == {"Float": "inf"}


def test_annotations_are_sorted_by_their_json_text_and_unique() -> None:
    second, first = AnnotationValue("b", "1"), AnnotationValue("a", "2", (("l", "1"), ("k", "2")))
    node = NodeType("A", {}, annotations=(second, first, second))
    assert canonicalize_catalog(Catalog(nodes={"A": node})).nodes["A"].annotations == (
        AnnotationValue("a", "2", (("k", "2"), ("l", "1"))),
        second,
    )


def test_whole_and_fractional_spellings_of_a_bound_are_both_kept() -> None:
    number = {"p": Property("p", make_scalar_type(Scalar.F64))}
    bounds = (Range("p", 0.0, None), Range("p", 0, None))
    node = NodeType("A", number, Constraints(ranges=bounds))
    kept = canonicalize_catalog(Catalog(nodes={"A": node})).nodes["A"].constraints.ranges
    assert [repr(found.minimum) for found in kept] == ["0.0", "0"]


def test_a_rename_hint_of_an_interface_property_is_no_part_of_the_shape() -> None:
    hinted = Property("name", make_scalar_type(Scalar.STRING), rename_from="label")
    named = canonicalize_catalog(Catalog(interfaces={"N": InterfaceType("N", {"name": hinted})}))
    assert named.interfaces["N"].properties["name"].rename_from is None


@steady
@given(catalogs())
def test_the_shape_does_not_depend_on_the_order_of_declarations(catalog: Catalog) -> None:
    assert hash_shape(backwards(catalog)) == hash_shape(catalog)
    assert canonicalize_catalog(backwards(catalog)) == canonicalize_catalog(catalog)


@steady
@given(catalogs())
def test_the_canonical_catalog_of_a_canonical_catalog_is_itself(catalog: Catalog) -> None:
    once = canonicalize_catalog(catalog)
    assert canonicalize_catalog(once) == once

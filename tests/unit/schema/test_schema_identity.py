from __future__ import annotations

import pytest
from hypothesis import given

from omnigraph.lang.diagnostics import Finding, Severity
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.schema_identity import (
    AcceptedSchema,
    TypeIdentity,
    TypeKey,
    TypeKind,
    accept_schema,
    evolve_schema,
    hash_accepted,
    list_key_members,
)
from omnigraph.schema.schema_shape import hash_shape
from unit.schema.catalogs import backwards, catalogs, steady

DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def accept(text: str) -> AcceptedSchema:
    return accept_schema(load_catalog(text), domain=DOMAIN).schema


def test_a_schema_without_a_domain_gets_a_new_one() -> None:
    accepted = accept_schema(load_catalog("node A {}"), new_id=lambda: "fresh").schema
    assert accepted.domain == "fresh"


def evolve(accepted: AcceptedSchema, text: str) -> AcceptedSchema:
    evolution = evolve_schema(accepted, load_catalog(text))
    assert evolution.schema is not None, [str(found) for found in evolution.findings]
    return evolution.schema


def findings(old: str, new: str) -> list[tuple[str, str]]:
    evolution = evolve_schema(accept(old), load_catalog(new))
    has_errors = any(found.severity is Severity.ERROR for found in evolution.findings)
    assert (evolution.schema is None) == has_errors
    return [(found.code, found.entity) for found in evolution.findings]


def node(name: str) -> TypeKey:
    return TypeKey(TypeKind.NODE, name)


def edge(name: str) -> TypeKey:
    return TypeKey(TypeKind.EDGE, name)


def test_a_fresh_schema_numbers_types_then_properties_then_incarnations() -> None:
    accepted = accept("node B { y: I32  x: I32 }  node A { k: String }")
    assert accepted.identities == {
        node("A"): TypeIdentity(1, 6, {"k": 3}),
        node("B"): TypeIdentity(2, 7, {"x": 4, "y": 5}),
    }
    assert accepted.next_identity_id == 8


def test_interfaces_are_numbered_before_nodes_and_nodes_before_edges() -> None:
    accepted = accept(
        "edge A: Z -> Z  node Z implements Named { k: String }  interface Named { name: String }"
    )
    assert accepted.identities == {
        TypeKey(TypeKind.INTERFACE, "Named"): TypeIdentity(1, None, {"name": 4}),
        node("Z"): TypeIdentity(2, 7, {"k": 5, "name": 6}),
        edge("A"): TypeIdentity(3, 8, {}),
    }


def test_every_new_graph_has_its_own_domain() -> None:
    catalog = load_catalog("node A { k: String }")
    first, second = accept_schema(catalog).schema, accept_schema(catalog).schema
    assert len(first.domain) == 26
    assert first.domain != second.domain
    assert hash_shape(first.catalog) == hash_shape(second.catalog)
    assert hash_accepted(first) != hash_accepted(second)


def test_the_accepted_catalog_is_sorted_by_name() -> None:
    accepted = accept("node B { y: I32  x: I32 }  node A { k: String }")
    assert list(accepted.catalog.nodes) == ["A", "B"]
    assert list(accepted.catalog.nodes["B"].properties) == ["x", "y"]


def test_hints_on_a_new_graph_are_inert() -> None:
    text = 'node A @rename_from("Z") { k: String @rename_from("z") }'
    acceptance = accept_schema(load_catalog(text), domain=DOMAIN)
    assert [(found.code, found.severity, found.entity) for found in acceptance.findings] == [
        ("S035", Severity.INFO, "node:A"),
        ("S035", Severity.INFO, "node:A.k"),
    ]
    assert "inert_initialization_rename_hint" in acceptance.findings[0].message
    assert acceptance.schema == accept("node A { k: String }")


def test_reordering_keeps_every_identity() -> None:
    accepted = accept("node B { y: I32  x: I32 }  node A { k: String }")
    again = evolve(accepted, "node A { k: String }  node B { x: I32  y: I32 }  // same")
    assert again == accepted


def test_a_rename_keeps_type_property_and_incarnation() -> None:
    accepted = accept("node A { k: String  l: I32? }  edge E: A -> A")
    renamed = evolve(
        accepted,
        'node B @rename_from("A") { l: I32?  m: String @rename_from("k") }  edge E: B -> B',
    )
    old, new = accepted.identities[node("A")], renamed.identities[node("B")]
    assert (new.id, new.incarnation_id) == (old.id, old.incarnation_id)
    assert new.property_ids == {"l": old.property_ids["l"], "m": old.property_ids["k"]}
    assert renamed.next_identity_id == accepted.next_identity_id


def test_a_property_that_is_dropped_and_added_again_is_new() -> None:
    accepted = accept("node A { k: String  l: I32? }")
    dropped = evolve(accepted, "node A { k: String }")
    again = evolve(dropped, "node A { k: String  l: I32? }")
    before, after = accepted.identities[node("A")], again.identities[node("A")]
    assert (after.id, after.incarnation_id) == (before.id, before.incarnation_id)
    assert after.property_ids == {"k": before.property_ids["k"], "l": accepted.next_identity_id}


def test_a_type_that_is_dropped_and_added_again_is_new() -> None:
    accepted = accept("node A { k: String }")
    again = evolve(evolve(accepted, ""), "node A { k: String }")
    assert accepted.identities[node("A")] == TypeIdentity(1, 3, {"k": 2})
    assert again.identities[node("A")] == TypeIdentity(4, 6, {"k": 5})


def test_new_properties_are_numbered_by_the_number_of_their_owner() -> None:
    evolved = evolve(accept("node Z {}"), "node A { k: I32 }  node Z { l: I32? }")
    assert evolved.identities == {
        node("A"): TypeIdentity(3, 6, {"k": 5}),
        node("Z"): TypeIdentity(1, 2, {"l": 4}),
    }


def test_a_node_turned_into_an_edge_is_new() -> None:
    accepted = accept("node N {}  node A { k: String? }")
    turned = evolve(accepted, "node N {}  edge A: N -> N { k: String? }")
    assert turned.identities[edge("A")].id >= accepted.next_identity_id
    assert turned.identities[edge("A")].property_ids["k"] >= accepted.next_identity_id


def test_a_hint_beside_an_accepted_name_is_ignored_with_a_finding() -> None:
    found = findings(
        "node A { k: String }", 'node A @rename_from("B") { k: String @rename_from("l") }'
    )
    assert found == [("S036", "node:A"), ("S036", "node:A.k")]


def test_a_hint_that_would_drop_what_it_names_is_an_error() -> None:
    old = "node A { k: String?  l: String? }  node B {}"
    new = 'node A @rename_from("B") { k: String? @rename_from("l") }'
    assert findings(old, new) == [("S037", "node:A"), ("S037", "node:A.k")]
    kept = 'node A @rename_from("B") { k: String? @rename_from("l")  l: String? }  node B {}'
    assert findings(old, kept) == [("S036", "node:A"), ("S036", "node:A.k")]


def test_a_hint_to_nothing_is_an_error_that_suggests_a_name() -> None:
    evolution = evolve_schema(
        accept("node Author {}"), load_catalog('node B @rename_from("Auhtor") {}')
    )
    [found] = evolution.findings
    assert (found.code, found.entity) == ("S030", "node:B")
    assert "did you mean 'Author'?" in found.message


def test_a_property_hint_to_nothing_is_an_error() -> None:
    assert findings("node A { k: I32? }", 'node A { l: I32? @rename_from("x") }') == [
        ("S030", "node:A.l")
    ]


def test_a_rename_across_kinds_is_an_error() -> None:
    old = "node A {}  edge E: A -> A"
    assert findings(old, 'node A {}  node X @rename_from("E") {}') == [("S031", "node:X")]
    assert findings(old, 'node A {}  edge X: A -> A @rename_from("A")') == [("S031", "edge:X")]


def test_two_types_cannot_continue_one() -> None:
    assert findings("node A {}", 'node B @rename_from("A") {} node C @rename_from("A") {}') == [
        ("S032", "node:B"),
        ("S032", "node:C"),
    ]
    assert findings("node A {}", 'node A {} node C @rename_from("A") {}') == [("S032", "node:C")]


def test_two_properties_cannot_continue_one() -> None:
    new = 'node A { l: I32? @rename_from("k")  m: I32? @rename_from("k") }'
    assert findings("node A { k: I32? }", new) == [("S032", "node:A.l"), ("S032", "node:A.m")]


def test_a_property_cannot_move_to_another_type() -> None:
    old = "node A { k: I32? }  node B {}"
    new = 'node A {}  node B { l: I32? @rename_from("k") }'
    assert findings(old, new) == [("S033", "node:B.l")]


def test_a_property_of_a_new_type_cannot_import_an_identity() -> None:
    old = "node A { k: I32? }"
    new = 'node A { k: I32? }  node B { l: I32? @rename_from("k") }'
    assert findings(old, new) == [("S034", "node:B.l")]


def test_every_wrong_hint_is_reported() -> None:
    new = 'node B @rename_from("X") {}  node A { l: I32? @rename_from("y") }'
    assert findings("node A { k: I32? }", new) == [("S030", "node:B"), ("S030", "node:A.l")]


def test_renaming_an_interface_property_renames_it_on_every_node() -> None:
    accepted = accept(
        "interface N { name: String }  node A implements N {}  node B implements N {}"
    )
    new = (
        'interface N { label: String @rename_from("name") }  node A implements N {}'
        " node B implements N {}  node C implements N {}"
    )
    renamed = evolve(accepted, new)
    for key, identity in accepted.identities.items():
        assert renamed.identities[key].property_ids == {"label": identity.property_ids["name"]}
    assert renamed.identities[node("C")].property_ids["label"] >= accepted.next_identity_id
    again = evolve_schema(renamed, load_catalog(new))
    assert [(found.code, found.entity) for found in again.findings] == [
        ("S036", "interface:N.label")
    ]


def test_key_order_follows_numbers_and_survives_renames() -> None:
    accepted = accept("node A { tenant: String  slot: I32  @key(tenant, slot) }")
    assert list_key_members(accepted, "A") == ("slot", "tenant")
    renamed = evolve(
        accepted,
        'node A { alpha: String @rename_from("tenant")  zulu: I32 @rename_from("slot")'
        "  @key(alpha, zulu) }",
    )
    assert list_key_members(renamed, "A") == ("zulu", "alpha")


def test_the_key_of_an_edge_starts_with_its_ends() -> None:
    accepted = accept(
        "node A {}  edge E: A -> A { since: Date  also: I32  @key(since, @dst, also, @src) }"
    )
    assert list_key_members(accepted, "E") == ("@src", "@dst", "also", "since")


def test_a_keyless_type_has_no_key_order() -> None:
    accepted = accept("node A { k: String @key }  edge A: A -> A")
    assert list_key_members(accepted, "A") == ("k",)
    assert list_key_members(accepted, "A", kind=TypeKind.EDGE) == ()


def test_the_stored_form_names_its_version_and_features() -> None:
    plain = accept("node A {}  edge E: A -> A")
    keyed = accept("node A {}  edge E: A -> A { @key(@src, @dst) }")
    assert plain.to_json()["ir_version"] == 5
    assert plain.to_json()["features"] == ["system-columns"]
    assert keyed.to_json()["features"] == ["edge-keys", "system-columns"]


def test_the_stored_form_refers_by_number_and_name() -> None:
    document = accept(
        "interface N { name: String }"
        "  node A implements N { text: String  v: Vector(2) @embed(text)  @unique(text, name) }"
        "  edge E: A -> A { since: Date  @unique(@src, since) }"
    ).to_json()
    [declared] = document["nodes"]
    assert declared["implements"] == [{"id": 1, "name": "N"}]
    assert [found["id"] for found in declared["properties"]] == [5, 6, 7]
    assert declared["properties"][2]["embed"]["source"] == {"id": 6, "name": "text"}
    assert declared["constraints"] == [
        {"Unique": [{"id": 5, "name": "name"}, {"id": 6, "name": "text"}]}
    ]
    [road] = document["edges"]
    assert road["source"] == road["target"] == {"id": 2, "name": "A"}
    assert road["constraints"] == [{"Unique": ["@src", {"id": 8, "name": "since"}]}]


def test_a_finding_shows_its_severity_code_and_entity() -> None:
    found = Finding("S030", Severity.ERROR, "no such type", "node:A")
    assert str(found) == "error[S030]: node:A: no such type"


def numbers(accepted: AcceptedSchema) -> list[int]:
    return [
        number
        for identity in accepted.identities.values()
        for number in (identity.id, identity.incarnation_id, *identity.property_ids.values())
        if number is not None
    ]


@steady
@given(catalogs())
def test_a_first_schema_uses_every_number_once_whatever_its_order(catalog: Catalog) -> None:
    accepted = accept_schema(catalog, domain=DOMAIN).schema
    assert sorted(numbers(accepted)) == list(range(1, accepted.next_identity_id))
    assert accept_schema(backwards(catalog), domain=DOMAIN).schema == accepted


@pytest.mark.slow
@steady
@given(catalogs(), catalogs(), catalogs())
def test_evolution_keeps_numbers_of_names_that_stay_and_never_reuses_one(
    first: Catalog, second: Catalog, third: Catalog
) -> None:
    accepted = accept_schema(first, domain=DOMAIN).schema
    for desired in (second, third):
        evolved = evolve_schema(accepted, desired).schema
        assert evolved is not None
        assert len(set(numbers(evolved))) == len(numbers(evolved))
        assert all(number < evolved.next_identity_id for number in numbers(evolved))
        kept = {number for number in numbers(evolved) if number < accepted.next_identity_id}
        assert kept == _numbers_of_common_names(accepted, evolved)
        accepted = evolved


def _numbers_of_common_names(old: AcceptedSchema, new: AcceptedSchema) -> set[int]:
    common: set[int] = set()
    for key in old.identities.keys() & new.identities.keys():
        before, after = old.identities[key], new.identities[key]
        assert (before.id, before.incarnation_id) == (after.id, after.incarnation_id)
        common |= {number for number in (before.id, before.incarnation_id) if number is not None}
        names = before.property_ids.keys() & after.property_ids.keys()
        assert all(before.property_ids[name] == after.property_ids[name] for name in names)
        common |= {before.property_ids[name] for name in names}
    return common

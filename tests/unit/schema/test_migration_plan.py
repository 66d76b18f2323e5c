from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from omnigraph.lang.diagnostic_codes import CODES
from omnigraph.lang.diagnostics import Severity
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.migration import (
    LINT_CODES,
    Family,
    Tier,
    UnsupportedChange,
    plan_migration,
)
from omnigraph.schema.schema_identity import (
    accept_schema,
    evolve_schema,
)
from omnigraph.schema.schema_shape import JsonObject, hash_shape
from unit.schema.catalogs import backwards, catalogs, steady
from unit.schema.migrations import DOMAIN, accept, city, plan, steps


def test_steps_are_ordered_by_kind_then_name_with_removed_types_last() -> None:
    old = "interface A {}  node Bee {}  node Ant {}  node Cat {}  edge Eats: Cat -> Cat"
    new = (
        "interface B {}  interface A { a: I32? }  node Cow {}  node Bee { b: I32? }"
        "  edge Fly: Bee -> Bee  edge Dig: Bee -> Bee"
    )
    assert [str(step) for step in steps(old, new)] == [
        "add interface:A.a: I32?",
        "add interface:B",
        "add node:Bee.b: I32?",
        "add node:Cow",
        "drop node:Ant (soft)",
        "drop node:Cat (soft)",
        "add edge:Dig",
        "add edge:Fly",
        "drop edge:Eats (soft)",
    ]


def test_within_a_type_the_steps_have_a_fixed_order() -> None:
    old = "node Old { a: I32?  b: I32?  c: I32?  z: I32? }"
    new = (
        'node City @rename_from("Old") @description("d") @pii'
        ' { y: I32? @rename_from("z")  a: [I32]?  b: I32? @index  n: I32? }'
    )
    annotation = "adding, removing or changing the annotation @pii is not supported"
    retyped = "changing property type from I32? to [I32]? is not supported; add a new property"
    assert [str(step) for step in plan(old, new).steps] == [
        "rename node:Old to City",
        'update the metadata of node:City: @description("d")',
        f"unsupported change on node:City: {annotation}",
        f"unsupported change on node:City.a [OG-MF-106, destructive]: {retyped}",
        "add node:City.n: I32?",
        "rename node:City.z to y",
        "drop node:City.c (soft)",
        "add @index(b) to node:City",
    ]


def test_a_plan_holds_the_schema_that_comes_into_force() -> None:
    accepted, desired = accept(city("a: I32?")), load_catalog(city("b: I32?"))
    assert plan_migration(accepted, desired).schema == evolve_schema(accepted, desired).schema


def test_a_change_without_a_step_is_unsupported() -> None:
    accepted = accept(city("a: I32?"))
    [node] = accepted.catalog.nodes.values()
    # No text can say this: a uniqueness that was written nowhere.
    constraints = replace(node.constraints, uniques=(("a",),))
    odd = Catalog(nodes={"City": replace(node, constraints=constraints)})
    assert plan_migration(accepted, odd).steps == (
        UnsupportedChange("schema", "unclassified semantic change"),
    )


def test_applying_fails_with_the_first_unsupported_change() -> None:
    found = plan(city("a: I32?  b: I32?"), city("a: [I32]?  b: [I32]?  c: I32?"))
    assert found.refusal is not None
    assert found.refusal.startswith("[OG-MF-106] node:City.a: changing property type")
    uncoded = plan(city("a: I32? @index"), city("a: I32?"), "reference")
    assert uncoded.refusal == "node:City.a: removing @index(a) is not supported"
    assert plan(city(""), city("")).refusal is None


def test_every_step_has_its_json_form() -> None:
    old = (
        "node Old { s: enum(a)  d: I32?  r: I32?  p: I32?  i: I32? }  node Gone {}"
        "  edge Road: Old -> Old"
    )
    new = (
        'node City @rename_from("Old") @description("x") { s: enum(a, b)  n: [I32]?'
        '  q: I32? @rename_from("r")  p: I32? @description("y")  i: I32? @index }'
        "  node Fresh {}  edge Road: City -> City"
    )
    document = json.loads(json.dumps(plan(old, new).to_json()))
    of_city = {"type_kind": "node", "type_name": "City"}
    expected: list[JsonObject] = [
        {"kind": "rename_type", "type_kind": "node", "from": "Old", "to": "City"},
        {
            "kind": "update_type_metadata",
            "type_kind": "node",
            "name": "City",
            "annotations": [{"name": "description", "value": "x"}],
        },
        {
            "kind": "add_property",
            **of_city,
            "property_name": "n",
            "property_type": {
                "scalar": "I32",
                "nullable": True,
                "list": True,
                "enum_values": None,
            },
        },
        {
            "kind": "update_property_metadata",
            **of_city,
            "property_name": "p",
            "annotations": [{"name": "description", "value": "y"}],
        },
        {"kind": "rename_property", **of_city, "from": "r", "to": "q"},
        {"kind": "extend_enum", **of_city, "property_name": "s", "added_values": ["b"]},
        {"kind": "drop_property", **of_city, "property_name": "d", "mode": "soft"},
        {"kind": "add_constraint", **of_city, "constraint": {"Index": ["i"]}},
        {"kind": "add_type", "type_kind": "node", "name": "Fresh"},
        {"kind": "drop_type", "type_kind": "node", "name": "Gone", "mode": "soft"},
    ]
    assert document == {"supported": True, "step_count": len(expected), "steps": expected}


RULES = (
    "interface Named {}  node City implements Named { a: I32  b: I32?  c: enum(x, y)?"
    '  d: I32? @unique  e: I32?  @range(a, 0..9)  @check(c, "x")  @range(b, 0..9) }'
    "  edge Road: City -> City @card(0..2)"
)
OTHER_RULES = (
    "interface Named {}  node City { a: I32?  b: I32  c: String?"
    "  d: I32?  e: I32? @unique  @range(a, 0..5)  @range(b, 0..9) }"
    "  edge Road: City -> City @card(0..3)"
)


def test_every_change_of_a_rule_has_its_json_form() -> None:
    found = plan(RULES, OTHER_RULES)
    of_city = {"type_kind": "node", "type_name": "City"}
    of_road = {"type_kind": "edge", "type_name": "Road"}
    few, more = ({"Card": {"min": 0, "max": most}} for most in (2, 3))
    enum, text = (
        {"nullable": False, "list": False, "scalar": "String", "enum_values": values}
        for values in (["x", "y"], None)
    )
    high, low = (
        {"Range": {"property": "a", "min": {"Integer": 0}, "max": {"Integer": most}}}
        for most in (9, 5)
    )
    assert json.loads(json.dumps(found.to_json())) == {
        "supported": True,
        "step_count": 9,
        "steps": [
            {
                "kind": "change_implements",
                "type_kind": "node",
                "name": "City",
                "from": ["Named"],
                "to": [],
                "properties": [],
            },
            {"kind": "drop_constraint", **of_city, "constraint": {"Unique": ["d"]}},
            {
                "kind": "drop_constraint",
                **of_city,
                "constraint": {"Check": {"property": "c", "pattern": "x"}},
            },
            {"kind": "relax_property", **of_city, "property_name": "a"},
            {"kind": "tighten_property", **of_city, "property_name": "b"},
            {"kind": "convert_property", **of_city, "property_name": "c", "from": enum, "to": text},
            {"kind": "change_constraint", **of_city, "from": high, "constraint": low},
            {"kind": "add_constraint", **of_city, "constraint": {"Unique": ["e"]}},
            {"kind": "change_constraint", **of_road, "from": few, "constraint": more},
        ],
        # Nothing but schemas was looked at.
        "is_checked": False,
    }
    assert [check.code for check in found.checks] == ["OG-MF-104", "OG-MF-107", "OG-MF-107"]


def test_an_unsupported_step_has_a_code_only_when_there_is_one() -> None:
    [coded] = plan(city("a: I32?"), city("a: [I32]?")).to_json()["steps"]
    assert (coded["kind"], coded["entity"], coded["code"]) == (
        "unsupported_change",
        "node:City.a",
        "OG-MF-106",
    )
    document = plan(city("a: I32 @key"), city("a: I32")).to_json()
    assert document["supported"] is False
    assert set(document["steps"][0]) == {"kind", "entity", "reason"}


def test_lint_codes_are_classified_as_published() -> None:
    assert {code: (str(found.family), str(found.tier)) for code, found in LINT_CODES.items()} == {
        "OG-DS-101": ("DS", "destructive"),
        "OG-DS-102": ("DS", "destructive"),
        "OG-DS-103": ("DS", "destructive"),
        "OG-DS-104": ("DS", "destructive"),
        "OG-DS-105": ("DS", "destructive"),
        "OG-DS-106": ("DS", "destructive"),
        "OG-MF-103": ("MF", "validated"),
        "OG-MF-104": ("MF", "validated"),
        "OG-MF-106": ("MF", "destructive"),
        "OG-MF-107": ("MF", "validated"),
        "OG-MF-108": ("MF", "validated"),
        "OG-MF-109": ("MF", "validated"),
    }
    assert {found.severity for found in LINT_CODES.values()} == {Severity.ERROR}
    assert {code for code, found in LINT_CODES.items() if not found.is_reserved} == {
        "OG-DS-106",
        "OG-MF-103",
        "OG-MF-104",
        "OG-MF-106",
        "OG-MF-107",
        "OG-MF-108",
        "OG-MF-109",
    }
    assert LINT_CODES.keys() == {code for code in CODES if code.startswith("OG-")}
    assert LINT_CODES["OG-MF-103"].meaning == CODES["OG-MF-103"].title
    assert {str(tier) for tier in Tier} == {"safe", "validated", "destructive"}
    assert " ".join(Family) == "DS MF CD BC NM OW NL VE ED LK"


@pytest.mark.slow
@steady
@given(catalogs())
def test_a_plan_from_a_schema_to_itself_is_empty_and_supported(catalog: Catalog) -> None:
    accepted = accept_schema(catalog, domain=DOMAIN).schema
    for same in (catalog, backwards(catalog), accepted.catalog):
        found = plan_migration(accepted, same)
        assert found.steps == ()
        assert found.supported
        assert found.schema == accepted


@steady
@given(catalogs(), catalogs())
def test_a_plan_between_different_schemas_is_never_empty(old: Catalog, new: Catalog) -> None:
    accepted = accept_schema(old, domain=DOMAIN).schema
    found = plan_migration(accepted, new)
    json.dumps(found.to_json())
    assert (found.steps == ()) == (hash_shape(old) == hash_shape(new))
    assert "unclassified semantic change" not in "".join(map(str, found.steps))

"""What the planner answers in the dialect of the reference."""

from __future__ import annotations

import pytest

from omnigraph.schema.migration import (
    AddType,
    DropProperty,
    MigrationPlan,
    Step,
    UnsupportedChange,
)
from unit.schema import migrations
from unit.schema.migrations import CITY, NAMED, city


def refusals(old: str, new: str) -> list[tuple[str, str | None]]:
    return migrations.refusals(old, new, "reference")


def plan(old: str, new: str) -> MigrationPlan:
    return migrations.plan(old, new, "reference")


def steps(old: str, new: str) -> list[Step]:
    return list(plan(old, new).steps)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I32?", "I64?"),
        ("I32", "I32?"),
        ("I32?", "I32"),
        ("String", "[String]"),
        ("[String]", "String"),
        ("enum(a, b)", "enum(a)"),
        ("enum(a, b)", "enum(a, c)"),
        ("enum(a, b)", "String"),
        ("String", "enum(a, b)"),
        ("enum(a)", "enum(a, b)?"),
        ("enum(a)?", "enum(a, b)"),
        ("Vector(2)", "Vector(3)"),
        ("F32?", "F64?"),
    ],
)
def test_a_property_keeps_its_type(old: str, new: str) -> None:
    assert refusals(city(f"size: {old}"), city(f"size: {new}")) == [("node:City.size", "OG-MF-106")]


@pytest.mark.parametrize(
    "body",
    [
        "k: String  b: String @key",
        "k: String  b: String? @unique",
        "k: String  b: String? @index",
        "k: String  b: String  @key(b)",
        "k: String  b: String? @unique(b)",
        "k: String  b: String? @index(b)",
        "k: String  b: String? @unique(b, k)",
        'k: String  b: String?  @check(b, "x")',
        "k: String  b: I32?  @range(b, 0..1)",
    ],
)
def test_a_property_in_a_constraint_cannot_be_dropped(body: str) -> None:
    found = plan(city(body), city("k: String"))
    assert found.steps[0] == DropProperty(CITY, "b")
    assert isinstance(found.steps[1], UnsupportedChange)
    assert found.steps[1].entity in ("node:City", "node:City.b")
    assert found.steps[1].reason.startswith("removing @")


def test_a_property_cannot_be_added_together_with_a_uniqueness() -> None:
    assert refusals(city(""), city("a: I32? @unique")) == [("node:City.a", None)]
    assert refusals(city(""), city("a: I32?  @unique(a)")) == [("node:City", None)]


@pytest.mark.parametrize(
    ("body", "entity"),
    [
        ("a: I32 @key  s: String?", "node:City.a"),
        ("a: I32 @unique  s: String?", "node:City.a"),
        ("a: I32  s: String?  @key(a)", "node:City"),
        ("a: I32  s: String?  @unique(a)", "node:City"),
        ("a: I32  s: String?  @range(a, 0..1)", "node:City"),
        ('a: I32  s: String?  @check(s, "x")', "node:City"),
    ],
)
def test_only_an_index_can_be_added_or_removed(body: str, entity: str) -> None:
    plain = city("a: I32  s: String?")
    assert refusals(plain, city(body)) == [(entity, None)]
    assert refusals(city(body), plain) == [(entity, None)]


def test_an_index_cannot_be_removed() -> None:
    assert refusals(city("a: I32? @index"), city("a: I32?")) == [("node:City.a", None)]
    assert refusals(city("a: I32?  @index(a)"), city("a: I32?")) == [("node:City", None)]


def test_a_constraint_keeps_its_spelling() -> None:
    old, new = city("a: I32? @unique"), city("a: I32?  @unique(a)")
    assert refusals(old, new) == [("node:City.a", None), ("node:City", None)]
    assert refusals(new, old) == [("node:City", None), ("node:City.a", None)]


def test_the_arguments_of_a_constraint_cannot_change() -> None:
    three = "a: I32?  b: I32?  c: I32?"
    assert refusals(city(f"{three}  @unique(a, b)"), city(f"{three}  @unique(a, c)")) == [
        ("node:City", None),
        ("node:City", None),
    ]
    assert refusals(city("a: I32?  @range(a, 0..1)"), city("a: I32?  @range(a, 0..2)")) == [
        ("node:City", None),
        ("node:City", None),
    ]
    assert refusals(city('s: String?  @check(s, "x")'), city('s: String?  @check(s, "y")')) == [
        ("node:City", None),
        ("node:City", None),
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("edge Road: City -> City", "edge Road: City -> City @card(0..1)"),
        ("edge Road: City -> City @card(1..)", "edge Road: City -> City @card(1..9)"),
        ("edge Road: City -> City", "edge Road: Town -> City"),
        ("edge Road: City -> City", "edge Road: City -> Town"),
    ],
)
def test_an_edge_keeps_its_ends_and_cardinality(old: str, new: str) -> None:
    nodes = "node City {}  node Town {}  "
    assert refusals(nodes + old, nodes + new) == [("edge:Road", None)]


def test_a_node_keeps_its_interfaces() -> None:
    interfaces = "interface Named {}  interface Sized {}  "
    old = interfaces + "node City implements Named {}"
    assert refusals(old, interfaces + "node City {}") == [("node:City", None)]
    assert refusals(old, interfaces + "node City implements Sized {}") == [("node:City", None)]


def test_a_property_keeps_its_provenance() -> None:
    injected = "interface Named { name: String }  node City implements Named {}"
    declared = "interface Named { name: String }  node City implements Named { name: String }"
    assert refusals(injected, declared) == [("node:City.name", None)]
    assert refusals(declared, injected) == [("node:City.name", None)]


def test_an_interface_can_be_added_but_not_removed_or_renamed() -> None:
    assert steps("", "interface Named { name: String }") == [AddType(NAMED)]
    assert refusals("interface Named {}", "") == [("interface:Named", None)]
    found = plan("interface Titled {}", "interface Named {}")
    reason = "removing or renaming an interface is not supported; keep it"
    assert [str(step) for step in found.steps] == [
        "add interface:Named",
        f"unsupported change on interface:Titled: {reason}",
    ]

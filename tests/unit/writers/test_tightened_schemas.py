"""Rules that a schema change adds, narrows or removes, on a graph with entities."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from omnigraph.errors import ConflictError, MigrationUnsupportedError
from omnigraph.schema import load_catalog
from omnigraph.schema.migration import DataViolation, Unique
from omnigraph.writers.schema_migration import plan_on_data
from unit.writers.plain_graph import PlainGraph, created, everything_stored

SOURCE = """
interface Named { name: String }
node Author implements Named {
  handle: String @key
  email: String? @unique
  score: F64?
  born: Date?
  vec: Vector(2)?
  photo: Blob?
  state: enum(draft, out)?
  mood: String?
  @range(score, 0.0..100.0)
  @check(handle, "^[a-z]+$")
}
edge Follows: Author -> Author @card(0..2) { since: I32? @index }
"""
AUTHORS: list[dict[str, Any]] = [
    {"handle": "ann", "name": "Ann", "score": 90.0, "vec": [1.0, 2.0], "mood": "glad"},
    {"handle": "bob", "name": "Bob", "score": 40.0, "state": "out", "photo": b"\\x00"},
    {"handle": "cyd", "name": "Cyd", "state": "draft", "mood": "sad"},
    {"handle": "dov", "name": "Dov", "score": 40.0},
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> PlainGraph:
    """Four authors; ann follows two of them. The tests write to branches of their own."""
    graph = created(Path(tmp_path_factory.mktemp("graph")) / "graph", SOURCE)
    graph.insert("node:Author", *AUTHORS)
    edges = [{"@id": f"f{end}", "@src": "ann", "@dst": end} for end in ("bob", "cyd")]
    graph.insert("edge:Follows", *edges, {"@id": "loop", "@src": "dov", "@dst": "dov"})
    return graph


def changed(old: str, new: str) -> str:
    assert SOURCE.count(old) == 1
    return SOURCE.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("name: String", "name: String?", "relax_property"),
        ("String? @unique", "String?", "drop_constraint"),
        ("  @range(score, 0.0..100.0)\n", "", "drop_constraint"),
        ("0.0..100.0", "0.0..", "change_constraint"),
        ('"^[a-z]+$"', '"^[a-z]"', "change_constraint"),
        ("@card(0..2)", "@card(0..3)", "change_constraint"),
        ("@card(0..2) ", "", "drop_constraint"),
        ("enum(draft, out)", "enum(draft, gone, out)", "extend_enum"),
        ("enum(draft, out)?", "String?", "convert_property"),
        (" implements Named {", " {\n  name: String", "change_implements"),
        ("I32? @index", "I32?", "drop_constraint"),
        ("String? @unique\n", "String?\n  @unique(email)\n", "change_constraint"),
        ("born: Date?", "born: Date?\n  @unique(born)", "add_constraint"),
        ("mood: String?", "mood: enum(glad, sad)?", "convert_property"),
        ("name: String", "name: String @unique", "add_constraint"),
        ("@card(0..2)", "@card(1..2)", "change_constraint"),
        ("0.0..100.0", "0.0..95.5", "change_constraint"),
        ("mood: String?\n", "mood: String?\n  @check(score > 1.0)\n", "add_constraint"),
        ("mood: String?\n", "mood: String?\n  @together(mood, state)\n", "add_constraint"),
        ("score: F64?", "score: F64? merge max", "add_constraint"),
        ("born: Date?", "born: Date? = date(now())", "change_default"),
        ("mood: String?", "mood: String? = handle", "change_default"),
        ("name: String }", 'name: String = "nobody" }', "change_default"),
        (
            "interface Named { name: String }\nnode Author implements Named {",
            "node Author {\n  name: String",
            "change_implements",
        ),
    ],
)
def test_a_change_of_rules_leaves_every_table_version_as_it_was(
    graph: PlainGraph, old: str, new: str, kind: str
) -> None:
    before = graph.head()
    migrated = graph.migrated(changed(old, new))
    assert kind in {step["kind"] for step in migrated.plan.to_json()["steps"]}
    assert migrated.plan.supported
    assert migrated.transaction is not None
    assert migrated.transaction.effects == ()
    branch = graph.branches.create(f"b{crc32(f'{old}/{new}'.encode())}", at=before)
    graph.apply(changed(old, new), stream=branch)
    after = graph.head(branch)
    assert after.pins == before.pins
    assert after.schema != before.schema
    assert graph.entities("node:Author", after) == graph.entities("node:Author", before)
    assert graph.view(before).schema.source == SOURCE


@pytest.mark.parametrize(
    ("old", "new", "code", "examples"),
    [
        ("score: F64?", "score: F64", "OG-MF-104", "'cyd'"),
        ("vec: Vector(2)?", "vec: Vector(2)", "OG-MF-104", "'bob', 'cyd', 'dov'"),
        ("photo: Blob?", "photo: Blob", "OG-MF-104", "'ann', 'cyd', 'dov'"),
        ("score: F64?", "score: F64? @unique", "OG-MF-107", "'bob' (40), 'dov' (40)"),
        ("0.0..100.0", "0.0..50.0", "OG-MF-107", "'ann' (90.0)"),
        ('"^[a-z]+$"', '"^[b-z]+$"', "OG-MF-107", "'ann' (ann)"),
        ("@card(0..2)", "@card(0..1)", "OG-MF-107", "'ann' (2 edges)"),
        ("@card(0..2)", "@card(2..2)", "OG-MF-107", "'dov' (1 edge)"),
        ("I32? @index", "I32? @unique(@src)", "OG-MF-107", "'fbob' (ann), 'fcyd' (ann)"),
        ("enum(draft, out)", "enum(draft, new)", "OG-MF-108", "'bob' (out)"),
        ("mood: String?", "mood: enum(sad)?", "OG-MF-108", "'ann' (glad)"),
    ],
)
def test_entities_that_contradict_a_rule_are_counted_and_named_and_nothing_changes(
    graph: PlainGraph, old: str, new: str, code: str, examples: str
) -> None:
    before, stored = graph.head(), everything_stored(graph)
    [found] = violations(graph, changed(old, new))
    assert found.check.code == code
    # One value or source, or as many entities as are named.
    is_shared = isinstance(found.check.rule, Unique)
    assert found.count == (1 if is_shared else len(found.examples))
    assert ", ".join(map(str, found.examples)) == examples
    with pytest.raises(MigrationUnsupportedError, match=f"^\\[{code}\\] .*{examples[:5]}"):
        graph.apply(changed(old, new))
    assert (graph.head(), everything_stored(graph)) == (before, stored)


def violations(graph: PlainGraph, source: str) -> tuple[DataViolation, ...]:
    found = plan_on_data(graph.view(), load_catalog(source))
    assert not found.supported
    assert found.to_json()["is_checked"] is True
    assert found.violations
    return found.violations


def test_every_check_of_a_plan_is_reported(graph: PlainGraph) -> None:
    source = changed("score: F64?", "score: F64 @unique").replace("0..2", "0..1")
    found = violations(graph, source)
    assert [each.check.code for each in found] == ["OG-MF-104", "OG-MF-107", "OG-MF-107"]


def test_the_first_twenty_of_many_entities_are_named_by_id(tmp_path: Path) -> None:
    graph = created(tmp_path / "graph", "node A { k: String @key  n: I32? }")
    graph.insert("node:A", *({"k": f"a{number:02}"} for number in range(39, -1, -1)))
    found = plan_on_data(graph.view(), load_catalog("node A { k: String @key  n: I32 }"))
    assert found.violations is not None
    [violation] = found.violations
    assert violation.count == 40
    assert [each.id for each in violation.examples] == [f"a{number:02}" for number in range(20)]


def test_a_rule_for_a_property_that_is_added_with_it_needs_no_check(graph: PlainGraph) -> None:
    source = changed("born: Date?", "born: Date?  rank: I32? @unique\n  @range(rank, 1..)")
    assert graph.migrated(source).plan.checks == ()


def test_entities_that_changed_since_the_check_refuse_its_commit(tmp_path: Path) -> None:
    graph = created(tmp_path / "graph", "node A { k: String @key  n: I32? }  node B {}")
    graph.insert("node:A", {"k": "a", "n": 1})
    migrated = graph.migrated("node A { k: String @key  n: I32 }  node B {}")
    graph.insert("node:A", {"k": "b"})
    with pytest.raises(ConflictError, match="changed meanwhile"):
        graph.publish(migrated)
    graph.delete("node:A", "b")
    migrated = graph.migrated("node A { k: String @key  n: I32 }  node B {}")
    assert migrated.transaction is not None
    # What was not checked may change.
    graph.insert("node:B", {"@id": "b"})
    assert set(migrated.transaction.footprint) == {"node:A"}

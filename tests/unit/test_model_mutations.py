"""Mutations of the model: statements, conversions, and the rules checked at the end."""

from __future__ import annotations

from typing import Any

import pytest

from model import Affected, ModelGraph
from omnigraph.errors import WriteRefusedError
from unit.model_world import NOW, change, graph_of, handles, library


@pytest.fixture
def graph() -> ModelGraph:
    return library()


def refused(graph: ModelGraph, text: str, fragment: str, **params: Any) -> None:
    """A mutation must fail with the fragment and leave the graph as it is."""
    before = graph.export()
    with pytest.raises(WriteRefusedError) as failure:
        change(graph, text, params)
    assert fragment in str(failure.value)
    assert graph.export() == before


# ---- statements ----


def test_an_insert_by_key_replaces_the_whole_node(graph: ModelGraph) -> None:
    assert change(graph, 'insert Author { handle: "ann" name: "Anna" }') == (1, 0)
    assert graph.nodes["Author"]["ann"] == {
        "@id": "ann",
        "@type": "Author",
        "handle": "ann",
        "name": "Anna",
        "bornOn": None,
        "score": None,
        "email": None,
    }


def test_keyless_entities_are_always_new() -> None:
    graph = graph_of("node N { x: I64? }  edge E: N -> N")
    change(graph, "insert N { x: 1 } insert N { x: 1 }")
    assert sorted(graph.nodes["N"]) == ["new1", "new2"]
    edge = 'insert E { from: "new1", to: "new2" }'
    assert change(graph, f"{edge} {edge}") == (0, 2)
    assert len(graph.edges["E"]) == 2


@pytest.mark.parametrize("order", [1, -1])
def test_an_edge_may_come_before_its_node(graph: ModelGraph, order: int) -> None:
    statements = [
        'insert Book { isbn: "b9" title: "x" state: "out" }',
        'insert Wrote { from: "dov", to: "b9" }',
    ]
    assert change(graph, " ".join(statements[::order])) == (1, 1)


def test_a_keyed_edge_is_replaced(graph: ModelGraph) -> None:
    text = 'insert Mentors { from: "ann" to: "bob" since: datetime("2021-01-01") }'
    assert change(graph, text) == (0, 1)
    assert sorted(graph.edges["Mentors"]) == ['["ann","bob"]', '["ann","cyd"]']
    assert graph.edges["Mentors"]['["ann","bob"]']["since"] == 1_609_459_200_000


def test_statements_see_what_earlier_ones_wrote(graph: ModelGraph) -> None:
    text = """insert Author { handle: "eve" name: "Eve" score: 1 }
        update Author set { score: 2 } where score = 1
        update Author set { score: 3 } where score = 2"""
    assert change(graph, text) == (3, 0)
    assert graph.nodes["Author"]["eve"]["score"] == 3.0


def test_an_update_keeps_other_properties(graph: ModelGraph) -> None:
    assert change(graph, 'update Author set { score: 41 } where handle = "ann"') == (1, 0)
    assert graph.nodes["Author"]["ann"]["email"] == "a@x"


def test_an_update_without_a_match_changes_nothing(graph: ModelGraph) -> None:
    affected = change(graph, "update Author set { score: 1 } where score > 99")
    assert (affected, affected.changed) == (Affected(0, 0), False)


def test_an_update_with_equal_values_counts_and_commits(graph: ModelGraph) -> None:
    affected = change(graph, "update Author set { score: 40 } where score = 40")
    assert (affected, affected.changed) == (Affected(2, 0), True)


def test_a_condition_uses_the_whole_language(graph: ModelGraph) -> None:
    text = 'update Author set { score: 1 } where score = 40 and handle starts_with "d"'
    assert change(graph, text) == (1, 0)
    claim = """query q($h: String, $by: String?) {
        update Author set { email: $by } where handle = $h and email is null }"""
    assert change(graph, claim, {"h": "bob", "by": "b@x"}) == (1, 0)
    assert change(graph, claim, {"h": "bob", "by": "c@x"}) == (0, 0)
    text = "query q($ids: [String]) { update Author set { score: 2 } where @id in $ids }"
    assert change(graph, text, {"ids": ["ann", "zed"]}) == (1, 0)


def test_a_null_property_matches_no_comparison(graph: ModelGraph) -> None:
    assert change(graph, "update Author set { score: 1 } where score != 0") == (3, 0)


def test_deleting_a_node_deletes_its_edges_once(graph: ModelGraph) -> None:
    # Wrote w1 w2, Follows f1 f3, and both Mentors.
    assert change(graph, 'delete Author where handle = "ann"') == (1, 6)
    assert sorted(graph.edges["Follows"]) == ["f2", "f4"]


def test_overlapping_deletes_count_entities(graph: ModelGraph) -> None:
    text = """delete Author where score = 40 delete Author where handle < "c"
        delete Follows where from = "bob" """
    # ann, bob, dov; Wrote 3, Follows 4, Mentors 2.
    assert change(graph, text) == (3, 9)
    assert handles(graph, "") == ["cyd"]


def test_a_null_comparison_does_not_hide_a_node_from_a_later_statement(graph: ModelGraph) -> None:
    text = 'delete Author where score > 50 delete Author where handle = "cyd"'
    assert change(graph, text).nodes == 2


def test_edges_are_deleted_by_their_ends(graph: ModelGraph) -> None:
    text = "query q($s: String, $d: String) { delete Mentors where @src = $s and @dst = $d }"
    assert change(graph, text, {"s": "ann", "d": "bob"}) == (0, 1)
    assert change(graph, text, {"s": "bob", "d": "ann"}) == (0, 0)


def test_now_is_one_instant() -> None:
    graph = graph_of("node N { a: DateTime  b: DateTime? }")
    change(graph, "insert N { a: now() b: now() }")
    (node,) = graph.nodes["N"].values()
    assert (node["a"], node["b"]) == (NOW, NOW)


# ---- values ----


@pytest.mark.parametrize(
    ("property_type", "parameter_type", "value", "expected"),
    [
        ("I32", "I64", 2**31 - 1, 2**31 - 1),
        ("I32", "F64", 3.0, 3),
        ("F64", "I64", 3, 3.0),
        ("F32", "F64", 0.1, 0.10000000149011612),
        ("U64", "I64", 5, 5),
        ("Vector(2)", "Vector(2)", [1, 0.5], (1.0, 0.5)),
        ("[I32]", "[I64]", [1, 2], (1, 2)),
        ("Blob", "String", "base64:aGk=", b"hi"),
        ("Blob", "Blob", "base64:", b""),
        ("Date", "Date", "1970-01-02", 1),
    ],
)
def test_a_parameter_is_converted_to_the_property(
    property_type: str, parameter_type: str, value: Any, expected: Any
) -> None:
    graph = graph_of(f"node N {{ p: {property_type}? }}")
    change(graph, f"query q($v: {parameter_type}) {{ insert N {{ p: $v }} }}", {"v": value})
    (node,) = graph.nodes["N"].values()
    assert node["p"] == expected
    assert type(node["p"]) is type(expected)


@pytest.mark.parametrize(
    ("property_type", "parameter_type", "value", "fragment"),
    [
        ("I32", "I64", 2**31, "exceeds Int32 range"),
        ("U32", "I64", -1, "exceeds UInt32 range"),
        ("I32", "F64", 2.5, "not a whole number"),
        ("F32", "F64", 1e39, "exceeds F32 range"),
        ("[I32]", "[I64]", [2**31], "exceeds Int32 range"),
        ("Blob", "String", "http://x", "external URI"),
        ("Blob", "String", "base64:!", "N.p"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused(
    property_type: str, parameter_type: str, value: Any, fragment: str
) -> None:
    graph = graph_of(f"node N {{ p: {property_type}? }}")
    refused(graph, f"query q($v: {parameter_type}) {{ insert N {{ p: $v }} }}", fragment, v=value)


def test_null_clears_a_nullable_property_only(graph: ModelGraph) -> None:
    text = 'query q($v: String?) { update Author set { %s: $v } where handle = "%s" }'
    change(graph, text % ("email", "ann"), {"v": None})
    assert graph.nodes["Author"]["ann"]["email"] is None
    fragment = "cannot assign null to non-nullable property 'name' of Author"
    refused(graph, text % ("name", "ann"), fragment, v=None)
    refused(graph, text % ("name", "nobody"), fragment, v=None)


def test_null_clears_a_blob(graph: ModelGraph) -> None:
    text = 'query q($v: Blob?) { update Book set { cover: $v } where isbn = "b1" }'
    change(graph, text, {"v": "base64:aGk="})
    change(graph, 'update Book set { title: "x" } where isbn = "b1"')
    assert graph.nodes["Book"]["b1"]["cover"] == b"hi"
    change(graph, text, {"v": None})
    assert graph.nodes["Book"]["b1"]["cover"] is None


def test_an_edge_needs_both_ends(graph: ModelGraph) -> None:
    text = "query q($d: String?) { insert Follows { from: $d, to: $d } }"
    refused(graph, text, "an end of Follows", d=None)


def test_a_required_vector_is_not_embedded() -> None:
    graph = graph_of("node N { t: String  v: Vector(2) @embed(t) }")
    refused(graph, 'insert N { t: "x" }', "missing required property 'v' of N")


@pytest.mark.parametrize(
    ("key", "literal", "id_"),
    [
        ("F32", "16777217.0", "16777216"),
        ("I64", "7", "7"),
        ("Bool", "true", "true"),
        ("Date", 'date("1970-01-03")', "2"),
        ("String", '""', ""),
    ],
)
def test_a_key_gives_the_id(key: str, literal: str, id_: str) -> None:
    graph = graph_of(f"node N {{ k: {key} @key }}")
    change(graph, f"insert N {{ k: {literal} }}")
    assert list(graph.nodes["N"]) == [id_]


def test_a_composite_id_lists_its_parts_by_property_name() -> None:
    graph = graph_of("node N { tenant: String  slot: I64  @key(tenant, slot) }")
    change(graph, 'insert N { tenant: "acme" slot: 7 }')
    assert list(graph.nodes["N"]) == ['["7","acme"]']


# ---- rules ----


@pytest.mark.parametrize(
    ("statements", "fragment"),
    [
        (
            'update Author set { score: 101 } where handle = "ann"',
            "@range violation on Author.score",
        ),
        ('insert Author { handle: "A B" name: "x" }', "@check violation on Author.handle"),
        (
            'update Author set { email: "a@x" } where handle = "bob"',
            "@unique violation on Author.email",
        ),
        ('update Author set { email: "z" } where score = 40', "@unique violation on Author.email"),
        ('insert Wrote { from: "ann", to: "b9" }', "dst 'b9' not found in Book"),
        ('insert Wrote { from: "zed", to: "b1" }', "src 'zed' not found in Author"),
        ('insert Wrote { from: "ann", to: "b1" }', "@unique violation on Wrote.(@src, @dst)"),
    ],
)
def test_a_broken_rule_refuses_the_whole_mutation(
    graph: ModelGraph, statements: str, fragment: str
) -> None:
    refused(graph, 'insert Author { handle: "eve" name: "Eve" } ' + statements, fragment)


def test_an_enum_value_is_checked_at_the_end(graph: ModelGraph) -> None:
    text = 'query q($s: String) { update Book set { state: $s } where isbn = "b1" }'
    refused(graph, text, "invalid enum value 'zzz' for Book.state", s="zzz")
    text = 'query q($r: String) { insert Wrote { from: "dov", to: "b1", role: $r } }'
    refused(graph, text, "invalid enum value 'zzz' for Wrote.role", r="zzz")


def test_a_freed_unique_value_can_be_used_again(graph: ModelGraph) -> None:
    text = """update Author set { email: "b@x" } where handle = "ann"
        update Author set { email: "a@x" } where handle = "bob" """
    assert change(graph, text) == (2, 0)


def test_one_statement_may_not_write_a_unique_value_twice(graph: ModelGraph) -> None:
    text = """update Author set { email: "z" } where score = 40
        update Author set { email: "y" } where handle = "bob" """
    refused(graph, text, "@unique violation on Author.email")


def test_a_superseded_value_is_not_checked(graph: ModelGraph) -> None:
    text = """update Author set { score: 101 } where handle = "ann"
        update Author set { score: 99 } where handle = "ann" """
    assert change(graph, text) == (2, 0)


def test_cardinality_counts_the_edges_of_touched_sources() -> None:
    schema = "node A { k: String @key }  node B { k: String @key }  edge E: A -> B @card(1..2)"
    graph = graph_of(schema)
    change(graph, 'insert A { k: "a" } insert B { k: "x" } insert B { k: "y" }')
    edge = 'insert E { from: "a", to: "x" }'
    refused(graph, edge * 3, "@card violation on edge E: source 'a' has 3 edges (max 2)")
    change(graph, edge)
    fragment = "@card violation on edge E: source 'a' has 0 edges (min 1)"
    refused(graph, 'delete E where from = "a"', fragment)
    refused(graph, 'delete B where k = "x"', fragment)
    assert change(graph, 'delete A where k = "a"') == (1, 1)

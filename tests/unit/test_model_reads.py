"""Reads of the model: bindings, filters, traversals, blocks, projections and order."""

from __future__ import annotations

from typing import Any

import pytest

from model import ModelGraph
from omnigraph.errors import ResourceLimitError
from unit.model_world import ask, change, column, graph_of, handles, library


@pytest.fixture
def graph() -> ModelGraph:
    return library()


PEOPLE = "node P { k: String @key  n: I64? }  edge E: P -> P"


def people(*edges: str) -> ModelGraph:
    """Nodes named by letters and numbered edges between them, such as "ab"."""
    names = sorted(set("".join(edges)))
    nodes = [f'{{"type":"P","data":{{"k":"{name}"}}}}' for name in names]
    lines = [
        f'{{"edge":"E","id":"e{number}","from":"{pair[0]}","to":"{pair[1]}"}}'
        for number, pair in enumerate(edges)
    ]
    return graph_of(PEOPLE, "\n".join([*nodes, *lines]))


def reached(graph: ModelGraph, traversal: str, start: str = "a") -> list[str]:
    found: list[str] = column(
        graph, f'query q() {{ match {{ $p: P {{ k: "{start}" }} {traversal} }} return {{ $x.k }} }}'
    )
    return found


# ---- bindings and filters ----


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("$a.score > 30", ["ann", "bob", "dov"]),
        ("$a.score != 40", ["ann"]),
        ('$a.name contains "n"', ["ann"]),
        ('$a.name starts_with "B"', ["bob"]),
        ('"Ann and Bob" contains $a.name', ["ann", "bob"]),
        ('$a.name contains "_"', []),
        ('$a.bornOn >= date("1970-01-01")', ["ann"]),
        ("$a.score = 90 or $a.score = 40", ["ann", "bob", "dov"]),
        ('$a.handle = "ann" or $a.score = 40 and $a.handle = "dov"', ["ann", "dov"]),
        ("not $a.score = 40", ["ann"]),
        ("not ($a.score = 40) or $a.score is null", ["ann", "cyd"]),
        ("not { $a.score = 40 }", ["ann", "cyd"]),
        ("$a.score is null", ["cyd"]),
        ("$a.handle is not null", ["ann", "bob", "cyd", "dov"]),
        ('$a.handle in ["ann", "zed"]', ["ann"]),
        ("$a.score in []", []),
        ("not ($a.score in [])", ["ann", "bob", "dov"]),
        ("$a.score in [40, 90.5]", ["bob", "dov"]),
        ("$a: Author { score: 40.5 }", []),
        ("$a: Author { score: 40 }", ["bob", "dov"]),
        ('datetime("2023-11-14T22:13:20Z") = now()', ["ann", "bob", "cyd", "dov"]),
        ('$a.@id != "bob" and $a.score = 40', ["dov"]),
    ],
)
def test_a_filter_keeps_the_rows_where_it_is_true(
    graph: ModelGraph, clauses: str, expected: list[str]
) -> None:
    assert handles(graph, clauses) == expected


@pytest.mark.parametrize("flag", [True, False, None])
def test_a_bare_flag_keeps_all_rows_or_none(graph: ModelGraph, flag: bool | None) -> None:
    assert len(handles(graph, "$f", "$f: Bool?", f=flag)) == (4 if flag else 0)
    assert len(handles(graph, "not $f", "$f: Bool?", f=flag)) == (4 if flag is False else 0)
    assert len(handles(graph, "true or $f", "$f: Bool?", f=flag)) == 4


@pytest.mark.parametrize("clauses", ["$a.email = $e", "$a: Author { email: $e }", "$a.email != $e"])
def test_a_null_parameter_matches_nothing(graph: ModelGraph, clauses: str) -> None:
    assert handles(graph, clauses, "$e: String?", e=None) == []


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ('$b: Book { tags: "sea" }', ["b1"]),
        ('$b.tags contains "sea"', ["b1"]),
        ('"sea" in $b.tags', ["b1"]),
        ('not ("sea" in $b.tags)', ["b2"]),
        ("$t in $b.tags", []),
        ("not ($t in $b.tags)", []),
    ],
)
def test_membership_of_a_list_property(graph: ModelGraph, clause: str, expected: list[str]) -> None:
    text = f"query q($t: String?) {{ match {{ $b: Book {clause} }} return {{ $b.isbn }} }}"
    assert column(graph, text) == expected


def test_unconnected_bindings_multiply(graph: ModelGraph) -> None:
    text = "query q() { match { $a: Author $b: Book } return { $a.handle, $b.isbn } }"
    assert len(ask(graph, text)) == 12


def test_a_filter_may_compare_two_variables(graph: ModelGraph) -> None:
    text = """query q() { match { $x: Author $y: Author
        $x.score = $y.score $x.handle < $y.handle } return { $x.handle, $y.handle as y } }"""
    assert ask(graph, text) == [{"x.handle": "bob", "y": "dov"}]


def test_booleans_compare_by_value_and_null_is_never_equal(graph: ModelGraph) -> None:
    text = """query q() { match { $a: Author $b: Author
        ($a.score > 50) = ($b.score > 50) } return { $a.handle, $b.handle as b } }"""
    assert len(ask(graph, text)) == 1 + 4


def test_numbers_compare_by_value() -> None:
    graph = graph_of(
        "node N { i: I32?  u: U64?  f: F32? }",
        '{"type":"N","data":{"i":2,"u":18446744073709551615,"f":0.1}}',
    )

    def holds(condition: str, params: str = "", **supplied: Any) -> bool:
        text = f"query q({params}) {{ match {{ $n: N {condition} }} return {{ $n.i }} }}"
        return bool(ask(graph, text, supplied))

    assert not holds("$n.i = 2.7")
    assert holds("$n.i < 2.7")
    assert holds("$n.i = 2.0")
    assert not holds("$n.i = 99999999999")
    assert holds("$n.i < 99999999999")
    assert holds("$n.f = 0.1")
    assert holds("$n.f in [0.1]")
    assert not holds("$n.f = $x", "$x: F64", x=0.1)
    assert holds("$n.f = $x", "$x: F32", x=0.1)
    assert holds("$n.u > $x", "$x: I64", x=2**63 - 1)
    assert not holds("$n.u < $x", "$x: I64", x=-1)


# ---- traversals ----


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ('$a: Author { handle: "ann" } $a wrote $b', ["b1", "b2"]),
        ("$a: Author $a wrote $b", ["b1", "b2", "b2"]),
        ('$a wROTE $b $a: Author { handle: "bob" }', ["b2"]),
        ('$a: Author $a $w:wrote $b $w.role = "lead"', ["b1"]),
        ('$a: Author $a wrote $b $b: Book { state: "draft" }', ["b2", "b2"]),
    ],
)
def test_a_traversal_follows_its_edges(
    graph: ModelGraph, clauses: str, expected: list[str]
) -> None:
    text = f"query q() {{ match {{ {clauses} }} return {{ $b.isbn }} }}"
    assert column(graph, text) == expected


@pytest.mark.parametrize("traversal", ["$a wrote $b", "$b wrote $a"])
def test_the_types_of_the_ends_give_the_direction(graph: ModelGraph, traversal: str) -> None:
    text = (
        f'query q() {{ match {{ $b: Book {{ isbn: "b2" }} {traversal} }} return {{ $a.handle }} }}'
    )
    assert column(graph, text) == ["ann", "bob"]


@pytest.mark.parametrize(
    ("traversal", "expected"),
    [
        ("$p e{1,3} $x", ["b", "c"]),
        ("$p e{2,2} $x", ["c"]),
        ("$p e{3,3} $x", []),
        ("$p <e> $x", ["b", "c"]),
        ("$p e $m $m e $x", ["c"]),
    ],
)
def test_distances_in_a_cycle(traversal: str, expected: list[str]) -> None:
    assert reached(people("ab", "bc", "ca"), traversal) == expected


def test_a_shortcut_makes_a_node_closer() -> None:
    assert reached(people("ab", "bc", "ac"), "$p e{2,2} $x") == []


@pytest.mark.parametrize(
    ("traversal", "expected"),
    [("$p e $x", ["a"]), ("$p e{1,5} $x", ["a"]), ("$p <e> $x", ["a"]), ("$p e{2,2} $x", [])],
)
def test_only_its_own_loop_leads_to_the_start_and_takes_one_hop(
    traversal: str, expected: list[str]
) -> None:
    assert reached(people("aa"), traversal) == expected


@pytest.mark.parametrize(("bounds", "expected"), [("{2,2}", []), ("{1,2}", ["b"])])
def test_a_loop_elsewhere_changes_no_distance(bounds: str, expected: list[str]) -> None:
    assert reached(people("ab", "bb"), f"$p e{bounds} $x") == expected


def test_parallel_edges_are_one_pair_but_several_bound_edges() -> None:
    graph = people("ab", "ab", "ba")
    assert reached(graph, "$p e $x") == ["b"]
    assert reached(graph, "$p $w:e $x") == ["b", "b"]
    assert reached(graph, "$p <e> $x") == ["b"]
    assert reached(graph, "$p $w:<e> $x") == ["b", "b", "b"]


def test_a_bound_edge_in_both_directions_sees_a_loop_once() -> None:
    graph = people("aa", "ab")
    text = "query q() { match { $p: P $p $w:<e> $x } return { $p.k, $w.@id, $w.@src, $x.k as x } }"
    assert ask(graph, text) == [
        {"p.k": "a", "w.@id": "e0", "w.@src": "a", "x": "a"},
        {"p.k": "a", "w.@id": "e1", "w.@src": "a", "x": "b"},
        {"p.k": "b", "w.@id": "e1", "w.@src": "a", "x": "a"},
    ]


def test_equal_ids_of_different_types_are_different_nodes() -> None:
    graph = graph_of(
        "node A { k: String @key }  node B { k: String @key }  edge E: A -> B  edge F: A -> A",
        """
        {"type":"A","data":{"k":"x"}}
        {"type":"A","data":{"k":"y"}}
        {"type":"B","data":{"k":"x"}}
        {"edge":"E","from":"x","to":"x"}
        {"edge":"F","from":"x","to":"y"}
        """,
    )
    assert column(graph, "query q() { match { $a: A $a e $b } return { $b.k } }") == ["x"]
    assert column(graph, "query q() { match { $a: A not { $a e $_ } } return { $a.k } }") == ["y"]


def test_a_cycle_can_be_closed(graph: ModelGraph) -> None:
    text = """query q() { match { $x: Author $x follows $y $y follows $z $z follows $x }
        return { $x.handle, $y.handle as y, $z.handle as z } }"""
    assert [list(row.values()) for row in ask(graph, text)] == [
        ["ann", "bob", "cyd"],
        ["bob", "cyd", "ann"],
        ["cyd", "ann", "bob"],
        ["dov", "dov", "dov"],
    ]


def test_anonymous_ends_multiply_rows(graph: ModelGraph) -> None:
    assert handles(graph, "$a wrote $_") == ["ann", "ann", "bob"]
    assert handles(graph, "$a wrote $_ $a wrote $_") == ["ann"] * 4 + ["bob"]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ('$a: Author { handle: "ann" } $a (follows | mentors) $x', ["bob", "cyd"]),
        ('$a: Author { handle: "ann" } $a $e:(follows | mentors) $x', ["bob", "bob", "cyd"]),
        ('$a: Author { handle: "ann" } $a (follows | mentors){2,2} $x', []),
        ('$a: Author { handle: "dov" } $a <follows | mentors> $x', ["dov"]),
        ('$a: Author { handle: "cyd" } $x: Author $a <*> $x', ["ann", "bob"]),
        ('$a: Author { handle: "ann" } $x: Author $a *{1,2} $x', ["bob", "cyd"]),
    ],
)
def test_a_selection_explores_its_edge_types_together(
    graph: ModelGraph, clauses: str, expected: list[str]
) -> None:
    text = f"query q() {{ match {{ {clauses} }} return {{ $x.handle }} }}"
    assert column(graph, text) == expected


def test_a_bound_selection_shows_type_and_stored_ends(graph: ModelGraph) -> None:
    text = """query q() { match { $b: Book { isbn: "b3" } $a: Author $b $e:* $a }
        return { $e.@type, $e.@src, $e.@dst, $e.@id } }"""
    assert [list(row.values()) for row in ask(graph, text)] == [["In", "cyd", "b3", "i1"]]


def test_a_selection_has_a_work_limit(graph: ModelGraph) -> None:
    text = "query q() { match { $a: Author $a (follows | mentors) $x } return { $a.handle } }"
    assert ask(graph, text, work_limit=1000)
    with pytest.raises(ResourceLimitError, match="traversal_work_limit"):
        ask(graph, text, work_limit=1)
    plain = "query q() { match { $a: Author $a follows $x } return { $a.handle } }"
    assert ask(graph, plain, work_limit=1)


# ---- blocks ----


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("not { $a wrote $_ }", ["cyd", "dov"]),
        ('not { $a wrote $b $b.state = "draft" }', ["cyd", "dov"]),
        ('not { $a wrote $b not { $b.state = "draft" } }', ["bob", "cyd", "dov"]),
        ("not { $a follows{2,2} $x }", ["dov"]),
        ("not { $a <follows> $x }", []),
        ("not { $a.score > 50 }", ["bob", "cyd", "dov"]),
        ("exists { $a wrote $b }", ["ann", "bob"]),
        ("count { $a wrote $b } = 0", ["cyd", "dov"]),
        ("count { $a wrote $b } >= 2", ["ann"]),
        ("exists { $a follows $x count { $x wrote $b } >= 2 }", ["cyd"]),
        ("sum($x.score) { $a follows $x } = 40", ["ann", "dov"]),
        ("sum($x.score) { $a follows $x } != 40", ["cyd"]),
        ("max($w.since) { $a $w:wrote $b } < now()", ["ann"]),
        ("count($w.since) { $a $w:wrote $b } = 0", ["bob", "cyd", "dov"]),
        ('min($b.title) { $a wrote $b } = "A quiet sea"', ["ann", "bob"]),
        ("avg($x.score) { $a <follows> $x } = 65.0", ["cyd"]),
    ],
)
def test_a_block_is_asked_once_per_row(
    graph: ModelGraph, clauses: str, expected: list[str]
) -> None:
    assert handles(graph, clauses) == expected


def test_a_block_compared_with_null_is_never_true(graph: ModelGraph) -> None:
    assert handles(graph, "count { $a wrote $b } >= $n", "$n: I64?", n=None) == []


def test_the_direction_is_inferred_in_a_block_too(graph: ModelGraph) -> None:
    text = "query q() { match { $b: Book not { $b wrote $a } } return { $b.isbn } }"
    assert column(graph, text) == ["b3"]


def test_a_variable_declared_after_a_block_is_another_one(graph: ModelGraph) -> None:
    text = """query q() { match { $a: Author exists { $a wrote $b } $b: Book }
        return { $a.handle, $b.isbn } }"""
    assert len(ask(graph, text)) == 2 * 3


def test_a_block_sum_of_integers_is_exact_and_rounded_once() -> None:
    graph = people("ab")
    change(graph, 'update P set { n: 9007199254740993 } where k = "b"')
    text = "query q() {{ match {{ $p: P sum($x.n) {{ $p e $x }} {} }} return {{ $p.k }} }}"
    assert column(graph, text.format("> 9007199254740992")) == []
    assert column(graph, text.format("= 9007199254740992")) == ["a"]


# ---- results ----


def test_constants_and_parameters_are_columns(graph: ModelGraph) -> None:
    text = """query q($p: F32, $d: Date?) { match { $a: Author { handle: "ann" } }
        return { $p, $d, "x", 1 as one, now(), $a.score > 50 as high } }"""
    assert ask(graph, text, {"p": 0.99}) == [
        {
            "p": 0.99,
            "d": None,
            "literal": "x",
            "one": 1,
            "__nanograph_now": "2023-11-14T22:13:20.000Z",
            "high": True,
        }
    ]


def test_a_bare_node_is_an_object_without_blobs_and_vectors(graph: ModelGraph) -> None:
    text = 'query q() { match { $b: Book { isbn: "b1" } } return { $b } }'
    assert ask(graph, text) == [
        {
            "b": {
                "@id": "b1",
                "blurb": None,
                "isbn": "b1",
                "state": "out",
                "tags": ["sea", "war"],
                "title": "The Sea Wars",
            }
        }
    ]


def test_groups(graph: ModelGraph) -> None:
    text = "query q() { match { $a: Author $a wrote $b } return { $a.name, count($b) as n } }"
    assert ask(graph, text) == [{"a.name": "Ann", "n": 2}, {"a.name": "Bob", "n": 1}]


def test_null_is_a_group_of_its_own(graph: ModelGraph) -> None:
    text = """query q() { match { $a: Author } return { $a.score, count($a) as n,
        sum($a.score) as s, avg($a.score) as m, min($a.handle) as first, max($a.bornOn) as born }
        order { $a.score } }"""
    assert ask(graph, text) == [
        {"a.score": None, "n": 1, "s": None, "m": None, "first": "cyd", "born": None},
        {"a.score": 40.0, "n": 2, "s": 80.0, "m": 40.0, "first": "bob", "born": None},
        {"a.score": 90.0, "n": 1, "s": 90.0, "m": 90.0, "first": "ann", "born": "1980-01-02"},
    ]


def test_an_aggregate_of_nothing_is_one_row_unless_it_is_grouped(graph: ModelGraph) -> None:
    match = 'match { $a: Author { handle: "zed" } }'
    text = f"query q() {{ {match} return {{ count($a) as n, min($a.bornOn) as b }} }}"
    assert ask(graph, text) == [{"n": 0, "b": None}]
    assert ask(graph, f"query q() {{ {match} return {{ $a.name, count($a) as n }} }}") == []


def test_a_count_of_a_property_skips_nulls(graph: ModelGraph) -> None:
    text = "query q() { match { $a: Author } return { count($a.score) as n, count($a) as all } }"
    assert ask(graph, text) == [{"n": 3, "all": 4}]


def test_a_group_may_be_a_node_and_may_order_by_it(graph: ModelGraph) -> None:
    text = """query q() { match { $a: Author $a wrote $b } return { $a, count($b) as n }
        order { $a desc } }"""
    assert [(row["a"]["@id"], row["n"]) for row in ask(graph, text)] == [("bob", 1), ("ann", 2)]


def test_an_order_key_may_repeat_an_aggregate(graph: ModelGraph) -> None:
    text = """query q() { match { $a: Author $a wrote $b } return { $a.handle, count($b) as n }
        order { count($b) desc } limit 1 }"""
    assert ask(graph, text) == [{"a.handle": "ann", "n": 2}]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("$a.score", ["cyd", "bob", "dov", "ann"]),
        ("$a.score desc", ["ann", "bob", "dov", "cyd"]),
        ("$a.score desc, $a.handle desc", ["ann", "dov", "bob", "cyd"]),
        ("$a.score > 50 desc, $a.handle desc", ["ann", "dov", "bob", "cyd"]),
        ("h desc", ["dov", "cyd", "bob", "ann"]),
    ],
)
def test_null_is_smallest_and_ids_break_ties(
    graph: ModelGraph, order: str, expected: list[str]
) -> None:
    high = ", $a.score > 50 as high" if "50" in order else ""
    returned = f"return {{ $a.handle as h{high} }} order {{ {order} }}"
    text = f"query q() {{ match {{ $a: Author }} {returned} }}"
    assert [row["h"] for row in ask(graph, text)] == expected
    assert [row["h"] for row in ask(graph, text[:-1] + "limit 2 }")] == expected[:2]


def test_ties_of_bound_edges_are_broken_by_their_ids() -> None:
    graph = people("ab", "ab", "ac")
    text = "query q() { match { $p: P $p $w:e $x } return { $w.@id } order { $p.k } }"
    assert column(graph, text) == ["e0", "e1", "e2"]


def test_no_limit_is_too_large(graph: ModelGraph) -> None:
    text = "query q() {{ match {{ $a: Author }} return {{ $a.handle }} limit {} }}"
    assert len(ask(graph, text.format(2**64 - 1))) == 4
    assert ask(graph, text.format(0)) == []

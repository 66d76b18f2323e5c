from __future__ import annotations

import pytest

from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_descriptor import Descriptor, describe_query
from omnigraph.schema import load_catalog

CATALOG = load_catalog("""
node Author { handle: String @key  name: String?  score: F32?  rank: I32?  vec: Vector(3)? }
node Book {
  isbn: String @key
  copies: U64
  days: [Date]?
  printed: DateTime?
  born: Date
  state: enum(draft, out)
  lent: Bool
}
node Shop { town: String }
edge Wrote: Author -> Book { role: String? }
edge Follows: Author -> Author
edge Sells: Shop -> Book
""")


def described(text: str) -> Descriptor:
    return describe_query(compile_query(text, CATALOG).checked, CATALOG)


def uses(text: str) -> tuple[list[str], list[str]]:
    found = described(text)
    return (
        [f"{use.to_json()['kind']} {use.type_name}" for use in found.reads],
        [f"{use.to_json()['kind']} {use.type_name}" for use in found.writes],
    )


def test_every_type_has_a_kind() -> None:
    found = described("""
    query q() {
      match { $b: Book  $a: Author }
      return {
        $b, $b.isbn, $b.copies, $b.days, $b.printed, $b.born, $b.state, $b.lent,
        $a.rank, $a.score, $a.vec
      }
    }
    """).to_json()
    assert found["result"] == [
        {"name": "b", "kind": "object", "nullable": False},
        {"name": "isbn", "kind": "string", "nullable": False},
        {"name": "copies", "kind": "bigint", "nullable": False},
        {"name": "days", "kind": "list", "item_kind": "date", "nullable": True},
        {"name": "printed", "kind": "datetime", "nullable": True},
        {"name": "born", "kind": "date", "nullable": False},
        {"name": "state", "kind": "string", "nullable": False},
        {"name": "lent", "kind": "bool", "nullable": False},
        {"name": "rank", "kind": "int", "nullable": True},
        {"name": "score", "kind": "float", "nullable": True},
        {"name": "vec", "kind": "vector", "vector_dim": 3, "nullable": True},
    ]
    assert found["writes"] == []


def test_a_name_is_the_alias_or_a_short_word() -> None:
    found = described("""
    query q($x: I64, $v: Vector(3)) {
      match { $a: Author }
      return { $a.name as who, $a.@id, 1, $x, now(), nearest($a.vec, $v), $a.rank > 1 as high }
      order { nearest($a.vec, $v) }
      limit 1
    }
    """)
    names = [field.name for field in found.result]
    assert names == ["who", "@id", "literal", "x", "now", "nearest", "high"]


def test_an_alias_that_looks_like_a_default_name_is_still_an_alias() -> None:
    found = described("query q() { match { $p: Author } return { count($p) as p } }")
    assert [field.name for field in found.result] == ["p"]
    found = described("query q() { match { $p: Author } return { count($p) } }")
    assert [field.name for field in found.result] == ["count"]


def test_aggregates_are_named_by_their_function_and_may_be_null() -> None:
    found = described("""
    query q() {
      match { $a: Author }
      return { $a.handle, count($a), sum($a.score), max($a.rank) as top }
    }
    """)
    assert [(each.name, each.kind, each.is_nullable) for each in found.result] == [
        ("handle", "string", False),
        ("count", "bigint", True),
        ("sum", "float", True),
        ("top", "int", True),
    ]


def test_a_read_reads_bound_types_edges_and_both_their_ends_through_blocks() -> None:
    reads, writes = uses("""
    query q() {
      match { $a: Author  not { $a wrote $b  exists { $_ sells $b } } }
      return { $a.handle }
    }
    """)
    assert reads == ["node Author", "node Book", "node Shop", "edge Sells", "edge Wrote"]
    assert writes == []


@pytest.mark.parametrize(
    ("statement", "reads", "writes"),
    [
        ('insert Author { handle: "a" }', ["node Author"], ["node Author"]),
        ('update Author set { name: "a" } where handle = "b"', ["node Author"], ["node Author"]),
        (
            'insert Wrote { from: "a", to: "b" }',
            ["node Author", "node Book", "edge Wrote"],
            ["edge Wrote"],
        ),
        ('delete Wrote where role = "x"', ["edge Wrote"], ["edge Wrote"]),
        (
            'delete Book where isbn = "1"',
            ["node Book", "edge Sells", "edge Wrote"],
            ["node Book", "edge Sells", "edge Wrote"],
        ),
        (
            'delete Author where handle = "1"',
            ["node Author", "edge Follows", "edge Wrote"],
            ["node Author", "edge Follows", "edge Wrote"],
        ),
    ],
)
def test_a_mutation_reads_and_writes_its_targets(
    statement: str, reads: list[str], writes: list[str]
) -> None:
    assert uses(f"query q() {{ {statement} }}") == (reads, writes)
    assert described(f"query q() {{ {statement} }}").result == ()

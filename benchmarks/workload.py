"""A seeded schema and queries of the size of a large project."""

from __future__ import annotations

import random
from collections.abc import Iterator

NODE_TYPES = 17
EDGE_TYPES = 67
QUERIES = 1000
_SEED = 7


def schema_text() -> str:
    """The schema."""
    pick = random.Random(_SEED)
    lines = ["interface Named { name: String @index }"]
    for number in range(NODE_TYPES):
        lines += [
            f"node Kind{number} implements Named {{",
            "  slug: String @key",
            "  state: enum(open, busy, done)",
            "  tags: [String]?",
            "  score: F64?",
            "  seen: DateTime?",
            "  body: String? @index",
            "  vec: Vector(8)?",
            "  @range(score, 0..100)",
            "}",
        ]
    for number in range(EDGE_TYPES):
        source, target = pick.randrange(NODE_TYPES), pick.randrange(NODE_TYPES)
        lines.append(
            f"edge Link{number}: Kind{source} -> Kind{target} {{ weight: F64?  @key(@src, @dst) }}"
        )
    return "\n".join(lines) + "\n"


def edge_ends() -> list[tuple[int, int]]:
    """The node types each edge type joins, as numbers."""
    pick = random.Random(_SEED)
    return [(pick.randrange(NODE_TYPES), pick.randrange(NODE_TYPES)) for _ in range(EDGE_TYPES)]


def queries_text(count: int = QUERIES) -> str:
    """The queries, each different."""
    return "\n".join(_queries(count)) + "\n"


def _queries(count: int) -> Iterator[str]:
    ends = edge_ends()
    for number in range(count):
        edge = number % EDGE_TYPES
        source, target = ends[edge]
        match number % 5:
            case 0:
                yield _lookup(number, edge, source)
            case 1:
                yield _aggregate(number, edge, source)
            case 2:
                yield _search(number, edge, source)
            case 3:
                yield _blocks(number, edge, source, target)
            case _:
                yield _update(number, source)


def _lookup(number: int, edge: int, source: int) -> str:
    return f"""query q{number}($slug: String, $low: F64) @description("neighbours of one") {{
  match {{
    $a: Kind{source} {{ slug: $slug, state: "open" }}
    $a $w:link{edge} $b
    $b.score >= $low or $b.seen is null
    $w.weight > 0.5
  }}
  return {{ $a.slug, $b.name as name, $w.weight as weight, $b.score > 50.0 as high }}
  order {{ weight desc, name }}
  limit 20
}}"""


def _aggregate(number: int, edge: int, source: int) -> str:
    return f"""query q{number}($states: [String]) {{
  match {{
    $a: Kind{source}
    $a link{edge} $b
    $b.state in $states
    "red" in $b.tags
  }}
  return {{ $a.state, count($b) as n, avg($b.score) as mean, max($b.seen) as last }}
  order {{ n desc }}
  limit 10
}}"""


def _search(number: int, edge: int, source: int) -> str:
    return f"""query q{number}($q: String, $v: Vector(8)) {{
  match {{
    $a: Kind{source}
    search($a.body, $q)
    exists {{ $a link{edge} $_ }}
  }}
  return {{ $a.slug, $a.name }}
  order {{ rrf(nearest($a.vec, $v), bm25($a.body, $q)) }}
  limit 10
}}"""


def _blocks(number: int, edge: int, source: int, target: int) -> str:
    return f"""query q{number}($n: I64) {{
  match {{
    $a: Kind{source}
    $b: Kind{target}
    $a link{edge} $b
    count {{ $a * $c  $c: Kind{target} }} >= $n
    not {{ $a link{edge} $x  $x.state = "done" }}
  }}
  return {{ $a, $b.@id as id }}
  order {{ id }}
}}"""


def _update(number: int, source: int) -> str:
    return f"""query q{number}($slug: String, $score: F64?, $tags: [String]?, $seen: DateTime?,
  $body: String?, $vec: Vector(8)?) {{
  update Kind{source} set {{ score: $score, tags: $tags, seen: $seen, body: $body, vec: $vec }}
    where slug = $slug and (seen is null or seen < now())
}}"""

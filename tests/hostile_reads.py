"""Reads that would take a process for itself, and a graph to run them on.

Each of them must answer, or end with a typed error, soon after its time is over.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph import Graph

DIMENSION = 64
PEOPLE = 3_000
CLIQUE = 400
DOCUMENTS = 20_000
SCHEMA = f"""
node Person {{ name: String @key age: I64? bio: String? born: DateTime? }}
node Document {{ slug: String @key body: String @index vec: Vector({DIMENSION}) @index }}
edge Knows: Person -> Person
edge Likes: Person -> Person
"""


def fill(graph: Graph) -> None:
    """A clique, a crowd around it, and documents."""
    random = np.random.default_rng(7)
    main = graph.branch()
    names = np.array([f"p{number}" for number in range(PEOPLE)])
    bios = ["likes " + "graphs and tea " * (number % 9) for number in range(PEOPLE)]
    ages = pa.array(random.integers(0, 90, PEOPLE), pa.int64())
    people = pa.table({"name": names, "age": ages, "bio": bios})
    main.load(people, type="Person", mode="append")
    starts, ends = (each.ravel() for each in np.meshgrid(names[:CLIQUE], names[:CLIQUE]))
    main.load(pa.table({"from": starts, "to": ends}), type="Knows", mode="append")
    likes = pa.table({"from": random.choice(names, 60_000), "to": random.choice(names, 60_000)})
    main.load(likes, type="Likes", mode="append")
    vectors = random.standard_normal((DOCUMENTS, DIMENSION)).astype(np.float32)
    words = random.choice(["graph", "lake", "house", "branch", "merge"], (DOCUMENTS, 12))
    documents = pa.table(
        {
            "slug": [f"d{number}" for number in range(DOCUMENTS)],
            "body": [" ".join(row) for row in words],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )
    main.load(documents, type="Document", mode="append")


def _read(match: str, returned: str = "count($p) as n", more: str = "") -> str:
    return f"query q() {{ match {{ $p: Person\n{match} }} return {{ {returned} }} {more} }}"


def _people(count: int) -> str:
    return "  ".join(f"$v{number}: Person" for number in range(count))


def _repeated(text: str, count: int, between: str = "\n") -> str:
    return between.join(text.format(number) for number in range(count))


_VECTOR = ", ".join(["0.5"] * DIMENSION)
_DIFFER = "$v0.age != $v1.age  $v1.age != $v2.age  $v2.age != $v3.age"

_LISTED = "query q($l: [{}]) {{ match {{ $p: Person $p.{} in $l }} return {{ count($p) as n }} }}"


def _documents(test: str, count: int, between: str) -> str:
    tests = _repeated(test, count, between)
    return f"query q() {{ match {{ $d: Document {tests} }} return {{ $d.slug }} }}"


HOSTILE: dict[str, str] = {
    "an or chain of a megabyte": _read(_repeated('$p.name = "x{}"', 50_000, " or ")),
    "a million characters of filters": _read(_repeated('$p.name != "x{}"', 50_000)),
    "a list of 100,000 texts": _read(
        f"$p.name in [{_repeated(chr(34) + 'n{}' + chr(34), 100_000, ', ')}]"
    ),
    "a literal of four megabytes": _read(f'$p.bio contains "{"tea " * 1_000_000}"'),
    "parentheses without end": _read("(" * 100_000 + "$p.age = 1" + ")" * 100_000),
    "blocks in blocks": _read("exists { $p likes $x " * 60 + "}" * 60),
    "20,000 blocks": _read(_repeated("not {{ $p knows $x }}", 20_000)),
    "20,000 hops": _read(_repeated("$p likes $v{}", 20_000)),
    "10,000 variables": _read(_people(10_000)),
    "30,000 columns": _read("", _repeated("$p.name as c{}", 30_000, ", ")),
    "the largest hop bound": _read("$p likes{1,4294967295} $q"),
    "twenty hops in a clique": _read("$p knows{1,20} $q  $q knows{1,20} $r  $p.age != $r.age"),
    "a path through a clique": _read(
        "$p knows $a  $a knows $b  $b knows $c  $p.age != $a.age  $a.age != $b.age",
        "$p.name, $c.name, count($b) as n",
    ),
    "a product": _read(f"{_people(4)} {_DIFFER}"),
    "a sorted product": _read(
        f"{_people(3)} $v0.age != $v1.age", "$p.name, $v2.name", "order { $v2.bio, $p.name }"
    ),
    "groups of a product": _read(
        f"{_people(4)} {_DIFFER}", "$v0.name, $v3.name, count($p) as n, avg($v1.age) as a"
    ),
    "a text test of a product": _read(f"{_people(3)} $v0.bio contains $v1.name"),
    "an aggregate of blocks": _read("count { $p likes $x  $x likes $y  $y likes $z } > 100000"),
    "all vectors ranked": (
        f"query q() {{ match {{ $d: Document }} return {{ $d.slug }} "
        f"order {{ nearest($d.vec, [{_VECTOR}]) }} limit 20000 }}"
    ),
    "two rankings fused": (
        f"query q() {{ match {{ $d: Document }} return {{ $d.slug }} order "
        f'{{ rrf(nearest($d.vec, [{_VECTOR}]), bm25($d.body, "graph lake house")) desc }} '
        "limit 20000 }"
    ),
    "any of 3,000 parts of a text": _documents('$d.body contains "z{}"', 3_000, " or "),
    "none of 3,000 parts of a text": _documents('not ($d.body contains "z{}")', 3_000, " and "),
    "any of 3,000 parts of several texts": _documents(
        '($d.body contains $d.slug and $d.slug != "z{}")', 3_000, " or "
    ),
    "all shortest ways": _read(
        "for $p, $s in betweenness(edges: <*>, samples: 9999)", "sum($s) as n"
    ),
    "all pairs that have friends in common": _read("for $p, $o, $s in similar(edges: *, k: 9999)"),
    "a list of 1,500,000 integers": _LISTED.format("I64", "age"),
    "a list of 1,500,000 texts": _LISTED.format("String", "name"),
    "a list of 500,000 times": _LISTED.format("DateTime", "born"),
}


def params_of(name: str) -> dict[str, object] | None:
    """The parameters of a hostile read, made anew: they are large."""
    match name:
        case "a list of 1,500,000 integers":
            return {"l": list(range(1_500_000))}
        case "a list of 1,500,000 texts":
            return {"l": [f"n{number}" for number in range(1_500_000)]}
        case "a list of 500,000 times":
            return {"l": ["2024-05-06T07:08:09.5+02:00"] * 500_000}
        case _:
            return None

"""Writes the golden store of format 2, which holds one of everything that a graph can store:

    PYTHONPATH=tests .venv/bin/python -m golden.write_format_2 ARCHIVE

A store of a format is written once, by a program of its time, and never again: that old graphs are
read is what it proves. A change of the format gets a store and a script of its own.
"""

from __future__ import annotations

import base64
import sys
from datetime import UTC, datetime
from pathlib import Path

import omnigraph
from golden.golden_archive import pack
from omnigraph import Graph

SCHEMA = """\
interface Named { name: String }

node Person @description("Someone") implements Named {
  name: String @key
  age: I32?
  email: String? @unique
  role: enum(staff, guest)?
  nicknames: [String]?
  team: String?
  @range(age, 0..150)
}

node Document {
  code: String @key
  title: String @index
  body: String?
  scan: Blob?
  embedding: Vector(4)? @index
}

node Reading {
  at: String @key
  flag: Bool
  small: I32
  large: I64
  natural: U32
  huge: U64
  single: F32
  double: F64
  day: Date
  moment: DateTime
  levels: [I64]?
  ratios: [F64]?
  days: [Date]?
  retired: String?
}

edge Knows: Person -> Person { since: Date? }
edge Wrote: Person -> Document @card(0..10)
"""
# A rename of a type and of a property, a widened and a dropped property, and added ones.
NEXT_SCHEMA = (
    SCHEMA.replace("node Reading {", 'node Measurement @rename_from("Reading") {')
    .replace("  small: I32\n", "  small: I64\n")
    .replace("  retired: String?\n", "  note: String?\n")
    .replace("  age: I32?", '  years: I32? @rename_from("age")')
    .replace("@range(age,", "@range(years,")
)
MANY = 1_200
QUERIES = """\
query raise() { update Person set { years: 37 } where name = "ada" }
query leave() { delete Person where name = "p0003" }
"""


def write(folder: Path) -> None:
    """Write the store into a folder that does not exist."""
    graph = omnigraph.create(folder, schema=SCHEMA, actor="ada")
    main = graph.branch()
    main.load(list_records(), mode="append", message="one of each type", key="import-1")
    # Its change set is too large for its record.
    people = [_node("Person", name=f"p{number:04}", age=number % 90) for number in range(MANY)]
    main.load(people, mode="append", message="many people")
    graph.tag("v1")
    main.ensure_indices()
    review = graph.create_branch("review/x")
    review.load([_node("Person", name="dora", age=50)], mode="append", message="dora")
    graph.tag("drafted", review)
    main.load([_node("Person", name="eve", age=51)], mode="append", message="eve")
    main.merge("review/x", message="review merged")
    main.apply_schema(NEXT_SCHEMA, message="names that last")
    main.mutate(QUERIES, name="raise")
    main.mutate(QUERIES, name="leave")
    main.revert(main.head, message="she stays")
    graph.create_branch("short")
    graph.delete_branch("short")
    graph.tag("passing")
    graph.delete_tag("passing")
    _propose(graph)
    main.optimize()
    graph.close()


def _propose(graph: Graph) -> None:
    """A proposal that was merged, and one that is open."""
    for name, title in (("fay", "Hire fay"), ("gus", "Hire gus")):
        branch = graph.create_branch(f"hire/{name}")
        branch.load([_node("Person", name=name, years=33)], mode="append", message=title)
        proposal = graph.open_proposal(branch.name, title=title)
        proposal.comment("Who is this?")
        if name == "fay":
            proposal.merge()


def list_records() -> list[dict[str, object]]:
    """A few entities with a value of every type, and without."""
    return [
        _node("Person", name="ada", age=36, email="ada@example.org", role="staff"),
        _node("Person", name="bob", nicknames=["Bobby", "Rob"], team="core"),
        _node("Person", name="Zoë 🜨", age=0, nicknames=[]),
        _node(
            "Document",
            code="d1",
            title="Notes on the engine",
            body="The engine weaves patterns.",
            scan="base64:" + base64.b64encode(bytes(range(256)) * 40).decode(),
            embedding=[0.5, -1.0, 0.25, 2.0],
        ),
        _node("Document", code="d2", title="Empty", scan="base64:"),
        _node("Document", code="d3", title="Nothing"),
        _node("Reading", **_READING),
        {"edge": "Knows", "from": "ada", "to": "bob", "data": {"since": "2020-05-01"}},
        {"edge": "Knows", "from": "bob", "to": "Zoë 🜨", "data": {}},
        {"edge": "Wrote", "from": "ada", "to": "d1", "data": {}},
    ]


_READING: dict[str, object] = {
    "at": "r1",
    "flag": True,
    "small": -(2**31),
    "large": -(2**63),
    "natural": 2**32 - 1,
    "huge": 2**64 - 1,
    "single": 0.5,
    "double": 1e300,
    "day": "1969-12-31",
    "moment": datetime(2026, 11, 19, 12, 30, 15, 250_000, tzinfo=UTC).isoformat(),
    "levels": [1, 2, 3],
    "ratios": [0.5, -0.0],
    "days": ["2020-02-29"],
    "retired": "gone",
}


def _node(type_name: str, **data: object) -> dict[str, object]:
    return {"type": type_name, "data": data}


if __name__ == "__main__":
    pack(write, Path(sys.argv[1]))

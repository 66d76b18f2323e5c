"""The graph that the pages show: a team with notes, and a branch that conflicts with main."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import omnigraph

ACTORS: Final = ("ada", "cyd", "dan")
SCHEMA: Final = """\
node Person @description("Who works here") {
  handle: String @key
  name: String @index
  title: String?
  level: enum(junior, senior)
  age: I64?
}
node Note {
  slug: String @key
  body: String @index
  vec: Vector(2)?
}
edge Knows: Person -> Person { since: Date? }
edge Wrote: Person -> Note
"""
# Cyd reads people and who knows whom, and dan nothing.
POLICY: Final = """\
version: 1
groups: {all: [ada], some: [cyd]}
rules:
  - id: everything
    allow: {actors: {group: all}, actions: [read, change, export, branch_create, branch_delete,
      branch_merge, schema_apply]}
  - id: people
    allow: {actors: {group: some}, actions: [read], types: [Person, Knows]}
"""
PEOPLE: Final = 60
RETITLE: Final = """\
query retitle($handle: String, $title: String) {
  update Person set { title: $title } where handle = $handle
}
"""


def create_graph(path: Path) -> str:
    with omnigraph.create(path, schema=SCHEMA, actor="ada", durable=False) as graph:
        main = graph.branch()
        main.load(list(_iter_records()), mode="append", message="everybody who is here")
        graph.tag("start")
        review = graph.create_branch("review")
        hire = {"handle": "zoe", "name": "Zoe Lang", "level": "junior", "age": 29}
        review.load([{"type": "Person", "data": hire}], mode="append", message="Zoe joins")
        knows = {"edge": "Knows", "from": "zoe", "to": "p000"}
        review.load([knows], mode="append", message="Zoe knows the founder")
        review.mutate(RETITLE, params={"handle": "p001", "title": "Lead"}, message="a new lead")
        main.mutate(RETITLE, params={"handle": "p001", "title": "Head"}, message="a new head")
    return str(path)


def _iter_records() -> list[dict[str, object]]:
    people: list[dict[str, object]] = [
        {
            "type": "Person",
            "data": {
                "handle": f"p{at:03}",
                "name": f"Person {at}",
                "title": "Engineer" if at % 2 else None,
                "level": "senior" if at % 3 else "junior",
                # More digits than a number of JavaScript holds.
                "age": 2**53 + 1 if at == 0 else 20 + at,
            },
        }
        for at in range(PEOPLE)
    ]
    notes: list[dict[str, object]] = [
        {"type": "Note", "data": {"slug": f"n{at}", "body": text, "vec": [at, 1]}}
        for at, text in enumerate(("storms at sea", "a harbour in the sun", "<b>quiet</b> hills"))
    ]
    chain: list[dict[str, object]] = [
        {"edge": "Knows", "from": f"p{at:03}", "to": f"p{at + 1:03}"} for at in range(PEOPLE - 1)
    ]
    wrote: list[dict[str, object]] = [
        {"edge": "Wrote", "from": "p000", "to": f"n{at}"} for at in range(3)
    ]
    return [*people, *notes, *chain, *wrote]

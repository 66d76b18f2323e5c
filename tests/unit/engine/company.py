"""A small company graph, for tests of the engine."""

from __future__ import annotations

from typing import Any

import omnigraph
from omnigraph import Graph
from places import fresh_uri

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  badge: Blob?
}

node Team {
  name: String @key
}

node Note {
  text: String
}

edge MemberOf: Person -> Team {
  since: Date?
}

edge Knows: Person -> Person
"""

QUERIES = """
query everybody() {
  match { $p: Person }
  return { $p.name, $p.age }
  order { $p.name }
}

query aged($at_least: I32) {
  match { $p: Person  $p.age >= $at_least }
  return { $p.name }
  order { $p.name }
}
"""

CHANGES = """
query hire($name: String, $age: I32?) {
  insert Person { name: $name, age: $age }
}

query join($who: String, $team: String) {
  insert MemberOf { from: $who, to: $team }
}

query birthday($who: String, $age: I32) {
  update Person set { age: $age } where name = $who
}

query leave($who: String) {
  delete Person where name = $who
}
"""

PEOPLE: list[dict[str, Any]] = [
    {"type": "Person", "data": {"name": "Ada", "age": 36}},
    {"type": "Person", "data": {"name": "Bob", "age": 41}},
    {"type": "Team", "data": {"name": "Engines"}},
    {"edge": "MemberOf", "from": "Ada", "to": "Engines", "data": {"since": "1840-01-02"}},
]


def company(uri: str | None = None, **options: Any) -> Graph:
    """A fresh graph with two people and a team."""
    graph = omnigraph.create(uri or fresh_uri(), schema=SCHEMA, **options)
    graph.branch().load(PEOPLE, mode="append")
    return graph


def person(name: str, age: int | None = None) -> dict[str, Any]:
    """A record of one person."""
    data = {"name": name} if age is None else {"name": name, "age": age}
    return {"type": "Person", "data": data}


def ages(at: omnigraph.Branch | omnigraph.Snapshot) -> dict[str, int | None]:
    """Everybody's age."""
    rows = at.query(QUERIES, name="everybody").to_pylist()
    return {row["p.name"]: row["p.age"] for row in rows}

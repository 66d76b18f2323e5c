"""A small graph with every kind of rule, and writes whose parts must all arrive or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import omnigraph
from omnigraph import Branch, Graph

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  age: I32?
  photo: Blob?
  @range(age, 0..150)
}
node Team {
  name: String @key
  size: I64?
}
node Note {
  text: String
}
edge Knows: Person -> Person {
  since: Date?
}
edge Leads: Person -> Team @card(0..1)
edge MemberOf: Person -> Team {
  @key(@src, @dst)
}
"""

MUTATIONS = """
query add_person($name: String, $age: I32) { insert Person { name: $name, age: $age } }
query add_member($name: String, $team: String) {
  insert Person { name: $name }
  insert Team { name: $team }
  insert MemberOf { from: $name, to: $team }
}
query claim($name: String, $email: String) {
  update Person set { email: $email } where name = $name
}
query age($name: String, $age: I32) { update Person set { age: $age } where name = $name }
query knows($a: String, $b: String) { insert Knows { from: $a, to: $b } }
query leads($a: String, $b: String) { insert Leads { from: $a, to: $b } }
query birthday($age: I32) { update Person set { age: $age } where age < 50 }
query forget($a: String) { delete Knows where from = $a }
query leave($name: String) { delete Person where name = $name }
query promote($team: String) {
  match { $p: Person  $p memberOf $t  $t.name = $team }
  update $p set { age: coalesce($p.age, 0) + 1 }
  upsert Team { name: $p.name }
}
query rehire($name: String) {
  delete Person where name = $name
  create Person { name: $name, age: 1 }
  match { $p: Person  $p.age = 1 }
  update $p set { age: $p.age + 1 }
}
query note($text: String) { insert Note { text: $text } }
"""


def lines(*records: dict[str, object]) -> str:
    """Records as JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def person(name: str, **values: object) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, **values}}


def rows(branch: Branch, query: str) -> list[dict[str, object]]:
    """The rows of a single-type read."""
    return branch.query(query).to_pylist()


def names(branch: Branch, type_name: str = "Person") -> set[str]:
    """The names of all people or teams."""
    text = f"query names() {{ match {{ $x: {type_name} }} return {{ $x.name }} }}"
    return {str(row["x.name"]) for row in rows(branch, text)}


def exported(graph: Graph, branch: str = "main") -> bytes:
    """Everything on a branch, in one stable text."""
    return b"".join(graph.branch(branch).export())


def create(uri: str | Path) -> Graph:
    return omnigraph.create(str(uri), schema=SCHEMA, durable=False)


def reopen(uri: str | Path) -> Graph:
    return omnigraph.open(str(uri), durable=False)


def problems(graph: Graph) -> Iterator[str]:
    """What `check` finds, as text."""
    return (str(problem) for problem in graph.check().problems)

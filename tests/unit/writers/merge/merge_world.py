"""A small graph for merges: people and what they know, with ways to change them."""

from __future__ import annotations

import json
import uuid

import omnigraph
from omnigraph import Branch, Graph, Snapshot

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  email: String? @unique
  tags: [String]?
  vec: Vector(4)?
  photo: Blob?
  first: String?
  last: String?
  @range(age, 0..150)
  @unique(first, last)
}
edge Knows: Person -> Person { note: String? }
edge Leads: Person -> Person @card(0..1)
"""


def person(name: str, **values: object) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, **values}}


def edge(type_name: str, source: str, target: str, **values: object) -> dict[str, object]:
    return {"edge": type_name, "from": source, "to": target, "data": values}


def new_graph(*records: dict[str, object], schema: str = SCHEMA, uri: str | None = None) -> Graph:
    """A graph whose main branch holds some records."""
    graph = omnigraph.create(uri or f"memory://{uuid.uuid4().hex}", schema=schema, durable=False)
    # Nothing happens behind the scenes: outcomes and pins depend on the test alone.
    graph._session.resources.publishers.on_published = None
    if records:
        graph.branch().load(list(records), mode="append")
    return graph


def four_people() -> Graph:
    """The fixture of the truth table."""
    return new_graph(
        person("alice", age=30),
        person("bob"),
        person("carol"),
        person("dan"),
        {**edge("Knows", "bob", "carol"), "id": "k1"},
    )


def put(branch: Branch, *records: dict[str, object]) -> None:
    """Write records, each of which replaces its entity."""
    branch.load(list(records), mode="merge")


def change(branch: Branch, statement: str) -> None:
    """Run one statement."""
    branch.mutate(f"query change() {{ {statement} }}")


def set_age(branch: Branch, name: str, age: int) -> None:
    change(branch, f'update Person set {{ age: {age} }} where name = "{name}"')


def remove(branch: Branch, name: str) -> None:
    change(branch, f'delete Person where name = "{name}"')


def entities(branch: Branch | Snapshot) -> set[str]:
    """Everything on a branch, a line of JSON each; ids that were drawn at random left out."""
    found = set()
    for line in b"".join(branch.export()).decode().splitlines():
        record = json.loads(line)
        if "edge" in record:
            record.pop("id")
        found.add(json.dumps(record, sort_keys=True))
    return found


def ages(branch: Branch | Snapshot) -> dict[str, int | None]:
    text = "query ages() { match { $p: Person } return { $p.name, $p.age } }"
    return {row["p.name"]: row["p.age"] for row in branch.query(text).to_pylist()}


def problems(graph: Graph) -> list[str]:
    return [str(problem) for problem in graph.check().problems]

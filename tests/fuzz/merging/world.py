"""A schema with every kind of rule, and random records and mutations for it and what it becomes."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  age: I32?
  tags: [String]?
  photo: Blob?
  face: Vector(2)?
  hits: I64? merge counter
  marks: [String]? merge set
  best: String? merge max
  lat: F32?
  lon: F32?
  @range(age, 0..150)
  @together(lat, lon)
}
node Team { name: String @key }
node Note { text: String }
edge Knows: Person -> Person { since: Date? }
edge Leads: Person -> Team @card(0..1)
edge MemberOf: Person -> Team { @key(@src, @dst) }
"""
SEED: list[dict[str, Any]] = [
    {"type": "Person", "data": {"name": "ada", "email": "a@x", "photo": "base64:AAEC"}},
    {"type": "Person", "data": {"name": "bob", "age": 7, "face": [1.0, 2.0]}},
    {"type": "Person", "data": {"name": "cem", "hits": 1, "marks": ["a", "b"], "best": "x"}},
    {"type": "Team", "data": {"name": "ada"}},
    {"type": "Team", "data": {"name": "bob"}},
    {"type": "Note", "id": "n1", "data": {"text": "hello"}},
    {"edge": "Knows", "id": "e1", "from": "ada", "to": "bob"},
    {"edge": "Leads", "id": "e1", "from": "ada", "to": "ada"},
    {"edge": "MemberOf", "from": "bob", "to": "ada"},
]

# Few of everything, so that branches meet.
NAMES = ("ada", "bob", "cem", "o'h")
IDS = {NodeType: ("n1", "n2", "n3"), EdgeType: ("e1", "e2", "e3")}
VALUES: dict[str, tuple[Any, ...]] = {
    "String": ("x", "y", "", "a, b"),
    "I32": (0, 7, 8, 150),
    "I64": (0, 1, 2, 2**60),
    "F32": (1.0, 2.0),
    "F64": (0.0, 7.0, 150.0),
    "Date": ("2020-01-01", "2021-01-01"),
    "[String]": ([], ["a, b"], ["a", "b"]),
    "Blob": ("base64:", "base64:AAEC", "base64:AAED"),
    "Vector(2)": ([1.0, 2.0], [1.0, 3.0]),
}
MAILS = ("a@x", "b@x", "c@x")


def record(dice: Random, catalog: Catalog) -> dict[str, Any]:
    """A node or an edge of any type; that of an edge may name nodes that do not exist."""
    # Most of what happens happens to people, as they have the most to lose.
    types: list[NodeType | EdgeType] = [catalog.nodes["Person"]] * 3
    types += [*catalog.nodes.values(), *catalog.edges.values()]
    type_ = dice.choice(types)
    data = {
        property_.name: value
        for property_ in type_.properties.values()
        if (value := _value(dice, type_, property_)) is not None
    }
    given_id = {} if type_.key else {"id": dice.choice(IDS[type(type_)])}
    if isinstance(type_, NodeType):
        return {"type": type_.name, **given_id, "data": data}
    ends = {
        "from": _end(dice, catalog.nodes[type_.source]),
        "to": _end(dice, catalog.nodes[type_.target]),
    }
    return {"edge": type_.name, **given_id, **ends, "data": data}


def mutation(dice: Random, catalog: Catalog) -> str:
    """Mostly a deletion of an entity or an update of a property of some."""
    if dice.random() < 0.3:
        edge = dice.choice(list(catalog.edges.values()))
        wanted = _literal(_end(dice, catalog.nodes[edge.source]))
        return f"query change() {{ delete {edge.name} where from = {wanted} }}"
    node = (
        catalog.nodes["Person"] if dice.random() < 0.6 else dice.choice([*catalog.nodes.values()])
    )
    where = f"where @id = {_literal(_end(dice, node))}"
    changeable = [each for each in node.properties.values() if each.name not in (node.key or ())]
    changeable = [each for each in changeable if str(each.type).strip("?") not in ("Blob", "Date")]
    if not changeable or dice.random() < 0.4:
        return f"query change() {{ delete {node.name} {where} }}"
    changed = dice.choice(changeable)
    value = _value(dice, node, changed)
    parameters = f"$none: {changed.type}" if value is None else ""
    given = "$none" if value is None else json.dumps(value)
    update = f"update {node.name} set {{ {changed.name}: {given} }} {where}"
    return f"query change({parameters}) {{ {update} }}"


def _value(dice: Random, type_: NodeType | EdgeType, property_: Property) -> Any:
    if property_.name in (type_.key or ()):
        return dice.choice(NAMES)
    if property_.type.is_nullable and dice.random() < 0.5:
        return None
    if property_.name == "email":
        return dice.choice(MAILS)
    return dice.choice(VALUES[str(property_.type).removesuffix("?")])


def _end(dice: Random, type_: NodeType) -> str:
    """The id of a node that often exists."""
    if type_.key is None:
        return dice.choice(IDS[NodeType])
    if len(type_.key) == 1:
        return dice.choice(NAMES)
    return json.dumps([dice.choice(NAMES) for _ in type_.key], separators=(",", ":"))


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

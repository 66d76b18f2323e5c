"""A small network of people with parallel edges of two types and few distinct values."""

from __future__ import annotations

from random import Random
from typing import Any

from model import ModelGraph
from unit.execution.model_views import add_edges, add_nodes, model_graph

SCHEMA = """
node Person { name: String @key  age: I32?  height: F64?  city: String?  born: Date? }
node Town { name: String @key  size: U64? }
edge Knows: Person -> Person { weight: F64?  note: String? }
edge Likes: Person -> Person { weight: F64?  note: String? }
edge Lives: Person -> Town { since: Date? }
"""


def network(seed: int, count: int = 9) -> ModelGraph:
    """A random network."""
    random = Random(seed)
    graph = model_graph(SCHEMA)
    people = [f"p{number}" for number in random.sample(range(100), count)]
    towns = ["ö", "b", "a"]
    add_nodes(graph, "Person", [{"name": name, **_person(random)} for name in people])
    add_nodes(graph, "Town", [{"name": name, "size": random.choice([None, 7])} for name in towns])
    for type_name in ("Knows", "Likes"):
        # Both types use the same ids: they are unique within a type only.
        edges = [_edge(random, f"e{number}", people, people) for number in range(2 * count)]
        add_edges(graph, type_name, edges if people else [])
    lives = [_edge(random, f"l{number}", people, towns) for number in range(count)]
    add_edges(graph, "Lives", lives if people else [])
    return graph


def _person(random: Random) -> dict[str, Any]:
    return {
        "age": random.choice([None, 1, 2, 2**31 - 1, -3]),
        "height": random.choice([None, 0.1, -0.0, 0.0, float("nan"), 1e300]),
        "city": random.choice([None, "", "x", "é", "z"]),
        "born": random.choice([None, 0, -1, 19_000]),
    }


def _edge(random: Random, id_: str, sources: list[str], targets: list[str]) -> dict[str, Any]:
    return {
        "@id": id_,
        "@src": random.choice(sources) if sources else "",
        "@dst": random.choice(targets),
        "weight": random.choice([None, 0.5, 0.25, 1e-9]),
        "note": random.choice([None, "n", "m"]),
        "since": random.choice([None, 5, 6]),
    }

"""Small random graphs, and what a source says of them in ids instead of numbers."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from model import ModelGraph
from omnigraph.execution.sources.graph_source import DenseIds, Edges, Nodes, Source
from unit.execution.model_views import add_edges, add_nodes, model_graph

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  tags: [String]?  vec: Vector(2)? }
node Firm { name: String @key  size: I64? }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Firm { role: String? }
"""
PEOPLE = [f"p{number}" for number in range(40)] + ["ünï", "", "it's", "Z", "\uffff", "\U0010ffff"]
FIRMS = ["acme", "globex", "ä", "z"]
ENDS = {"Knows": ("Person", "Person"), "WorksAt": ("Person", "Firm")}


def random_graph(random: Random) -> ModelGraph:
    """A graph with loops, parallel edges, and nodes without any."""
    graph = model_graph(SCHEMA)
    people = random.sample(PEOPLE, random.randrange(len(PEOPLE) + 1))
    firms = random.sample(FIRMS, random.randrange(len(FIRMS) + 1))
    add_nodes(graph, "Person", [{"name": name, **_values(random)} for name in people])
    add_nodes(graph, "Firm", [{"name": name, "size": random.choice([None, 7])} for name in firms])
    for type_name, targets in (("Knows", people), ("WorksAt", firms)):
        count = random.randrange(100) if people and targets else 0
        ends = [(random.choice(people), random.choice(targets)) for _ in range(count)]
        add_edges(graph, type_name, [_edge(random, type_name, *pair) for pair in ends])
    return graph


class Told:
    """What a source says, in ids."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def all(self, type_name: str) -> list[str]:
        nodes = self.source.get_nodes(type_name)
        return self._ascending(nodes, nodes.list_all())

    def found(self, type_name: str, ids: list[str]) -> list[str | None]:
        nodes = self.source.get_nodes(type_name)
        numbers = nodes.find(pa.array(ids, pa.utf8()))
        known = iter(nodes.fetch_ids(numbers[numbers >= 0]).to_pylist())
        return [next(known) if number >= 0 else None for number in numbers]

    def values(self, type_name: str, name: str, ids: list[str]) -> list[Any]:
        nodes = self.source.get_nodes(type_name)
        return list(nodes.fetch_values(name, self.numbers(type_name, ids)).to_pylist())

    def ranked(self, type_name: str, ids: list[str]) -> list[str]:
        """The ids in the order of their ranks."""
        ranks = self.source.get_nodes(type_name).rank_ids(self.numbers(type_name, ids))
        return [ids[place] for place in np.argsort(ranks, kind="stable")]

    def reached(self, edge: str, ids: list[str], *, is_reversed: bool) -> list[tuple[int, str]]:
        starts, ends = self._ends(edge, is_reversed=is_reversed)
        numbers = self.numbers(starts, ids)
        places, found = self.source.get_edges(edge).expand_neighbours(
            numbers, is_reversed=is_reversed
        )
        assert _is_increasing(places, found), "ordered by place, then by end, without repetition"
        return sorted(zip(places.tolist(), self._ids(ends, found), strict=True))

    def matched(
        self, edge: str, name: str, ids: list[str], *, is_reversed: bool
    ) -> list[tuple[Any, ...]]:
        """Each match: place, end, source, target, edge id, and a property of the edge."""
        starts, ends = self._ends(edge, is_reversed=is_reversed)
        edges: Edges = self.source.get_edges(edge)
        numbers = self.numbers(starts, ids)
        places, found, matches = edges.expand_edges(numbers, is_reversed=is_reversed)
        assert _is_increasing(places, found, matches)
        return sorted(
            zip(
                places.tolist(),
                self._ids(ends, found),
                self._ids(ENDS[edge][0], edges.fetch_sources(matches)),
                self._ids(ENDS[edge][1], edges.fetch_targets(matches)),
                edges.fetch_ids(matches).to_pylist(),
                edges.fetch_values(name, matches).to_pylist(),
                strict=True,
            ),
            key=str,
        )

    def numbers(self, type_name: str, ids: list[str]) -> DenseIds:
        numbers = self.source.get_nodes(type_name).find(pa.array(ids, pa.utf8()))
        assert len(numbers) == 0 or numbers.min() >= 0
        return numbers

    def _ids(self, type_name: str, numbers: DenseIds) -> list[str]:
        return list(self.source.get_nodes(type_name).fetch_ids(numbers).to_pylist())

    @staticmethod
    def _ascending(nodes: Nodes, numbers: DenseIds) -> list[str]:
        assert _is_increasing(numbers)
        return sorted(nodes.fetch_ids(numbers).to_pylist())

    @staticmethod
    def _ends(edge: str, *, is_reversed: bool) -> tuple[str, str]:
        source, target = ENDS[edge]
        return (target, source) if is_reversed else (source, target)


class Plain:
    """The same answers from the entities themselves."""

    def __init__(self, graph: ModelGraph) -> None:
        self._graph = graph

    def all(self, type_name: str) -> list[str]:
        return sorted(self._graph.nodes[type_name])

    def found(self, type_name: str, ids: list[str]) -> list[str | None]:
        return [id_ if id_ in self._graph.nodes[type_name] else None for id_ in ids]

    def values(self, type_name: str, name: str, ids: list[str]) -> list[Any]:
        values = [self._graph.nodes[type_name][id_][name] for id_ in ids]
        return [list(value) if isinstance(value, tuple) else value for value in values]

    def ranked(self, type_name: str, ids: list[str]) -> list[str]:
        del type_name
        return sorted(ids, key=str.encode)

    def reached(self, edge: str, ids: list[str], *, is_reversed: bool) -> list[tuple[int, str]]:
        return sorted({(place, end) for place, end, _ in self._at(edge, ids, is_reversed)})

    def matched(
        self, edge: str, name: str, ids: list[str], *, is_reversed: bool
    ) -> list[tuple[Any, ...]]:
        return sorted(
            (
                (place, end, each["@src"], each["@dst"], each["@id"], each[name])
                for place, end, each in self._at(edge, ids, is_reversed)
            ),
            key=str,
        )

    def _at(
        self, edge: str, ids: list[str], is_reversed: bool
    ) -> list[tuple[int, str, dict[str, Any]]]:
        start, end = ("@dst", "@src") if is_reversed else ("@src", "@dst")
        edges = self._graph.edges[edge].values()
        return [
            (place, str(each[end]), dict(each))
            for place, id_ in enumerate(ids)
            for each in edges
            if each[start] == id_
        ]


def random_question(
    random: Random, graph: ModelGraph
) -> tuple[str, tuple[Any, ...], dict[str, bool]]:
    """The name of a method of both, with its arguments."""
    kind = random.choice(["all", "found", "values", "ranked", "reached", "matched"])
    type_name = random.choice(["Person", "Firm"])
    if kind == "all":
        return kind, (type_name,), {}
    if kind == "found":
        return (
            kind,
            (type_name, random.choices([*PEOPLE, *FIRMS, "no"], k=random.randrange(60))),
            {},
        )
    if kind in ("values", "ranked"):
        names = {"Person": ["name", "age", "city", "tags", "vec"], "Firm": ["name", "size"]}
        name = (random.choice(names[type_name]),) if kind == "values" else ()
        return kind, (type_name, *name, _some_ids(random, graph, type_name)), {}
    edge, is_reversed = random.choice(["Knows", "WorksAt"]), random.random() < 0.5
    ids = _some_ids(random, graph, ENDS[edge][1 if is_reversed else 0])
    name = ({"Knows": "since", "WorksAt": "role"}[edge],) if kind == "matched" else ()
    return kind, (edge, *name, ids), {"is_reversed": is_reversed}


def _some_ids(random: Random, graph: ModelGraph, type_name: str) -> list[str]:
    known = sorted(graph.nodes[type_name])
    return random.choices(known, k=random.choice([0, 1, 2, 20, 60])) if known else []


def _values(random: Random) -> dict[str, Any]:
    return {
        "age": random.choice([None, 1, 2, 30]),
        "city": random.choice([None, "Oslo", "Rome", ""]),
        "tags": random.choice([None, (), ("a", None), ("b", "c")]),
        "vec": random.choice([None, (0.5, 1.0)]),
    }


def _edge(random: Random, type_name: str, source: str, target: str) -> dict[str, Any]:
    values = {"since": random.choice([None, 1999])} if type_name == "Knows" else {"role": "cook"}
    return {"@src": source, "@dst": target, **values}


def _is_increasing(*columns: Any) -> bool:
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    return all(left < right for left, right in pairwise(keys))

"""Random graphs and random reads of them, to compare a planned read with the model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from model import ModelGraph
from omnigraph.rows.view import View
from unit.execution.model_views import add_edges, add_nodes, model_graph, view_of

SCHEMA = """
node Person {
    name: String @key
    age: I64?
    score: F64?
    city: String?
    is_active: Bool?
    born: Date?
}
node Place {
    title: String?
    size: U32
    big: U64?
    area: F32?
}
edge Knows: Person -> Person { since: I64? }
edge Lives: Person -> Place
edge Near: Place -> Place
edge Visits: Person -> Place { stars: I32? }
"""
_EDGES = {
    "knows": ("Person", "Person"),
    "lives": ("Person", "Place"),
    "near": ("Place", "Place"),
    "visits": ("Person", "Place"),
}
_NUMBERS = {"Person": ["age"], "Place": ["size", "big"]}
_FLOATS = {"Person": ["score"], "Place": ["area"]}
_OTHERS = {"Person": ["name", "city", "is_active", "born"], "Place": ["title"]}


@lru_cache(maxsize=16)
def world(seed: int) -> tuple[ModelGraph, View]:
    """A small random graph, in a model and in tables."""
    chance = random.Random(seed)
    graph = model_graph(SCHEMA)
    people = [f"p{number}" for number in range(chance.choice([2, 8, 25, 40]))]
    places = [f"q{number}" for number in range(chance.choice([1, 4, 12]))]
    add_nodes(graph, "Person", [_person(chance, name) for name in people])
    type_ = graph.catalog.nodes["Place"]
    for name in places:
        values = _place(chance, big=2**63 + 5 if seed % 3 else 8)
        graph.nodes["Place"][name] = graph.entity(type_, values, id_=name)
    ends = {"Person": people, "Place": places}
    is_functional = chance.random() < 0.5
    for edge, (source, target) in _EDGES.items():
        starts = chance.choices(ends[source], k=chance.randrange(4 * len(ends[source])))
        if edge == "lives" and is_functional:
            starts = ends[source]
        edges = [_edge(chance, edge, start, chance.choice(ends[target])) for start in starts]
        add_edges(graph, edge.capitalize(), edges)
    return graph, view_of(graph)


def _person(chance: random.Random, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "age": _maybe(chance, chance.randrange(-2, 6)),
        "score": _maybe(chance, chance.choice([0.1, -2.5, 1e17, 3.0, 0.0])),
        "city": _maybe(chance, chance.choice(["x", "y", "Ä", ""])),
        "is_active": _maybe(chance, chance.random() < 0.5),
        "born": _maybe(chance, chance.randrange(3)),
    }


def _place(chance: random.Random, *, big: int) -> dict[str, Any]:
    return {
        "title": _maybe(chance, chance.choice(["b", "a", "cc"])),
        "size": chance.randrange(4),
        "big": _maybe(chance, chance.choice([0, 7, big])),
        "area": _maybe(chance, chance.choice([0.5, 0.25, -1.0])),
    }


def _edge(chance: random.Random, edge: str, source: str, target: str) -> dict[str, Any]:
    properties = {"knows": "since", "visits": "stars"}
    values = {properties[edge]: _maybe(chance, chance.randrange(3))} if edge in properties else {}
    return {"@src": source, "@dst": target, **values}


def _maybe(chance: random.Random, value: object) -> object:
    return None if chance.random() < 0.25 else value


@dataclass(slots=True)
class Writing:
    """A random query being written."""

    chance: random.Random
    types: dict[str, str] = field(default_factory=dict)
    edges: dict[str, str] = field(default_factory=dict)
    clauses: list[str] = field(default_factory=list)
    prefix: str = "e"

    def text(self) -> str:
        """The text of a read."""
        self._declare()
        tests = [self._condition() for _ in range(self.chance.randrange(3))]
        if self.chance.random() < 0.35:
            tests += [self._block() for _ in range(self.chance.choice([1, 1, 2]))]
        if self.chance.random() < 0.15 and len(self.types) > 1:
            tests.append(self._between())
        # A variable is bound before anything else reads it.
        self.clauses += dict.fromkeys(tests)
        is_grouped = self.chance.random() < 0.75
        columns = list(self._groups() if is_grouped else self._columns())
        clauses = "\n    ".join(self.clauses)
        text = f"query q() {{\n  match {{\n    {clauses}\n  }}\n  return {{ {', '.join(columns)} }}"
        if self.chance.random() < 0.4:
            names = [column.split(" as ")[1] for column in columns]
            keys = self.chance.sample(names, self.chance.randint(1, len(names)))
            ordered = ", ".join(f"{key} {self.chance.choice(['asc', 'desc'])}" for key in keys)
            text += f"\n  order {{ {ordered} }}"
            if self.chance.random() < 0.5:
                text += f"\n  limit {self.chance.randint(1, 5)}"
        return text + "\n}"

    def _declare(self) -> None:
        chance = self.chance
        count = chance.choice([1, 1, 2, 2, 3, 3, 4, 5])
        for number in range(count):
            if number == 0 or chance.random() < 0.07:
                self._bind(f"v{number}", chance.choice(["Person", "Place"]))
            else:
                self._reach(f"v{number}")
        if count > 1 and chance.random() < 0.3:
            self._close()

    def _bind(self, name: str, type_name: str) -> None:
        self.types[name] = type_name
        self.clauses.append(f"${name}: {type_name}")

    def _reach(self, name: str) -> None:
        chance = self.chance
        known = chance.choice(sorted(self.types))
        edge, is_forward = chance.choice(
            [
                (edge, is_forward)
                for edge, ends in _EDGES.items()
                for is_forward in (True, False)
                if ends[not is_forward] == self.types[known]
            ]
        )
        type_name = _EDGES[edge][is_forward]
        if chance.random() < 0.5:
            self._bind(name, type_name)
        shown = f"${name}"
        if f"${name}: {type_name}" not in self.clauses and chance.random() < 0.2:
            shown = "$_"
        else:
            self.types[name] = type_name
        ends = (f"${known}", shown) if is_forward else (shown, f"${known}")
        self.clauses.append(self._traversal(edge, *ends))

    def _close(self) -> None:
        pairs = [
            (first, edge, second)
            for first in sorted(self.types)
            for second in sorted(self.types)
            for edge, ends in _EDGES.items()
            if ends == (self.types[first], self.types[second])
        ]
        if pairs:
            first, edge, second = self.chance.choice(pairs)
            self.clauses.append(self._traversal(edge, f"${first}", f"${second}"))

    def _traversal(self, edge: str, first: str, second: str) -> str:
        chance = self.chance
        is_same = _EDGES[edge][0] == _EDGES[edge][1]
        drawn = chance.random()
        if drawn < 0.08 and is_same and first != second:
            return f"{first} {edge}{{1,2}} {second}"
        if drawn < 0.16 and is_same:
            return f"{first} <{edge}> {second}"
        if drawn < 0.24:
            name = f"{self.prefix}{len(self.edges)}"
            self.edges[name] = edge
            return f"{first} ${name}:{edge} {second}"
        if drawn < 0.28 and _EDGES[edge] == ("Person", "Place"):
            return f"{first} (lives | visits) {second}"
        return f"{first} {edge} {second}"

    def _condition(self, among: dict[str, str] | None = None) -> str:
        chance = self.chance
        types = self.types if among is None else among
        name = chance.choice(sorted(types))
        if types[name] == "Person":
            return chance.choice(
                [
                    f"${name}.age > {chance.randrange(5)}",
                    f'${name}.city = "x"',
                    f'${name}.name = "p{chance.randrange(8)}"',
                    f"${name}.age is null or ${name}.is_active",
                    f"${name}.score < 1.0",
                ]
            )
        return chance.choice(
            [
                f"${name}.size <= {chance.randrange(4)}",
                f'${name}.@id = "q{chance.randrange(4)}"',
                f'${name}.title in ["a", "b"]',
            ]
        )

    def _block(self) -> str:
        chance = self.chance
        outer = chance.choice(sorted(self.types))
        inner = Writing(chance, {outer: self.types[outer]}, prefix="f")
        inner._reach("w1")
        if "w1" in inner.types and chance.random() < 0.5:
            inner._reach("w2")
        own = {name: kind for name, kind in inner.types.items() if name != outer}
        if own and chance.random() < 0.5:
            inner.clauses.append(inner._condition(own))
        clauses = " ".join(f"{each}\n" for each in inner.clauses)
        return chance.choice(
            [
                f"not {{ {clauses} }}",
                f"exists {{ {clauses} }}",
                f"count {{ {clauses} }} >= {chance.randrange(3)}",
                f"count {{ {clauses} }} = 1",
            ]
        )

    def _between(self) -> str:
        people = [name for name, kind in self.types.items() if kind == "Person"]
        if len(people) < 2:
            return self._condition()
        first, second = self.chance.sample(people, 2)
        return f"${first}.age {self.chance.choice(['<', '=', '!='])} ${second}.age"

    def _columns(self) -> Iterator[str]:
        for number in range(self.chance.randint(1, 3)):
            yield f"{self._value()} as c{number}"
        if self.chance.random() < 0.15:
            yield f"${self.chance.choice(sorted(self.types))} as node"

    def _groups(self) -> Iterator[str]:
        chance = self.chance
        values = {self._value() for _ in range(chance.choice([0, 1, 1, 2, 3]))}
        if chance.random() < 0.15:
            values.add(f"${chance.choice(sorted(self.types))}")
        if chance.random() < 0.3:
            # The key of a node, with which others may be determined.
            people = [name for name, kind in sorted(self.types.items()) if kind == "Person"]
            places = [name for name, kind in sorted(self.types.items()) if kind == "Place"]
            values.update(f"${name}.name" for name in people[:1])
            values.update(f"${name}.{chance.choice(['title', '@id'])}" for name in places[:2])
        for number, value in enumerate(sorted(values)):
            yield f"{value} as k{number}"
        for number in range(chance.randint(1, 3)):
            yield f"{self._aggregate()} as a{number}"

    def _value(self) -> str:
        name = self.chance.choice(sorted(self.types))
        kind = self.types[name]
        known = [*_NUMBERS[kind], *_OTHERS[kind], *_OTHERS[kind], *_FLOATS[kind], "@id"]
        if self.edges and self.chance.random() < 0.1:
            edge = self.chance.choice(sorted(self.edges))
            return f"${edge}.@id"
        return f"${name}.{self.chance.choice(known)}"

    def _aggregate(self) -> str:
        chance = self.chance
        name = chance.choice(sorted(self.types))
        kind = self.types[name]
        numbers = [*_NUMBERS[kind], *_FLOATS[kind]]
        return chance.choice(
            [
                f"count(${name})",
                f"count(${name}.{chance.choice([*numbers, *_OTHERS[kind]])})",
                f"sum(${name}.{chance.choice(numbers)})",
                f"avg(${name}.{chance.choice(numbers)})",
                f"min(${name}.{chance.choice([*numbers, *_OTHERS[kind], '@id'])})",
                f"max(${name}.{chance.choice([*numbers, *_OTHERS[kind]])})",
            ]
        )


def random_read(seed: int) -> str:
    """The text of a random read; equal seeds give equal texts."""
    return Writing(random.Random(seed)).text()

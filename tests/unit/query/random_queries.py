"""Random graphs, and random queries about them that are all valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from random import Random

from model import ModelGraph
from omnigraph.query.typed_tree import Value
from omnigraph.schema import load_catalog

CATALOG = load_catalog("""
node Person { name: String @key  nick: String?  age: I64? }
node Place { country: String  city: String  size: I64?  @key(country, city) }
edge Knows: Person -> Person { since: I64? }
edge Likes: Person -> Person
edge LivesIn: Person -> Place { since: I64? }
""")
ENDS = {
    "knows": ("Person", "Person"),
    "likes": ("Person", "Person"),
    "livesIn": ("Person", "Place"),
}
# The edge types that carry a `since`, and the number of each kind of variable.
DATED = {"knows", "livesIn"}
NUMBERS = {"p": "age", "c": "size", "e": "since"}
PARAMETERS = "$n: I64, $who: String, $none: I64?"
VALUES: dict[str, Value] = {"n": 2, "who": "p1", "none": None}
BLOCK_DEPTH_MAX = 2
WORK_MAX = 1_000_000

Record = dict[str, object]


def random_graph(random: Random, *, people: int = 5) -> ModelGraph:
    numbers = count(1)
    graph = ModelGraph(CATALOG, new_id=lambda: f"new{next(numbers)}")
    load(graph, [*_people(random, people), *_places(random)])
    load(graph, list(_edges(random, graph)))
    return graph


def load(graph: ModelGraph, records: list[Record]) -> None:
    graph.load("\n".join(map(json.dumps, records)), mode="append", dialect="compatible")


def _people(random: Random, count: int) -> Iterator[Record]:
    for number in range(count):
        some = _some(random, nick=["a", "b"], age=[0, 1, 2, 3])
        yield {"type": "Person", "data": {"name": f"p{number}", **some}}


def _places(random: Random) -> Iterator[Record]:
    for country, city in (("no", "oslo"), ("no", "bergen"), ("se", "lund")):
        some = _some(random, size=[1, 2])
        yield {"type": "Place", "data": {"country": country, "city": city, **some}}


def _edges(random: Random, graph: ModelGraph) -> Iterator[Record]:
    for edge in CATALOG.edges.values():
        sources, targets = sorted(graph.nodes[edge.source]), sorted(graph.nodes[edge.target])
        for _ in range(2 * len(sources) - 1):
            data = _some(random, since=[0, 1, 2]) if edge.properties else {}
            ends = {"from": random.choice(sources), "to": random.choice(targets)}
            yield {"edge": edge.name, **ends, "data": data}


def _some(random: Random, **choices: list[object]) -> Record:
    """Some of the properties, each with one of its values."""
    return {
        name: random.choice(values) for name, values in choices.items() if random.random() < 0.7
    }


class QueryWriter:
    """Writes one random query.

    Variables are `p…` for persons, `c…` for places, `e…` for edges with a `since`, and `x…` for
    other edges.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._named = 0

    def clauses(self) -> str:
        """The clauses of a pattern."""
        return self._clauses(["p0"], own=["$p0: Person"], depth=0)

    def query(self) -> str:
        """A whole query."""
        known = ["p0"]
        clauses = self._clauses(known, own=["$p0: Person"], depth=0)
        shown = self._random.sample(known, k=min(2, len(known)))
        items = ", ".join(dict.fromkeys([*map(self._item, shown), "$p0.nick"]))
        if self._random.random() < 0.4:
            number = self._number(known)
            aggregate = self._random.choice(["count($p0)", f"sum({number})", f"max({number})"])
            items += f", {aggregate} as n"
            keys = self._random.choice(["", "order { n desc }"])
        else:
            keys = self._random.choice(["", "order { $p0.age desc }", "order { $p0.name, $n }"])
            items += ", $n"
        limit = self._random.choice(["", "limit 3"]) if keys else ""
        return (
            f"query q({PARAMETERS}) {{ match {{ {clauses} }} return {{ {items} }} {keys} {limit} }}"
        )

    def _clauses(self, known: list[str], *, own: list[str], depth: int) -> str:
        clauses = list(own)
        for _ in range(self._random.randrange(1, 5)):
            write = self._random.choice([self._traversal, self._filter, self._binding, self._block])
            clauses.append(write(known, depth))
        return "  ".join(clauses)

    def _item(self, name: str) -> str:
        """Something to return of a variable; a bare node is an object of all its properties."""
        shown = [f"${name}.@id", *([self._number([name])] if name[0] in NUMBERS else [])]
        return self._random.choice(shown if name[0] in "ex" else [*shown, f"${name}"])

    def _number(self, known: list[str]) -> str:
        """A nullable number of some variable."""
        name = self._random.choice([each for each in known if each[0] in NUMBERS])
        return f"${name}.{NUMBERS[name[0]]}"

    def _edge(self, known: list[str], *types: str) -> str:
        """A new edge variable that may be of these types."""
        known.append(self._fresh("e" if DATED.issuperset(types) else "x"))
        return f"${known[-1]}:"

    def _fresh(self, kind: str) -> str:
        self._named += 1
        return f"{kind}{self._named}"

    def _node(self, known: list[str], type_name: str) -> str:
        kind = "p" if type_name == "Person" else "c"
        candidates = [name for name in known if name.startswith(kind)]
        if candidates and self._random.random() < 0.4:
            return self._random.choice(candidates)
        known.append(self._fresh(kind))
        return known[-1]

    def _traversal(self, known: list[str], _depth: int) -> str:
        edge = self._random.choice(list(ENDS))
        source_type, target_type = ENDS[edge]
        source = self._random.choice([name for name in known if name.startswith("p")])
        if self._random.random() < 0.2:
            return f"${source} {self._maybe_undirected(edge, target_type)} $_"
        target = self._node(known, target_type)
        if self._random.random() < 0.2:
            types = f"${source}: Person  ${target}: {target_type}"
            return f"{types}  ${source} {self._maybe_undirected('*', target_type)} ${target}"
        if source_type != target_type:
            bound = self._edge(known, edge) if self._random.random() < 0.3 else ""
            return f"${source} {bound}{edge} ${target}"
        if self._random.random() < 0.5:
            source, target = target, source
        if self._random.random() < 0.3:
            bound = self._edge(known, edge)
            return f"${source} {bound}{edge} ${target}"
        if self._random.random() < 0.2:
            bound = self._edge(known, "knows", "likes")
            return f"${source} {bound}<knows | likes> ${target}"
        steps = [edge, f"<{edge}>", f"{edge}{{1,2}}", f"{edge}{{2,2}}", f"<{edge}>{{1,3}}"]
        return f"${source} {self._random.choice([*steps, '(knows | likes)'])} ${target}"

    def _maybe_undirected(self, edge: str, target_type: str) -> str:
        is_undirected = target_type == "Person" and self._random.random() < 0.5
        return f"<{edge}>" if is_undirected else edge

    def _filter(self, known: list[str], _depth: int) -> str:
        name = self._random.choice(known)
        first, second = self._number(known), self._number(known)
        return self._random.choice(
            [
                f"{first} > 0 and 1 < 2",
                f"({first} is null or {first} = $n) and {first} != 3",
                f"not ({first} < {second})",
                f"{first} = $none or ${name}.@id != $who",
                f"${name}.@id = $who",
                f"$who = ${name}.@id and {second} is not null",
                f"{first} in [1, 2] or false",
            ]
        )

    def _binding(self, known: list[str], _depth: int) -> str:
        name = self._node(known, self._random.choice(["Person", "Place"]))
        if name.startswith("p"):
            matches = self._random.choice(["", "{ age: $n }", "{ name: $who }", '{ nick: "a" }'])
            return f"${name}: Person {matches}"
        matches = self._random.choice(["", '{ country: "no", city: "oslo" }', "{ size: 1 }"])
        return f"${name}: Place {matches}"

    def _block(self, known: list[str], depth: int) -> str:
        if depth == BLOCK_DEPTH_MAX:
            return self._traversal(known, depth)
        outer = self._random.choice([name for name in known if name.startswith("p")])
        edge = self._random.choice(["knows", "likes"])
        named = self._named
        inner = [*known, self._fresh("p")]
        clauses = self._clauses(inner, own=[f"${outer} {edge} ${inner[-1]}"], depth=depth + 1)
        number = self._number(inner)
        form = self._random.choice(
            [
                "not {{ {} }}",
                "exists {{ {} }}",
                "count {{ {} }} <= $n",
                f"sum({number}) {{{{ {{}} }}}} > 1",
                f"min({number}) {{{{ {{}} }}}} != $n",
                f"max({number}) {{{{ {{}} }}}} >= 2",
            ]
        )
        # A later variable outside may have the name of one inside; they are not the same.
        self._named = self._random.choice([named, self._named])
        return form.format(clauses)

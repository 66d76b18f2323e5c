"""Stages of a query, which end in `with`, and reads that are combined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fuzz.patterns import Clauses, Patterns, aggregate
from fuzz.values import SCALARS, Scope, Values
from fuzz.world import Kind

STAGES_MAX: Final = 2
_SET_WORDS: Final = ("union", "union all", "intersect", "except")
# What a stage carries: searches and ranks read properties only.
_CARRIED: Final = (*(kind for kind in SCALARS if kind != "text"), "[String]", "[I64]")
_KINDS_OF: Final = {"count": "I64", "sum": "F64", "avg": "F64"}


@dataclass(frozen=True, slots=True)
class _Carried:
    """What a stage ends with, and the variables after it."""

    items: tuple[str, ...]
    keys: tuple[str, ...]
    scope: Scope


class Stages:
    """Writes stages; every value that is carried has a name of its own."""

    def __init__(self, values: Values, patterns: Patterns) -> None:
        self.values = values
        self.pen = values.pen
        self._patterns = patterns
        self._named = 0

    def before(self, clauses: Clauses) -> tuple[str, Clauses]:
        """Stages that start with some clauses, and the clauses of the read after them."""
        texts: list[str] = []
        while len(texts) < STAGES_MAX and self.pen.chance(50 if texts else 25):
            carried = self._grouped(clauses.scope) if self.pen.chance(35) else self._rows(clauses)
            texts.append("\n".join((match_text(clauses), self._with(carried))))
            clauses = self._patterns.after(carried.scope)
        return "".join(f"{text}\n" for text in texts), clauses

    def _with(self, carried: _Carried) -> str:
        word = "with distinct {" if not carried.keys and self.pen.chance(30) else "with {"
        lines = [word, *carried.items, "}"]
        if carried.keys and self.pen.chance(60):
            keys = (key + self.pen.one_of(("", " desc")) for key in carried.keys)
            lines += [f"order {{ {', '.join(keys)} }}"]
            lines += [f"limit {self.pen.one_of((3, 1, 2, 5, 0))}"]
            lines += ["offset 1"] if self.pen.chance(25) else []
        return "\n".join(lines)

    def _rows(self, clauses: Clauses) -> _Carried:
        """Some of the variables, and values that are computed of them."""
        scope = clauses.scope
        items, nodes, keys = self._nodes(scope)
        edges = {name: scope.edges[name] for name in self.pen.some(list(scope.edges), 2)}
        items += [f"${name}" for name in edges]
        values: dict[str, Kind] = {}
        for _ in range(self.pen.number(0, 2)):
            text, kind = self._value(scope)
            name = self._name()
            values[name] = kind
            items.append(f"{text} as {name}")
            keys += [name] if kind in SCALARS and self.pen.chance(50) else []
        if self.pen.chance(40):
            keys = []
        return _Carried(tuple(items), tuple(keys), Scope(nodes, edges, values))

    def _grouped(self, scope: Scope) -> _Carried:
        """Groups by a node and perhaps a value, with aggregates."""
        items, nodes, _ = self._nodes(scope)
        values: dict[str, Kind] = {}
        if self.pen.chance(40):
            text, kind = self._value(scope)
            name = self._name()
            values[name] = kind
            items.append(f"{text} as {name}")
        for _ in range(self.pen.number(1, 2)):
            function, about = aggregate(self.values, scope)
            kind = _KINDS_OF.get(function, "String" if about.kind == "text" else about.kind)
            name = self._name()
            values[name] = kind
            items.append(f"{function}({about.text}) as {name}")
        keys = [name for name, kind in values.items() if kind in SCALARS]
        return _Carried(tuple(items), tuple(keys), Scope(nodes, {}, values))

    def _nodes(self, scope: Scope) -> tuple[list[str], dict[str, str], list[str]]:
        """At least one node, perhaps under another name."""
        first = self.pen.one_of(list(scope.nodes))
        names = list(dict.fromkeys((first, *self.pen.some(list(scope.nodes), 2))))
        items, nodes, keys = [], {}, []
        for name in names:
            carried = self._name() if self.pen.chance(15) else name
            items.append(f"${name}" if carried == name else f"${name} as {carried}")
            nodes[carried] = scope.nodes[name]
            keys.append(f"${name}.@id")
        return items, nodes, keys

    def _value(self, scope: Scope) -> tuple[str, Kind]:
        if self.pen.chance(30):
            found = self.values.computed(scope)
            return found.text, "String" if found.kind == "text" else found.kind
        found = self.pen.one_of(scope.fields(*_CARRIED))
        return found.text, found.kind

    def _name(self) -> str:
        self._named += 1
        return f"s{self._named}"


def match_text(clauses: Clauses) -> str:
    """A match, if there are clauses."""
    return f"match {{\n{clauses.text}\n}}" if clauses.texts else ""


def combined(values: Values, patterns: Patterns) -> tuple[str, str]:
    """Reads that are combined, and the keys that put all their rows in order."""
    pen = values.pen
    kinds = [pen.one_of(("String", "I64", "F64", "Date", "I32", "node")) for _ in range(2)]
    node_type = pen.one_of(("Person", "Place"))
    texts = [_term(values, patterns, kinds, node_type)]
    for _ in range(pen.number(1, 2)):
        texts += [pen.one_of(_SET_WORDS), _term(values, patterns, kinds, node_type)]
    return "\n".join(texts), "order { c0, c1 desc }"


def _term(values: Values, patterns: Patterns, kinds: list[Kind], node_type: str) -> str:
    pen = values.pen
    clauses = patterns.whole()
    nodes = [name for name, found in clauses.scope.nodes.items() if found == node_type]
    if "node" in kinds and not nodes:
        clauses = Clauses((*clauses.texts, f"$z: {node_type}"), clauses.scope)
        nodes = ["z"]
    items = [
        f"${pen.one_of(nodes)} as c{place}"
        if kind == "node"
        else f"{_column(values, clauses.scope, kind)} as c{place}"
        for place, kind in enumerate(kinds)
    ]
    text = "\n".join((match_text(clauses), "return {", *items, "}"))
    if not pen.chance(20):
        return text
    return "\n".join(("{", text, "order { c0, c1 }", "limit 3", "}"))


def _column(values: Values, scope: Scope, kind: Kind) -> str:
    fields = scope.fields(kind)
    return values.pen.one_of(fields).text if fields else values.literal(kind)

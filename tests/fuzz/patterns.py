"""The clauses of a match: bindings, traversals, conditions and blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fuzz.values import COMPARISONS, SCALARS, Field, Scope, Values, an_id, literal
from fuzz.world import (
    EDGES,
    KEYS,
    MEMBERS,
    MOODS,
    NODES,
    NUMERIC,
    TEXTUAL,
    TYPE_SETS,
    VALUES,
)

_NAMES: Final = "abcdefgh"
NODES_MAX: Final = 5
# Calls of table functions whose values are exact, and the kinds of these.
_TABLES: Final = (
    ("components(edges: {})", ("String", "I64")),
    ("components(edges: {}, strong: true)", ("String", "I64")),
    ("cores(edges: {})", ("I64",)),
    ("degrees(edges: {})", ("I64", "I64")),
    ("triangles(edges: {})", ("I64",)),
    ("communities(edges: {}, rounds: 3)", ("String",)),
    ('communities(edges: {}, method: "louvain")', ("String",)),
)
_SHARED_ENDS: Final = (("Person", "Person"), ("Person", "Place"))


@dataclass(frozen=True, slots=True)
class Clauses:
    """Clauses, and what can be said after them."""

    texts: tuple[str, ...]
    scope: Scope

    @property
    def text(self) -> str:
        """The clauses, a line each."""
        return "\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class _Step:
    """Edge types that join two node types; their ends may be alike."""

    types: tuple[str, ...]
    source: str
    target: str


class Patterns:
    """Writes the patterns of one query; no two variables of it have one name."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.pen = values.pen
        self._used = 0

    def whole(self) -> Clauses:
        """The match of a query."""
        clauses = self._bound(Clauses((), Scope()))
        for _ in range(self.pen.one_of((1, 0, 2, 3, 4, 2, 3, 3, 4, 5))):
            clauses = self._grown(clauses)
        return clauses

    def after(self, scope: Scope) -> Clauses:
        """The match after a stage, which may be none."""
        clauses = Clauses((), scope)
        for _ in range(self.pen.one_of((1, 0, 2, 1, 3))):
            clauses = self._grown(clauses)
        return clauses

    def _grown(self, clauses: Clauses) -> Clauses:
        kind = self.pen.one_of(
            (
                "step",
                "step",
                "step",
                "block",
                "step",
                "filter",
                "block",
                "binding",
                "search",
                "again",
                "lateral",
                "value",
                "table",
            )
        )
        is_full = len(clauses.scope.nodes) >= NODES_MAX
        match kind:
            case "binding" if not is_full and self.pen.chance(40):
                return self._bound(clauses)
            case "filter":
                return self._with(clauses, self.values.condition(clauses.scope))
            case "block":
                return self._with(clauses, self._block(clauses.scope, depth=2))
            case "lateral":
                return self._lateral(clauses, depth=2)
            case "value":
                return self._valued(clauses)
            case "table":
                return self._tabled(clauses)
            case "search":
                return self._searched(clauses)
            case "again":
                name, type_name = self.pen.one_of(list(clauses.scope.nodes.items()))
                return self._with(clauses, f"${name}: {type_name}{self._matches(type_name)}")
            case _:
                return self._traversed(clauses, clauses.scope.nodes, is_closing=is_full)

    def _bound(self, clauses: Clauses) -> Clauses:
        type_name, name = self.pen.one_of(("Person", "Place", "Thing")), self._name()
        if self.pen.chance(15):
            type_name = self.pen.one_of(tuple(TYPE_SETS))
        found = self._with(clauses, f"${name}: {type_name}{self._matches(type_name)}")
        if type_name in TYPE_SETS and self.pen.chance(25):
            wanted = self.pen.one_of(("Person", "not Person", "(Place | Thing)"))
            found = self._with(found, f"${name} is {wanted}")
        return Clauses(found.texts, found.scope.with_node(name, type_name))

    def _matches(self, type_name: str) -> str:
        if type_name in TYPE_SETS or not self.pen.chance(12):
            return ""
        key = KEYS.get(type_name)
        if key is not None and self.pen.chance(50):
            return f" {{ {key}: {an_id(self.pen)} }}"
        kinds = NODES[type_name]
        names = [name for name, kind in kinds.items() if kind not in ("Vector", "enum")]
        chosen = self.pen.some(names, 2) or ["name" if "name" in kinds else "label"]
        if type_name == "Person" and self.pen.chance(20):
            mood = literal("String", self.pen.one_of(MOODS))
            return f" {{ mood: {mood} }}"
        written = (f"{name}: {self._matched(kinds[name])}" for name in chosen)
        return f" {{ {', '.join(written)} }}"

    def _matched(self, kind: str) -> str:
        """The value of a property match, which must fit the property."""
        element = kind.strip("[]")
        if self.pen.chance(25):
            return self.values.parameters.add(self.pen, element)
        fitting = [each for each in VALUES[element] if _is_written(each)]
        return literal(element, self.pen.one_of(fitting))

    # ---- traversals ----

    def _traversed(
        self, clauses: Clauses, starts: Iterable[str], *, is_closing: bool = False
    ) -> Clauses:
        """One more traversal from one of the variables."""
        start = self.pen.one_of(list(starts))
        scope = clauses.scope
        step = self.pen.one_of(_steps_at(scope.nodes[start]))
        is_forward = step.source == scope.nodes[start]
        is_same = step.source == step.target
        other_type = step.target if is_forward else step.source
        known = [n for n, t in scope.nodes.items() if t == other_type]
        other, texts = "_", clauses.texts
        if known and (is_closing or self.pen.chance(25)):
            other = self.pen.one_of(known)
        elif not is_closing and self.pen.chance(85):
            other = self._name()
            scope = scope.with_node(other, other_type)
        is_wild = other != "_" and self.pen.chance(15)
        if is_wild:
            # Both ends of a wildcard must be declared.
            texts = (*texts, f"${start}: {scope.nodes[start]}", f"${other}: {other_type}")
        ends = [f"${start}", f"${other}"]
        if step.source not in TYPE_SETS and self.pen.chance(40):
            ends.reverse()
        types = _fitting(step, is_wild=is_wild)
        edge, bounds = "", ""
        is_bindable = not {"$_"} & set(ends)
        if is_same and self.pen.chance(35):
            least = self.pen.one_of((1, 2, 1, 2, 0))
            most = "" if self.pen.chance(15) else self.pen.number(least, 3)
            bounds = f"{{{least},{most}}}"
        elif is_bindable and self.pen.chance(30):
            name = self._name("w")
            edge, scope = f"${name}:", scope.with_edge(name, types)
        selector = self._selector(step, is_wild=is_wild, is_undirected=is_same)
        text = f"{ends[0]} {edge}{selector}{bounds} {ends[1]}"
        return Clauses((*texts, text), scope)

    def _selector(self, step: _Step, *, is_wild: bool, is_undirected: bool) -> str:
        inner = "*" if is_wild else " | ".join(_spelled(each) for each in step.types)
        if is_undirected and self.pen.chance(30):
            return f"<{inner}>"
        return f"({inner})" if len(step.types) > 1 and not is_wild else inner

    # ---- blocks ----

    def _block(self, scope: Scope, depth: int) -> str:
        """A condition about a pattern that hangs on a variable of the scope."""
        inner = Clauses((), scope)
        if self.pen.chance(15):
            inner = self._with(inner, self.values.comparison(scope))
        else:
            inner = self._inside(scope, depth)
            if self.pen.chance(20):
                inner = self._lacking(inner)
        body = _braced(inner)
        match self.pen.one_of(("not", "exists", "count", "value", "value")):
            case "count":
                return f"count {body} {self.pen.one_of(COMPARISONS)} {self.pen.number(0, 3)}"
            case "value":
                return self._aggregated(inner.scope, body)
            case word:
                return f"{word} {body}"

    def _inside(self, scope: Scope, depth: int) -> Clauses:
        """What stands in a block: a traversal from a variable of the scope, and more."""
        inner = self._traversed(Clauses((), scope), scope.nodes)
        for _ in range(self.pen.number(0, 2)):
            inner = self._grown_inside(inner, depth)
        return inner

    def _lacking(self, clauses: Clauses) -> Clauses:
        """A node that rows may lack, and whether they do."""
        before = clauses.scope.nodes
        inner = self._traversed(Clauses((), clauses.scope), before)
        found = Clauses((*clauses.texts, f"optional {_braced(inner)}"), inner.scope)
        own = [name for name in inner.scope.nodes if name not in before]
        name = self.pen.one_of(own or list(before))
        return self._with(found, f"${name} is {self.pen.one_of(('null', 'null', 'not null'))}")

    def _lateral(self, clauses: Clauses, depth: int) -> Clauses:
        """A block whose variables can be seen after it."""
        inner = self._inside(clauses.scope, depth)
        word = self.pen.one_of(("optional", "optional", "each"))
        text = f"{word} {_braced(inner)}{self._tail(inner.scope)}"
        return Clauses((*clauses.texts, text), inner.scope)

    def _valued(self, clauses: Clauses) -> Clauses:
        """A name for a value, for the items of a list, or for a path."""
        if self.pen.chance(25):
            return self._walked(clauses)
        scope, name = clauses.scope, self._name("v")
        score = self.values.score(scope) if self.pen.chance(25) else None
        if score is not None:
            found = self._with(clauses, f"let ${name} = {score}")
            return Clauses(found.texts, scope.with_value(name, "F32"))
        if self.pen.chance(35):
            value = self._block_value(scope)
            found = self._with(clauses, f"let ${name} = {value.text}")
            return Clauses(found.texts, scope.with_value(name, value.kind))
        if self.pen.chance(50):
            value = self.values.computed(scope)
            found = self._with(clauses, f"let ${name} = {value.text}")
            kind = "String" if value.kind in TEXTUAL else value.kind
            return Clauses(found.texts, scope.with_value(name, kind))
        lists = [(each.text, each.kind.strip("[]")) for each in scope.fields("[String]", "[I64]")]
        lists.append(('["a", "b"]', "String"))
        items, kind = self.pen.one_of(lists)
        if self.pen.chance(50):
            found = self._with(clauses, f"for ${name} in {items}")
            return Clauses(found.texts, scope.with_value(name, kind))
        place = self._name("i")
        found = self._with(clauses, f"for ${name}, ${place} in {items}")
        return Clauses(found.texts, scope.with_value(name, kind).with_value(place, "I64"))

    def _tabled(self, clauses: Clauses) -> Clauses:
        """A table function, of the nodes of a variable or of new ones."""
        scope, texts = clauses.scope, clauses.texts
        # The nodes of a table are of one type.
        single = [(name, each) for name, each in scope.nodes.items() if each in NODES]
        if not single and len(scope.nodes) >= NODES_MAX:
            return clauses
        name, type_name = self.pen.one_of(single) if single else ("", "")
        if not single or (len(scope.nodes) < NODES_MAX and self.pen.chance(40)):
            name, type_name = self._name(), self.pen.one_of(("Person", "Place", "Thing"))
            scope, texts = scope.with_node(name, type_name), (*texts, f"${name}: {type_name}")
        ends = {edge: EDGES[edge][:2] for edge in EDGES}
        near = [edge for edge, types in ends.items() if type_name in types]
        members = [_spelled(self.pen.one_of(near)), *map(_spelled, self.pen.some(list(ends), 1))]
        walked = [self.pen.one_of(("{}", "^{}", "<{}>")).format(edge) for edge in members]
        edges = f"({' | '.join(walked)})" if len(walked) > 1 else walked[0]
        call, columns = self.pen.one_of(_TABLES)
        values = [(self._name("v"), kind) for kind in columns]
        bound = ", ".join(f"${each}" for each in (name, *(each for each, _ in values)))
        for each, kind in values:
            scope = scope.with_value(each, kind)
        text = f"for {bound} in {call.format(edges)}"
        # A new variable is bound by the table if it is declared after it.
        is_after = scope.nodes.keys() != clauses.scope.nodes.keys() and self.pen.chance(50)
        return Clauses((*texts[:-1], text, texts[-1]) if is_after else (*texts, text), scope)

    def _walked(self, clauses: Clauses) -> Clauses:
        """A path between two nodes, and its length."""
        scope, path, length = clauses.scope, self._name("r"), self._name("v")
        starts = [name for name, each in scope.nodes.items() if each in NODES]
        if not starts:
            return clauses
        start = self.pen.one_of(starts)
        start_type = scope.nodes[start]
        step = self.pen.one_of(_steps_at(start_type))
        other_type = step.target if step.source == start_type else step.source
        known = [n for n, t in scope.nodes.items() if t == other_type]
        if len(scope.nodes) < NODES_MAX and self.pen.chance(60):
            end = self._name()
        elif known:
            end = self.pen.one_of(known)
        else:
            end, other_type = start, start_type
        scope = scope.with_node(end, other_type)
        selector = self.pen.one_of(("", "", "shortest ", "all shortest "))
        least = self.pen.one_of((1, 1, 0, 2))
        most = "" if self.pen.chance(40) else self.pen.number(least, 4)
        if isinstance(most, int) and most < 4 and self.pen.chance(30):
            selector = "all "
        edges = self._path_edges(step, is_forward=step.source == start_type)
        text = f"path ${path} = {selector}${start} {edges}{{{least},{most}}} ${end}"
        texts = (f"${start}: {start_type}", f"${end}: {other_type}", text)
        named = f"let ${length} = length(${path})"
        return Clauses((*clauses.texts, *texts, named), scope.with_value(length, "I64"))

    def _path_edges(self, step: _Step, *, is_forward: bool) -> str:
        """The edges of a path that can leave by a step, some of them against their direction."""
        if self.pen.chance(20):
            return "<*>"
        if self.pen.chance(60):
            more = self.pen.some(list(EDGES), 2)
            return f"<{' | '.join(dict.fromkeys(map(_spelled, (*step.types, *more))))}>"
        members = [_spelled(each) if is_forward else f"^{_spelled(each)}" for each in step.types]
        members += (f"<{_spelled(each)}>" for each in self.pen.some(list(EDGES), 1))
        return f"({' | '.join(members)})" if len(members) > 1 else members[0]

    def _block_value(self, scope: Scope) -> Field:
        """A block as a value; it need not be about a variable of the scope."""
        inner = self._inside(scope, 1)
        body, about = _braced(inner), inner.scope.fields(*SCALARS)
        key = self.pen.one_of(about).text
        match self.pen.one_of(("exists", "count", "count", "aggregate", "aggregate", "by")):
            case "exists":
                return Field(f"exists {body}", "Bool")
            case "count":
                distinct = self.pen.one_of(("", f"(distinct {key})", f"({key})"))
                return Field(f"count{distinct} {body}", "I64")
            case "by":
                value = self.pen.one_of(about)
                kind = "String" if value.kind in TEXTUAL else value.kind
                return Field(f"max_by({value.text}, {key}) {body}", kind)
            case _:
                function, subject = aggregate(self.values, inner.scope)
                kind = {"count": "I64", "sum": "F64", "avg": "F64"}.get(function, subject.kind)
                kind = "String" if kind in TEXTUAL else kind
                return Field(f"{function}({subject.text}) {body}", kind)

    def _tail(self, scope: Scope) -> str:
        """The order and the limit of the matches of a block, or nothing."""
        if self.pen.chance(40):
            return ""
        keys = self.pen.some([each.text for each in scope.fields(*SCALARS)], 2)
        keys = [f"{key}{self.pen.one_of(('', ' desc'))}" for key in keys]
        score = self.values.score(scope) if self.pen.chance(30) else None
        written = ", ".join(keys if score is None else [score, *keys])
        keys = keys if score is None else [score]
        order = f" order {{ {written} }}" if keys else ""
        offset = self.pen.one_of(("", "", " offset 1"))
        if self.pen.chance(25):
            order = f" having {{ {self.values.condition(scope, 1)} }}{order}"
        return f"{order} limit {self.pen.one_of((1, 2, 1, 3, 0))}{offset}"

    def _grown_inside(self, clauses: Clauses, depth: int) -> Clauses:
        match self.pen.one_of(("filter", "step", "block", "search", "lateral", "value")):
            case "step" if len(clauses.scope.nodes) < NODES_MAX + 1:
                return self._traversed(clauses, clauses.scope.nodes)
            case "block" if depth > 1:
                return self._with(clauses, self._block(clauses.scope, depth - 1))
            case "lateral" if depth > 1 and len(clauses.scope.nodes) < NODES_MAX:
                return self._lateral(clauses, depth - 1)
            case "value":
                return self._valued(clauses)
            case "search":
                return self._searched(clauses)
            case _:
                return self._with(clauses, self.values.condition(clauses.scope, 1))

    def _aggregated(self, scope: Scope, body: str) -> str:
        function, about = aggregate(self.values, scope)
        comparison = self.pen.one_of(COMPARISONS)
        kind = {"count": "I64", "sum": "F64", "avg": "F64"}.get(function, about.kind)
        return f"{function}({about.text}) {body} {comparison} {self.values.constant(kind)}"

    # ---- search ----

    def _searched(self, clauses: Clauses) -> Clauses:
        return self._with(clauses, self.values.words_test(clauses.scope))

    def _with(self, clauses: Clauses, text: str) -> Clauses:
        return Clauses((*clauses.texts, text), clauses.scope)

    def _name(self, prefix: str = "") -> str:
        self._used += 1
        return f"{prefix or _NAMES[(self._used * 5) % len(_NAMES)]}{self._used}"


def _braced(inner: Clauses) -> str:
    return "\n".join(("{", *inner.texts, "}"))


def aggregate(values: Values, scope: Scope) -> tuple[str, Field]:
    """An aggregate function and something it takes."""
    function = values.pen.one_of(("count", "sum", "avg", "min", "max"))
    kinds = {"count": (), "sum": NUMERIC, "avg": NUMERIC}.get(function, SCALARS)
    fields = scope.fields(*kinds)
    if not fields:
        return "count", values.pen.one_of(scope.fields())
    return function, values.pen.one_of(fields)


def _is_written(value: object) -> bool:
    """Whether a literal can say a value: there is no minus, and no exponent."""
    return not isinstance(value, int | float) or (0 <= value < 2**31 and str(value)[0] != "-")


def _spelled(edge_type: str) -> str:
    return edge_type[0].lower() + edge_type[1:]


def _steps_at(type_name: str) -> list[_Step]:
    """The ways to leave a node: by one edge type, or by any of several."""
    if type_name in TYPE_SETS:
        members = MEMBERS[type_name]
        return [
            _Step((name,), type_name, target)
            for name, (source, target, _) in EDGES.items()
            if source in members
        ]
    single = [_Step((name,), source, target) for name, (source, target, _) in EDGES.items()]
    several = [
        _Step(tuple(types[:count]), source, target)
        for source, target in _SHARED_ENDS
        if len(types := _between(source, target)) > 1
        for count in range(2, len(types) + 1)
    ]
    return [each for each in (*single, *several) if type_name in (each.source, each.target)]


def _between(source: str, target: str) -> list[str]:
    return [name for name, (one, other, _) in EDGES.items() if (one, other) == (source, target)]


def _fitting(step: _Step, *, is_wild: bool) -> tuple[str, ...]:
    """The edge types of a step; a wildcard takes every one that fits the ends either way."""
    if not is_wild:
        return step.types
    sources = MEMBERS.get(step.source, (step.source,))
    ends = {pair for each in sources for pair in ((each, step.target), (step.target, each))}
    return tuple(name for name, (one, other, _) in EDGES.items() if (one, other) in ends)

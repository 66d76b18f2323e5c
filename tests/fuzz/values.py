"""Operands and conditions, in the text of the query language."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fuzz.pen import Pen
from fuzz.world import EDGES, IDS, NODES, NUMERIC, TEXTUAL, TYPE_SETS, VALUES, WORDS, Kind
from logic.generate import Json

COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
SCALARS: Final = (*NUMERIC, *TEXTUAL, "Date", "DateTime", "Bool")
# Their texts have dashes; a minus is in no literal.
_DATED: Final = ("Date", "DateTime")
_PARAMETER_TYPES: Final = {"text": "String", "enum": "String", "Vector": "Vector(2)"}


@dataclass(frozen=True, slots=True)
class Field:
    """Something a text can say of a variable, such as `$a.age` or `$w.@id`."""

    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables that a place in a text sees: nodes with a type, edges with their types, values.

    What a stage carried is read like a property.
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    edges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, Kind] = field(default_factory=dict)

    def with_node(self, name: str, type_name: str) -> Scope:
        """The scope with one more node."""
        return replace(self, nodes={**self.nodes, name: type_name})

    def with_edge(self, name: str, types: tuple[str, ...]) -> Scope:
        """The scope with one more edge."""
        return replace(self, edges={**self.edges, name: types})

    def with_value(self, name: str, kind: Kind) -> Scope:
        """The scope with one more name of a value."""
        return replace(self, values={**self.values, name: kind})

    def fields(self, *kinds: Kind) -> list[Field]:
        """Everything that can be said, of some kinds or of all but texts to search in."""
        wanted = kinds or tuple(VALUES)
        return [each for each in self._fields() if each.kind in wanted]

    def _fields(self) -> Iterator[Field]:
        yield from (Field(f"${name}", kind) for name, kind in self.values.items())
        for name, type_name in self.nodes.items():
            own = NODES.get(type_name) or TYPE_SETS[type_name]
            yield from (Field(f"${name}.{each}", kind) for each, kind in own.items())
            yield Field(f"${name}.@id", "String")
            if type_name in TYPE_SETS:
                yield Field(f"${name}.@type", "String")
        for name, types in self.edges.items():
            yield from (Field(f"${name}.{each}", kind) for each, kind in _shared(types).items())
            yield from (Field(f"${name}.@{each}", "String") for each in ("id", "src", "dst"))
            yield Field(f"${name}.@type", "String")
        yield from (Field(f"${name}", kind) for name, kind in self.values.items())


def _shared(types: tuple[str, ...]) -> dict[str, Kind]:
    """The properties that all of some edge types have, with the same kind."""
    first, *others = (EDGES[each][2] for each in types)
    return {
        name: kind
        for name, kind in first.items()
        if all(other.get(name) == kind for other in others)
    }


@dataclass(slots=True)
class Parameters:
    """The parameters of a query, as they are declared and as they are given."""

    declared: list[str] = field(default_factory=list)
    given: dict[str, Json] = field(default_factory=dict)

    def add(self, pen: Pen, kind: Kind) -> str:
        """A new parameter of a kind; how a text refers to it."""
        name = f"p{len(self.declared)}"
        is_nullable = pen.chance(20)
        type_name = _PARAMETER_TYPES.get(kind, kind)
        self.declared.append(f"${name}: {type_name}{'?' if is_nullable else ''}")
        if not (is_nullable and pen.chance(50)):
            self.given[name] = pen.one_of(frequent(_given_values(kind)))
        return f"${name}"


def _given_values(kind: Kind) -> list[Json]:
    return list(VALUES[kind])


class Values:
    """Writes values and conditions of one query."""

    def __init__(self, pen: Pen, parameters: Parameters) -> None:
        self.pen = pen
        self.parameters = parameters

    def literal(self, kind: Kind) -> str:
        """A literal that can be compared with a kind."""
        if kind in NUMERIC:
            # A fraction may stand beside an integer.
            return self.pen.one_of(
                ("1", "0", "2", "1.0", "0.5", "40", "0.1", "9007199254740993", str(2**64 - 1))
            )
        known = [each for each in VALUES[kind] if "-" not in str(each) or kind in _DATED]
        return literal(kind, self.pen.one_of(frequent(known)))

    def constant(self, kind: Kind) -> str:
        """A literal, a parameter or now."""
        if self.pen.chance(25):
            return self.parameters.add(self.pen, kind)
        if kind == "DateTime" and self.pen.chance(30):
            return "now()"
        return self.literal(kind)

    def operand(self, kind: Kind, scope: Scope) -> str:
        """Something that can be compared with a kind: mostly a constant."""
        fields = scope.fields(*comparable(kind))
        if fields and self.pen.chance(30):
            return self.pen.one_of(fields).text
        return self.constant(kind)

    def condition(self, scope: Scope, depth: int = 2) -> str:
        """A condition about the variables of a scope."""
        if depth and self.pen.chance(30):
            return self._compound(scope, depth - 1)
        return self.pen.one_of(
            (
                self.comparison,
                self.comparison,
                self._computed_comparison,
                self._null_test,
                self._text_test,
                self._membership,
                self._truth,
                self.words_test,
            )
        )(scope)

    def _compound(self, scope: Scope, depth: int) -> str:
        left = self.condition(scope, depth)
        match self.pen.one_of(("and", "or", "not", "=")):
            case "not":
                return f"not ({left})"
            case "=":
                return f"({left}) = ({self.condition(scope, depth)})"
            case word:
                return f"({left} {word} {self.condition(scope, depth)})"

    def comparison(self, scope: Scope) -> str:
        """A comparison that mentions a variable of a scope."""
        subject = self.pen.one_of(scope.fields(*SCALARS))
        right = self.operand(subject.kind, scope)
        return f"{subject.text} {self.pen.one_of(COMPARISONS)} {right}"

    def computed(self, scope: Scope, depth: int = 2) -> Field:
        """Something computed from the fields of a scope, with functions of its kind."""
        subject = self.pen.one_of(scope.fields(*NUMERIC, *TEXTUAL))
        if not depth or self.pen.chance(25):
            return subject
        if subject.kind in TEXTUAL:
            return self._computed_text(subject.text, scope, depth - 1)
        return self._computed_number(subject.text, scope, depth - 1)

    def _computed_number(self, number: str, scope: Scope, depth: int) -> Field:
        other = self._other_number(scope, depth)
        third = self.literal("I64")
        whole = f"{self._an_integer(scope)}, {self._an_integer(scope)}"
        texts = (
            f"({number} {self.pen.one_of(('+', '-', '*', '/'))} {other})",
            f"{self.pen.one_of(('abs', 'sign', 'floor', 'ceil', 'sqrt', 'round'))}({other})",
            f"round({number}, {self.pen.one_of(('0', '1', '-1', '2'))})",
            f"{self.pen.one_of(('coalesce', 'least', 'greatest'))}({number}, {other}, {third})",
            f"nullif({number}, {other})",
            f"if({self.condition(scope, depth)}, {number}, {other})",
            f"case {{ {self.condition(scope, depth)}: {other}, else: -{number} }}",
            f"(-({number} - {other}))",
            f"{self.pen.one_of(('div', 'mod'))}({whole})",
            self._part_of_time(scope) or number,
            self._converted_number(number, scope),
            self._number_of_list(scope) or number,
        )
        return Field(self.pen.one_of(texts), "F64")

    def _part_of_time(self, scope: Scope) -> str | None:
        fields = scope.fields("Date", "DateTime")
        if not fields:
            return None
        part = self.pen.one_of(("year", "quarter", "month", "week", "weekday", "day_of_year"))
        return f"{part}({self.pen.one_of(fields).text})"

    def _converted_number(self, number: str, scope: Scope) -> str:
        text = self.pen.one_of(scope.fields(*TEXTUAL, *_DATED, "Bool")).text
        times = [each.text for each in scope.fields(*_DATED)]
        texts = [f"int({number})", f"float(text({number}))", f"int(text({text}))"]
        if times:
            time = self.pen.one_of(times)
            moments = [each.text for each in scope.fields("DateTime")] or ["now()"]
            span = f"{self.pen.one_of(moments)} - {self.pen.one_of(moments)}"
            later = f"{self.pen.one_of(moments)} + hours({self._an_integer(scope)})"
            texts += [f"total_seconds({span})", f"epoch_ms({later})"]
            moved = f"add_months({time}, {self._an_integer(scope)})"
            cut = f'trunc({time}, "{self.pen.one_of(("week", "month", "quarter", "year"))}")'
            texts += [f"epoch_ms({moved})", f"epoch_ms({cut})", f"day(date(text({time})))"]
        return self.pen.one_of(texts)

    def _number_of_list(self, scope: Scope) -> str | None:
        vectors, lists = scope.fields("Vector"), scope.fields("[I64]")
        texts = []
        if vectors:
            function = self.pen.one_of(("l2", "dot", "cosine"))
            other = self.constant("Vector")
            texts.append(f"{function}({self.pen.one_of(vectors).text}, {other})")
        if lists:
            items = self.pen.one_of(lists).text
            changed = self.pen.one_of((f"sort({items} + [2, 1])", f"reverse({items})"))
            texts.append(f"item(unique(slice({changed}, 0, 3)), {self._an_integer(scope)})")
        return self.pen.one_of(texts) if texts else None

    def _other_number(self, scope: Scope, depth: int) -> str:
        found = self.computed(scope, depth)
        if found.kind in TEXTUAL:
            return f"length({found.text})"
        return found.text if self.pen.chance(70) else self.literal("F64")

    def _an_integer(self, scope: Scope) -> str:
        fields = scope.fields("I32", "I64", "U32", "U64")
        if fields and self.pen.chance(60):
            return self.pen.one_of(fields).text
        return self.pen.one_of(("3", "-2", "0", "9223372036854775807"))

    def _computed_text(self, text: str, scope: Scope, depth: int) -> Field:
        other = self.operand("String", scope)
        place = self.pen.one_of(("0", "1", "-2", self._an_integer(scope)))
        texts = (
            f"{self.pen.one_of(('lower', 'upper', 'trim'))}({text})",
            f"slice({text}, {place})",
            f"slice({text}, {place}, {self.pen.one_of(('3', '-1'))})",
            f"({text} + {other})",
            f"replace({text}, {other}, {self.literal('String')})",
            f"coalesce({text}, {other})",
            f"if({self.condition(scope, depth)}, {text}, null)",
            f'pad_left({text}, 6, "*")',
            f'join(sort(split({text}, "e") + [{other}]), "-")'
            if not other.startswith(("$", "("))
            else f'join(split({text}, "e"), {other})',
            f'regex_replace({text}, "[a-m]*", {self.literal("String")})',
            f'extract({text}, "(s|a)([a-z]?)", {self.pen.one_of(("0", "1", "2"))})',
            f"text({self.pen.one_of(scope.fields(*SCALARS)).text})",
        )
        return Field(self.pen.one_of(texts), "String")

    def _computed_comparison(self, scope: Scope) -> str:
        left = self.computed(scope)
        right = self.operand(left.kind, scope)
        return f"{left.text} {self.pen.one_of(COMPARISONS)} {right}"

    def _null_test(self, scope: Scope) -> str:
        subject = self.pen.one_of(scope.fields()).text
        if self.pen.chance(30):
            subject = f"${self.pen.one_of(list(scope.nodes))}"
        return f"{subject} is {self.pen.one_of(('null', 'not null'))}"

    def _text_test(self, scope: Scope) -> str:
        subject = self.pen.one_of(scope.fields(*TEXTUAL))
        word = self.pen.one_of(("contains", "starts_with"))
        # Between two variables the word would be an edge.
        return f"({subject.text} {word} {self.operand('String', scope)})"

    def _membership(self, scope: Scope) -> str:
        lists = scope.fields("[String]", "[I64]")
        if lists and self.pen.chance(50):
            items = self.pen.one_of(lists)
            kind = items.kind.strip("[]")
            item = self.operand(kind, scope)
            is_infix = self.pen.chance(50)
            return f"{items.text} contains {item}" if is_infix else f"{item} in {items.text}"
        subject = self.pen.one_of(scope.fields("String", "enum", "I64", "I32", "F64"))
        kind = "String" if subject.kind in TEXTUAL else subject.kind
        if kind in ("String", "I64") and self.pen.chance(30):
            return f"{subject.text} in {self.parameters.add(self.pen, f'[{kind}]')}"
        items_of = ", ".join(self.literal(kind) for _ in range(self.pen.number(0, 3)))
        return f"{subject.text} in [{items_of}]"

    def _truth(self, scope: Scope) -> str:
        fields = scope.fields("Bool")
        if fields and self.pen.chance(80):
            return self.pen.one_of(fields).text
        return self.pen.one_of(("true", "false"))

    def words_test(self, scope: Scope) -> str:
        """A text predicate."""
        fields = [each for each in scope.fields("text") if "@" not in each.text]
        if not fields:
            return self.comparison(scope)
        about, words = self.pen.one_of(fields).text, self.words()
        match self.pen.one_of(("search", "match_text", "fuzzy", "all_words", "phrase", "prefix")):
            case "fuzzy":
                edits = self.pen.one_of(("", ", 1", ", 0"))
                return f"fuzzy({about}, {words}{edits})"
            case "prefix":
                start = literal("String", self.pen.one_of(WORDS)[: self.pen.number(1, 3)])
                return f"prefix({about}, {start})"
            case word:
                return f"{word}({about}, {words})"

    def score(self, scope: Scope) -> str | None:
        """A score that a variable of a scope has."""
        fields = [each for each in scope.fields("text", "Vector") if "@" not in each.text]
        if not fields:
            return None
        about = self.pen.one_of(fields)
        return self.score_of(scope, about)

    def score_of(self, scope: Scope, about: Field, *, is_arm: bool = False) -> str:
        """The score of a text for words, or of a vector for another one."""
        if about.kind != "Vector":
            return f"bm25({about.text}, {self.words()})"
        vectors = [each.text for each in scope.fields("Vector")]
        is_own = not is_arm and self.pen.chance(40)
        query = self.pen.one_of(vectors) if is_own else self.constant("Vector")
        metric = self.pen.one_of(("", "", ', metric: "cosine"', ', metric: "dot"'))
        return f"nearest({about.text}, {query}{metric})"

    def words(self) -> str:
        """What to look for in a text."""
        words = [self.pen.one_of(WORDS) for _ in range(self.pen.number(1, 2))]
        return literal("String", " ".join(words))


def literal(kind: Kind, value: Json) -> str:
    """A value as a literal."""
    match kind:
        case "Date" | "DateTime":
            return f'{kind.lower()}("{value}")'
        case "Bool":
            return "true" if value else "false"
        case "Vector":
            assert isinstance(value, list)
            return f"[{', '.join(str(float(str(each))) for each in value)}]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def frequent(values: Sequence[Json]) -> Sequence[Json]:
    """Values of which the first are drawn most often."""
    return (*values[:3], *values[:3], *values)


def comparable(kind: Kind) -> tuple[Kind, ...]:
    """The kinds that compare with a kind."""
    for group in (NUMERIC, TEXTUAL):
        if kind in group:
            return group
    return (kind,)


def an_id(pen: Pen) -> str:
    """The id of some node, as a literal."""
    return literal("String", pen.one_of(IDS))

"""Whole queries: a match, what is returned, an order and a limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fuzz.patterns import Clauses, Patterns, aggregate
from fuzz.pen import Pen
from fuzz.stages import Stages, combined, match_text
from fuzz.values import SCALARS, Parameters, Scope, Values
from fuzz.world import NUMERIC
from logic.generate import Json


@dataclass(frozen=True, slots=True)
class Ask:
    """A query and its parameters; `unlimited` is the same query without a limit on any order.

    `paged` is the same query with pages, whose cursor is the parameter `page`.
    """

    text: str
    params: Mapping[str, Json]
    unlimited: str | None = None
    limit: int | None = None
    paged: str | None = None


def write_read(pen: Pen) -> Ask:
    """A random query."""
    parameters = Parameters()
    values = Values(pen, parameters)
    patterns = Patterns(values)
    if pen.chance(12):
        return _combined(parameters, values, patterns)
    stages, clauses = Stages(values, patterns).before(patterns.whole())
    is_aggregated = pen.chance(35)
    returning = Returning(values, clauses.scope)
    if is_aggregated:
        items, order = returning.groups()
    else:
        items, order = returning.rows()
    is_limited = returning.needs_limit or pen.chance(30)
    limit = pen.one_of((3, 1, 2, 4, 5, 8, 0)) if is_limited else None
    ends = f"\n{returning.having()}" if is_aggregated else "\n"
    ends += f"order {{ {', '.join(order)} }}" if order else ""
    # An order of the returned columns and no score: then rows may be distinct.
    is_distinct = not is_aggregated and not order and pen.chance(20)
    text = _text(parameters, stages, clauses, items, is_distinct=is_distinct) + ends
    if limit is None:
        return Ask(text + "\n}", parameters.given)
    limited = f"{text}\nlimit {limit}\n}}"
    if order:
        has_pages = limit > 0 and "rrf(" not in text and pen.chance(40)
        return Ask(limited, parameters.given, paged=_paged(limited) if has_pages else None)
    return Ask(limited, parameters.given, unlimited=text + "\n}", limit=limit)


def _text(
    parameters: Parameters, stages: str, clauses: Clauses, items: list[str], *, is_distinct: bool
) -> str:
    """The text up to its order; whatever may fall away is a line of its own."""
    opening = "return distinct {" if is_distinct else "return {"
    return "\n".join((_head(parameters), f"{stages}{match_text(clauses)}", opening, *items, "}"))


def _head(parameters: Parameters) -> str:
    return f"query q({', '.join(parameters.declared)}) {{"


def _paged(text: str) -> str:
    """The text with a cursor after its last limit, and a total."""
    head, _, rest = text.partition("(")
    declared = "$page: String?" if rest.startswith(")") else "$page: String?, "
    return f"{head}({declared}{rest[:-2]}\nafter $page\ntotal\n}}"


def _combined(parameters: Parameters, values: Values, patterns: Patterns) -> Ask:
    """Reads that are combined, some of them ordered and cut."""
    text, order = combined(values, patterns)
    ends = ["}"]
    if values.pen.chance(50):
        ends = [order, "limit 4", "}"] if values.pen.chance(60) else [order, "}"]
    whole = "\n".join((_head(parameters), text, *ends))
    has_pages = len(ends) == len(("order", "limit", "}"))
    return Ask(whole, parameters.given, paged=_paged(whole) if has_pages else None)


class Returning:
    """Writes what a query returns and how it is ordered."""

    def __init__(self, values: Values, scope: Scope) -> None:
        self.values = values
        self.pen = values.pen
        self.scope = scope
        self.needs_limit = False

    def rows(self) -> tuple[list[str], list[str]]:
        """The items and the order keys of a query that does not aggregate."""
        items, keys = [], []
        score = self._score() if self.pen.chance(35) else None
        if score is not None:
            keys.append(score)
            if self.pen.chance(50):
                items.append(f"{score} as s")
        for number in range(self.pen.number(1, 4)):
            item, key = self._item(f"c{number}")
            items.append(item)
            is_key = score is None or not score.startswith("nearest")
            if is_key and self.pen.chance(30):
                keys.append(key + self._direction())
        fields = self.scope.fields(*SCALARS)
        if self.pen.chance(25):
            keys.append(self.pen.one_of(fields).text + self._direction())
        return items, keys

    def _item(self, alias: str) -> tuple[str, str]:
        """An item under an alias, and an order key that means the same."""
        node = self.pen.one_of(list(self.scope.nodes))
        match self.pen.one_of(
            ("field", "field", "computed", "node", "condition", "id", "constant")
        ):
            case "computed":
                return f"{self.values.computed(self.scope).text} as {alias}", alias
            case "node":
                return f"${node} as {alias}", alias
            case "id":
                return f"${node}.@id as {alias}", f"${node}.@id"
            case "condition":
                return f"({self.values.condition(self.scope, 1)}) as {alias}", alias
            case "constant":
                kind = self.pen.one_of(("String", "I64", "F64", "Bool", "Date"))
                return f"{self.values.constant(kind)} as {alias}", alias
            case _:
                found = self.pen.one_of(self.scope.fields())
                is_sortable = found.kind in SCALARS
                return f"{found.text} as {alias}", alias if is_sortable else f"${node}.@id"

    def groups(self) -> tuple[list[str], list[str]]:
        """The items and the order keys of a query that aggregates."""
        items: list[str] = []
        keys: list[str] = []
        if self.pen.chance(10):
            score = self._score()
            keys += [] if score is None else [score]
        items += [f"{self._group_key()} as k{n}" for n in range(self.pen.number(0, 2))]
        items += [f"{self._aggregate()} as n{n}" for n in range(self.pen.number(1, 3))]
        if self.pen.chance(40):
            items.append(f"{self._whole_aggregate()} as w")
        if self.pen.chance(20):
            items.append("count(*) * 2 - count(*) as again")
        if keys and keys[0].startswith("nearest"):
            # An alias cannot follow it, and a group has nothing else.
            return items, keys
        for item in items:
            if self.pen.chance(40) and not item.startswith("collect"):
                keys.append(item.rpartition(" as ")[2] + self._direction())
        return items, keys

    def _group_key(self) -> str:
        if self.pen.chance(25):
            return self.values.computed(self.scope).text
        if self.pen.chance(20):
            return f"${self.pen.one_of(list(self.scope.nodes))}"
        return self.pen.one_of(self.scope.fields(*SCALARS)).text

    def _aggregate(self) -> str:
        if self.pen.chance(15):
            return "count(*)"
        if self.pen.chance(15):
            computed = self.values.computed(self.scope).text
            return f"{self.pen.one_of(('count', 'min', 'max'))}({computed})"
        if self.pen.chance(30):
            return f"count(${self.pen.one_of(list(self.scope.nodes))})"
        function, about = aggregate(self.values, self.scope)
        return f"{function}({about.text})"

    def _whole_aggregate(self) -> str:
        """An aggregate that needs all rows of a group at once."""
        value = self.pen.one_of(self.scope.fields(*SCALARS)).text
        numbers = self.scope.fields(*NUMERIC)
        if numbers and self.pen.chance(35):
            function = self.pen.one_of(("median", "variance", "stddev", "sum", "avg"))
            distinct = "distinct " if function in ("sum", "avg") else ""
            return f"{function}({distinct}{self.pen.one_of(numbers).text})"
        key = self.pen.one_of(self.scope.fields(*SCALARS)).text
        match self.pen.one_of(("distinct", "truth", "mode", "by", "collect")):
            case "distinct":
                return f"count(distinct ${self.pen.one_of(list(self.scope.nodes))})"
            case "truth":
                function = self.pen.one_of(("every", "some", "count_if"))
                return f"{function}({self.values.condition(self.scope, 1)})"
            case "mode":
                return f"mode({value})"
            case "by":
                return f"{self.pen.one_of(('min_by', 'max_by'))}({value}, {key})"
            case _:
                limit = self.pen.one_of(("", " limit 2"))
                distinct = self.pen.one_of(("", "distinct "))
                return f"collect({distinct}{value} order {{ {key}{self._direction()} }}{limit})"

    def having(self) -> str:
        """Conditions on groups, or nothing."""
        if not self.pen.chance(20):
            return ""
        return self.pen.one_of(("having { count(*) > 1 }", "having { n0 is not null }")) + "\n"

    # ---- ranks ----

    def _score(self) -> str | None:
        """A rank call, if a variable has something to rank by."""
        fields = self.scope.fields("text", "Vector")
        if not fields:
            return None
        first = self.pen.one_of(fields)
        variable = first.text.partition(".")[0]
        alike = [each for each in fields if each.text.partition(".")[0] == variable]
        if self.pen.chance(35):
            self.needs_limit = True
            arms = (first, *(self.pen.one_of(alike) for _ in range(self.pen.number(1, 2))))
            written = [self.values.score_of(self.scope, each, is_arm=True) for each in arms]
            return f"rrf({', '.join(written)})"
        self.needs_limit = first.kind == "Vector"
        return self.values.score_of(self.scope, first)

    def _direction(self) -> str:
        return self.pen.one_of(("", " desc", " asc"))

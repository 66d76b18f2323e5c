"""Compares rows and shapes the way the format defines it.

Numbers are equal when they agree to 12 decimal places, so `2` equals `2.0`; a null member of an
object equals an absent one, a null element of a list does not; texts of DateTime columns are equal
when they name the same instant.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal

from logic.answers import RowsAnswer
from logic.case import ShapeColumn
from logic.generate import Json
from omnigraph.schema.property_values import ValueTextError, format_datetime, parse_datetime

_PLACES = Decimal("1e-12")
# Enough digits for the largest double down to the last kept place.
_CONTEXT = Context(prec=400)

# A JSON value whose numbers kept every digit.
Exact = None | bool | Decimal | str | list["Exact"] | dict[str, "Exact"]


def shape_problem(expected: Sequence[ShapeColumn], answer: RowsAnswer) -> str | None:
    """What is wrong with the columns: their number, names, types or nulls, in that order."""
    if not expected:
        return "the expected shape is empty"
    names = [column.name for column in expected]
    actual_names = [column.name for column in answer.columns]
    if len(names) != len(actual_names) or names != actual_names:
        return f"expected columns {names}, got {actual_names}"
    for column, actual in zip(expected, answer.columns, strict=True):
        if column.type_name != actual.type_name:
            return f"column '{column.name}' should be {column.type_name}, it is {actual.type_name}"
    for column in expected:
        if not column.is_nullable and any(row.get(column.name) is None for row in answer.rows):
            return f"column '{column.name}' is declared without '?', but holds a null"
    return None


def rows_problem(
    expected: Sequence[str], answer: RowsAnswer, *, is_ordered: bool, shape: Sequence[ShapeColumn]
) -> str | None:
    """What is wrong with the rows, or None."""
    instants = {column.name for column in shape if column.type_name == "DateTime"}
    wanted = [canonical_row(line, instants=instants) for line in expected]
    found = [canonical_row(json.dumps(row), instants=instants) for row in answer.rows]
    if is_ordered:
        return None if wanted == found else _ordered_difference(wanted, found)
    missing, extra = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    if not missing and not extra:
        return None
    return "rows differ\n" + "\n".join(
        [f"  missing  {row}" for row in sorted(missing.elements())]
        + [f"  extra    {row}" for row in sorted(extra.elements())]
    )


def _ordered_difference(wanted: list[str], found: list[str]) -> str:
    lines = ["rows or their order differ"]
    for index in range(max(len(wanted), len(found))):
        left = wanted[index] if index < len(wanted) else "(no row)"
        right = found[index] if index < len(found) else "(no row)"
        mark = " " if left == right else "!"
        lines.append(f"  {mark} {index}: expected {left} got {right}")
    return "\n".join(lines)


def canonical_row(line: str, *, instants: set[str] | None = None) -> str:
    """A text that equal rows share."""
    row = json.loads(line, parse_float=_fraction, parse_int=Decimal)
    assert isinstance(row, dict)
    for name in instants or ():
        if isinstance(row.get(name), str):
            row[name] = _instant(row[name])
    return canonical(row)


def canonical(value: Exact) -> str:
    """A text that equal values share: sorted members, no null members, plain decimals."""
    match value:
        case Decimal():
            return _plain(value)
        case dict():
            members = {name: each for name, each in sorted(value.items()) if each is not None}
            return "{" + ", ".join(_member(name, each) for name, each in members.items()) + "}"
        case list():
            return "[" + ", ".join(canonical(each) for each in value) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _member(name: str, value: Exact) -> str:
    return f"{json.dumps(name, ensure_ascii=False)}: {canonical(value)}"


def _fraction(text: str) -> Decimal:
    return _CONTEXT.quantize(Decimal(text), _PLACES)


def _plain(number: Decimal) -> str:
    if number == 0:
        return "0"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _instant(text: str) -> str:
    try:
        return format_datetime(parse_datetime(text))
    except ValueTextError:
        return text


def plan_problem(facts: Sequence[str], answer: RowsAnswer) -> str | None:
    """What is wrong with the plan facts that hold for every planner; others are not checked."""
    known: Mapping[str, Sequence[str] | None] = {
        "result columns": [column.name for column in answer.columns],
        "sort tiebreak": answer.tiebreak,
    }
    for fact in facts:
        for title, actual in known.items():
            if not fact.startswith(f"{title} [") or not fact.endswith("]") or actual is None:
                continue
            inner = fact[len(title) + 2 : -1]
            listed = [word.strip() for word in inner.split(",") if word.strip()]
            if listed != list(actual):
                return f"expected {title} {listed}, got {list(actual)}"
    return None


def as_json_line(row: Mapping[str, Json]) -> str:
    """A row as a line of an expectation."""
    return json.dumps(row, ensure_ascii=False)

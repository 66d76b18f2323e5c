"""The functions of values, one row at a time: None is null, and a fault is null too."""

import math
from collections.abc import Callable
from datetime import date
from typing import Any

import re2

from omnigraph.errors import ExecutionError
from omnigraph.query.typed_tree import Expr, FunctionValue
from omnigraph.rows.text_analysis import analyze_text
from omnigraph.schema.property_types import PropertyType, Scalar

Function = Callable[..., Any]
_EARTH_RADIUS_KM = 6371.0088
_DAY_MS = 86_400_000
_OF_DAYS = ("year", "quarter", "month", "week", "day", "weekday", "day_of_year")


def apply(expr: FunctionValue, arguments: list[Any]) -> Any:  # Any: a value of any type
    """The value of a function."""
    if expr.function in _CHOICES:
        return _fit(expr, _CHOICES[expr.function](*arguments))
    if None in arguments:
        return None
    if expr.function in _OF_DAYS and _scalar_of(expr.arguments[0]) is Scalar.DATETIME:
        arguments = [arguments[0] // _DAY_MS]
    try:
        return _fit(expr, _STRICT[expr.function](*arguments))
    except (ArithmeticError, ValueError):
        return None


def _fit(expr: FunctionValue, value: Any) -> Any:
    """A result in its type; what does not fit is a fault."""
    match expr.type.scalar:
        case Scalar.I64:
            return value if value is not None and -(2**63) <= value < 2**63 else None
        case Scalar.F64 if value is not None:
            return _finite(float(value)) if expr.function in _STRICT else float(value)
        case Scalar.DATE if value is not None:
            return _checked_day(value)
        case _:
            return value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# ---- numbers ----


def _exact(function: Function) -> Function:
    """Integers stay integers; a float makes floats of all."""

    def compute(*numbers: Any) -> Any:
        if any(isinstance(number, float) for number in numbers):
            numbers = tuple(map(float, numbers))
        return function(*numbers)

    return compute


def _whole_division(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _sign(number: float) -> int:
    if math.isnan(number):
        raise ValueError
    return (number > 0) - (number < 0)


def _kept(function: Function) -> Function:
    """Integers have no fraction to cut."""
    return lambda number: number if isinstance(number, int) else float(function(number))


def _rounded(number: Any, digits: int = 0) -> Any:
    digits = max(-308, min(308, digits))
    power = 10 ** abs(digits)
    if isinstance(number, int):
        if digits >= 0:
            return number
        whole, rest = divmod(abs(number), power)
        return (whole + (2 * rest >= power)) * power * (-1 if number < 0 else 1)
    scaled = _finite(number * float(power) if digits >= 0 else number / float(power))
    if scaled is None:
        return number
    whole = math.trunc(scaled)
    if abs(scaled - whole) >= 0.5:
        whole += 1 if scaled > 0 else -1
    return whole / float(power) if digits >= 0 else float(whole) * float(power)


def _haversine(north: float, east: float, to_north: float, to_east: float) -> float:
    north, east, to_north, to_east = (
        degree * (math.pi / 180) for degree in (north, east, to_north, to_east)
    )
    rise, turn = math.sin((to_north - north) / 2.0), math.sin((to_east - east) / 2.0)
    part = rise * rise + (math.cos(north) * math.cos(to_north)) * (turn * turn)
    return math.asin(math.sqrt(min(part, 1.0))) * (2 * _EARTH_RADIUS_KM)


def _power(base: float, exponent: float) -> float:
    return math.pow(float(base), float(exponent))


# ---- texts ----

# One character for one: these have no other that Python knows of.
_UPPER = {"ß": "ẞ"}


def _cased(change: Function, known: dict[str, str]) -> Function:
    def one(letter: str) -> str:
        changed = change(letter)
        return known.get(letter, changed if len(changed) == 1 else letter)

    return lambda text: "".join(map(one, text))


def _sliced(items: Any, start: int, end: int | None = None) -> Any:
    return items[start:end]


def _replaced(text: str, part: str, other: str) -> str:
    return text.replace(part, other) if part else text


def _padded(text: str, width: int, sign: str) -> str | None:
    return text.rjust(max(width, 0), sign) if len(sign) == 1 and width <= 1_000_000 else None


def _edits(left: str, right: str) -> int:
    found = list(range(len(right) + 1))
    for row, letter in enumerate(left, 1):
        before, found = found, [row]
        for column, other in enumerate(right, 1):
            kept = before[column - 1] + (letter != other)
            found.append(min(kept, before[column] + 1, found[-1] + 1))
    return found[-1]


def _matched(text: str, pattern: str) -> bool:
    try:
        return re2.search(pattern, text) is not None
    except re2.error as failure:
        raise ExecutionError(f"'{pattern}' is not a pattern") from failure


# ---- dates and lists ----


def _scalar_of(expr: Expr) -> Scalar | None:
    return expr.type.scalar if isinstance(expr.type, PropertyType) else None


def _day(days: int) -> date:
    return date.fromordinal(date(1970, 1, 1).toordinal() + days)


def _checked_day(days: int) -> int:
    _day(days)
    return days


def _known(items: tuple[Any, ...]) -> list[Any]:
    return [item for item in items if item is not None]


# ---- choices ----


def _first_known(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _unequal(value: Any, other: Any) -> Any:
    return None if value is not None and value == other else value


def _branch(*parts: Any) -> Any:
    *branches, found = parts
    for test, value in reversed(list(zip(branches[::2], branches[1::2], strict=True))):
        found = value if test is True else found
    return found


def _extreme(choose: Function) -> Function:
    def compute(*values: Any) -> Any:
        known = [value for value in values if value is not None]
        return choose(known, key=lambda value: (value != value, value)) if known else None

    return compute


_CHOICES: dict[str, Function] = {
    "coalesce": _first_known,
    "nullif": _unequal,
    "if": _branch,
    "case": _branch,
    "least": _extreme(min),
    "greatest": _extreme(max),
}
_STRICT: dict[str, Function] = {
    "+": _exact(lambda left, right: left + right),
    "-": _exact(lambda left, right: left - right),
    "*": _exact(lambda left, right: left * right),
    "/": lambda left, right: float(left) / float(right),
    "%": _remainder,
    "mod": _remainder,
    "div": _whole_division,
    "minus": lambda number: 0 - number,
    "abs": abs,
    "sign": _sign,
    "floor": _kept(math.floor),
    "ceil": _kept(math.ceil),
    "round": _rounded,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": math.log,
    "log10": math.log10,
    "pow": _power,
    "haversine": _haversine,
    "lower": _cased(str.lower, {}),
    "upper": _cased(str.upper, _UPPER),
    "trim": str.strip,
    "length": len,
    "slice": _sliced,
    "replace": _replaced,
    "split": lambda text, sign: tuple(text.split(sign)),
    "join": lambda texts, sign: sign.join(text for text in texts if text is not None),
    "position": lambda text, part: text.find(part) if part in text else None,
    "pad_left": _padded,
    "ends_with": str.endswith,
    "matches": _matched,
    "year": lambda time: _day(time).year,
    "quarter": lambda time: (_day(time).month + 2) // 3,
    "month": lambda time: _day(time).month,
    "week": lambda time: _day(time).isocalendar().week,
    "day": lambda time: _day(time).day,
    "weekday": lambda time: _day(time).isoweekday(),
    "day_of_year": lambda time: _day(time).timetuple().tm_yday,
    "hour": lambda time: time // 3_600_000 % 24,
    "minute": lambda time: time // 60_000 % 60,
    "second": lambda time: time // 1_000 % 60,
    "size": len,
    "item": lambda items, at: items[at] if -len(items) <= at < len(items) else None,
    "has_any": lambda items, others: any(each in items for each in _known(others)),
    "has_all": lambda items, others: all(each in items for each in _known(others)),
    "words": lambda text: tuple(analyze_text(text)),
    "edit_distance": _edits,
}

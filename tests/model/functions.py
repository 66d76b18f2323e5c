"""The functions of values, one row at a time: None is null, and a fault is null too."""

import calendar
import math
import re
from collections.abc import Callable
from datetime import date
from typing import Any

import re2

from model import search
from omnigraph.errors import ExecutionError
from omnigraph.query.typed_tree import Expr, FunctionValue
from omnigraph.rows.text_analysis import analyze_text
from omnigraph.schema import property_values
from omnigraph.schema.property_types import PropertyType, Scalar

Function = Callable[..., Any]
_EARTH_RADIUS_KM = 6371.0088
_DAY_MS = 86_400_000
_OF_TYPES = ("text", "date", "datetime", "trunc", "add_months", "epoch_ms")
_OF_DAYS = ("year", "quarter", "month", "week", "day", "weekday", "day_of_year")


def apply(expr: FunctionValue, arguments: list[Any]) -> Any:  # Any: a value of any type
    """The value of a function."""
    if expr.function in _CHOICES:
        return _fit(expr, _CHOICES[expr.function](*arguments))
    if None in arguments:
        return None
    if expr.function in _OF_DAYS and _scalar_of(expr.arguments[0]) is Scalar.DATETIME:
        arguments = [arguments[0] // _DAY_MS]
    if expr.function in _OF_TYPES:
        arguments = [_scalar_of(expr.arguments[0]), *arguments]
    try:
        return _fit(expr, _STRICT[expr.function](*arguments))
    except (ArithmeticError, ValueError):
        return None


def _fit(expr: FunctionValue, value: Any) -> Any:
    """A result in its type; what does not fit is a fault."""
    match expr.type.scalar:
        case Scalar.I64 | Scalar.DURATION:
            return value if value is not None and -(2**63) <= value < 2**63 else None
        case Scalar.F64 if value is not None:
            return _finite(float(value)) if expr.function in _STRICT else float(value)
        case Scalar.DATE if value is not None:
            return _checked_day(value)
        case Scalar.DATETIME if value is not None:
            _day(value // _DAY_MS)
            return value
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


def _found(text: str, pattern: str, group: int = 0) -> str | None:
    compiled = _compiled(pattern)
    match = compiled.search(text)
    return (match[group] or "") if match and 0 <= group <= min(compiled.groups, 9) else None


def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern)
    except re2.error as failure:
        raise ExecutionError(f"'{pattern}' is not a pattern") from failure


def _rewritten(text: str, pattern: str, by: str) -> str:
    """Every match replaced, but no empty one at the end of another."""
    found, at, last = "", 0, None
    compiled = _compiled(pattern)
    named = [int(sign) for sign in re.findall(r"\\([0-9])", by.replace("\\\\", ""))]
    if max(named, default=0) > compiled.groups:
        raise ExecutionError(f"'{by}' cannot replace '{pattern}'")
    for match in compiled.finditer(text):
        if match.span() == (last, last):
            continue
        found += text[at : match.start()] + _expanded(by, match)
        at = last = match.end()
    return found + text[at:]


def _expanded(by: str, match: Any) -> str:
    parts = by.split("\\\\")
    return "\\".join(
        re.sub(r"\\([0-9])", lambda sign: match[int(sign[1])] or "", part) for part in parts
    )


# ---- conversions ----


def _integer(value: Any) -> int:
    if isinstance(value, str) and not re.fullmatch("[+-]?0*[0-9]{1,19}", value):
        raise ValueError
    return int(value)


def _float(value: Any) -> float:
    number = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
    if isinstance(value, str) and not re.fullmatch(number, value):
        raise ValueError
    return float(value)


def _text(scalar: Scalar, value: Any) -> str:
    match scalar:
        case Scalar.DATE:
            return property_values.format_date(value)
        case Scalar.DATETIME:
            return property_values.format_datetime(value)
        case Scalar.DURATION:
            return property_values.format_duration(value)
        case Scalar.F32:
            return str(property_values.compute_shortest_f32(value))
        case Scalar.BOOL:
            return str(value).lower()
        case _:
            return str(value)


def _to_date(scalar: Scalar, value: Any) -> int:
    return value // _DAY_MS if scalar is Scalar.DATETIME else property_values.parse_date(value)


def _to_time(scalar: Scalar, value: Any) -> int:
    return value * _DAY_MS if scalar is Scalar.DATE else property_values.parse_datetime(value)


# ---- dates and lists ----


def _scalar_of(expr: Expr) -> Scalar | None:
    return expr.type.scalar if isinstance(expr.type, PropertyType) else None


def _day(days: int) -> date:
    return date.fromordinal(date(1970, 1, 1).toordinal() + days)


def _checked_day(days: int) -> int:
    _day(days)
    return days


_SPANS = {"hour": 3_600_000, "minute": 60_000, "second": 1_000}


def _cut(scalar: Scalar, value: int, unit: str) -> int:
    if unit in _SPANS:
        return value - value % _SPANS[unit]
    days = value if scalar is Scalar.DATE else value // _DAY_MS
    start = _day(days)
    match unit:
        case "week":
            days -= start.weekday()
        case "month":
            days -= start.day - 1
        case "quarter":
            days -= (start - start.replace(month=(start.month - 1) // 3 * 3 + 1, day=1)).days
        case "year":
            days -= start.timetuple().tm_yday - 1
    return days if scalar is Scalar.DATE else days * _DAY_MS


def _months_later(scalar: Scalar, value: int, months: int) -> int:
    days, clock = (value, 0) if scalar is Scalar.DATE else divmod(value, _DAY_MS)
    start = _day(days)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise ValueError
    length = calendar.monthrange(year, month + 1)[1]
    found = date(year, month + 1, min(start.day, length)).toordinal()
    days = found - date(1970, 1, 1).toordinal()
    return days if scalar is Scalar.DATE else days * _DAY_MS + clock


def _sorted(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(items, key=lambda item: (item is not None, item)))


def _counted(first: int, last: int) -> tuple[int, ...] | None:
    is_fit = max(first, last) < 2**63 and last - first <= 1_000_000
    return tuple(range(first, last)) if is_fit else None


# ---- vectors ----


def _paired(function: Function) -> Function:
    def compute(left: tuple[float, ...], right: tuple[float, ...]) -> float:
        if len(left) != len(right):
            raise ValueError
        return float(function(left, right))

    return compute


def _dot(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    total = 0.0
    for one, other in zip(left, right, strict=True):
        total += float(one) * float(other)
    return total


def _norm(vector: tuple[float, ...]) -> float:
    return math.sqrt(_dot(vector, vector))


def _distance(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    return _norm(tuple(float(one) - float(other) for one, other in zip(left, right, strict=True)))


def _cosine(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    return max(-1.0, min(1.0, _dot(left, right) / (_norm(left) * _norm(right))))


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
    "highlight": search.highlight,
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
    "int": _integer,
    "float": _float,
    "text": _text,
    "bool": {"true": True, "false": False}.get,
    "date": _to_date,
    "datetime": _to_time,
    "extract": _found,
    "regex_replace": _rewritten,
    "trunc": _cut,
    "add_months": _months_later,
    "epoch_ms": lambda scalar, time: time * _DAY_MS if scalar is Scalar.DATE else time,
    "days": lambda number: number * _DAY_MS,
    **{f"{unit}s": lambda number, span=span: number * span for unit, span in _SPANS.items()},
    "total_seconds": lambda span: span / 1000,
    "sort": _sorted,
    "reverse": lambda items: items[::-1],
    "unique": lambda items: tuple(dict.fromkeys(items)),
    "range": _counted,
    "l2": _paired(_distance),
    "dot": _paired(_dot),
    "cosine": _paired(_cosine),
    "norm": _norm,
    "words": lambda text: tuple(analyze_text(text)),
    "edit_distance": _edits,
}

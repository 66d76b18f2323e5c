"""Aggregates of the rows of a group, which is a list."""

import math
from collections.abc import Callable
from typing import Any

from model.expressions import Row, aggregate, sort_key, sum_exactly
from omnigraph.query.ast import AggregateFunction as Name
from omnigraph.query.typed_tree import AggregateValue, Expr

Evaluate = Callable[[Expr, Row], Any]  # Any: a value of any type


def of_rows(call: AggregateValue, rows: list[Row], value: Evaluate) -> Any:
    """The value of an aggregate."""
    for key, is_descending in reversed(list(zip(call.order, call.is_descending, strict=True))):
        rows = sorted(rows, key=lambda row: sort_key(value(key, row)), reverse=is_descending)
    if call.function in (Name.MIN_BY, Name.MAX_BY):
        keyed = [row for row in rows if value(call.order[0], row) is not None]
        return value(call.argument, keyed[0]) if keyed else None
    values = [value(call.argument, row) for row in rows]
    known = [each for each in values if each is not None]
    if call.is_distinct:
        firsts: dict[Any, Any] = {}
        for each in known:
            firsts.setdefault(sort_key(each), each)
        known = list(firsts.values())
    match call.function:
        case Name.COLLECT:
            return tuple(known[: call.limit])
        case Name.EVERY | Name.SOME:
            return _folded(values, deciding=call.function is Name.SOME)
        case Name.PERCENTILE:
            assert call.fraction is not None
            return _interpolated(known, value(call.fraction, {}))
        case function if function in _OF_KNOWN:
            return _OF_KNOWN[function](known)
        case function:
            return aggregate(function, known)


def _folded(truths: list[bool | None], *, deciding: bool) -> bool | None:
    if deciding in truths:
        return deciding
    return None if None in truths or not truths else not deciding


def _interpolated(known: list[Any], fraction: float | None) -> float | None:
    numbers = [float(each) for each in sorted(known, key=sort_key)]
    if not numbers or fraction is None or not 0 <= fraction <= 1:
        return None
    at = float(fraction) * (len(numbers) - 1)
    low, high = math.floor(at), min(math.floor(at) + 1, len(numbers) - 1)
    if low == high:
        return _finite(numbers[low])
    return _finite(numbers[low] + (numbers[high] - numbers[low]) * (at - low))


def _variance(known: list[Any]) -> float | None:
    if len(known) < 2:
        return None
    numbers = list(map(float, known))
    mean = sum_exactly(numbers, len(numbers))
    squares = [(each - mean) * (each - mean) for each in numbers]
    if not all(map(math.isfinite, squares)):
        return None
    return _finite(sum_exactly(squares, len(numbers) - 1))


def _deviation(known: list[Any]) -> float | None:
    variance = _variance(known)
    return None if variance is None else math.sqrt(variance)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _total(known: list[int]) -> int | None:
    return sum(known) if known and -(2**63) <= sum(known) < 2**63 else None


def _mode(known: list[Any]) -> Any:
    counts = [
        (-sum(sort_key(x) == sort_key(each) for x in known), sort_key(each)) for each in known
    ]
    return known[counts.index(min(counts))] if known else None


_OF_KNOWN: dict[Name, Callable[[list[Any]], Any]] = {
    Name.COUNT_IF: lambda known: sum(map(bool, known)),
    Name.MEDIAN: lambda known: _interpolated(known, 0.5),
    Name.VARIANCE: _variance,
    Name.STDDEV: _deviation,
    Name.TOTAL: _total,
    Name.MODE: _mode,
}

"""Functions of dates and times, which are in UTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import Values
from omnigraph.rows.kernels.function_call import (
    I64_MAX,
    Argument,
    FunctionCall,
    Kernel,
    make_column,
)
from omnigraph.rows.kernels.moments import (
    DAY_MS,
    FIRST_MS,
    LAST_MS,
    build_days,
    build_times,
    find_days,
)
from omnigraph.rows.kernels.text_kernels import find_constant

_MONDAY: Final = 1
# More of them lead out of the years of four digits.
_MONTHS_MAX: Final = 12 * 10_000
_SPAN_MAX: Final = 2 * (LAST_MS - FIRST_MS)


def _read_time(call: FunctionCall) -> Values:
    """A date, or a time as Arrow computes with it."""
    values = make_column(call.arguments[0], call.rows)
    if pa.types.is_date32(values.type):
        return values
    return values.cast(pa.int64()).cast(pa.timestamp("ms"))


def _apply_part(function: Callable[..., Any]) -> Kernel:
    """A part of a date, as a number."""
    return lambda call: function(_read_time(call)).cast(call.result)


def _find_weekday(values: Values) -> Values:
    return pc.day_of_week(values, count_from_zero=False, week_start=_MONDAY)


def add_days(call: FunctionCall) -> Argument:
    """A date some days later, or earlier; null beyond the years of four digits."""
    days, shift = (call.read_numbers(place).astype(np.float64) for place in (0, 1))
    return build_days(call, days + shift if call.function == "+" else days - shift)


def add_duration(call: FunctionCall) -> Argument:
    """A time some milliseconds later, or earlier; null beyond the years of four digits."""
    moments, shift = call.read_numbers(0), call.read_numbers(1)
    # Longer ones lead out of these years, and may not be added to all moments.
    shift = np.clip(shift, -_SPAN_MAX, _SPAN_MAX)
    return build_times(call, moments + shift if call.function == "+" else moments - shift)


def _make_duration(unit: int) -> Kernel:
    """So many milliseconds for each of a number."""
    longest = I64_MAX // unit

    def compute(call: FunctionCall) -> Argument:
        numbers = call.read_places(0)
        is_beyond = (numbers > longest) | (numbers < -longest)
        return call.build_numbers(np.where(is_beyond, 0, numbers) * unit, is_beyond)

    return compute


def _count_seconds(call: FunctionCall) -> Argument:
    return call.build_numbers(call.read_numbers(0) / 1000.0)


def _add_months(call: FunctionCall) -> Argument:
    """The same day some months later, or the last day of a month that is shorter."""
    is_date = pa.types.is_date32(call.result)
    moments, shift = call.read_numbers(0), call.read_places(1)
    days, clock = (moments, 0) if is_date else np.divmod(moments, DAY_MS)
    months = days.astype("M8[D]").astype("M8[M]")
    day = days - months.astype("M8[D]").astype(np.int64)
    target = months.astype(np.int64) + np.clip(shift, -_MONTHS_MAX, _MONTHS_MAX)
    first, length = find_days(np.full(1, 1970), target + 1, np.ones(1, np.int64))
    found = first + np.minimum(day, length - 1)
    return build_days(call, found) if is_date else build_times(call, found * DAY_MS + clock)


def _cut_moment(call: FunctionCall) -> Argument:
    """The first moment of the same year, month, week and so on."""
    unit = find_constant(call.arguments[1])
    assert isinstance(unit, str), "a unit is a literal"
    found = pc.floor_temporal(_read_time(call), unit=unit)
    return found if found.type == call.result else found.cast(pa.int64()).cast(call.result)


def _count_milliseconds(call: FunctionCall) -> Argument:
    unit = DAY_MS if pa.types.is_date32(call.arguments[0].type) else 1
    return call.build_numbers(call.read_numbers(0) * unit)


DATE_KERNELS: Final[dict[str, Kernel]] = {
    "year": _apply_part(pc.year),
    "quarter": _apply_part(pc.quarter),
    "month": _apply_part(pc.month),
    "week": _apply_part(pc.iso_week),
    "day": _apply_part(pc.day),
    "weekday": _apply_part(_find_weekday),
    "day_of_year": _apply_part(pc.day_of_year),
    "hour": _apply_part(pc.hour),
    "minute": _apply_part(pc.minute),
    "second": _apply_part(pc.second),
    "trunc": _cut_moment,
    "add_months": _add_months,
    "epoch_ms": _count_milliseconds,
    "days": _make_duration(DAY_MS),
    "hours": _make_duration(3_600_000),
    "minutes": _make_duration(60_000),
    "seconds": _make_duration(1000),
    "total_seconds": _count_seconds,
}

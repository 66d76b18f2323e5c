"""Functions of dates and times, which are in UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import Values
from omnigraph.rows.kernels.function_call import Argument, FunctionCall, Kernel, make_column

_EPOCH: Final = date(1970, 1, 1).toordinal()
# The days that can be written with a year of four digits.
_FIRST_DAY, _LAST_DAY = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH
_MONDAY: Final = 1


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
    found = days + shift if call.function == "+" else days - shift
    is_beyond = (found < _FIRST_DAY) | (found > _LAST_DAY)
    whole = np.where(is_beyond, 0, found).astype(np.int32)
    nulls = call.find_nulls()
    mask = is_beyond if nulls is None else is_beyond | nulls
    shape = call.rows
    column = pa.array(np.broadcast_to(whole, shape), mask=np.broadcast_to(mask, shape))
    return column.cast(call.result)


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
}

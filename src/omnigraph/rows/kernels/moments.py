"""Dates as days and times as milliseconds since 1970, and columns of those that can be written."""

from __future__ import annotations

from datetime import date
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.rows.kernels.function_call import FunctionCall, Mask, Numbers

_EPOCH: Final = date(1970, 1, 1).toordinal()
# The days that can be written with a year of four digits.
FIRST_DAY, LAST_DAY = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH
DAY_MS: Final = 86_400_000
FIRST_MS, LAST_MS = FIRST_DAY * DAY_MS, (LAST_DAY + 1) * DAY_MS - 1
_Integers = npt.NDArray[np.int64]


def find_days(year: Numbers, month: Numbers, day: Numbers) -> tuple[_Integers, _Integers]:
    """The days since 1970 of the days of some months, and how many days those months have."""
    months = ((year - 1970) * 12 + month - 1).astype("M8[M]")
    first = months.astype("M8[D]").astype(np.int64)
    length = (months + 1).astype("M8[D]").astype(np.int64) - first
    return first + day - 1, length


def build_days(call: FunctionCall, days: Numbers, is_fault: Mask | None = None) -> pa.Array:
    """Dates; null beyond the years of four digits."""
    is_beyond = (days < FIRST_DAY) | (days > LAST_DAY)
    mask = is_beyond if is_fault is None else is_beyond | is_fault
    return call.build_numbers(np.where(mask, 0, days).astype(np.int32), mask)


def build_times(call: FunctionCall, moments: Numbers, is_fault: Mask | None = None) -> pa.Array:
    """Times; null beyond the years of four digits."""
    is_beyond = (moments < FIRST_MS) | (moments > LAST_MS)
    mask = is_beyond if is_fault is None else is_beyond | is_fault
    return call.build_numbers(np.where(mask, 0, moments).astype(np.int64), mask)

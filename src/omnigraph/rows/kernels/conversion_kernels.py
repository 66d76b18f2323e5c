"""Functions that make a value of one type of a value of another; what cannot be made is null."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import to_numpy
from omnigraph.rows.json_encoding import encode_plain_texts
from omnigraph.rows.kernels.function_call import (
    Argument,
    FunctionCall,
    Kernel,
    drop_misfits,
)
from omnigraph.rows.kernels.moments import (
    DAY_MS,
    FIRST_MS,
    LAST_MS,
    build_days,
    build_times,
    find_days,
)

_INTEGER: Final = "^([+-]?)0*([0-9]{1,19})$"
_FLOAT: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DATE: Final = r"(?P<year>[+-]?[0-9]{4,7})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
_CLOCK: Final = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,18}))?)?"
)
_ZONE: Final = r"(?:[Zz]|(?P<sign>[+-])(?P<zone_hour>[0-9]{2}):?(?P<zone_minute>[0-9]{2}))?"
_DATETIME: Final = f"^{_DATE}(?:[Tt ]{_CLOCK}{_ZONE})?$"
_HOUR_MAX, _MINUTE_MAX = 23, 59
# Every integer of 19 digits.
_DIGITS: Final = pa.decimal128(20)
_Integers = npt.NDArray[np.int64]


def _make_integer(call: FunctionCall) -> Argument:
    """Floats are cut, texts are read, and truths are 0 and 1."""
    values = call.read_column(0)
    if pa.types.is_string(values.type):
        digits = pc.replace_substring_regex(values, pattern=_INTEGER, replacement=r"\1\2")
        return drop_misfits(_keep_matching(digits, values, _INTEGER).cast(_DIGITS), call.result)
    if pa.types.is_boolean(values.type):
        return values.cast(call.result)
    if not pa.types.is_floating(values.type):
        return drop_misfits(values, call.result) if values.type == pa.uint64() else values
    whole = np.trunc(call.read_numbers(0))
    is_fit = (whole >= -(2.0**63)) & (whole < 2.0**63)
    return call.build_numbers(np.where(is_fit, whole, 0).astype(np.int64), ~is_fit)


def _make_float(call: FunctionCall) -> Argument:
    values = call.read_column(0)
    if not pa.types.is_string(values.type):
        return values.cast(call.result, safe=False)
    numbers = to_numpy(_keep_matching(values, values, _FLOAT).cast(call.result))
    is_read = to_numpy(pc.match_substring_regex(values, _FLOAT))
    return call.build_numbers(numbers, ~(is_read & np.isfinite(numbers)))


def _keep_matching(values: pa.Array, texts: pa.Array, pattern: str) -> pa.Array:
    return pc.if_else(
        pc.match_substring_regex(texts, pattern), values, pa.scalar(None, values.type)
    )


def _make_text(call: FunctionCall) -> Argument:
    """A value as JSON has it, without quotes."""
    return encode_plain_texts(call.read_column(0)).cast(call.result)


def _make_truth(call: FunctionCall) -> Argument:
    texts = call.read_column(0)
    is_truth = pc.is_in(texts, value_set=pa.array(["true", "false"]))
    return pc.if_else(is_truth, pc.equal(texts, "true"), pa.scalar(None, pa.bool_()))


def _make_date(call: FunctionCall) -> Argument:
    """A text, or the day of a time."""
    values = call.read_column(0)
    if not pa.types.is_string(values.type):
        return build_days(call, call.read_numbers(0) // DAY_MS)
    days, is_fault = _read_days(pc.extract_regex(values, f"^{_DATE}$"))
    return build_days(call, days, is_fault)


def _make_time(call: FunctionCall) -> Argument:
    """A text, or midnight of a date; without a zone it is UTC."""
    values = call.read_column(0)
    if not pa.types.is_string(values.type):
        return build_times(call, call.read_numbers(0) * DAY_MS)
    parts = pc.extract_regex(values, _DATETIME)
    days, is_fault = _read_days(parts)
    hour, minute, second = (_read_part(parts, name) for name in ("hour", "minute", "second"))
    zone_hour, zone_minute = _read_part(parts, "zone_hour"), _read_part(parts, "zone_minute")
    for part, limit in (
        (hour, _HOUR_MAX),
        (minute, _MINUTE_MAX),
        (second, _MINUTE_MAX),
        (zone_hour, _HOUR_MAX),
        (zone_minute, _MINUTE_MAX),
    ):
        is_fault |= part > limit
    offset = (zone_hour * 60 + zone_minute) * 60
    is_west = to_numpy(pc.equal(parts.field("sign"), "-"))
    seconds = (hour * 60 + minute) * 60 + second + np.where(is_west, offset, -offset)
    # The first three digits, as if there were at least so many.
    digits = pc.utf8_rpad(parts.field("fraction"), 3, padding="0")
    milliseconds = _to_integers(pc.utf8_slice_codeunits(digits, 0, 3))
    # Beyond these days the product would not fit.
    is_fault |= (days * 1.0 * DAY_MS < FIRST_MS - DAY_MS) | (days * 1.0 * DAY_MS > LAST_MS)
    whole = np.where(is_fault, 0, days) * DAY_MS + seconds * 1000 + milliseconds
    return build_times(call, whole, is_fault)


def _read_days(parts: pa.Array) -> tuple[_Integers, npt.NDArray[np.bool_]]:
    """The days since 1970 of the parts of dates, and which of them are not dates."""
    year, month, day = (_read_part(parts, name) for name in ("year", "month", "day"))
    days, length = find_days(year, np.clip(month, 1, 12), day)
    is_date = to_numpy(parts.is_valid()) & (month >= 1) & (month <= 12) & (day >= 1)
    return days, ~(is_date & (day <= length))


def _read_part(parts: pa.Array, name: str) -> _Integers:
    """A part as a number; zero where there is none."""
    return _to_integers(pc.utf8_ltrim(parts.field(name), characters="+"))


def _to_integers(digits: pa.Array) -> _Integers:
    is_given = pc.not_equal(digits, "")
    found: _Integers = to_numpy(pc.if_else(is_given, digits, pa.scalar("0")).cast(pa.int64()))
    return found


CONVERSION_KERNELS: Final[dict[str, Kernel]] = {
    "int": _make_integer,
    "float": _make_float,
    "text": _make_text,
    "bool": _make_truth,
    "date": _make_date,
    "datetime": _make_time,
}

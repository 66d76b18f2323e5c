"""Values as both languages spell them: date texts, 32-bit floats, canonical id strings.

A Date is its epoch day, a DateTime its epoch millisecond, both plain integers.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from omnigraph.schema.property_types import (
    FLOATS,
    INTEGER_RANGES,
    NUMERIC,
    EnumType,
    PropertyType,
    Scalar,
)

# Seven digits hold every year of a 32-bit day count.
_DATE = re.compile(r"([+-]?\d{4,7})-(\d{1,2})-(\d{1,2})", re.ASCII)
_DATETIME = re.compile(
    r"([+-]?\d{4,7}-\d{1,2}-\d{1,2})"
    r"(?:[Tt ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,18}))?)?(Z|z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY_MS = 86_400_000
# The Gregorian calendar repeats after 400 years, which takes this many days.
_CYCLE_YEARS = 400
_CYCLE_DAYS = 146_097
# Days that 32 bits hold, and milliseconds from year 1 to year 9999.
DATE_MIN, DATE_MAX = -(2**31), 2**31 - 1
DATETIME_MIN = -62_135_596_800_000
DATETIME_MAX = 253_402_300_799_999
BLOB_PREFIX = "base64:"


class ValueTextError(ValueError):
    """A text that is not a value of the type."""


class ExternalBlobTextError(ValueTextError):
    """A text that would be the address of a blob."""


class InvalidNumberError(ValueError):
    """A number that a type cannot hold; the message goes on after the number."""


def parse_date(text: str) -> int:
    """The epoch day of a date text; a time of day is refused."""
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueTextError(f"invalid Date literal '{text}'")
    value = _compute_epoch_day(found.group(1), found.group(2), found.group(3), text)
    if not DATE_MIN <= value <= DATE_MAX:
        raise ValueTextError(f"invalid Date literal '{text}': out of range")
    return value


def parse_datetime(text: str, *, is_strict: bool = False) -> int:
    """The epoch millisecond of a timestamp; without a zone it is UTC, without a time midnight.

    Digits beyond milliseconds are cut off, or refused when strict and not zero.
    """
    found = _DATETIME.fullmatch(text)
    if found is None:
        raise ValueTextError(f"invalid DateTime literal '{text}'")
    day_text, hour, minute, second, fraction, zone = found.groups()
    day_parts = _DATE.fullmatch(day_text)
    assert day_parts is not None
    days = _compute_epoch_day(day_parts.group(1), day_parts.group(2), day_parts.group(3), text)
    clock = (int(hour or 0), int(minute or 0), int(second or 0))
    if clock > (23, 59, 59) or clock[1] > 59 or clock[2] > 59:
        raise ValueTextError(f"invalid DateTime literal '{text}'")
    digits = (fraction or "").ljust(3, "0")
    if is_strict and digits[3:].strip("0"):
        raise ValueTextError(f"invalid DateTime literal '{text}': at most milliseconds are kept")
    seconds = clock[0] * 3600 + clock[1] * 60 + clock[2] - _parse_offset_seconds(zone, text)
    value = days * _DAY_MS + seconds * 1000 + int(digits[:3])
    if not DATETIME_MIN <= value <= DATETIME_MAX:
        raise ValueTextError(f"invalid DateTime literal '{text}': out of range")
    return value


def _parse_offset_seconds(zone: str | None, text: str) -> int:
    if zone is None or zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        raise ValueTextError(f"invalid DateTime literal '{text}'")
    seconds = hours * 3600 + minutes * 60
    return -seconds if zone[0] == "-" else seconds


def _compute_epoch_day(year: str, month: str, day: str, text: str) -> int:
    # Python's calendar ends at year 9999; whole 400-year cycles are moved out of the way.
    cycles, year_in_cycle = divmod(int(year) - 2000, _CYCLE_YEARS)
    try:
        within = date(2000 + year_in_cycle, int(month), int(day)).toordinal()
    except ValueError as failure:
        raise ValueTextError(f"invalid Date literal '{text}'") from failure
    return within + cycles * _CYCLE_DAYS - _EPOCH_DAY


def format_date(days: int) -> str:
    """`YYYY-MM-DD`; years beyond four digits carry a sign."""
    cycles, within = divmod(days + _EPOCH_DAY - 1, _CYCLE_DAYS)
    moved = date.fromordinal(within + 1)
    year = moved.year + cycles * _CYCLE_YEARS
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{moved.month:02d}-{moved.day:02d}"


def format_datetime(milliseconds: int) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    days, within = divmod(milliseconds, _DAY_MS)
    seconds, millisecond = divmod(within, 1000)
    clock = datetime.fromtimestamp(seconds, UTC)
    return f"{format_date(days)}T{clock:%H:%M:%S}.{millisecond:03d}Z"


def format_duration(milliseconds: int) -> str:
    """`P1DT2H3M4.5S` in days of 24 hours, with a sign before what is negative; `PT0S` for none."""
    seconds, millisecond = divmod(abs(milliseconds), 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    shown = f"{second}.{millisecond:03d}".rstrip("0") if millisecond else str(second)
    parts = [(hour, f"{hour}H"), (minute, f"{minute}M"), (second + millisecond, f"{shown}S")]
    clock = "".join(text for amount, text in parts if amount)
    sign, date_part = "-" if milliseconds < 0 else "", f"{days}D" if days else ""
    if not clock and date_part:
        return f"{sign}P{date_part}"
    return f"{sign}P{date_part}T{clock or '0S'}"


def encode_blob(data: bytes) -> str:
    """Bytes as the text of a managed blob."""
    return f"{BLOB_PREFIX}{base64.b64encode(data).decode()}"


def decode_blob(text: str) -> bytes:
    """The bytes of the text of a managed blob."""
    if not text.startswith(BLOB_PREFIX):
        raise ExternalBlobTextError("a blob must be base64 text; an external URI is not allowed")
    try:
        return base64.b64decode(text.removeprefix(BLOB_PREFIX), validate=True)
    except ValueError as failure:
        raise ValueTextError(f"invalid base64: {failure}") from failure


def coerce_number(value: int | float, scalar: Scalar) -> int | float:
    """A number as a numeric type keeps it: floats round, everything else must be kept exactly."""
    assert scalar in NUMERIC
    if scalar in FLOATS:
        return _coerce_float(value, scalar)
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        raise InvalidNumberError(f"is not a whole number, as {scalar} needs")
    low, high = INTEGER_RANGES[scalar]
    if not low <= value <= high:
        raise InvalidNumberError(f"exceeds {scalar} range ({low}..{high})")
    return int(value)


def _coerce_float(value: int | float, scalar: Scalar) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    kept = round_to_f32(number) if scalar is Scalar.F32 else number
    if not math.isfinite(kept):
        raise InvalidNumberError(describe_float_problem(value, scalar))
    return kept


def describe_float_problem(value: object, scalar: Scalar) -> str:
    """What is wrong with a number that a type of floats cannot keep, to be said after it."""
    # A decimal may be finite and beyond every float.
    is_finite = (
        value.is_finite()
        if isinstance(value, Decimal)
        else not isinstance(value, float) or math.isfinite(value)
    )
    if not is_finite:
        return f"is not a finite number, as {scalar} needs"
    return f"exceeds {scalar} range"


def round_to_f32(value: float) -> float:
    """The nearest 32-bit float; values beyond its range become infinite."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def compute_shortest_f32(value: float) -> float:
    """The double whose text is the shortest that reads back as the same 32-bit float."""
    if not math.isfinite(value) or value == 0:
        return value
    is_power_of_two = abs(math.frexp(value)[0]) == 0.5
    for digits in range(1, 10):
        nearest = float(f"{value:.{digits}g}")
        if round_to_f32(nearest) == value:
            return nearest
        # Below a power of two floats lie closer: the next decimal above may fit where the
        # nearest one does not.
        if is_power_of_two:
            exponent = Decimal(value).adjusted() - digits + 1
            away = float(Decimal(nearest) + Decimal(1).scaleb(exponent).copy_sign(Decimal(value)))
            if round_to_f32(away) == value:
                return away
    return value


def format_canonical(value: bool | int | float | str, type_: PropertyType) -> str:
    """The text that stands for a scalar in physical ids and uniqueness tuples."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if type_.scalar in (Scalar.F32, Scalar.F64):
        return _format_canonical_float(float(value), type_.scalar)
    if isinstance(value, str):
        assert isinstance(type_.value, EnumType) or type_.scalar is Scalar.STRING
        return value
    return str(value)


def _format_canonical_float(value: float, scalar: Scalar) -> str:
    if not math.isfinite(value):
        raise ValueTextError(f"{value} cannot identify an entity")
    if value == 0:
        return "0"
    text = repr(compute_shortest_f32(value) if scalar is Scalar.F32 else value)
    return _expand_exponent(text)


def _expand_exponent(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits, point = whole + fraction, len(whole) + int(exponent or 0)
    if point <= 0:
        digits, point = "0" * (1 - point) + digits, 1
    digits = digits.ljust(point, "0")
    fraction = digits[point:].rstrip("0")
    return sign + (digits[:point].lstrip("0") or "0") + ("." + fraction if fraction else "")


def encode_composite_id(parts: Sequence[str]) -> str:
    """The physical id of a composite key: a compact JSON array of canonical texts."""
    return json.dumps(list(parts), ensure_ascii=False, separators=(",", ":"))

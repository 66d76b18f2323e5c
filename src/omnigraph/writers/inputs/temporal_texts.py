"""Columns of date texts: the usual spellings by Arrow, each other distinct text by the parser."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema import values
from omnigraph.writers.inputs.fitted import Fitted, fitted

# Years with leading zeros, signs or more digits are left to the parser, which knows the calendar
# beyond the years of Arrow's.
_DAY = r"[1-9]\d{3}-\d{2}-\d{2}"
_DATE = f"^{_DAY}$"
_ZONED = rf"^{_DAY}[T ]\d{{2}}:\d{{2}}:\d{{2}}(\.\d{{1,3}})?(Z|[+-]\d{{2}}:\d{{2}})$"
_UNZONED = rf"^{_DAY}([T ]\d{{2}}:\d{{2}}:\d{{2}}(\.\d{{1,3}})?)?$"


def dates_of(texts: pa.Array) -> Fitted:
    """The epoch days of date texts, as int64."""
    days = _cast_matching(texts, _DATE, pa.date32())
    return _parsed(texts, pc.cast(days, pa.int32()).cast(pa.int64()), values.parse_date)


def datetimes_of(texts: pa.Array, *, is_strict: bool) -> Fitted:
    """The epoch milliseconds of timestamp texts, as int64."""
    zoned = _cast_matching(texts, _ZONED, pa.timestamp("ms", "UTC")).cast(pa.int64())
    unzoned = _cast_matching(texts, _UNZONED, pa.timestamp("ms")).cast(pa.int64())
    parse = partial(values.parse_datetime, is_strict=is_strict)
    # A zone may move the last hours of the last year beyond it; the parser will refuse them.
    found = pc.coalesce(zoned, unzoned)
    found = pc.if_else(pc.less_equal(found, values.DATETIME_MAX), found, None)
    return _parsed(texts, found, parse)


def _cast_matching(texts: pa.Array, pattern: str, target: pa.DataType) -> pa.Array:
    """The values of the texts that match; null for others, and for all if one is no real date."""
    matching = pc.if_else(pc.match_substring_regex(texts, pattern), texts, None)
    if matching.null_count == len(matching):
        return pa.nulls(len(texts), target)
    try:
        return matching.cast(target)
    except pa.ArrowInvalid:
        return pa.nulls(len(texts), target)


def _parsed(texts: pa.Array, found: pa.Array, parse: Callable[[str], int]) -> Fitted:
    """What was found, and what a parser makes of the other texts; bad where it refuses."""
    is_open = pc.and_(texts.is_valid(), found.is_null())
    if not pc.any(is_open).as_py():
        return Fitted(found, None)
    distinct = texts.filter(is_open).dictionary_encode()
    parsed = pa.array([_or_none(parse, text) for text in distinct.dictionary.to_pylist()])
    rest = parsed.cast(pa.int64()).take(distinct.indices)
    return fitted(pc.replace_with_mask(found, is_open, rest), bad_of=texts)


def _or_none(parse: Callable[[str], int], text: str) -> int | None:
    try:
        return parse(text)
    except values.ValueTextError:
        return None

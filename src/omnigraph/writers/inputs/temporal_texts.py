"""Columns of date texts: the usual spellings by Arrow, each other distinct text by the parser."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema import values
from omnigraph.writers.inputs.fitted import CoercedColumn, build_coerced

# Years with leading zeros, signs or more digits are left to the parser, which knows the calendar
# beyond the years of Arrow's.
_DAY_PATTERN = r"[1-9]\d{3}-\d{2}-\d{2}"
_DATE_PATTERN = f"^{_DAY_PATTERN}$"
_ZONED_PATTERN = (
    rf"^{_DAY_PATTERN}[T ]\d{{2}}:\d{{2}}:\d{{2}}(\.\d{{1,3}})?(Z|[+-]\d{{2}}:\d{{2}})$"
)
_UNZONED_PATTERN = rf"^{_DAY_PATTERN}([T ]\d{{2}}:\d{{2}}:\d{{2}}(\.\d{{1,3}})?)?$"


def parse_dates(texts: pa.Array) -> CoercedColumn:
    """The epoch days of date texts, as int64."""
    days = _cast_matching(texts, _DATE_PATTERN, pa.date32())
    return _parse_unmatched(texts, pc.cast(days, pa.int32()).cast(pa.int64()), values.parse_date)


def parse_datetimes(texts: pa.Array, *, is_strict: bool) -> CoercedColumn:
    """The epoch milliseconds of timestamp texts, as int64."""
    zoned = _cast_matching(texts, _ZONED_PATTERN, pa.timestamp("ms", "UTC")).cast(pa.int64())
    unzoned = _cast_matching(texts, _UNZONED_PATTERN, pa.timestamp("ms")).cast(pa.int64())
    parse = partial(values.parse_datetime, is_strict=is_strict)
    # A zone may move the last hours of the last year beyond it; the parser will refuse them.
    found = pc.coalesce(zoned, unzoned)
    found = pc.if_else(pc.less_equal(found, values.DATETIME_MAX), found, None)
    return _parse_unmatched(texts, found, parse)


def _cast_matching(texts: pa.Array, pattern: str, target: pa.DataType) -> pa.Array:
    """The values of the texts that match; null for others, and for all if one is no real date."""
    matching = pc.if_else(pc.match_substring_regex(texts, pattern), texts, None)
    if matching.null_count == len(matching):
        return pa.nulls(len(texts), target)
    try:
        return matching.cast(target)
    except pa.ArrowInvalid:
        return pa.nulls(len(texts), target)


def _parse_unmatched(
    texts: pa.Array, found: pa.Array, parse: Callable[[str], int]
) -> CoercedColumn:
    """What was found, and what a parser makes of the other texts; bad where it refuses."""
    is_open = pc.and_(texts.is_valid(), found.is_null())
    if not pc.any(is_open).as_py():
        return CoercedColumn(found, None)
    distinct = texts.filter(is_open).dictionary_encode()
    parsed = pa.array([_parse_temporal(parse, text) for text in distinct.dictionary.to_pylist()])
    rest = parsed.cast(pa.int64()).take(distinct.indices)
    return build_coerced(pc.replace_with_mask(found, is_open, rest), bad_of=texts)


def _parse_temporal(parse: Callable[[str], int], text: str) -> int | None:
    try:
        return parse(text)
    except values.ValueTextError:
        return None

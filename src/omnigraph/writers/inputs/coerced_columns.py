"""Columns of any Arrow type as the column of a property: casts only, nothing value by value.

A cast keeps every value exactly, but that floats round. Texts become dates, integers become floats,
dates and instants, whole floats become integers. The few loops are over distinct odd dates, over
blobs, which are as long as their bytes, and over a batch that is known to be broken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.columns import arrow_type_of
from omnigraph.schema import property_values
from omnigraph.schema.property_types import (
    FLOATS,
    INTEGER_RANGES,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
    make_scalar_type,
)
from omnigraph.writers.inputs.value_coercion import TEMPORAL_RANGES, MisfitError, decode_blob

Rows: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_DAY_MS = 86_400_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

# Years with leading zeros, signs or more digits are left to the parser, which knows the calendar
# beyond the years of Arrow's.
_DAY_PATTERN = r"[1-9]\d{3}-\d{2}-\d{2}"
_DATE_PATTERN = f"^{_DAY_PATTERN}$"
_ZONED_PATTERN = (
    rf"^{_DAY_PATTERN}[T ]\d{{2}}:\d{{2}}:\d{{2}}(\.\d{{1,3}})?(Z|[+-]\d{{2}}:\d{{2}})$"
)
_UNZONED_PATTERN = rf"^{_DAY_PATTERN}([T ]\d{{2}}:\d{{2}}:\d{{2}}(\.\d{{1,3}})?)?$"


class WrongArrowTypeError(ValueError):
    """A column whose Arrow type cannot be that of its property, whatever its values are."""


def coerce_column(values: pa.Array, type_: PropertyType, *, is_strict: bool) -> CoercedColumn:
    """The values as the property keeps them; strict refuses nulls in lists and lost digits."""
    values = decode_plain(values)
    target = arrow_type_of(type_)
    if pa.types.is_null(values.type):
        return CoercedColumn(pa.nulls(len(values), target), None)
    match type_.value:
        case ScalarType(scalar):
            return _coerce_scalars(values, scalar, is_strict=is_strict)
        case EnumType():
            return _coerce_texts(values)
        case VectorType(dimension):
            return _coerce_vectors(values, dimension, target)
        case ListType(element):
            return _coerce_lists(values, element, target, is_strict=is_strict)
    assert_never(type_.value)


def coerce_ids(values: pa.Array) -> CoercedColumn:
    """Ids given by a column: texts, or the integers of integer keys."""
    values = decode_plain(values)
    if pa.types.is_null(values.type) or pa.types.is_integer(values.type):
        return CoercedColumn(values.cast(pa.utf8()), None)
    return _coerce_texts(values)


def decode_plain(values: pa.Array) -> pa.Array:
    """The same values without dictionary, runs, views or extension around them."""
    kind = values.type
    if isinstance(values, pa.ExtensionArray):
        return decode_plain(values.storage)
    # Arrow takes no values of views, so that what is within is made plain first.
    if pa.types.is_run_end_encoded(kind):
        runs = np.diff(values.run_ends.to_numpy(), prepend=0)
        rows = np.repeat(np.arange(len(runs)), runs)[values.offset :][: len(values)]
        return decode_plain(values.values).take(pa.array(rows))
    if pa.types.is_dictionary(kind):
        return decode_plain(values.dictionary).take(values.indices)
    if pa.types.is_string_view(kind):
        return values.cast(pa.utf8())
    if pa.types.is_binary_view(kind):
        return values.cast(pa.large_binary())
    return values


def _coerce_scalars(values: pa.Array, scalar: Scalar, *, is_strict: bool) -> CoercedColumn:
    if scalar in INTEGER_RANGES:
        return _coerce_integers(values, scalar)
    if scalar in FLOATS:
        return _coerce_floats(values, scalar)
    if scalar is Scalar.DATE:
        return _coerce_dates(values)
    if scalar is Scalar.DATETIME:
        return _coerce_datetimes(values, is_strict=is_strict)
    if scalar is Scalar.BLOB:
        return _coerce_blobs(values)
    if scalar is Scalar.STRING:
        return _coerce_texts(values)
    assert scalar is Scalar.BOOL, scalar
    if not pa.types.is_boolean(values.type):
        raise WrongArrowTypeError
    return CoercedColumn(values, None)


def _coerce_texts(values: pa.Array) -> CoercedColumn:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise WrongArrowTypeError
    raw = values.cast(pa.large_binary())
    try:
        return CoercedColumn(raw.cast(pa.large_utf8()).cast(pa.utf8()), None)
    except pa.ArrowInvalid:
        texts = [None if each is None else _decode_text(each) for each in raw.to_pylist()]
        return build_coerced(pa.array(texts, pa.utf8()), bad_of=values)


def _decode_text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _coerce_integers(values: pa.Array, scalar: Scalar) -> CoercedColumn:
    target = arrow_type_of(make_scalar_type(scalar))
    low, high = INTEGER_RANGES[scalar]
    if pa.types.is_floating(values.type):
        numbers = values.cast(pa.float64())
        # The bound above is a power of two, which a float holds; the highest integer may not be.
        fits = _combine_masks(
            pc.equal(pc.floor(numbers), numbers),
            pc.greater_equal(numbers, float(low)),
            pc.less(numbers, float(high + 1)),
        )
        return build_coerced(select_fitting(numbers, fits).cast(target, safe=False), bad_of=values)
    if pa.types.is_decimal(values.type):
        return _coerce_decimals(values, scalar)
    if not pa.types.is_integer(values.type):
        raise WrongArrowTypeError
    return build_coerced(_are_within(values, low, high).cast(target), bad_of=values)


def _are_within(values: pa.Array, low: int, high: int) -> pa.Array:
    """The integers between two bounds, which need not lie in the range of their type."""
    limits = np.iinfo(values.type.to_pandas_dtype())
    if low <= limits.min and limits.max <= high:
        return values
    least, most = pa.scalar(max(low, int(limits.min)), values.type), min(high, int(limits.max))
    fits = _combine_masks(
        pc.greater_equal(values, least), pc.less_equal(values, pa.scalar(most, values.type))
    )
    return select_fitting(values, fits)


def _coerce_decimals(values: pa.Array, scalar: Scalar) -> CoercedColumn:
    target = arrow_type_of(make_scalar_type(scalar))
    try:
        return CoercedColumn(values.cast(target), None)
    except pa.ArrowInvalid:
        low, high = INTEGER_RANGES[scalar]
        whole = [
            int(each) if each is not None and each == int(each) and low <= each <= high else None
            for each in values.to_pylist()
        ]
        return build_coerced(pa.array(whole, target), bad_of=values)


def _coerce_floats(values: pa.Array, scalar: Scalar) -> CoercedColumn:
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise WrongArrowTypeError
    numbers = values.cast(pa.float64(), safe=False)
    numbers = numbers.cast(arrow_type_of(make_scalar_type(scalar)), safe=False)
    return build_coerced(select_fitting(numbers, pc.is_finite(numbers)), bad_of=values)


def _coerce_dates(values: pa.Array) -> CoercedColumn:
    kind = values.type
    if pa.types.is_date32(kind):
        return CoercedColumn(values, None)
    if _is_text(kind):
        days = coerce_after_texts(values, parse_dates)
    elif pa.types.is_integer(kind):
        days = build_coerced(
            _are_within(values, *TEMPORAL_RANGES[Scalar.DATE]).cast(pa.int64()), bad_of=values
        )
    elif pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        per_day = _DAY_MS if pa.types.is_date64(kind) else 86_400 * _PER_SECOND[kind.unit]
        whole, is_exact = _divide_counts(values.cast(pa.int64()), per_day)
        days = build_coerced(
            select_fitting(_are_within(whole, *TEMPORAL_RANGES[Scalar.DATE]), is_exact),
            bad_of=values,
        )
    else:
        raise WrongArrowTypeError
    return CoercedColumn(days.values.cast(pa.int32()).cast(pa.date32()), days.bad)


def _coerce_datetimes(values: pa.Array, *, is_strict: bool) -> CoercedColumn:
    kind = values.type
    if _is_text(kind):
        found = coerce_after_texts(
            values, lambda texts: parse_datetimes(texts, is_strict=is_strict)
        )
        return CoercedColumn(found.values.view(pa.date64()), found.bad)
    low, high = TEMPORAL_RANGES[Scalar.DATETIME]
    if pa.types.is_timestamp(kind) and kind.unit in ("us", "ns"):
        instants, is_exact = _divide_counts(
            values.cast(pa.int64()), _PER_SECOND[kind.unit] // 1_000
        )
        instants = select_fitting(instants, is_exact) if is_strict else instants
    elif pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        factor = _DAY_MS if pa.types.is_date32(kind) else 1_000 // _PER_SECOND[kind.unit]
        counts = values.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
        instants = pc.multiply(
            _are_within(counts.cast(pa.int64()), low // factor, high // factor), factor
        )
    elif pa.types.is_date64(kind) or pa.types.is_integer(kind):
        instants = values.cast(pa.int64()) if pa.types.is_date64(kind) else values
    else:
        raise WrongArrowTypeError
    found = build_coerced(_are_within(instants, low, high).cast(pa.int64()), bad_of=values)
    return CoercedColumn(found.values.view(pa.date64()), found.bad)


def _divide_counts(counts: pa.Array, divisor: int) -> tuple[pa.Array, pa.Array]:
    """Counts divided and rounded down, and a mask of those that divide without a rest."""
    numbers = counts.fill_null(0).to_numpy(zero_copy_only=False)
    whole, rest = np.divmod(numbers, divisor)
    mask = counts.is_null().to_numpy(zero_copy_only=False)
    return pa.array(whole, pa.int64(), mask=mask), pa.array(rest == 0)


def _coerce_blobs(values: pa.Array) -> CoercedColumn:
    kind = values.type
    if _is_text(kind):
        texts, bad = _coerce_texts(values)
        blobs = pa.array([_decode_blob(text) for text in texts.to_pylist()], pa.large_binary())
        return (
            build_coerced(blobs, bad_of=texts)
            if bad is None
            else build_coerced(blobs, bad_of=values)
        )
    if not (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        raise WrongArrowTypeError
    return CoercedColumn(values.cast(pa.large_binary()), None)


def _decode_blob(text: str | None) -> bytes | None:
    try:
        return None if text is None else decode_blob(text)
    except MisfitError:
        return None


def _coerce_lists(
    values: pa.Array, element: Scalar, target: pa.DataType, *, is_strict: bool
) -> CoercedColumn:
    lists = _as_lists(values)
    lengths, parents = _count_elements(lists), owners_of(lists)
    items = lists.flatten()
    found = coerce_column(items, make_scalar_type(element, is_nullable=True), is_strict=is_strict)
    unfit = found.values.is_null() if is_strict else found.bad
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    made = pa.ListArray.from_arrays(
        pa.array(offsets), found.values, type=target, mask=lists.is_null()
    )
    return _without_parents(made, parents, unfit)


def _coerce_vectors(values: pa.Array, dimension: int, target: pa.DataType) -> CoercedColumn:
    lists = _as_lists(values)
    lengths, parents = _count_elements(lists), owners_of(lists)
    found = coerce_column(
        lists.flatten(), make_scalar_type(Scalar.F32, is_nullable=True), is_strict=True
    )
    is_valid = lists.is_valid().to_numpy(zero_copy_only=False)
    fits = is_valid & (lengths == dimension)
    if found.values.null_count:
        fits[parents[found.values.is_null().to_numpy(zero_copy_only=False)]] = False
    numbers = np.zeros((len(lists), dimension), np.float32)
    flat = found.values.fill_null(0).to_numpy(zero_copy_only=False)
    numbers[fits] = flat[fits[parents]].reshape(-1, dimension)
    made = pa.FixedSizeListArray.from_arrays(
        pa.array(numbers.reshape(-1)), type=target, mask=pa.array(~fits)
    )
    return build_coerced(made, bad_of=lists)


def _as_lists(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_list(kind):
        return values
    if not (
        pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    ):
        raise WrongArrowTypeError
    return values.cast(pa.list_(kind.value_field))


def owners_of(lists: pa.Array) -> Rows:
    """The row of each element, in the order of `flatten`, which leaves out what a null covers."""
    return np.repeat(np.arange(len(lists)), _count_elements(lists))


def _count_elements(lists: pa.Array) -> Rows:
    lengths = pc.list_value_length(lists).fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _without_parents(made: pa.Array, parents: Rows, unfit: pa.Array | None) -> CoercedColumn:
    """Lists without those that own an unfit element."""
    if unfit is None or not pc.any(unfit).as_py():
        return CoercedColumn(made, None)
    bad = np.zeros(len(made), np.bool_)
    bad[parents[unfit.to_numpy(zero_copy_only=False)]] = True
    mask = pa.array(bad)
    return CoercedColumn(pc.if_else(mask, None, made), mask)


def coerce_after_texts(
    values: pa.Array, read: Callable[[pa.Array], CoercedColumn]
) -> CoercedColumn:
    """What is read from texts, where a value that is not a text is bad too."""
    texts = _coerce_texts(values)
    found = read(texts.values)
    return found if texts.bad is None else build_coerced(found.values, bad_of=values)


def _combine_masks(*masks: pa.Array) -> pa.Array:
    """Where all masks hold; null where a value is."""
    joined = masks[0]
    for mask in masks[1:]:
        joined = pc.and_(joined, mask)
    return joined


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


class CoercedColumn(NamedTuple):
    """Converted values, null where a value is bad; `bad` is None when all fit."""

    values: pa.Array
    bad: pa.Array | None


def build_coerced(values: pa.Array, *, bad_of: pa.Array) -> CoercedColumn:
    """Values of which those that are null, and are not in what they came from, are bad."""
    if values.null_count == bad_of.null_count:
        return CoercedColumn(values, None)
    return CoercedColumn(values, pc.and_(values.is_null(), bad_of.is_valid()))


def select_fitting(values: pa.Array, fits: pa.Array) -> pa.Array:
    """The values that fit, and null for the others."""
    if pc.all(fits, skip_nulls=True).as_py() is not False:
        return values
    return pc.if_else(fits, values, None)


def parse_dates(texts: pa.Array) -> CoercedColumn:
    """The epoch days of date texts, as int64."""
    days = _cast_matching(texts, _DATE_PATTERN, pa.date32())
    return _parse_unmatched(
        texts, pc.cast(days, pa.int32()).cast(pa.int64()), property_values.parse_date
    )


def parse_datetimes(texts: pa.Array, *, is_strict: bool) -> CoercedColumn:
    """The epoch milliseconds of timestamp texts, as int64."""
    zoned = _cast_matching(texts, _ZONED_PATTERN, pa.timestamp("ms", "UTC")).cast(pa.int64())
    unzoned = _cast_matching(texts, _UNZONED_PATTERN, pa.timestamp("ms")).cast(pa.int64())
    parse = partial(property_values.parse_datetime, is_strict=is_strict)
    # A zone may move the last hours of the last year beyond it; the parser will refuse them.
    found = pc.coalesce(zoned, unzoned)
    found = pc.if_else(pc.less_equal(found, property_values.DATETIME_MAX), found, None)
    return _parse_unmatched(texts, found, parse)


def _cast_matching(texts: pa.Array, pattern: str, target: pa.DataType) -> pa.Array:
    """The values of the texts that match; null for others, and for all if one is not a date."""
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
    except property_values.ValueTextError:
        return None

"""Values as JSON text, a column at a time.

The texts are those of `json.dumps` without spaces and with every character that JSON allows as it
is. Everything is done by Arrow but what it spells otherwise: floats that Python writes with an
exponent, days beyond year 9999 and non-finite numbers are spelled one by one, each distinct value
of a column once.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.comparison import Values, flatten_chunks, to_numpy
from omnigraph.schema.property_values import (
    BLOB_PREFIX,
    compute_shortest_f32,
    format_date,
    format_datetime,
    format_duration,
)

# Texts of a column may be longer than the 2 GiB that 32-bit offsets can reach: a blob alone can.
TEXT = pa.large_utf8()
_NON_FINITE = {math.inf: '"Infinity"', -math.inf: '"-Infinity"'}

# Between these neither Python nor Arrow writes a float with an exponent.
_PLAIN_MIN, _PLAIN_MAX = 1e-4, 1e10

# 0000-01-01 and 9999-12-31, between which a year has four digits.
_FOUR_DIGITS_MIN, _FOUR_DIGITS_MAX = -719_528, 2_932_896

# The characters that JSON escapes: those of ordinary texts first, then the others, so that a text
# is searched for these only if it has one. The backslash leads: the other escapes bring new ones.
_ESCAPED = [r'[\x00-\x1f"\\]', r"[\x00-\x08\x0b\x0c\x0e-\x1f]"]
_CONTROL_MAX, _QUOTE, _BACK = 0x20, ord('"'), ord("\\")
_COMMON = '\\"\n\r\t'
_CHARACTERS = [_COMMON, "".join(chr(code) for code in range(0x20) if chr(code) not in _COMMON)]
Json: TypeAlias = Any  # Any: whatever `json.dumps` takes

# One value to its JSON value; None if they are the same.
_Encode: TypeAlias = Callable[[Any], Json] | None

# Up to so many values are encoded one by one: a call into Arrow costs as much as dozens of them.
FEW_VALUES: Final = 32

# The kinds of columns that queries return are few; a struct is a kind for each node type.
_KINDS_MAX: Final = 1_024

# 0000-01-01 and 9999-12-31, between which Arrow and Python spell a moment alike.
_PLAIN_MS_MIN, _PLAIN_MS_MAX = -62_167_219_200_000, 253_402_300_799_999
_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = map(np.uint64, (1000, 60_000, 3_600_000, 86_400_000))
_NON_FINITE_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def encode_json_texts(values: pa.Array) -> pa.Array:
    """The JSON text of each value; nulls stay null, but in a list they become `null`."""
    opening, texts, closing = _spell_values(values)
    return concatenate_texts(opening, texts, closing) if opening or closing else texts


def encode_plain_texts(values: pa.Array) -> pa.Array:
    """Texts as they are, and other values as JSON has them, without quotes."""
    if is_text(values.type):
        return values
    return pc.utf8_trim(encode_json_texts(values), characters='"')


def _spell_values(values: pa.Array) -> tuple[str, pa.Array, str]:
    """What is before each value, the values, and what is after each one."""
    kind = values.type
    if is_text(kind):
        return '"', escape_json(values.cast(TEXT)), '"'
    if pa.types.is_date64(kind) or pa.types.is_timestamp(kind):
        return '"', _format_datetimes(values), 'Z"'
    if pa.types.is_date32(kind):
        return '"', _format_dates(values), '"'
    if pa.types.is_duration(kind):
        return '"', _format_durations(values), '"'
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return f'"{BLOB_PREFIX}', _format_blobs(values), '"'
    return "", _format_bare(values), ""


def _format_bare(values: pa.Array) -> pa.Array:
    """Values whose texts are whole as they are."""
    kind = values.type
    if pa.types.is_floating(kind):
        return _format_floats(values)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _format_lists(values)
    if pa.types.is_struct(kind):
        objects = encode_json_objects(kind.names, values.flatten())
        return pc.if_else(values.is_valid(), objects, pa.scalar(None, TEXT))
    assert pa.types.is_integer(kind) or pa.types.is_boolean(kind), f"no property holds {kind}"
    return values.cast(TEXT)


def encode_json_objects(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
    """The JSON text of an object for each row: a member for each column, in their order."""
    parts: list[pa.Array | str] = []
    before = "{"
    for name, column in zip(names, columns, strict=True):
        member = f"{before}{json.dumps(name, ensure_ascii=False)}:"
        if column.null_count:
            parts += [member, pc.fill_null(encode_json_texts(column), "null")]
            before = ","
        else:
            # What encloses a value is joined with what is between the members, in one step.
            opening, texts, closing = _spell_values(column)
            parts += [f"{member}{opening}", texts]
            before = f"{closing},"
    return concatenate_texts(*parts, f"{before[:-1]}}}")


def is_text(kind: pa.DataType) -> bool:
    """Whether values are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def quote_json_strings(texts: pa.Array) -> pa.Array:
    """Texts in quotes, escaped; nulls stay null."""
    return concatenate_texts('"', escape_json(texts.cast(TEXT)), '"')


def escape_json(texts: pa.Array) -> pa.Array:
    """Texts as they stand between the quotes of JSON, of the same type; nulls stay null."""
    if _are_plain(texts):
        return texts
    for pattern, characters in zip(_ESCAPED, _CHARACTERS, strict=True):
        needed = pc.match_substring_regex(texts, pattern)
        if not pc.any(needed).as_py():
            break
        found = texts.filter(needed)
        for character in characters:
            escape = json.dumps(character)[1:-1]
            found = pc.replace_substring(found, pattern=character, replacement=escape)
        texts = pc.replace_with_mask(texts, needed, found)
    return texts


def _are_plain(texts: pa.Array) -> bool:
    """Whether no text has a character that is escaped; bytes of others are compared too."""
    data = texts.buffers()[2]
    if data is None:
        return True
    width = np.int64 if texts.type == TEXT else np.int32
    # A part of a column has the bytes of all of it.
    offsets = np.frombuffer(texts.buffers()[1], width)[texts.offset :][: len(texts) + 1]
    found = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if len(offsets) else data[:0]
    return not len(found) or bool(
        found.min() >= _CONTROL_MAX and not (found == _QUOTE).any() and not (found == _BACK).any()
    )


def concatenate_texts(*parts: pa.Array | str) -> pa.Array:
    """Texts and constants one after the other, row by row; null where a text is null."""
    texts = [pa.scalar(part, TEXT) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*texts, pa.scalar("", TEXT))


def join_bytes(texts: pa.Array) -> bytes:
    """All texts of an array that was just computed, one after the other."""
    _, offsets, data = texts.buffers()
    ends = memoryview(offsets).cast("q")
    first, last = ends[texts.offset], ends[texts.offset + len(texts)]
    return bytes(memoryview(data)[first:last])


def _format_floats(values: pa.Array) -> pa.Array:
    texts = values.cast(TEXT)
    numbers = to_numpy(values)
    is_whole = np.floor(numbers) == numbers
    if is_whole.any():
        texts = pc.if_else(pa.array(is_whole), concatenate_texts(texts, ".0"), texts)
    # Beyond these Python and Arrow write an exponent, but neither from the same magnitude on.
    sizes = np.abs(numbers)
    is_plain = (sizes >= _PLAIN_MIN) & (sizes < _PLAIN_MAX) | (sizes == 0)
    is_single = values.type == pa.float32()
    spell = _format_single if is_single else _format_double
    return texts if is_plain.all() else _reformat_rare(texts, values, pa.array(is_plain), spell)


def _format_double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return _NON_FINITE.get(value, '"NaN"')


def _format_single(value: float) -> str:
    return _format_double(compute_shortest_f32(value))


def _format_dates(values: pa.Array) -> pa.Array:
    days = values.view(pa.int32())
    is_plain = pc.and_(
        pc.greater_equal(days, pa.scalar(_FOUR_DIGITS_MIN, pa.int32())),
        pc.less_equal(days, pa.scalar(_FOUR_DIGITS_MAX, pa.int32())),
    )
    return _reformat_rare(values.cast(TEXT), days, is_plain, format_date)


def _format_datetimes(values: pa.Array) -> pa.Array:
    is_date = pa.types.is_date64(values.type)
    moments = values.view(pa.timestamp("ms")) if is_date else values.cast(pa.timestamp("ms"))
    return pc.replace_substring(moments.cast(TEXT), " ", "T")


def _format_durations(values: pa.Array) -> pa.Array:
    """As `format_duration` spells them, a part of all of them at a time."""
    numbers = values.view(pa.int64())
    sizes = np.abs(to_numpy(numbers)).view(np.uint64)
    days, rest = np.divmod(sizes, _DAY_MS)
    hours, rest = np.divmod(rest, _HOUR_MS)
    minutes, rest = np.divmod(rest, _MINUTE_MS)
    seconds, fractions = np.divmod(rest, _SECOND_MS)
    digits = pc.utf8_lpad(pa.array(fractions).cast(TEXT), 3, padding="0")
    digits = pc.utf8_rtrim(concatenate_texts(".", digits), characters="0.")
    is_empty = pa.array((rest == 0) & (minutes + hours + days > 0))
    clock = [_format_part(hours, "H"), _format_part(minutes, "M")]
    last = concatenate_texts(pa.array(seconds).cast(TEXT), digits, "S")
    clock.append(pc.if_else(is_empty, pa.scalar("", TEXT), last))
    mark = pa.array(np.where(sizes % _DAY_MS == 0, "", "T"), TEXT)
    mark = pc.if_else(pa.array(sizes == 0), pa.scalar("T", TEXT), mark)
    sign = pc.if_else(pc.less(numbers, 0), pa.scalar("-P", TEXT), pa.scalar("P", TEXT))
    return concatenate_texts(sign, _format_part(days, "D"), mark, *clock)


def _format_part(numbers: np.ndarray[Any, np.dtype[np.uint64]], unit: str) -> pa.Array:
    """So many of a unit; nothing for none."""
    texts = concatenate_texts(pa.array(numbers).cast(TEXT), unit)
    return pc.if_else(pa.array(numbers == 0), pa.scalar("", TEXT), texts)


def _reformat_rare(
    texts: pa.Array, values: pa.Array, is_plain: pa.Array, spell: Callable[[Any], str]
) -> pa.Array:
    """The texts, but those of values that are not plain spelled by a function."""
    is_rare = pc.fill_null(pc.invert(is_plain), fill_value=False)
    if not pc.any(is_rare).as_py():
        return texts
    distinct = values.filter(is_rare).dictionary_encode()
    spelled = pa.array([spell(value) for value in distinct.dictionary.to_pylist()], TEXT)
    return pc.replace_with_mask(texts, is_rare, spelled.take(distinct.indices))


def _format_lists(values: pa.Array) -> pa.Array:
    items = pc.fill_null(encode_json_texts(values.flatten()), pa.scalar("null", TEXT))
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), items)
    texts = concatenate_texts("[", pc.binary_join(lists, pa.scalar(",", TEXT)), "]")
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, TEXT))


def _format_blobs(values: pa.Array) -> pa.Array:
    # One by one: a blob is so much larger than the step around it that a loop costs nothing.
    texts = [
        None if blob is None else base64.b64encode(blob).decode() for blob in values.to_pylist()
    ]
    return pa.array(texts, TEXT)


def encode_json_values(values: Values) -> list[Json]:
    """One JSON value per row."""
    kind = values.type
    if len(values) <= FEW_VALUES and _is_flat(kind):
        return _encode_few(values, kind)
    column = flatten_chunks(values)
    if pa.types.is_struct(kind):
        return _encode_structs(column)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _encode_lists(column)
    if pa.types.is_floating(kind):
        return _encode_floats(column)
    if pa.types.is_date32(kind):
        return _encode_dates(column)
    if pa.types.is_timestamp(kind):
        column = _format_timestamps(column)
    if pa.types.is_duration(kind):
        column = _format_durations(column)
    found: list[Json] = column.to_pylist()
    return found


@lru_cache(_KINDS_MAX)
def _is_flat(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _encode_few(values: Values, kind: pa.DataType) -> list[Json]:
    """A few values of a kind that is not nested."""
    stored, encode = _encoder_of(kind)
    found: list[Json] = (
        values if stored is None else flatten_chunks(values).view(stored)
    ).to_pylist()
    if encode is None:
        return found
    return [None if value is None else encode(value) for value in found]


@lru_cache(_KINDS_MAX)
def _encoder_of(kind: pa.DataType) -> tuple[pa.DataType | None, _Encode]:
    """The type whose Python values are wanted, if it is another one, and how each is encoded."""
    if pa.types.is_float32(kind):
        return None, lambda value: _encode_float(compute_shortest_f32(value))
    if pa.types.is_floating(kind):
        return None, _encode_float
    if pa.types.is_date32(kind):
        return pa.int32(), format_date
    if pa.types.is_timestamp(kind):
        return pa.int64(), _encode_timestamp
    if pa.types.is_duration(kind):
        return pa.int64(), format_duration
    return None, None


def _encode_float(value: float) -> Json:
    return value if math.isfinite(value) else _NON_FINITE_NAMES[str(value)]


def _encode_timestamp(milliseconds: int) -> Json:
    if _PLAIN_MS_MIN <= milliseconds <= _PLAIN_MS_MAX:
        return format_datetime(milliseconds)
    return _format_timestamps(pa.array([milliseconds], pa.timestamp("ms")))[0].as_py()


def _encode_structs(column: pa.StructArray) -> list[Json]:
    names = column.type.names
    members = [encode_json_values(member) for member in column.flatten()]
    objects: list[Json] = [dict(zip(names, row, strict=True)) for row in zip(*members, strict=True)]
    if column.null_count:
        for place in np.flatnonzero(to_numpy(column.is_null())):
            objects[place] = None
    return objects


def _encode_lists(column: pa.Array) -> list[Json]:
    if pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    starts = column.offsets.to_pylist()
    elements = encode_json_values(column.values.slice(starts[0], starts[-1] - starts[0]))
    arrays: list[Json] = [
        elements[start - starts[0] : end - starts[0]] for start, end in pairwise(starts)
    ]
    if column.null_count:
        for place in np.flatnonzero(to_numpy(column.is_null())):
            arrays[place] = None
    return arrays


def _encode_floats(column: pa.Array) -> list[Json]:
    texts = column.cast(pa.utf8()) if pa.types.is_float32(column.type) else None
    # The text of a 32-bit float has its shortest digits; read as a double, it keeps them.
    numbers: list[Json] = (column if texts is None else texts.cast(pa.float64())).to_pylist()
    is_odd = pc.fill_null(pc.invert(pc.is_finite(column)), False)
    for place in np.flatnonzero(to_numpy(is_odd)):
        numbers[place] = _NON_FINITE_NAMES[str(numbers[place])]
    return numbers


def _encode_dates(column: pa.Array) -> list[Json]:
    # Years beyond four digits have no text in Arrow, so the distinct days are spelled here.
    days = column.cast(pa.int32()).dictionary_encode()
    texts = pa.array([format_date(day) for day in days.dictionary.to_pylist()], pa.utf8())
    found: list[Json] = texts.take(days.indices).to_pylist()
    return found


def _format_timestamps(column: pa.Array) -> pa.Array:
    return concatenate_texts(_format_datetimes(column), "Z")

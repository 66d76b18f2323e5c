"""The ids of keyed entities, a column at a time.

An id is the canonical text of a single key, or a compact JSON array of such texts for a composite
one. Everything is done by Arrow but the texts of floats it would write with an exponent, outside
about 1e-6 to 1e15: those are spelled one by one, each distinct value of a batch once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import UnusableKeyError
from omnigraph.ids import encode_ulid
from omnigraph.rows.columns import TableShape
from omnigraph.rows.json_encoding import escape_json
from omnigraph.schema.property_types import Scalar, make_scalar_type
from omnigraph.schema.property_values import format_canonical

# Bounds the texts of a batch far below the 2 GiB that one Arrow array of strings can hold.
_BATCH_ROWS = 262_144

# The texts of one Arrow array of strings end at 2 GiB.
IDS_MAX: Final = (2**31 - 1) // 26
_DIGITS = 26

# Digits of five bits that lie in the lower 64 bits of an id; the digit above them straddles both.
_LOW_DIGITS = 12
_ALPHABET = np.frombuffer("".join(encode_ulid(digit)[-1] for digit in range(32)).encode(), np.uint8)
_Words = np.ndarray[Any, np.dtype[np.uint64]]


def compute_entity_ids(rows: pa.Table, shape: TableShape) -> pa.ChunkedArray:
    """The id of each row, from the key columns among its physical columns.

    A null, NaN or infinite member raises `UnusableKeyError`. Types without a key are not passed.
    """
    assert shape.key, f"{shape.type_key} has no key"
    keys = rows.select(list(shape.key.values()))
    ids = []
    first_row = 0
    for batch in keys.to_batches(max_chunksize=_BATCH_ROWS):
        for member, values in zip(shape.key, batch.columns, strict=True):
            _require_usable(values, first_row, type_key=str(shape.type_key), member=member)
        texts = [format_canonical_texts(values) for values in batch.columns]
        ids.append(texts[0] if len(texts) == 1 else _encode_json_arrays(texts))
        first_row += batch.num_rows
    return pa.chunked_array(ids, pa.utf8())


def format_canonical_texts(values: pa.Array) -> pa.Array:
    """The texts that stand for scalars in ids and uniqueness tuples; nulls stay null.

    Floats have to be finite.
    """
    kind = values.type
    if pa.types.is_floating(kind):
        return _format_floats(values)
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_date64(kind):
        values = values.cast(pa.int64())
    return values.cast(pa.utf8())


def _require_usable(values: pa.Array, first_row: int, *, type_key: str, member: str) -> None:
    usable = values.is_valid()
    if pa.types.is_floating(values.type):
        usable = pc.fill_null(pc.is_finite(values), fill_value=False)
    row = pc.index(usable, value=False).as_py()
    if row >= 0:
        value = values[row].as_py()
        shown = "null" if value is None else str(value)
        raise UnusableKeyError(type_key, member=member, row=first_row + row, value=shown)


def _format_floats(values: pa.Array) -> pa.Array:
    texts = values.cast(pa.utf8())
    texts = pc.if_else(pc.equal(values, pa.scalar(0, values.type)), "0", texts)
    has_exponent = pc.match_substring(texts, "e")
    if not pc.any(has_exponent).as_py():
        return texts
    type_ = make_scalar_type(Scalar.F32 if values.type == pa.float32() else Scalar.F64)
    distinct = values.filter(has_exponent).dictionary_encode()
    spelled = [format_canonical(value, type_) for value in distinct.dictionary.to_pylist()]
    replaced = pa.array(spelled, pa.utf8()).take(distinct.indices)
    return pc.replace_with_mask(texts, has_exponent, replaced)


def _encode_json_arrays(members: list[pa.Array]) -> pa.Array:
    parts: list[pa.Array | str] = []
    for texts in members:
        parts += ['","' if parts else '["', escape_json(texts)]
    return pc.binary_join_element_wise(*parts, '"]', "")


def generate_ids(
    count: int,
    *,
    now_ms: int | None = None,
    random_bytes: Callable[[int], bytes] = os.urandom,
) -> pa.Array:
    """So many new ULIDs of one moment, by default now, distinct and in ascending order."""
    assert 0 <= count <= IDS_MAX, f"{count} ids do not fit into one array"
    moment = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    high, low = _generate_words(count, moment, random_bytes)
    digits = np.empty((_DIGITS, count), np.uint8)
    for digit in range(_LOW_DIGITS):
        digits[_DIGITS - 1 - digit] = _encode_letters(low >> np.uint64(5 * digit))
    straddling = low >> np.uint64(60) | high << np.uint64(4)
    digits[_DIGITS - 1 - _LOW_DIGITS] = _encode_letters(straddling)
    for digit in range(_DIGITS - 1 - _LOW_DIGITS):
        digits[_DIGITS - 2 - _LOW_DIGITS - digit] = _encode_letters(
            high >> np.uint64(1 + 5 * digit)
        )
    texts = np.ascontiguousarray(digits.T)
    offsets = np.arange(0, _DIGITS * (count + 1), _DIGITS, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts))


def _generate_words(
    count: int, moment: int, random_bytes: Callable[[int], bytes]
) -> tuple[_Words, _Words]:
    """The upper and lower 64 bits of each id."""
    first = int.from_bytes(random_bytes(8))
    # The highest random bit stays clear: the steps cannot carry into the time.
    top = moment << 16 | int.from_bytes(random_bytes(2)) & 0x7FFF
    steps = np.frombuffer(random_bytes(4 * count), np.uint32).astype(np.uint64) + np.uint64(1)
    # Fewer than 2**31 steps of up to 2**32 stay below 64 bits, so the sum wraps at most once.
    low = np.cumsum(steps, dtype=np.uint64) + np.uint64(first)
    high = np.uint64(top) + (low < np.uint64(first)).astype(np.uint64)
    return high, low


def _encode_letters(words: _Words) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The letter of the lowest five bits of each word."""
    return _ALPHABET[(words & np.uint64(31)).astype(np.uint8)]

"""Generated ids for entities without a key, many at a time: ULIDs in ascending order.

The first id of a call is random like any ULID; each next one is a random step above it. Ids of one
call are therefore distinct for certain and sort in the order they were given, and ids of two calls
in the same millisecond are as unlikely to meet as if every one had been drawn on its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.ids import encode_ulid

# The texts of one Arrow array of strings end at 2 GiB.
IDS_MAX: Final = (2**31 - 1) // 26
_DIGITS = 26
# Digits of five bits that lie in the lower 64 bits of an id; the digit above them straddles both.
_LOW_DIGITS = 12
_ALPHABET = np.frombuffer("".join(encode_ulid(digit)[-1] for digit in range(32)).encode(), np.uint8)

_Words = np.ndarray[Any, np.dtype[np.uint64]]


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

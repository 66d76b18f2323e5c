"""Generated identities: ULIDs, sortable by time, 26 Crockford characters."""

from __future__ import annotations

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {digit: value for value, digit in enumerate(_ALPHABET)}
_LENGTH = 26
_RANDOM_BITS = 80


def new_ulid(milliseconds: int | None = None) -> str:
    """A fresh ULID of a time, by default now: 48 bits of milliseconds, 80 random bits."""
    at = time.time_ns() // 1_000_000 if milliseconds is None else milliseconds
    return encode_ulid(at << _RANDOM_BITS | int.from_bytes(os.urandom(_RANDOM_BITS // 8)))


def encode_ulid(value: int) -> str:
    """The Crockford form of a 128-bit number."""
    digits = []
    for _ in range(_LENGTH):
        digits.append(_ALPHABET[value & 31])
        value >>= 5
    return "".join(reversed(digits))


def ulid_milliseconds(text: str) -> int | None:
    """The time in a ULID, or None for a text that is not one."""
    if len(text) != _LENGTH or not all(digit in _VALUES for digit in text):
        return None
    value = 0
    for digit in text:
        value = value << 5 | _VALUES[digit]
    return value >> _RANDOM_BITS

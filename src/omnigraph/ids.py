"""Generated identities: ULIDs, sortable by time, 26 Crockford characters."""

from __future__ import annotations

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {digit: value for value, digit in enumerate(_ALPHABET)}
_LENGTH = 26
_RANDOM_BITS = 80
# Two digits at a time: half the steps.
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = range(5 * (_LENGTH - 2), -1, -10)


def generate_ulid(milliseconds: int | None = None) -> str:
    """A fresh ULID of a time, by default now: 48 bits of milliseconds, 80 random bits."""
    at = time.time_ns() // 1_000_000 if milliseconds is None else milliseconds
    return encode_ulid(at << _RANDOM_BITS | int.from_bytes(os.urandom(_RANDOM_BITS // 8)))


def encode_ulid(value: int) -> str:
    """The Crockford form of a 128-bit number."""
    return "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])


def make_lowest_ulid(milliseconds: int) -> str:
    """The least ULID of a time: none of that time or a later one is below it."""
    return encode_ulid(max(milliseconds, 0) << _RANDOM_BITS)


def decode_ulid_ms(text: str) -> int | None:
    """The time in a ULID, or None for a text that is not one."""
    value = decode_ulid(text)
    return None if value is None else value >> _RANDOM_BITS


def decode_ulid(text: str) -> int | None:
    """The number that a ULID is, or None for a text that is not one."""
    if len(text) != _LENGTH or not all(digit in _VALUES for digit in text):
        return None
    value = 0
    for digit in text:
        value = value << 5 | _VALUES[digit]
    return value

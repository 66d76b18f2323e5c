"""Generated identities: ULIDs, sortable by time, 26 Crockford characters."""

from __future__ import annotations

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH = 26
_RANDOM_BITS = 80


def new_ulid() -> str:
    """A fresh ULID: 48 bits of milliseconds, 80 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    return encode_ulid(milliseconds << _RANDOM_BITS | int.from_bytes(os.urandom(_RANDOM_BITS // 8)))


def encode_ulid(value: int) -> str:
    """The Crockford form of a 128-bit number."""
    digits = []
    for _ in range(_LENGTH):
        digits.append(_ALPHABET[value & 31])
        value >>= 5
    return "".join(reversed(digits))

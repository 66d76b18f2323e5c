"""Digests of data: the same for every spelling of one document, whatever its order."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def encode_canonical(value: Any) -> bytes:  # Any: a JSON value
    """A JSON value as bytes that do not depend on the order of names."""
    return json.dumps(value, sort_keys=True).encode()


def compute_value_digest(value: Any) -> str:  # Any: a JSON value
    """The digest of a JSON value."""
    return compute_digest(encode_canonical(value))


def compute_digest(data: bytes) -> str:
    """The digest of some bytes: the name of the hash, and 64 hex digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()

"""Documents as opaque texts, which callers keep and give back: cursors and page tokens.

A text is base64url, without padding, of the JSON of a document and its SHA-256. It is checksummed,
not encrypted and not signed: what it names is checked as in every other request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any, Final

_DIGEST_BYTES: Final = 32


def encode_opaque(document: Any) -> str:  # Any: a JSON document
    """The text of a document."""
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return _encode_base64(data + hashlib.sha256(data).digest())


def decode_opaque(text: str) -> Any:  # Any: a JSON document
    """The document of a text; raises `ValueError` for any other text."""
    try:
        whole = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as failure:
        raise ValueError(str(failure)) from failure
    data, digest = whole[:-_DIGEST_BYTES], whole[-_DIGEST_BYTES:]
    # Other texts may decode to the same bytes; only the one that was given out is right.
    if hashlib.sha256(data).digest() != digest or _encode_base64(whole) != text:
        raise ValueError("its checksum is wrong")
    try:
        return json.loads(data)
    except RecursionError as failure:
        raise ValueError("it is nested too deeply") from failure


def _encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")

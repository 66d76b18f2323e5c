"""Rows within bounds, and cursors to go on where an answer was cut.

A cursor names the commit that the first part was read from, so that all parts are of one state; it
holds the whole position, and the server keeps nothing for it. Pages that a query asks for itself,
with `after`, have cursors of their own in the document: a part of one has the cursor of the page.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from omnigraph.engine.opaque_texts import decode_opaque, encode_opaque
from omnigraph.errors import CursorStaleError, ResourceLimitError
from omnigraph.execution.result import Result
from omnigraph.mcp.exposure import Exposure
from omnigraph.operations.graph_reads import ReadAnswer
from omnigraph.wire.json_rows import encode_document

# What the document around the rows may need.
_HEAD_BYTES: Final = 4 * 1024
_DIGEST_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True)
class RowCursor:
    """Where a page begins: a row of what a call reads from a commit."""

    commit: str
    offset: int
    call: str

    def encode(self) -> str:
        """The text that a caller gives back."""
        return encode_opaque([self.commit, self.offset, self.call])


def digest_call(tool: str, arguments: Mapping[str, Any]) -> str:  # Any: JSON values
    """What a cursor is bound to: a tool and its other arguments."""
    rest = {name: arguments[name] for name in sorted(arguments)}
    data = orjson.dumps([tool, rest], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARACTERS]


def parse_cursor(text: str | None, *, call: str) -> RowCursor | None:
    """The position of a cursor, which has to belong to the same call."""
    if text is None:
        return None
    try:
        commit, offset, digest = decode_opaque(text)
        cursor = RowCursor(str(commit), int(offset), str(digest))
    except (OverflowError, TypeError, ValueError):
        raise CursorStaleError("it is not one that this tool returned") from None
    if cursor.call != call or cursor.offset < 0:
        raise CursorStaleError("it belongs to another call of a tool")
    return cursor


def encode_page(answer: ReadAnswer, exposure: Exposure, *, offset: int, call: str) -> bytes:
    """The document of a read with the rows from an offset on that fit, and a cursor if some do not.

    `row_count` counts the rows of the whole result.
    """
    rows = answer.result.to_arrow().slice(offset, exposure.rows_max)
    page = Result(answer.result.columns, rows).to_json_rows()
    kept = _fill(page, exposure.answer_bytes_max - _HEAD_BYTES)
    document = answer.describe()
    end = offset + len(kept)
    if end < len(answer.result):
        document |= {"truncated": True}
        # The page that follows begins after the rows that are left out here.
        document.pop("cursor", None)
        document["next_cursor"] = RowCursor(answer.commit_id, end, call).encode()
    return b'%b,"rows":[%b]}' % (encode_document(document)[:-1], b",".join(kept))


def _fill(page: list[dict[str, Any]], bytes_max: int) -> list[bytes]:  # Any: JSON values
    """The encoded rows that fit, at least one; a page is short."""
    kept: list[bytes] = []
    left = bytes_max
    for row in page:
        data = encode_document(row)
        left -= len(data) + 1
        if left < 0:
            break
        kept.append(data)
    if page and not kept:
        raise ResourceLimitError(
            "answer_bytes",
            limit=bytes_max,
            actual=bytes_max - left,
            hint="return fewer properties: one row of this result is too large",
        )
    return kept

"""The bytes of a property: whole, in one range, or not at all if the client has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph.error_codes import ErrorCode
from omnigraph.operations import graph_reads
from omnigraph.server.exchange import Answer, Call, RequestRefusedError, StreamedAnswer
from omnigraph.wire.json_rows import encode_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph.engine import Blob
    from omnigraph.wire.wire_requests import BlobQuery

_BYTES: Final = b"application/octet-stream"
_CHUNK_BYTES: Final = 1024 * 1024
_TAG: Final = re.compile(r'\s*(W/)?("[\x21\x23-\x7e\x80-\xff]*")\s*')
_RANGE: Final = re.compile(r"bytes=\s*([0-9]*)\s*-\s*([0-9]*)\s*", re.IGNORECASE)
# A position with more digits is beyond any blob.
_DIGITS_MAX: Final = 18


@dataclass(frozen=True, slots=True)
class _Found:
    blob: Blob
    size: int
    headers: tuple[tuple[bytes, bytes], ...]


def get_blob(call: Call) -> Answer | StreamedAnswer:
    """The bytes, or the range of them that is asked for."""
    found = _open(call)
    if (early := _check_conditions(call, found)) is not None:
        return early
    bounds = _parse_range(call, found)
    if bounds is None:
        return _send(found, 200, 0, found.size, found.headers)
    start, end = bounds
    content_range = f"bytes {start}-{end - 1}/{found.size}".encode()
    return _send(found, 206, start, end, (*found.headers, (b"content-range", content_range)))


def describe_blob(call: Call) -> Answer:
    """What a whole answer says of the bytes, without them."""
    found = _open(call)
    if (early := _check_conditions(call, found)) is not None:
        return early
    length = (b"content-length", str(found.size).encode())
    return Answer(200, b"", _BYTES, (*found.headers, length))


def _open(call: Call) -> _Found:
    asked: BlobQuery = call.query
    graph = call.open_graph()
    state = graph_reads.select_state(graph, branch=asked.branch, snapshot=asked.snapshot)
    snapshot = state.snapshot
    blob = snapshot.blob(asked.entity.value, asked.type, asked.id, asked.property)
    witness = f"manifest:{snapshot.branch}:v{snapshot.version}:etag:{snapshot.at.commit}"
    headers = (
        (b"accept-ranges", b"bytes"),
        (b"etag", blob.etag.encode()),
        (b"omnigraph-snapshot-id", witness.encode()),
    )
    return _Found(blob, blob.size, headers)


def _check_conditions(call: Call, found: _Found) -> Answer | None:
    """The answer to conditions that do not hold, before a byte is read."""
    if wanted := call.list_headers(b"if-match"):
        tags = _parse_tags(wanted)
        if not (tags is not None and (tags == ["*"] or found.blob.etag in tags)):
            document = {"error": "the blob is another one", "code": str(ErrorCode.CONFLICT)}
            return Answer(412, encode_document(document), headers=found.headers)
    if known := call.list_headers(b"if-none-match"):
        tags = _parse_tags(known, is_weak=True)
        if tags is not None and (tags == ["*"] or found.blob.etag in tags):
            return Answer(304, b"", None, found.headers)
    return None


def _parse_tags(values: list[str], *, is_weak: bool = False) -> list[str] | None:
    """The entity tags of a list; None if it is malformed. Weak ones match nothing strongly."""
    text = ",".join(values)
    if text.strip() == "*":
        return ["*"]
    matches = [_TAG.fullmatch(part) for part in text.split(",")]
    if not all(matches):
        return None
    return [found[2] for found in matches if found is not None and (is_weak or not found[1])]


def _parse_range(call: Call, found: _Found) -> tuple[int, int] | None:
    """The half-open range that is wanted; None for all of it, and for what is not understood."""
    values = call.list_headers(b"range")
    matched = _RANGE.fullmatch(values[0].strip()) if len(values) == 1 else None
    if matched is None or not _is_range_current(call, found) or not (matched[1] or matched[2]):
        return None
    first, last = matched[1][:_DIGITS_MAX], matched[2][:_DIGITS_MAX]
    if first and last and int(first) > int(last):
        return None
    start = int(first) if first else max(found.size - int(last), 0)
    end = min(int(last) + 1, found.size) if first and last else found.size
    if start >= found.size or start >= end:
        raise _refuse_range(start, found)
    return start, end


def _is_range_current(call: Call, found: _Found) -> bool:
    given = call.list_headers(b"if-range")
    return not given or (len(given) == 1 and _parse_tags(given) == [found.blob.etag])


def _refuse_range(start: int, found: _Found) -> RequestRefusedError:
    detail = {"blob_range": {"start": start, "end": found.size, "length": found.size}}
    headers = (*found.headers, (b"content-range", f"bytes */{found.size}".encode()))
    message = f"no byte of the range is in a blob of {found.size} bytes"
    return RequestRefusedError(416, message, detail=detail, headers=headers)


def _send(
    found: _Found, status: int, start: int, end: int, headers: tuple[tuple[bytes, bytes], ...]
) -> Answer | StreamedAnswer:
    if end - start <= _CHUNK_BYTES:
        return Answer(status, found.blob.read(start, end), _BYTES, headers)
    length = (b"content-length", str(end - start).encode())
    return StreamedAnswer(
        _iter_chunks(found.blob, start, end), lambda: None, _BYTES, (*headers, length), status
    )


def _iter_chunks(blob: Blob, start: int, end: int) -> Iterator[bytes]:
    for position in range(start, end, _CHUNK_BYTES):
        yield blob.read(position, min(end, position + _CHUNK_BYTES))

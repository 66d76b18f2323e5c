"""What is new in an HTTP service: the records whose cursor is above that of the last run.

The pages are read once, before the position is in the ledger, because only they show how far it
goes. A run that is repeated reads them again, up to that position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.errors import SourceRefusedError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.pipelines.config.definition import HttpSource, Incremental
from omnigraph.pipelines.sources.http_source import (
    describe_position,
    encode_pieces,
    encode_record,
    get_path,
    number_pages,
    read_pages,
)
from omnigraph.schema.schema_shape import JsonObject

CursorValue: TypeAlias = float | str | datetime


def compute_position(source: HttpSource, after: Any) -> tuple[JsonObject, tuple[bytes, ...]]:
    """From the end of the last position to the newest record, and the records in pieces."""
    assert source.incremental is not None, "asked of increments only"
    name = source.incremental.cursor
    known: JsonObject = after if after is not None and after.get("cursor") == name else {}
    start = known.get("to")
    window = _Window(source.incremental, start)
    pieces = tuple(encode_pieces(window.read_new_records(source)))
    end = start if window.newest is None else window.newest
    position = {**describe_position(source), "cursor": name, "from": start, "to": end}
    if source.incremental.lag_s and end is not None:
        position["late"] = window.compute_late_digest()
    is_same = start == end and position.get("late") == known.get("late")
    return {**position, "is_empty": is_same}, pieces


def is_empty(position: JsonObject) -> bool:
    """Whether a position has no records."""
    return bool(position["is_empty"])


def read_again(source: HttpSource, position: JsonObject) -> Iterator[bytes]:
    """The records of a position, in pieces."""
    assert source.incremental is not None, "asked of increments only"
    window = _Window(source.incremental, position["from"], position["to"])
    return encode_pieces(window.read_new_records(source))


@dataclass
class _Window:
    """The records above a position, down to its lag, and the highest cursor that was met."""

    incremental: Incremental
    start: Any  # Any: a value of JSON
    end: Any = None  # Any: as above
    newest: Any = None  # Any: as above
    # The texts of records by their cursors: those near the newest one may gain others.
    _texts: list[tuple[CursorValue, str]] = field(default_factory=list)

    def read_new_records(self, source: HttpSource) -> Iterator[pa.RecordBatch]:
        """The pages of the service without records that are not in the window."""
        low, param = self._compute_low(), self.incremental.param
        if param is not None and low is not None:
            text = low.isoformat() if isinstance(low, datetime) else str(low)
            # As the service wrote it, where nothing is subtracted.
            asked = text if self.incremental.lag_s else str(self.start)
            source = replace(source, params={**source.params, param: asked})
        is_new: list[bool] = []

        def iter_texts() -> Iterator[pa.Array]:
            for page in read_pages(source):
                texts = [encode_record(record) for record in page]
                is_new[:] = [
                    self._is_included(record, text, low)
                    for record, text in zip(page, texts, strict=True)
                ]
                yield pa.array(texts, pa.string())

        for batch in number_pages(iter_texts()):
            yield batch.filter(pa.array(is_new, pa.bool_()))

    def _compute_low(self) -> CursorValue | None:
        if self.start is None:
            return None
        low = parse_cursor(self.start)
        if not self.incremental.lag_s:
            return low
        if not isinstance(low, datetime):
            problem = f"'lag' is for times; '{sanitize_text(self.incremental.cursor)}' is not one"
            raise SourceRefusedError(problem, hint="leave 'lag' out, or name another cursor")
        return low - timedelta(seconds=self.incremental.lag_s)

    def _is_included(self, record: JsonObject, text: str, low: CursorValue | None) -> bool:
        raw = get_path(record, self.incremental.cursor)
        value = parse_cursor(raw)
        if value is None:
            # In no other increment.
            return self.start is None
        try:
            if (low is not None and value <= low) or (  # type: ignore[operator] # caught below
                self.end is not None and value > parse_cursor(self.end)  # type: ignore[operator] # as above
            ):
                return False
            if self.newest is None or value > parse_cursor(self.newest):  # type: ignore[operator] # as above
                self.newest = raw
        except TypeError as failure:
            problem = f"values of '{sanitize_text(self.incremental.cursor)}' are of several kinds"
            raise SourceRefusedError(problem, hint="name another cursor") from failure
        if self.incremental.lag_s:
            self._texts.append((value, text))
        return True

    def compute_late_digest(self) -> str:
        """A digest of the records that are within the lag of the end."""
        newest = parse_cursor(self.start if self.newest is None else self.newest)
        if not isinstance(newest, datetime):
            return ""
        low = newest - timedelta(seconds=self.incremental.lag_s)
        texts = [text for value, text in self._texts if value > low]  # type: ignore[operator] # times
        return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]


def parse_cursor(value: Any) -> CursorValue | None:  # Any: a value of JSON
    """A value that can be compared: a number, a time, or another text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if not isinstance(value, str):
        return value
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return value
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

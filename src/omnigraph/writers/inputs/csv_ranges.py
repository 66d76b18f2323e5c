"""A CSV file cut into ranges of bytes: whether each starts within quotes, and its records.

Where a range starts within quotes is known when the quotes before it are counted, if they come in
pairs: one that opens where a value starts, and one that closes it. A file with other quotes, or
with lines that end with a return alone, is not cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final, Protocol

import numpy as np

from omnigraph.writers.inputs.csv_records import (
    BYTE_ORDER_MARK,
    MAY_OPEN,
    BuildFailure,
    CsvRecords,
    has_lone_return,
)
from omnigraph.writers.inputs.line_blocks import Stream

# Who counts waits for the disk or the network most of the time.
_COUNTERS: Final = 4
_COUNT_BYTES: Final = 4 * 1024**2
# The end of most records is near.
_RECORD_PROBE_BYTES: Final = 64 * 1024
_NEWLINE, _QUOTE = b'\n"'


class SeekableStream(Stream, Protocol):
    """A stream that can go on from elsewhere."""

    def seek(self, position: int, /) -> int:
        """Go on from another place."""


OpenFile = Callable[[], AbstractContextManager[SeekableStream]]


@dataclass(frozen=True, slots=True)
class CsvRange:
    """A range of bytes of a CSV file: whether it starts within quotes, and the lines before it."""

    start: int
    end: int
    is_within_quotes: bool = False
    lines_before: int = 0


@dataclass(frozen=True, slots=True)
class _QuoteCount:
    """How many quotes and lines a range has.

    `is_paired` says whether the quotes pair if it starts outside quotes, and if it starts within.
    """

    count: int
    lines: int
    is_paired: tuple[bool, bool]


def cut_csv(open_file: OpenFile, size: int, range_bytes: int) -> list[CsvRange]:
    """The ranges of a file; one range where it is unclear which quotes open and which close."""
    borders = [*range(0, max(size, 1), range_bytes), size]
    found = _cut_at(open_file, borders) if len(borders) > 2 else None
    return found or [CsvRange(0, size)]


def _cut_at(open_file: OpenFile, borders: Sequence[int]) -> list[CsvRange] | None:
    ranges = list(pairwise(borders))
    with ThreadPoolExecutor(_COUNTERS) as pool:
        counts = list(pool.map(partial(_count_range_quotes, open_file), ranges))
    found, is_within, lines = [], False, 0
    for (start, end), quotes in zip(ranges, counts, strict=True):
        if quotes is None or not quotes.is_paired[is_within]:
            return None
        found.append(CsvRange(start, end, is_within, lines))
        is_within ^= bool(quotes.count % 2)
        lines += quotes.lines
    return found


def _count_range_quotes(open_file: OpenFile, borders: tuple[int, int]) -> _QuoteCount | None:
    """The quotes of a range; None if a line of it ends with a return alone."""
    place, end = borders
    count, lines, is_paired = 0, 0, [True, True]
    with open_file() as stream:
        last = b"\n"
        if place:
            stream.seek(place - 1)
            last = stream.read(1)
        while place < end and (data := stream.read(min(_COUNT_BYTES, end - place))):
            text = last + (data if place else data.removeprefix(BYTE_ORDER_MARK))
            if has_lone_return(text):
                return None
            if b'"' in text[1:]:
                raw = np.frombuffer(text, np.uint8)
                quotes = np.flatnonzero(raw[1:] == _QUOTE)
                may_open = MAY_OPEN[raw[quotes]]
                for start in (0, 1):
                    is_paired[start] &= bool(may_open[(count + start) % 2 :: 2].all())
                count += len(quotes)
            lines += data.count(b"\n")
            place += len(data)
            last = data[-1:]
    return _QuoteCount(count, lines, (is_paired[0], is_paired[1]))


class RecordRange:
    """The records that begin in a range of bytes; the last of them may end after it."""

    def __init__(self, source: SeekableStream, range_: CsvRange) -> None:
        self._source = source
        self._place = range_.start
        self._end = range_.end
        self._is_within = range_.is_within_quotes
        # How many lines of the file end before the first record.
        self.lines_before = range_.lines_before
        self._look_bytes = _RECORD_PROBE_BYTES
        # Whether the next byte begins a record.
        self._is_at_start = True
        if range_.start:
            source.seek(range_.start - 1)
            self._is_at_start = source.read(1) == b"\n" and not self._is_within
            while not self._is_at_start and (skipped := self._read_to_next_record()):
                self.lines_before += skipped.count(b"\n")

    def read(self, nbytes: int, /) -> bytes:
        """Up to so many of the next bytes; none at the end."""
        if self._place < self._end:
            data = self._source.read(min(nbytes, self._end - self._place))
            self._place += len(data)
            self._is_within ^= bool(_count_quotes(data) % 2)
            self._is_at_start = not data or (data.endswith(b"\n") and not self._is_within)
            return data
        return b"" if self._is_at_start else self._read_to_next_record()

    def _read_to_next_record(self) -> bytes:
        """The bytes up to the next record, or some of them; none at the end of the file."""
        data = self._source.read(self._look_bytes)
        self._look_bytes = min(2 * self._look_bytes, _COUNT_BYTES)
        end = _find_record_end(data, is_within=self._is_within)
        if end:
            self._source.seek(self._place + end)
            data = data[:end]
        self._is_within ^= bool(_count_quotes(data) % 2)
        self._is_at_start = bool(end) or not data
        self._place += len(data)
        return data


def open_csv_range(
    source: SeekableStream,
    range_: CsvRange,
    build_failure: BuildFailure,
    header: bytes | None = None,
) -> CsvRecords:
    """The records that begin in a range; the header is that of the file, or one that is given."""
    if range_.start and header is None:
        header = CsvRecords(source, build_failure).header
    source.seek(0)
    found = RecordRange(source, range_)
    return CsvRecords(found, build_failure, header, lines_before=found.lines_before)


def _count_quotes(data: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _QUOTE))


def _find_record_end(data: bytes, *, is_within: bool) -> int:
    """The position after the first newline outside quotes; 0 if there is none."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw == _NEWLINE)
    before = np.searchsorted(np.flatnonzero(raw == _QUOTE), ends)
    outside = ends[(before + is_within) % 2 == 0]
    return int(outside[0]) + 1 if len(outside) else 0

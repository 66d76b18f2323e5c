"""The records of a CSV file: a stream cut between them, and where each of them stands.

A record ends with a line end outside quotes. A quote opens where a value starts; within a value it
is a character like others. Empty lines are not records. Records go by the line they start on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.writers.inputs.line_blocks import Stream
from omnigraph.writers.inputs.row_sink import RecordError

BLOCK_BYTES: Final = 4 * 1024**2
# A record and what is made of it lie in memory together; most that are longer lack a quote.
RECORD_BYTES_MAX: Final = 32 * 1024**2
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
# What to say of a record that has no end.
NEVER_CLOSED: Final = RecordError(
    "a value opens with a quote that is never closed: all lines from here on belong to it",
    rule="csv",
    hint="close the quote; a quote within a value in quotes is written twice",
)
# Most headers end within so many bytes.
_HEADER_BYTES: Final = 64 * 1024

_NEWLINE, _RETURN, _COMMA, _QUOTE = b'\n\r,"'
# A quoted value, which starts where a value starts; the last one may not be closed.
_QUOTED: Final = re.compile(rb'(?:\A|(?<=[,\n\r]))"[^"]*(?:""[^"]*)*(?:("(?!"))|\Z)')

Offsets = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
# Builds the error for a line after which nothing can be read; 0 stands for the whole file.
BuildFailure = Callable[[int, RecordError], Exception]

# What may stand before a quote that opens, if every other quote closes: the last is a doubled one.
MAY_OPEN: Mask = np.zeros(256, np.bool_)
MAY_OPEN[list(b',\n\r"')] = True


@dataclass(frozen=True, slots=True)
class RecordFrame:
    """The records of a block: where each starts, its text ends, and the next one may start.

    `lines` are those they start on, `widths` how many values they have. `is_open` says that a quote
    of the last one is never closed.
    """

    starts: Offsets
    ends: Offsets
    stops: Offsets
    lines: Offsets
    widths: Offsets
    is_open: bool

    def are_whole(self, width: int) -> Mask:
        """Which records have so many values, and no quote that is not closed."""
        found = np.asarray(self.widths == width)
        if self.is_open:
            found[-1] = False
        return found


@dataclass(frozen=True)
class CsvBlock:
    """Complete records with their line ends; the first byte is on the first line."""

    data: bytes
    first_line: int
    # Whether the file ends here within quotes.
    is_open: bool = False

    @cached_property
    def line_count(self) -> int:
        """How many lines there are."""
        if not self.has_newlines_only:
            return len(_find_line_ends(self.data))
        return int(np.count_nonzero(np.frombuffer(self.data, np.uint8) == _NEWLINE))

    @cached_property
    def has_newlines_only(self) -> bool:
        """Whether all lines end with a newline, some perhaps with a return before it."""
        return not self.data.endswith(b"\r") and not has_lone_return(self.data)

    @cached_property
    def frame(self) -> RecordFrame:
        """Where the records are."""
        return _frame_records(self.data, self.first_line)

    def select_records(self, is_wanted: Mask) -> bytes:
        """The text of some of the records."""
        frame = self.frame
        marks = np.zeros(len(self.data) + 1, np.int8)
        marks[frame.starts[is_wanted]] += 1
        marks[frame.stops[is_wanted]] -= 1
        is_kept = np.cumsum(marks[:-1], dtype=np.int8).astype(np.bool_)
        return np.frombuffer(self.data, np.uint8)[is_kept].tobytes()

    def format_record(self, record: int, bytes_max: int = RECORD_BYTES_MAX) -> str:
        """The text of a record, without its line end, or the start of it."""
        start, end = int(self.frame.starts[record]), int(self.frame.ends[record])
        return self.data[start : min(end, start + bytes_max)].decode(errors="replace")

    def count_lines(self, record: int) -> int:
        """How many lines a record has."""
        start, end = int(self.frame.starts[record]), int(self.frame.ends[record])
        return len(_find_line_ends(self.data[start:end])) + 1


class CsvRecords:
    """A CSV file: its header, and its records a block at a time.

    The header of a file without one is given, and so is that of a part of a file.
    """

    def __init__(
        self,
        stream: Stream,
        build_failure: BuildFailure,
        header: bytes | None = None,
        *,
        lines_before: int = 0,
    ) -> None:
        self._stream = stream
        self._build_failure = build_failure
        self._is_at_end = False
        self._rest = self._read_next()
        # How many lines were returned so far, with the header.
        self.lines = 0
        # How many lines of the file end before these records, if they are a part of it.
        self.lines_before = lines_before
        if not lines_before:
            self._rest = self._rest.removeprefix(BYTE_ORDER_MARK)
        self.header = self._read_header() if header is None else header

    def iter_blocks(self) -> Iterator[CsvBlock]:
        """The records after the header."""
        while True:
            data = self._rest if self._is_at_end else self._rest + self._read_next()
            end = len(data) if self._is_at_end else _find_last_record_end(data)
            self._rest = data[end:]
            if end:
                yield self._build_block(data[:end])
            if self._is_at_end:
                return
            self._require_short(self._rest)

    def _build_block(self, data: bytes) -> CsvBlock:
        is_open = self._is_at_end and _is_open(data)
        if self._is_at_end and not data.endswith((b"\n", b"\r")):
            data += b"\n"
        block = CsvBlock(data, self.lines + 1, is_open)
        self.lines += block.line_count
        return block

    def _read_next(self) -> bytes:
        data = self._stream.read(BLOCK_BYTES)
        self._is_at_end = not data
        return data

    def _read_header(self) -> bytes:
        """The first record; what comes after it is left."""
        while True:
            for size in (_HEADER_BYTES, len(self._rest)):
                data = self._rest[:size]
                found = _frame_records(data, 1)
                if len(found.stops) and found.stops[0] < len(data):
                    return self._split_block(data, found)
            if self._is_at_end:
                break
            self._require_short(self._rest)
            self._rest += self._read_next()
        if not len(found.stops):
            empty = RecordError("Empty CSV file: its first line names the columns", rule="source")
            raise self._build_failure(0, empty)
        if found.is_open and len(found.stops) == 1:
            raise self._build_failure(1, NEVER_CLOSED)
        return self._split_block(data, found)

    def _split_block(self, data: bytes, found: RecordFrame) -> bytes:
        start, end, stop = (int(each[0]) for each in (found.starts, found.ends, found.stops))
        self._rest = self._rest[stop:]
        self.lines = max(len(_find_line_ends(data[:stop])), 1)
        return data[start:end]

    def _require_short(self, rest: bytes) -> None:
        if len(rest) > RECORD_BYTES_MAX:
            problem = f"a record starts here that does not end within {RECORD_BYTES_MAX:,} bytes"
            hint = "look for a value that opens with a quote and is not closed"
            raise self._build_failure(self.lines + 1, RecordError(problem, rule="csv", hint=hint))


def _find_last_record_end(data: bytes) -> int:
    """Where the last complete record of a text ends; more of the text is to come."""
    end = data.rfind(b"\n") + 1
    if end and not has_lone_return(data):
        raw = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(raw == _QUOTE)
        if not len(quotes):
            return end
        if _are_paired(raw, quotes) and not np.searchsorted(quotes, end) % 2:
            return end
    # A return at the end may be half of a line end.
    found = _frame_records(data.removesuffix(b"\r"), 1, is_end=False)
    return int(found.stops[-1]) if len(found.stops) else 0


def _is_open(data: bytes) -> bool:
    raw = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(raw == _QUOTE)
    if _are_paired(raw, quotes):
        return bool(len(quotes) % 2)
    return _frame_records(data, 1).is_open


def _are_paired(raw: _Bytes, quotes: Offsets) -> bool:
    """Whether every other quote stands where a quote opens, so that the ones between close."""
    if not len(quotes):
        return True
    before = raw[quotes[::2] - 1]
    if not quotes[0]:
        before[0] = _NEWLINE
    return bool(MAY_OPEN[before].all())


def has_lone_return(text: bytes) -> bool:
    """Whether a return is followed by something else than a newline, within the text."""
    if b"\r" not in text:
        return False
    raw = np.frombuffer(text, np.uint8)
    return bool(((raw[:-1] == _RETURN) & (raw[1:] != _NEWLINE)).any())


def _find_line_ends(data: bytes) -> Offsets:
    """Where lines end: newlines, and returns that no newline follows."""
    raw = np.frombuffer(data, np.uint8)
    is_end = raw == _NEWLINE
    if b"\r" in data:
        is_return = raw == _RETURN
        is_return[:-1] &= ~is_end[1:]
        is_end |= is_return
    return np.flatnonzero(is_end)


def _frame_records(data: bytes, first_line: int, *, is_end: bool = True) -> RecordFrame:
    """The records of a text that starts with one; what has no line end counts at the end only."""
    raw = np.frombuffer(data, np.uint8)
    opens, closes = _find_quoted_spans(data, raw)
    lines = _find_line_ends(data)
    last = lines[~_are_within(lines, opens, closes)]
    stops = last + 1
    is_open = bool(len(closes)) and int(closes[-1]) == len(data)
    if is_end and (int(stops[-1]) if len(stops) else 0) < len(data):
        last, stops = np.append(last, len(data)), np.append(stops, len(data))
    starts = np.concatenate(([0], stops[:-1])) if len(stops) else stops
    has_return = np.zeros(len(last), np.bool_)
    if b"\r\n" in data:
        ends_lf = (last < len(data)) & (last > starts)
        has_return[ends_lf] = (raw[last[ends_lf]] == _NEWLINE) & (raw[last[ends_lf] - 1] == _RETURN)
    ends = last - has_return
    commas = np.flatnonzero(raw == _COMMA)
    commas = commas[~_are_within(commas, opens, closes)]
    widths = np.searchsorted(commas, ends) - np.searchsorted(commas, starts) + 1
    is_record = ends > starts
    return RecordFrame(
        starts[is_record],
        ends[is_record],
        stops[is_record],
        first_line + np.searchsorted(lines, starts[is_record]),
        widths[is_record],
        is_open and is_end,
    )


def _find_quoted_spans(data: bytes, raw: _Bytes) -> tuple[Offsets, Offsets]:
    """Where quotes open and close; one that is not closed reaches to the end."""
    quotes = np.flatnonzero(raw == _QUOTE)
    if _are_paired(raw, quotes):
        if len(quotes) % 2:
            quotes = np.append(quotes, len(data))
        return quotes[::2], quotes[1::2]
    # One by one, but only where a quote stands within a value that has none around it.
    spans = [(found.start(), found.start(1)) for found in _QUOTED.finditer(data)]
    pairs = np.array(spans, np.int64).reshape(-1, 2)
    return pairs[:, 0], np.where(pairs[:, 1] < 0, len(data), pairs[:, 1])


def _are_within(places: Offsets, opens: Offsets, closes: Offsets) -> Mask:
    if not len(opens):
        return np.zeros(len(places), np.bool_)
    span = np.searchsorted(opens, places, side="right") - 1
    return np.asarray((span >= 0) & (places < closes[span]))

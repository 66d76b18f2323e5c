"""Blocks of lines: a stream cut at its newlines, the lines of each block as one Arrow array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.errors import ResourceLimitError
from omnigraph.writers.inputs.row_sink import RecordError, RowNumbers, RowSink

# A block and what is made of it lie in memory together.
BLOCK_BYTES = 32 * 1024**2
LINE_BYTES_MAX = 32 * 1024**2
_NEWLINE, _RETURN, _OPENING, _CLOSING = b"\n\r{}"
_BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": "starts with a byte order mark: save it as UTF-8 without one",
    b"\xff\xfe": "is UTF-16: save it as UTF-8",
    b"\xfe\xff": "is UTF-16: save it as UTF-8",
}

_Mask = np.ndarray[Any, np.dtype[np.bool_]]

_IS_BLANK: _Mask = np.zeros(256, np.bool_)
_IS_BLANK[list(b" \t\r\n")] = True


class Stream(Protocol):
    """Where bytes come from."""

    def read(self, nbytes: int, /) -> bytes:
        """Up to so many of the next bytes; none at the end."""


@dataclass(frozen=True)
class Lines:
    """The lines of a block, each with its newline; the first of them has the first number."""

    block: bytes
    first_number: int

    @cached_property
    def offsets(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Where each line starts, and where the last one ends."""
        ends = np.flatnonzero(np.frombuffer(self.block, np.uint8) == _NEWLINE) + 1
        return np.concatenate(([0], ends)).astype(np.int32)

    @cached_property
    def texts(self) -> pa.Array:
        """The lines as binaries that share the memory of the block."""
        offsets = pa.py_buffer(self.offsets)
        count = len(self.offsets) - 1
        return pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(self.block)])

    @cached_property
    def is_blank(self) -> _Mask:
        """Which lines hold nothing but blanks."""
        is_empty = self._last < self.offsets[:-1]
        data = np.frombuffer(self.block, np.uint8)
        starts_blank = _IS_BLANK[data[self.offsets[:-1]]]
        if not (starts_blank & ~is_empty).any():
            return np.asarray(is_empty)
        return ~np.logical_or.reduceat(~_IS_BLANK[data], self.offsets[:-1])

    @cached_property
    def is_framed(self) -> _Mask:
        """Which lines start with an opening brace and end with a closing one.

        No JSON object goes over the end of such a line and the start of the next: between the two
        braces there would have to be a comma.
        """
        data = np.frombuffer(self.block, np.uint8)
        starts = data[self.offsets[:-1]] == _OPENING
        ends = data[self._last] == _CLOSING
        return np.asarray(~self.is_blank & starts & ends)

    @property
    def numbers(self) -> RowNumbers:
        """The number of each line."""
        count = len(self.offsets) - 1
        return np.arange(self.first_number, self.first_number + count, dtype=np.int64)

    @cached_property
    def _last(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Where the last byte of each line before its end is; before its start if it has none."""
        last = self.offsets[1:] - 2
        data = np.frombuffer(self.block, np.uint8)
        has_return = (last >= self.offsets[:-1]) & (data[last] == _RETURN)
        return np.asarray(last - has_return, np.int32)


def iter_line_blocks(stream: Stream, reading: RowSink, *, block_bytes: int) -> Iterator[Lines]:
    """The lines of a stream, a block at a time; the last one always ends with a newline."""
    number, rest, is_first = 1, [b""], True
    while data := stream.read(block_bytes):
        if is_first:
            _reject_byte_order_mark(data, reading)
            is_first = False
        end = data.rfind(b"\n") + 1
        if end == 0:
            rest.append(data)
            _require_short(sum(map(len, rest)), number, reading)
            continue
        lines = Lines(b"".join([*rest, data[:end]]), number)
        _require_short_lines(lines, reading)
        yield lines
        number += len(lines.offsets) - 1
        rest = [data[end:]]
    if last := b"".join(rest):
        _require_short(len(last), number, reading)
        yield Lines(last + b"\n", number)


def _reject_byte_order_mark(data: bytes, reading: RowSink) -> None:
    for mark, problem in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            raise reading.build_failure(1, RecordError(f"the text {problem}", rule="encoding"))


def _require_short_lines(lines: Lines, reading: RowSink) -> None:
    lengths = np.diff(lines.offsets)
    longest = int(lengths.argmax())
    _require_short(int(lengths[longest]) - 1, lines.first_number + longest, reading)


def _require_short(length: int, number: int, reading: RowSink) -> None:
    if length > LINE_BYTES_MAX:
        raise ResourceLimitError(
            f"{reading.location_of(number)}: the length of a line in bytes",
            limit=LINE_BYTES_MAX,
            actual=length,
            hint="write one record on each line",
        )

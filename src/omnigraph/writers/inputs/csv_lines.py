"""On which line each row of a CSV file starts, found when an error is to name it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.writers.inputs.lines import Stream

_BLOCK_BYTES = 4 * 1024**2
_NEWLINE = b"\n"[0]
# A quoted value, which starts where a value starts; the last one of a block may go on in the next.
_QUOTED = re.compile(rb'(?:^|(?<=[,\n]))"[^"]*(?:""[^"]*)*(?:"|\Z)')

_Places = np.ndarray[Any, np.dtype[np.int64]]


class CsvLines:
    """The lines of the rows of a file, which is read again from its start when one is asked for."""

    def __init__(self, open_file: Callable[[], AbstractContextManager[Stream]]) -> None:
        self._open = open_file
        self._lines: _Places | None = None

    def of_row(self, row: int) -> int | None:
        """The line, from 1, on which a row after the header starts; None if it cannot be found."""
        if self._lines is None:
            try:
                with self._open() as stream:
                    self._lines = _record_lines(stream)
            except (OSError, pa.ArrowException):
                self._lines = np.array([], np.int64)
        # The header is a record too.
        return int(self._lines[row]) if row < len(self._lines) else None


def _record_lines(stream: Stream) -> _Places:
    """The line of every record; empty lines are none."""
    found: list[_Places] = []
    line, rest = 1, b""
    while True:
        data = stream.read(_BLOCK_BYTES)
        # A return at the end may be half of a line end.
        text = _with_newlines(rest + data, is_end=not data)
        flat = np.frombuffer(_QUOTED.sub(_on_one_line, text), np.uint8)
        ends = np.flatnonzero(flat == _NEWLINE)
        if not data and len(flat) and (not len(ends) or ends[-1] != len(flat) - 1):
            ends = np.append(ends, len(flat))
        starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE)
        is_record = ends > starts
        found.append(line + np.searchsorted(newlines, starts[is_record]))
        if not data:
            return np.concatenate(found)
        end = int(ends[-1]) + 1 if len(ends) else 0
        line += int(np.searchsorted(newlines, end))
        rest = text[end:]


def _with_newlines(data: bytes, *, is_end: bool) -> bytes:
    """The text with one byte for every line end; a return at its end stays, unless that is all."""
    held = b"\r" if data.endswith(b"\r") and not is_end else b""
    text = data[: len(data) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text + held


def _on_one_line(value: re.Match[bytes]) -> bytes:
    return value[0].replace(b"\n", b" ")

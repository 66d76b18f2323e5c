"""JSON records of both dialects, from any stream of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import numpy as np
import pyarrow as pa

from omnigraph.writers.inputs.arrow_json import read_lines
from omnigraph.writers.inputs.exact_json import (
    BrokenJsonError,
    PlainMembers,
    RecordPart,
    RecordReader,
    decode_line,
    decode_next,
)
from omnigraph.writers.inputs.input_tables import add_named_type
from omnigraph.writers.inputs.line_blocks import (
    BLOCK_BYTES,
    LINE_BYTES_MAX,
    Lines,
    Stream,
    iter_line_blocks,
)
from omnigraph.writers.inputs.row_sink import RecordError, RowNumbers, RowSink

# One odd record sends its whole block to the exact reader, so that these blocks are smaller.
_STREAM_BLOCK_BYTES = 4 * 1024**2
_HEAD_BYTES = 64 * 1024


def read_json(stream: Stream, reading: RowSink) -> None:
    """Read the records of a stream in the dialect of the reading."""
    if reading.options.type is not None:
        add_named_type(reading)
    if reading.is_strict:
        _read_strict(stream, reading)
    else:
        _CompatibleReader(reading).read_stream(stream)


def check_first_record(stream: Stream, reading: RowSink) -> None:
    """Refuse lines of a named type whose first record names its own."""
    plain = PlainMembers(reading)
    for lines in iter_line_blocks(stream, reading, block_bytes=_HEAD_BYTES):
        first = next((text for text in lines.texts.to_pylist() if text.strip()), None)
        if first is None:
            continue
        try:
            record = decode_line(first.decode())
            if isinstance(record, Mapping):
                plain.require_no_own_type(record)
        except UnicodeDecodeError:
            # Other mistakes of a record are reported with the others.
            return
        except RecordError as refused:
            if refused.rule == "type":
                raise reading.build_failure(0, refused) from refused
        return


def _read_strict(stream: Stream, reading: RowSink) -> None:
    """One object on each line: every line is read and refused on its own."""
    exact = RecordReader(reading)
    for lines in iter_line_blocks(stream, reading, block_bytes=BLOCK_BYTES):
        parts, left = read_lines(lines, reading)
        texts = lines.texts.take(pa.array(left - lines.first_number)).to_pylist()
        for number, line in zip(left.tolist(), texts, strict=True):
            _read_line(line, number, exact, reading)
        _add_parts(parts, exact, reading)
        reading.count_records(int(np.count_nonzero(~lines.is_blank)))


def _read_line(line: bytes, number: int, exact: RecordReader, reading: RowSink) -> None:
    try:
        text = line.decode()
        if not text.strip():
            return
        record = decode_line(text)
    except UnicodeDecodeError as failure:
        reading.reject_record(number, _build_utf8_error(failure))
    except RecordError as refused:
        reading.reject_record(number, refused)
    else:
        exact.read_record(record, number)


def _build_utf8_error(failure: UnicodeDecodeError) -> RecordError:
    return RecordError(f"invalid UTF-8 at byte {failure.start + 1}", rule="encoding")


def _add_parts(parts: list[RecordPart], exact: RecordReader, reading: RowSink) -> None:
    """Put the rows of a block together, each type in the order of its records."""

    def by_columns(part: RecordPart) -> tuple[str, list[str]]:
        return str(part.type_key), sorted(part.absent)

    for _, found in groupby(sorted([*parts, *exact.drain_rows()], key=by_columns), key=by_columns):
        same = list(found)
        rows, numbers = _sort_parts(same)
        reading.add_rows(
            same[0].type_key, rows, numbers, same[0].absent, are_named=reading.options.type is None
        )


def _sort_parts(parts: list[RecordPart]) -> tuple[pa.Table, RowNumbers]:
    rows = pa.concat_tables([part.rows for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    if (np.diff(numbers) > 0).all():
        return rows, numbers
    order = np.argsort(numbers, kind="stable")
    return rows.take(pa.array(order)), numbers[order]


class _CompatibleReader:
    """Any sequence of JSON values, over any number of lines; after broken JSON it cannot go on."""

    def __init__(self, reading: RowSink) -> None:
        self._reading = reading
        self._exact = RecordReader(reading)
        self._number = 0
        # What was read of a value that is not complete yet.
        self._rest = ""

    def read_stream(self, stream: Stream) -> None:
        """Read a stream to its end."""
        reading = self._reading
        for lines in iter_line_blocks(stream, reading, block_bytes=_STREAM_BLOCK_BYTES):
            before = self._number
            if self._rest or not self._read_block_by_lines(lines):
                self._read_values(lines.block)
            reading.count_records(self._number - before)
        if self._rest:
            self._consume_values(is_end=True)
            _add_parts([], self._exact, reading)

    def _read_block_by_lines(self, lines: Lines) -> bool:
        """Read a block by lines if each of them is a record beyond doubt; else read nothing."""
        parts, left = read_lines(lines, self._reading)
        if len(left):
            return False
        shift = self._number - np.cumsum(lines.is_blank)
        for part in parts:
            places = part.numbers - lines.first_number
            numbers = shift[places] + places + 1
            self._reading.add_rows(
                part.type_key,
                part.rows,
                numbers.astype(np.int64),
                part.absent,
                are_named=self._reading.options.type is None,
            )
        self._number += int(np.count_nonzero(~lines.is_blank))
        return True

    def _read_values(self, block: bytes) -> None:
        try:
            self._rest += block.decode()
        except UnicodeDecodeError as failure:
            self._rest += block[: failure.start].decode()
            self._consume_values(is_end=False)
            _add_parts([], self._exact, self._reading)
            raise self._reading.build_failure(
                self._number + 1, _build_utf8_error(failure)
            ) from failure
        self._consume_values(is_end=False)
        _add_parts([], self._exact, self._reading)

    def _consume_values(self, *, is_end: bool) -> None:
        """Read the complete values of what is there, and keep the rest."""
        end = 0
        while True:
            try:
                found = decode_next(self._rest, end)
            except RecordError as refused:
                is_open = isinstance(refused, BrokenJsonError) and not is_end
                # A longer value is refused anyway, so that one which is only cut off ends in time.
                if is_open and len(self._rest) - end <= LINE_BYTES_MAX:
                    break
                _add_parts([], self._exact, self._reading)
                raise self._reading.build_failure(self._number + 1, refused) from refused
            if found is None:
                end = len(self._rest)
                break
            self._number += 1
            self._exact.read_record(found[0], self._number)
            end = found[1]
        self._rest = self._rest[end:]

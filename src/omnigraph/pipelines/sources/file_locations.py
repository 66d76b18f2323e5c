"""Where records of files are, for people: the line, or the row in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import SourceRefusedError
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.config.text_encodings import (
    UTF_8,
    TranscodedStream,
    decompress_stream,
)
from omnigraph.storage.objects.source_files import SourceFile, list_source_files, open_source_file
from omnigraph.writers.inputs.line_blocks import Lines

_BLOCK_BYTES: Final = 8 * 1024**2
# Spark ends a line at a return too.
_ARRAY: Final = re.compile(rb"(?:\A|[\r\n])[ \t]*\[")
_LINE, _ROW, _RECORD = "line", "row", "record"


def resolve_local_file(uri: str) -> SourceFile:
    """A file of this machine by the address that Spark has for it."""
    path = unquote(urlsplit(uri).path)
    found, problem = list_source_files(path, {})
    if len(found) != 1:
        raise SourceRefusedError(f"{path}: {problem or 'no file'}")
    return found[0]


def locate_records(
    file: SourceFile, numbers: Sequence[int], total: int | None, source: FileSource, format_: str
) -> dict[int, tuple[str, int]]:
    """What the n-th records of a file are counted by, and as how many.

    A record of CSV has the number of its line. One of JSON lines is on the n-th line that is not
    blank, if the file has as many of those as Spark found records: `total`. A line with an array
    has any number of them.
    """
    if format_ in ("parquet", "orc"):
        return {number: (_ROW, number) for number in numbers}
    if format_ == "csv":
        return {number: (_LINE, number) for number in numbers}
    if source.is_multiline or total is None:
        return {number: (_RECORD, number) for number in numbers}
    with open_source_file(file, source.options) as stream:
        data = decompress_stream(stream, file.uri)
        if source.encoding != UTF_8:
            # The bytes of a line end may mean something else there.
            data = TranscodedStream(data, source.encoding).to_arrow_file()
        blocks = _read_line_blocks(data)
        lines = _find_line_numbers(blocks, np.sort(np.array(numbers)))
    if lines.pop(_ALL) != total:
        return {number: (_RECORD, number) for number in numbers}
    return {number: (_LINE, lines[number]) for number in numbers}


# Stands for the number of all lines among those of some, which may not be known.
_ALL: Final = 0
_UNKNOWN: Final = -1


def _find_line_numbers(blocks: Iterator[Lines], wanted: npt.NDArray[np.int64]) -> dict[int, int]:
    """The numbers of the n-th lines that are not blank, and how many; of none if one is an array.

    Lines with many records and lines without any could be as many as the records by chance.
    """
    found: dict[int, int] = {}
    before = 0
    for lines in blocks:
        if _ARRAY.search(lines.block):
            return {_ALL: _UNKNOWN}
        numbers = lines.numbers[~lines.is_blank]
        here = wanted[(wanted > before) & (wanted <= before + len(numbers))]
        found |= dict(zip(here.tolist(), numbers[here - before - 1].tolist(), strict=True))
        before += len(numbers)
    return {**found, _ALL: before}


def _read_line_blocks(stream: pa.NativeFile) -> Iterator[Lines]:
    number, rest = 1, b""
    while data := stream.read(_BLOCK_BYTES):
        end = data.rfind(b"\n") + 1
        if not end:
            rest += data
            continue
        lines = Lines(rest + data[:end], number)
        yield lines
        number += len(lines.offsets) - 1
        rest = data[end:]
    if rest:
        yield Lines(rest + b"\n", number)


def group_by_file(numbers: Sequence[tuple[str, int]]) -> Mapping[str, list[int]]:
    """Numbers of records, by the file they are in."""
    found: dict[str, list[int]] = {}
    for file, number in dict.fromkeys(numbers):
        found.setdefault(file, []).append(number)
    return found

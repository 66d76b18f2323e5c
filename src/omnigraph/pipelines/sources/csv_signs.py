"""CSV with other signs than commas and double quotes, for a reader that knows only those.

The signs are exchanged with commas and double quotes in the bytes of a file as they come, and
exchanged back in the texts that were parsed of them. All are signs of ASCII: they are in no
character of several bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.pipelines.config.csv_dialect import COMMA, QUOTE, CsvDialect
from omnigraph.writers.inputs.csv_ranges import SeekableStream
from omnigraph.writers.inputs.csv_reader import ParsedBlock, parse_block
from omnigraph.writers.inputs.csv_records import CsvBlock

_BYTES: Final = bytes(range(256))


class ExchangedStream:
    """A stream in which the signs of a dialect are commas and double quotes, and the reverse."""

    def __init__(self, stream: SeekableStream, dialect: CsvDialect) -> None:
        self._stream = stream
        self._table = _build_table(dialect.delimiter, dialect.quote)

    def read(self, nbytes: int, /) -> bytes:
        """Up to so many of the next bytes; none at the end."""
        data = self._stream.read(nbytes)
        return data if self._table == _BYTES else data.translate(self._table)

    def seek(self, position: int, /) -> int:
        """Go on from another place."""
        return self._stream.seek(position)


def restore_text(text: str, dialect: CsvDialect) -> str:
    """A text of an exchanged stream as it is in the file."""
    table = bytes.maketrans(_build_table(dialect.delimiter, dialect.quote), _BYTES)
    return text.encode().translate(table).decode()


def parse_dialect_block(
    block: CsvBlock,
    names: Sequence[str],
    dialect: CsvDialect,
    wanted: Sequence[str] | None = None,
) -> ParsedBlock:
    """The records of a block of an exchanged stream, with the texts and nulls of the file."""
    parsed = parse_block(block, names, wanted)
    table = bytes.maketrans(_build_table(dialect.delimiter, dialect.quote), _BYTES)
    if table == _BYTES and not dialect.nulls:
        return parsed
    columns = [
        pa.chunked_array(
            [_restore_array(each, table, dialect.nulls) for each in column.chunks], pa.utf8()
        )
        for column in parsed.rows.columns
    ]
    return replace(parsed, rows=pa.table(columns, parsed.rows.column_names))


def _restore_array(texts: pa.Array, table: bytes, nulls: tuple[str, ...]) -> pa.Array:
    validity, offsets, data = texts.buffers()
    if table != _BYTES and data is not None:
        restored = pa.py_buffer(data.to_pybytes().translate(table))
        buffers = [validity, offsets, restored]
        texts = pa.Array.from_buffers(pa.utf8(), len(texts), buffers, -1, texts.offset)
    if not nulls:
        return texts
    is_null = pc.is_in(texts, value_set=pa.array(nulls, pa.utf8()))
    return pc.if_else(is_null, pa.scalar(None, pa.utf8()), texts)


@lru_cache(maxsize=16)
def _build_table(delimiter: str, quote: str) -> bytes:
    """Every byte, with those that stand for each other exchanged."""
    own, standard = delimiter + quote, COMMA + QUOTE
    # What is in the place of a sign of the standard goes where that sign came from.
    others = [sign for sign in standard if sign not in own]
    freed = [sign for sign in own if sign not in standard]
    source, target = own + "".join(others), standard + "".join(freed)
    return bytes.maketrans(source.encode(), target.encode())

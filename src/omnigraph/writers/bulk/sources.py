"""What a bulk load reads: files where they are, and tables and texts staged beside the graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.storage.objects import Objects
from omnigraph.storage.source_files import SourceFile
from omnigraph.writers.bulk.notes import write_note
from omnigraph.writers.bulk.origins import Locate
from omnigraph.writers.bulk.stores import stores_of
from omnigraph.writers.bulk.streams import STAGED
from omnigraph.writers.bulk.units import (
    UNIT_BYTES,
    UNIT_ROWS,
    Format,
    GraphPlace,
    Piece,
    pieces_of,
    unusable,
)
from omnigraph.writers.inputs.lines import LINE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """How many rows a load is about to write and how many it leaves out.

    `rejects` is the file that lists the latter.
    """

    written: int
    rejected: int
    rejects: str | None


class BulkSource(ABC):
    """Something that can be cut into pieces; what has to be staged for that is staged then."""

    __slots__ = ()

    @abstractmethod
    def pieces(self, place: GraphPlace, folder: str) -> tuple[Piece, ...]:
        """Its pieces; what has to be staged goes into the folder."""

    @property
    def locate(self) -> Locate | None:
        """What finds the records that its rows were made of, if they were made of any."""
        return None

    def accept(self, counts: LoadCounts) -> None:
        """Refuse to commit a load of which too much was left out."""
        del counts


@dataclass(frozen=True, slots=True)
class Files(BulkSource):
    """Files at an address: one, all of a folder, or those that match a pattern."""

    uri: str
    type: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def pieces(self, place: GraphPlace, folder: str) -> tuple[Piece, ...]:  # noqa: ARG002 — as others
        """The files, cut where they can be."""
        return pieces_of(self.uri, self.options, type_name=self.type)


@dataclass(frozen=True, slots=True)
class FilesByType(BulkSource):
    """Files of tables, at an address for each type."""

    uris: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def pieces(self, place: GraphPlace, folder: str) -> tuple[Piece, ...]:  # noqa: ARG002 — as others
        """The files of all types, cut where they can be."""
        return tuple(
            piece
            for type_name, uri in self.uris.items()
            for piece in pieces_of(uri, self.options, type_name=type_name)
        )


@dataclass(frozen=True, slots=True)
class TextLines(BulkSource):
    """JSON lines in memory; the name stands for a file in messages."""

    data: bytes = field(repr=False)
    name: str

    def pieces(self, place: GraphPlace, folder: str) -> tuple[Piece, ...]:
        """The lines, staged a piece at a time."""
        notes = stores_of(place).notes
        return tuple(
            _staged(notes, folder, block, Piece(_NOWHERE, Format.JSONL, self.name, end=len(block)))
            for block in _blocks_of_lines(self.data)
        )


@dataclass(frozen=True, slots=True)
class TableRows(BulkSource):
    """Rows of one type from a reader, which can be read once."""

    reader: pa.RecordBatchReader
    type: str

    def pieces(self, place: GraphPlace, folder: str) -> tuple[Piece, ...]:
        """The rows, staged a piece at a time."""
        notes = stores_of(place).notes
        try:
            return tuple(
                stage_rows(notes, folder, portion, type_name=self.type)
                for portion in portions(self.reader, self.reader.schema)
            )
        except (OSError, pa.ArrowException) as failure:
            raise unusable("table", str(failure)) from failure


def portions(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Batches put together until they are as many rows or bytes as a piece may have.

    No batch at all is a portion without rows: a type of which there are none may be overwritten.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = given = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= UNIT_ROWS or size >= UNIT_BYTES:
            yield pa.Table.from_batches(waiting, schema)
            waiting, rows, size, given = [], 0, 0, given + 1
    if waiting or not given:
        yield pa.Table.from_batches(waiting, schema)


def stage_rows(notes: Objects, folder: str, rows: pa.Table, *, type_name: str) -> Piece:
    """Stage rows of a type as a piece."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    piece = Piece(_NOWHERE, Format.ARROW, "table", type_name, rows=rows.num_rows)
    return _staged(notes, folder, bytes(sink.getvalue()), piece)


_NOWHERE = SourceFile("", 0, "")


def _staged(notes: Objects, folder: str, data: bytes, piece: Piece) -> Piece:
    path = write_note(notes, folder, data, kind="input")
    file = SourceFile(f"{STAGED}{path}", len(data), "")
    return Piece(
        file, piece.format, piece.name, piece.type, piece.start, piece.end, rows=piece.rows
    )


def _blocks_of_lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data) or not start:
        end = data.rfind(b"\n", start, start + UNIT_BYTES) + 1
        if end <= start:
            end = data.find(b"\n", start + UNIT_BYTES, start + UNIT_BYTES + LINE_BYTES_MAX) + 1
        yield data[start : end or len(data)]
        start = end or len(data)
        if not data:
            return

"""What a bulk load reads: files where they are, and tables and texts staged beside the graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa

from omnigraph.bulk.split_reader import STAGED
from omnigraph.bulk.splits import (
    SPLIT_BYTES,
    SPLIT_ROWS,
    FileRange,
    Format,
    GraphLocation,
    build_input_error,
    get_stores,
    plan_file_ranges,
)
from omnigraph.bulk.task_tracking import write_note
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.objects.source_files import SourceFile
from omnigraph.writers.inputs.line_blocks import LINE_BYTES_MAX

# A source, and two numbers that say which of its records.
RecordOrigin: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """How many rows a load is about to write and how many it leaves out.

    `rejects` is the file that lists the latter, `rejected_by_type` how many are of which type, and
    `records_by_source` how many records were mapped to rows while they were read.
    """

    written: int
    rejected: int
    rejects: str | None
    rejected_by_type: Mapping[str, int] = field(default_factory=dict)
    records_by_source: Mapping[str, int] = field(default_factory=dict)


class BulkSource(ABC):
    """Something that can be cut into pieces; what has to be staged for that is staged then."""

    __slots__ = ()

    @abstractmethod
    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        """Its pieces; what has to be staged goes into the folder."""

    @property
    def locate(self) -> LocateOrigins | None:
        """What finds the records that its rows were made of, if they were made of any."""
        return None

    @property
    def needs_spark(self) -> bool:
        """Whether only Spark has the rows."""
        return False

    @property
    def skips_unchanged(self) -> bool:
        """Whether a merge writes only rows that differ from those that are committed."""
        return False

    @property
    def snapshot_types(self) -> frozenset[str]:
        """The types of which it has all entities there are: committed ones that it lacks end."""
        return frozenset()

    def accept_missing(self, type_name: str, missing: int, committed: int) -> None:
        """Refuse to end so many of the committed entities of a type, because they are lacking."""
        del type_name, missing, committed

    def accept_counts(self, counts: LoadCounts) -> None:
        """Refuse to commit a load of which too much was left out."""
        del counts


@dataclass(frozen=True, slots=True)
class FileSource(BulkSource):
    """Files at an address: one, all of a folder, or those that match a pattern."""

    uri: str
    type: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:  # noqa: ARG002 — as others
        """The files, cut where they can be."""
        return plan_file_ranges(self.uri, self.options, type_name=self.type)


@dataclass(frozen=True, slots=True)
class CombinedSource(BulkSource):
    """Several sources, such as one for each type, that are loaded together."""

    sources: tuple[BulkSource, ...]

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        """The pieces of all of them."""
        return tuple(
            piece for source in self.sources for piece in source.prepare_ranges(place, folder)
        )


@dataclass(frozen=True, slots=True)
class JsonLinesSource(BulkSource):
    """JSON lines in memory; the name stands for a file in messages."""

    data: bytes = field(repr=False)
    name: str
    type: str | None = None

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        """The lines, staged a piece at a time."""
        notes = get_stores(place).objects
        return tuple(
            _stage_object(
                notes,
                folder,
                block,
                FileRange(_NO_FILE, Format.JSONL, self.name, self.type, end=len(block)),
            )
            for block in _split_lines(self.data)
        )


@dataclass(frozen=True, slots=True)
class TableSource(BulkSource):
    """Rows of one type from a reader, which can be read once."""

    reader: pa.RecordBatchReader
    type: str

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        """The rows, staged a piece at a time."""
        notes = get_stores(place).objects
        try:
            return tuple(
                stage_rows(notes, folder, portion, type_name=self.type)
                for portion in batch_rows(self.reader, self.reader.schema)
            )
        except (OSError, pa.ArrowException) as failure:
            raise build_input_error("table", str(failure)) from failure


def batch_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Batches put together until they are as many rows or bytes as a piece may have.

    No batch at all is a portion without rows: a type of which there are none may be overwritten.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = given = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= SPLIT_ROWS or size >= SPLIT_BYTES:
            yield pa.Table.from_batches(waiting, schema)
            waiting, rows, size, given = [], 0, 0, given + 1
    if waiting or not given:
        yield pa.Table.from_batches(waiting, schema)


def stage_rows(
    notes: Objects, folder: str, rows: pa.Table, *, type_name: str, is_deletion: bool = False
) -> FileRange:
    """Stage rows of a type as a piece."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    piece = FileRange(
        _NO_FILE, Format.ARROW, "table", type_name, rows=rows.num_rows, is_deletion=is_deletion
    )
    return _stage_object(notes, folder, bytes(sink.getvalue()), piece)


_NO_FILE = SourceFile("", 0, "")


def _stage_object(notes: Objects, folder: str, data: bytes, piece: FileRange) -> FileRange:
    path = write_note(notes, folder, data, kind="input")
    return replace(piece, file=SourceFile(f"{STAGED}{path}", len(data), ""))


def _split_lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data) or not start:
        end = data.rfind(b"\n", start, start + SPLIT_BYTES) + 1
        if end <= start:
            end = data.find(b"\n", start + SPLIT_BYTES, start + SPLIT_BYTES + LINE_BYTES_MAX) + 1
        yield data[start : end or len(data)]
        start = end or len(data)
        if not data:
            return


@dataclass(frozen=True, slots=True)
class OriginRecord:
    """A record where it was read: its place, its file or source, its number there, its text."""

    location: str
    file: str
    number: int | None
    text: str


# What finds records; those that it does not find are not in its answer.
LocateOrigins: TypeAlias = Callable[[Sequence[RecordOrigin]], Mapping[RecordOrigin, OriginRecord]]

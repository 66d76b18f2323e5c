"""Units: the parts into which a load is cut, each small enough for the memory of one worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.bulk.mapped_records import MappedRange
from omnigraph.bulk.row_checks import SPLIT_PROBLEMS_MAX
from omnigraph.errors import LoadError, Violation, format_violations
from omnigraph.lang.quoting import sanitize_message
from omnigraph.storage.objects.object_store import Objects, open_objects
from omnigraph.storage.objects.source_files import SourceFile, list_source_files, open_source_file
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.schema_store import Schemas, StoredSchema
from omnigraph.writers.inputs.csv_ranges import CsvRange, cut_csv
from omnigraph.writers.inputs.input_rows import Missing
from omnigraph.writers.load_records import LoadMode

# Smaller units cost more starts; larger ones more memory, and leave cores idle at the end.
SPLIT_BYTES: Final = 64 * 1024**2
SPLIT_ROWS: Final = 1024 * 1024

# A type is cut into so many units if it has the fragments, so that every core has some.
FRAGMENT_GROUPS_MIN: Final = 8

# Below so many hashes the keys of a load are compared in one place.
PART_HASHES_MAX: Final = 100_000_000
_PART_HASHES: Final = 8_000_000
_PARTS_MAX: Final = 4_096

# The shortest usual records, and how far texts are packed, for an estimate: that there are too many
# parts costs little, and that there are too few costs memory.
_LINE_BYTES: Final = 64
_CSV_LINE_BYTES: Final = 24
_COMPRESSION_RATIO: Final = 10
_COMPRESSED: Final = (".gz", ".zst", ".bz2")

# A document of all types has no parts that could be read apart.
_DOCUMENT_ENDING: Final = ".graphml"
_DOCUMENT_PROBLEM: Final = (
    "a GraphML document is not split: load it from a disk, with engine local and on_error fail"
)

# Graphs that one worker keeps open.
_OPEN_STORES_MAX: Final = 8


class Format(Enum):
    """What a unit is read as; the values are the ends of file names."""

    JSONL = ".jsonl"
    PARQUET = ".parquet"
    CSV = ".csv"
    ORC = ".orc"
    # Rows of a table that were written to the staging place of the load.
    ARROW = ".arrow"


_FORMATS: Final = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".parquet": Format.PARQUET,
    ".csv": Format.CSV,
    ".orc": Format.ORC,
}


def noun_of(format_: Format) -> str:
    """What is counted in a file."""
    return "line" if format_ in (Format.JSONL, Format.CSV) else "row"


@dataclass(frozen=True, slots=True)
class GraphLocation:
    """Where a graph is, for any process: its address and how to get there.

    `here` is the graph as this process has it open. It does not cross processes: others open it by
    its address.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_durable: bool = True
    local_stores: Stores | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[GraphLocation], tuple[str, dict[str, str], bool]]:
        """The place for another process."""
        return GraphLocation, (self.uri, dict(self.options), self.is_durable)


@dataclass(frozen=True, slots=True)
class RowTerms:
    """The time of a load in milliseconds, for defaults, and what a patch does with new ids."""

    now: int | None = None
    missing: Missing = Missing.INSERT


@dataclass(frozen=True, slots=True)
class LoadJob:
    """What every unit of a load needs to know: the graph, its schema and pins, and the terms.

    `folder` is where the units of this load leave what others read, `parts` is into how many parts
    they cut hashes, and `problems_max` is how many bad records each of them lists one by one. With
    `may_mark`, rows may say why they cannot be written, and of which records they were made.
    `after_sweep` is the newest sweep of a collector before the first unit began. With
    `skips_unchanged`, rows that are committed as they are do not count as written.
    """

    location: GraphLocation
    schema: str
    pins: Mapping[str, Pin]
    mode: LoadMode
    folder: str
    parts: int = 1
    problems_max: int = SPLIT_PROBLEMS_MAX
    may_mark: bool = False
    after_sweep: int = 0
    skips_unchanged: bool = False
    terms: RowTerms = RowTerms()


@dataclass(frozen=True, slots=True)
class FileRange:
    """A part of an input file: bytes, row groups or stripes from `start` to before `end`.

    `name` stands for the file in messages, `type` is that of the rows of a table. `csv` is the same
    part of a CSV file, which may start within quotes. With `is_deletion` the rows name entities
    that end. `mapped` says how the rows are made, if they are not in the file.
    """

    file: SourceFile
    format: Format
    name: str
    type: str | None = None
    start: int = 0
    end: int = 0
    is_compressed: bool = False
    rows: int = 0
    csv: CsvRange | None = None
    is_deletion: bool = False
    mapped: MappedRange | None = None


@dataclass(frozen=True, slots=True)
class InputSplit:
    """A piece of a load; `left_out` are the numbers of records that were rejected before."""

    job: LoadJob
    number: int
    file_range: FileRange
    excluded: tuple[int, ...] = ()


def plan_file_ranges(
    uri: str, options: Mapping[str, str], *, type_name: str | None
) -> tuple[FileRange, ...]:
    """The pieces of all files that an address stands for, in the order of their names."""
    try:
        files, problem = list_source_files(uri, options)
    except OSError as failure:
        raise build_input_error(uri, failure.strerror or str(failure)) from failure
    if not files:
        raise build_input_error(uri, problem)
    return tuple(piece for file in files for piece in _split_file(file, options, type_name))


def build_input_error(name: str, problem: str) -> LoadError:
    """The error for an input that cannot be read at all."""
    violation = Violation("source", sanitize_message(problem), place=sanitize_message(name))
    return LoadError(format_violations([violation], 1), record=0, violations=[violation])


def compute_parts(pieces: Sequence[FileRange]) -> int:
    """Into how many parts the hashes of a load are cut, by its likely size."""
    # A row has up to three: an id and two ends.
    likely = 3 * sum(piece.rows for piece in pieces)
    parts = 1
    while likely > PART_HASHES_MAX and parts * _PART_HASHES < likely and parts < _PARTS_MAX:
        parts *= 2
    return parts


def _split_file(
    file: SourceFile, options: Mapping[str, str], type_name: str | None
) -> Iterator[FileRange]:
    name, _, last = file.uri.rpartition(".")
    is_compressed = f".{last.lower()}" in _COMPRESSED
    ending = f".{(name.rpartition('.')[2] if is_compressed else last).lower()}"
    format_ = _FORMATS.get(ending)
    if ending == _DOCUMENT_ENDING:
        raise build_input_error(file.uri, _DOCUMENT_PROBLEM)
    if format_ is None or (is_compressed and format_ in (Format.PARQUET, Format.ORC)):
        raise build_input_error(
            file.uri, f"not a kind of file that can be loaded: {', '.join(_FORMATS)}"
        )
    if is_compressed:
        size = file.size * _COMPRESSION_RATIO
        rows = size // (_CSV_LINE_BYTES if format_ is Format.CSV else _LINE_BYTES)
        yield FileRange(file, format_, file.uri, type_name, 0, file.size, is_compressed, rows)
    elif format_ is Format.CSV:
        yield from _iter_record_ranges(file, options, type_name)
    elif format_ is Format.JSONL:
        yield from _iter_byte_ranges(file, type_name)
    else:
        yield from _iter_row_ranges(file, format_, options, type_name)


def _iter_byte_ranges(file: SourceFile, type_name: str | None) -> Iterator[FileRange]:
    for start in range(0, max(file.size, 1), SPLIT_BYTES):
        end = min(start + SPLIT_BYTES, file.size)
        rows = (end - start) // _LINE_BYTES
        yield FileRange(file, Format.JSONL, file.uri, type_name, start, end, rows=rows)


def _iter_record_ranges(
    file: SourceFile, options: Mapping[str, str], type_name: str | None
) -> Iterator[FileRange]:
    try:
        found = cut_csv(partial(open_source_file, file, options), file.size, SPLIT_BYTES)
    except (OSError, pa.ArrowException) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise build_input_error(file.uri, reason) from failure
    for each in found:
        rows = (each.end - each.start) // _CSV_LINE_BYTES
        yield FileRange(
            file, Format.CSV, file.uri, type_name, each.start, each.end, rows=rows, csv=each
        )


def _iter_row_ranges(
    file: SourceFile, format_: Format, options: Mapping[str, str], type_name: str | None
) -> Iterator[FileRange]:
    """Consecutive row groups or stripes of about as many rows as a unit may have."""
    try:
        with open_source_file(file, options) as stream:
            counts = _count_group_rows(stream, format_)
    except (OSError, pa.ArrowException) as failure:
        raise build_input_error(
            file.uri, getattr(failure, "strerror", None) or str(failure)
        ) from failure
    start, rows = 0, 0
    for number, count in enumerate(counts):
        if rows and rows + count > SPLIT_ROWS:
            yield FileRange(file, format_, file.uri, type_name, start, number, rows=rows)
            start, rows = number, 0
        rows += count
    yield FileRange(file, format_, file.uri, type_name, start, len(counts), rows=rows)


def _count_group_rows(stream: pa.NativeFile, format_: Format) -> list[int]:
    if format_ is Format.PARQUET:
        metadata = pq.read_metadata(stream)
        return [metadata.row_group(each).num_rows for each in range(metadata.num_row_groups)]
    found = orc.ORCFile(stream)
    # Stripes do not show their rows before they are read.
    stripes: int = found.nstripes
    return [-(-found.nrows // stripes)] * stripes if stripes else []


@dataclass(frozen=True)
class Stores:
    """Where the rows and the notes of a load are written, and the schemas of its graph."""

    tables: Tables
    # What is written here is of no use after a crash.
    objects: Objects
    schemas: Schemas

    def get_schema(self, job: LoadJob) -> StoredSchema:
        """The schema that a load was planned with."""
        return self.schemas.get(job.schema)


_stores_cache: dict[tuple[object, ...], Stores] = {}
_cache_lock: Final = threading.Lock()


def get_stores(place: GraphLocation) -> Stores:
    """The stores of a graph in this process: those that it is open with, or others."""
    if place.local_stores is not None:
        return place.local_stores
    key = (place.uri, tuple(sorted(place.options.items())), place.is_durable)
    with _cache_lock:
        found = _stores_cache.get(key)
        if found is None:
            while len(_stores_cache) >= _OPEN_STORES_MAX:
                del _stores_cache[next(iter(_stores_cache))]
            found = _stores_cache[key] = _open_stores(place)
        return found


def _open_stores(place: GraphLocation) -> Stores:
    notes = open_objects(place.uri, is_durable=False, options=place.options)
    tables = Tables(place.uri, is_durable=place.is_durable, options=place.options)
    return Stores(tables, notes, Schemas(notes))


def group_fragments(table: Table) -> tuple[tuple[int, ...], ...]:
    """The fragments of a version in groups of about equal work, in their order."""
    if not table.count():
        return ()
    rows_max = min(SPLIT_ROWS, -(-table.count() // FRAGMENT_GROUPS_MIN))
    groups: list[list[int]] = []
    filled = rows_max
    for fragment_id, fragment in table.fragments.items():
        if filled + fragment.rows > rows_max:
            groups.append([])
            filled = 0
        groups[-1].append(fragment_id)
        filled += fragment.rows
    return tuple(map(tuple, groups))

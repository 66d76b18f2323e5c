"""Files on disk or S3: JSON lines, CSV with a header, Parquet and ORC.

Spark itself reads JSON and tables on the disk. Tasks of ours, which need nothing of Java's, read
CSV and all files on S3. The position is a digest of the list of files with their sizes and marks.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.errors import SourceFailedError, SourceRefusedError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.pipelines.config.csv_dialect import STANDARD_CSV, CsvDialect
from omnigraph.pipelines.config.definition import FileSource
from omnigraph.pipelines.config.text_encodings import (
    UTF_8,
    decompress_stream,
    find_absent_names,
    find_first_line,
    has_half_characters,
    iter_text_lines,
    read_whole_text,
)
from omnigraph.pipelines.mapping.mapping_sql import quote_name
from omnigraph.pipelines.mapping.record_ids import PART, ROW, number_by_file, number_by_task
from omnigraph.pipelines.mapping.row_guards import CORRUPT
from omnigraph.pipelines.sources.column_widths import widen_types
from omnigraph.pipelines.sources.csv_frames import read_csv_frame
from omnigraph.pipelines.sources.json_frames import (
    PERMISSIVE,
    TEXT_COLUMN,
    decode_lines,
    with_corrupt_column,
)
from omnigraph.pipelines.sources.row_groups import RowGroups, plan_row_groups
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage.objects.source_files import S3, SourceFile, list_source_files
from omnigraph.storage.objects.source_files import open_source_file as opened_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    FileTest = Callable[[pa.NativeFile], bool]

ENDINGS: Final = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".orc": "orc",
}
# Formats whose files are text.
_TEXT_FORMATS: Final = ("json", "csv")
_SAME_COLUMNS: Final = (
    "files of one source have the same columns, unless its 'drift' says otherwise"
)
_NAMES_MAX: Final = 5
_BATCH_ROWS: Final = 65_536
_ROW_FIELD: Final = pa.field(ROW, pa.int64())
_PART_FIELD: Final = pa.field(PART, pa.int64())
# What means something in a path that Spark is given, and what of it only there.
_SPARK_GLOB_CHARACTERS: Final = re.compile(r"[\[\]{}*?\\]")
_SPARK_ONLY_CHARACTERS: Final = re.compile(r"[{}\\]")


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files of a source as they were found, their format, and how they are reached and read."""

    files: tuple[SourceFile, ...]
    format: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    encoding: str = UTF_8
    csv: CsvDialect = STANDARD_CSV
    # Whether a column that a file lacks is null there; the file that decides the columns, whether
    # it is read or not.
    fills_missing: bool = False
    reference: SourceFile | None = None
    # What was left out, and why.
    skipped: tuple[str, ...] = ()

    @property
    def schema_files(self) -> tuple[SourceFile, ...]:
        """The files that say which columns there are, the first one first."""
        others = tuple(file for file in self.files if file != self.reference)
        return others if self.reference is None else (self.reference, *others)


def list_files(source: FileSource) -> FileListing:
    """The files that there are now; none is an error."""
    found: dict[str, SourceFile] = {}
    for path in source.paths:
        files, problem = list_source_files(path, source.options)
        if not files:
            raise SourceRefusedError(f"{path}: {problem}")
        found |= {file.uri: file for file in files}
    files = [found[uri] for uri in sorted(found)]
    format_ = source.format or _infer_format(files)
    if source.encoding != UTF_8 and format_ not in _TEXT_FORMATS:
        raise SourceRefusedError(f"'encoding' is not for {format_} files", hint="leave it out")
    if source.csv != STANDARD_CSV and format_ != "csv":
        raise SourceRefusedError(f"'csv' is not for {format_} files", hint="leave it out")
    return FileListing(tuple(files), format_, source.options, source.encoding, source.csv)


def _infer_format(files: Sequence[SourceFile]) -> str:
    formats = {_format_of(file.uri) for file in files}
    if len(formats) > 1:
        names = ", ".join(sorted(formats))
        raise SourceRefusedError(
            f"the files have several formats: {names}", hint="give one 'format'"
        )
    return next(iter(formats))


def _format_of(uri: str) -> str:
    name = uri.lower().removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2")
    ending = "." + name.rpartition(".")[2]
    if ending not in ENDINGS:
        hint = f"give its 'format', or an ending: {', '.join(ENDINGS)}"
        raise SourceRefusedError(f"{uri}: the name does not show the format", hint=hint)
    return ENDINGS[ending]


def compute_digest(found: FileListing) -> str:
    """The same for the same files; another when one of them changes."""
    parts = [f"{file.uri}\0{file.size}\0{file.mark}" for file in found.files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def select_new_files(
    found: FileListing, after: JsonObject | None, at: JsonObject | None
) -> tuple[FileListing, JsonObject]:
    """The files that are not as they were after a run, or those of a run that is repeated.

    With them comes what the next run needs: the marks of all files, so that a file counts as new
    whenever it is not the one that was there last.
    """
    if at is not None:
        names = frozenset(at["new"])
        return replace(found, files=tuple(f for f in found.files if f.uri in names)), at
    marks = {file.uri: compute_digest(replace(found, files=(file,))) for file in found.files}
    known = frozenset((after or {}).get("known", ()))
    new = tuple(file for file in found.files if marks[file.uri] not in known)
    resume = {"kind": "files", "known": sorted(marks.values()), "new": [file.uri for file in new]}
    return replace(found, files=new), resume


def describe_position(found: FileListing) -> JsonObject:
    """What the ledger keeps of the files."""
    return {
        "kind": "files",
        "files": len(found.files),
        "bytes": sum(file.size for file in found.files),
        "first": [file.uri for file in found.files[:_NAMES_MAX]],
        "content": compute_digest(found),
    }


def require_unchanged(source: FileSource, found: FileListing) -> None:
    """Refuse files of which one is not as it was found; others that came do not matter."""
    now = {
        file.uri: file
        for path in source.paths
        for file in list_source_files(path, found.options)[0]
    }
    changed = [file.uri for file in found.files if now.get(file.uri) != file]
    if changed:
        names = ", ".join(changed[:_NAMES_MAX])
        raise SourceFailedError(f"files changed while they were read: {names}", hint="run it again")


def read_frame(source: FileSource, found: FileListing, spark: SparkSession) -> DataFrame:
    """The records of the files, numbered."""
    require_unchanged(source, found)  # before a task does, whose errors Spark wraps
    if found.format == "csv":
        return read_csv_frame(found, source.columns, spark)
    # Spark itself knows few encodings, and replaces what is not text in them.
    is_ours = any(file.uri.startswith(S3) for file in found.files) or found.encoding != UTF_8
    # Half of a character in JSON it replaces too.
    if is_ours or (found.format == "json" and select_files(found, has_half_characters, spark)):
        return _read_remote_frame(source, found, spark)
    records = read_local_frame(source, found, spark)
    # Spark has examined the files by now, and reads each as far as it went then.
    require_unchanged(source, found)
    _require_all_read(records, found)
    _require_columns(records, found)
    _require_members(source, records, found)
    return number_by_file(records, found.format)


def select_files(found: FileListing, is_such: FileTest, spark: SparkSession) -> list[SourceFile]:
    """The files that are such; tasks read each of them once for that."""
    files = spark.range(0, len(found.files), 1, len(found.files))
    such = files.mapInArrow(partial(find_files, found, is_such), "number long")
    return [found.files[number] for number in such.toArrow().column(0).to_pylist()]


def find_files(
    found: FileListing, is_such: FileTest, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The numbers of the files that are such, of those whose numbers are in a partition."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            file = found.files[number]
            with opened_file(file, found.options) as stream:
                if is_such(decompress_stream(stream, file.uri)):
                    yield pa.record_batch({"number": pa.array([number], pa.int64())})


def read_local_frame(source: FileSource, found: FileListing, spark: SparkSession) -> DataFrame:
    """The records of files that Spark can open itself."""
    names = [escape_spark_path(file.uri) for file in found.files]
    match found.format:
        case "json":
            read = spark.read.option("multiLine", source.is_multiline)
            if source.columns is not None:
                return read.json(names, schema=with_corrupt_column(source.columns), mode=PERMISSIVE)
            return _require_any_record(read.json(names), source, found)
        case format_:
            read = spark.read.format(format_)
            # Files of several integer widths have the widest: Spark takes those of one file.
            if (wide := read_wide_schema(found)) is not None:
                read = read.schema(_to_spark_schema(wide))
            elif found.reference is not None and found.reference not in found.files:
                # Types are those that Spark finds itself.
                read = read.schema(read.load(escape_spark_path(found.reference.uri)).schema)
            return _require_no_declared_columns(read.load(names), source)


def _require_any_record(records: DataFrame, source: FileSource, found: FileListing) -> DataFrame:
    """Refuse JSON without declared columns of which no record can be read: it has no columns."""
    if records.columns != [CORRUPT]:
        return records
    for file in found.files:
        with opened_file(file, found.options) as stream:
            first = find_first_line(decompress_stream(stream, file.uri), found.encoding)
        if first is not None:
            place = "record 1" if source.is_multiline else f"line {first[0]}"
            problem = f"no record can be read; {file.uri} {place}: {sanitize_text(first[1])}"
            hint = "mend it, or declare 'columns': then each such record is rejected"
            raise SourceRefusedError(problem, hint=hint)
    return records


def _require_columns(records: DataFrame, found: FileListing) -> None:
    """Refuse a table that lacks a column of the others: Spark takes it for a column of nulls."""
    if len(found.schema_files) == 1 or found.format in _TEXT_FORMATS or found.fills_missing:
        return
    for file in found.files:
        names = read_file_schema(found, file).names
        if missing := [name for name in records.columns if name not in names]:
            raise SourceRefusedError(f"{file.uri} has no column {missing[0]}", hint=_SAME_COLUMNS)


def _require_members(source: FileSource, records: DataFrame, found: FileListing) -> None:
    """Refuse JSON in which a declared column occurs nowhere: every value of it would be null."""
    if found.format != "json" or source.columns is None:
        return
    missing = {name: json.dumps(name).encode() for name in records.columns if name != CORRUPT}
    for file in found.files:
        if not missing:
            return
        with opened_file(file, found.options) as stream:
            missing = find_absent_names(decompress_stream(stream, file.uri), missing)
    # Where no record can be read, each of them is rejected with its place.
    if missing and records.where(f"{quote_name(CORRUPT)} IS NULL").take(1):
        names = ", ".join(missing)
        hint = "leave it out of 'columns' and the mapping, to keep what the graph has"
        raise SourceRefusedError(f"no record of the source has {names}", hint=hint)


def escape_spark_pattern(path: str) -> str:
    """A folder or a pattern as Spark understands it, which takes every path for a pattern.

    Braces mean nothing in patterns of ours; other signs do, unless a folder has that name.
    """
    if os.path.isdir(path):
        return escape_spark_path(path)
    return _SPARK_ONLY_CHARACTERS.sub(r"\\\g<0>", path)


def escape_spark_path(path: str) -> str:
    """A path as Spark understands it."""
    return _SPARK_GLOB_CHARACTERS.sub(r"\\\g<0>", path)


def _require_all_read(records: DataFrame, found: FileListing) -> None:
    """Refuse files of which Spark reads others, or not all."""
    read = {unquote(urlsplit(uri).path) for uri in records.inputFiles()}
    wanted = {file.path for file in found.files}
    if read != wanted:
        names = ", ".join(sorted(read ^ wanted)[:_NAMES_MAX])
        hint = "it reads no file whose name begins with '_' or '.': give them others"
        raise SourceRefusedError(
            f"Spark does not read these files as they are named: {names}", hint=hint
        )


def _require_no_declared_columns(records: DataFrame, source: FileSource) -> DataFrame:
    if source.columns is not None:
        hint = "JSON and CSV have them; files of other formats hold their own"
        raise SourceRefusedError("'columns' are not for this format", hint=hint)
    return records


def _read_remote_frame(source: FileSource, found: FileListing, spark: SparkSession) -> DataFrame:
    """The records of files that tasks of ours read: a file each, or some of its row groups."""
    if found.format == "json":
        names = spark.range(0, len(found.files), 1, len(found.files))
        task = partial(read_lines, found, source.is_multiline)
        lines = names.mapInArrow(task, f"{TEXT_COLUMN} string")
        records = decode_lines(lines, source.columns, spark)
        return number_by_task(_require_any_record(records, source, found))
    schema, parts = _read_remote_schema(found), plan_table_parts(found)
    numbers = spark.range(0, len(parts), 1, max(len(parts), 1))
    numbered = _to_spark_schema(schema.append(_ROW_FIELD).append(_PART_FIELD))
    rows = numbers.mapInArrow(partial(read_rows, found, schema, parts), numbered)
    return _require_no_declared_columns(rows, source)


@dataclass(frozen=True, slots=True)
class TablePart:
    """Some row groups of the file with a number, or all of a file that is not cut."""

    file: int
    groups: RowGroups | None = None


def plan_table_parts(found: FileListing) -> tuple[TablePart, ...]:
    """What the tasks that read tables read, each of them one part."""
    if found.format != "parquet":
        return tuple(map(TablePart, range(len(found.files))))
    return tuple(
        TablePart(number, groups)
        for number, file in enumerate(found.files)
        for groups, _ in plan_row_groups(file, found.options)
    )


def _read_remote_schema(found: FileListing) -> pa.Schema:
    """The columns of the first file, as wide as any file has them."""
    wide = read_wide_schema(found)
    return read_file_schema(found, found.schema_files[0]) if wide is None else wide


def read_wide_schema(found: FileListing) -> pa.Schema | None:
    """The columns of the first file with types that hold the numbers of all files.

    Where missing columns are filled, those that only other files have follow. None if all files
    agree, or only differ in what the reader reports: columns that are missing.
    """
    first = None
    for file in found.schema_files:
        other = read_file_schema(found, file)
        if first is None:
            first = wide = other
            continue
        for number, column in enumerate(wide):
            at = other.get_field_index(column.name)
            type_ = column.type if at < 0 else _widen_type(column, other.field(at).type, file)
            wide = wide.set(number, column.with_type(type_))
        for column in other if found.fills_missing else ():
            wide = wide if column.name in wide.names else wide.append(column)
    assert first is not None, "a listing has files"
    is_first = not found.fills_missing and wide.equals(first)
    return None if is_first else wide.remove_metadata()


def _widen_type(column: pa.Field, other: pa.DataType, file: SourceFile) -> pa.DataType:
    """The type that holds the numbers of two; what is not a number has one type in all files."""
    found = widen_types(column.type, other)
    if found is None:
        problem = f"{file.uri}: column {column.name} is of type {other}, not {column.type}"
        raise SourceRefusedError(problem, hint=_SAME_COLUMNS)
    return found


def read_file_schema(found: FileListing, file: SourceFile) -> pa.Schema:
    """The columns of a table file."""
    try:
        with opened_file(file, found.options) as stream:
            is_parquet = found.format == "parquet"
            return pq.read_schema(stream) if is_parquet else orc.ORCFile(stream).schema
    except pa.ArrowException as failure:
        raise SourceRefusedError(f"{file.uri}: {failure}") from failure


def _to_spark_schema(schema: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 — Spark is here by now

    return from_arrow_schema(schema)


def read_lines(
    found: FileListing, is_multiline: bool, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The lines of the files whose numbers are in a partition, or each file as one text."""
    for file in _iter_partition_files(found.files, batches):
        with opened_file(file, found.options) as stream:
            data = decompress_stream(stream, file.uri)
            if is_multiline:
                yield _build_text_batch([read_whole_text(data, found.encoding)])
                continue
            yield from map(_build_text_batch, iter_text_lines(data, found.encoding))


def read_rows(
    found: FileListing,
    schema: pa.Schema,
    parts: Sequence[TablePart],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows of the parts whose numbers are in a partition, with their numbers in the files."""
    pa.set_cpu_count(1)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            part = parts[number]
            file, row = found.files[part.file], part.groups.first if part.groups else 0
            for rows in _read_part(file, part, found):
                numbered = _conform_batch(rows, schema, file.uri, found.fills_missing)
                numbers = pa.array(np.arange(row, row + rows.num_rows, dtype=np.int64))
                own = pa.repeat(pa.scalar(part.file, pa.int64()), rows.num_rows)
                yield numbered.append_column(_ROW_FIELD, numbers).append_column(_PART_FIELD, own)
                row += rows.num_rows


def _read_part(file: SourceFile, part: TablePart, found: FileListing) -> Iterator[pa.RecordBatch]:
    try:
        with opened_file(file, found.options) as stream:
            if part.groups is not None:
                groups = list(range(part.groups.start, part.groups.end))
                yield from pq.ParquetFile(stream).iter_batches(_BATCH_ROWS, row_groups=groups)
                return
            stripes = orc.ORCFile(stream)
            for number in range(stripes.nstripes):
                stripe = pa.Table.from_batches([stripes.read_stripe(number)])
                yield from stripe.to_batches(max_chunksize=_BATCH_ROWS)
    except pa.ArrowException as failure:
        raise SourceRefusedError(f"{file.uri}: {failure}") from failure


def _conform_batch(
    batch: pa.RecordBatch, schema: pa.Schema, uri: str, fills_missing: bool
) -> pa.RecordBatch:
    """The columns of the first file by their names: Spark takes them by their places."""
    if batch.schema.equals(schema):
        return batch
    columns = []
    for wanted in schema:
        if wanted.name not in batch.schema.names and fills_missing:
            columns.append(pa.nulls(batch.num_rows, wanted.type))
            continue
        if wanted.name not in batch.schema.names:
            raise SourceRefusedError(f"{uri} has no column {wanted.name}", hint=_SAME_COLUMNS)
        column = batch.column(wanted.name)
        try:
            columns.append(column.cast(wanted.type))
        except pa.ArrowException as failure:
            problem = f"{uri}: column {wanted.name} is of type {column.type}, not {wanted.type}"
            raise SourceRefusedError(f"{problem}: {failure}") from failure
    return pa.record_batch(columns, schema=schema)


def _iter_partition_files(
    files: Sequence[SourceFile], batches: Iterator[pa.RecordBatch]
) -> Iterator[SourceFile]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield files[number]


def _build_text_batch(texts: Sequence[str]) -> pa.RecordBatch:
    return pa.record_batch({TEXT_COLUMN: pa.array(texts, pa.string())})

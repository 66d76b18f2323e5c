"""From anything that holds records or a table to rows by type."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.errors import LoadError
from omnigraph.lang.quoting import sanitize_message
from omnigraph.schema.accepted_schema import AcceptedSchema
from omnigraph.writers.inputs.coerced_columns import coerce_column
from omnigraph.writers.inputs.csv_reader import read_csv
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.exact_json import RecordReader, list_optional_columns
from omnigraph.writers.inputs.graphml_reader import read_graphml
from omnigraph.writers.inputs.input_rows import Input, InputOptions, Text
from omnigraph.writers.inputs.input_tables import (
    BATCH_ROWS,
    add_named_type,
    read_numbered_batches,
    read_table,
    resolve_named_type,
)
from omnigraph.writers.inputs.json_reader import read_json
from omnigraph.writers.inputs.record_tables import (
    WrongColumnError,
    build_column_table,
    build_record_tables,
    is_rectangular,
    iter_column_records,
    iter_record_chunks,
)
from omnigraph.writers.inputs.row_sink import RecordError, RowNumbers, RowSink

_COMPRESSED = (".gz", ".zst", ".bz2")
_PATTERN = "*?["

# Part files are data; these are notes that their writers leave beside them.
_HIDDEN_PREFIXES = ("_", ".")
_RECORD_OPENINGS = ("{", "[")
_COLUMNS_HINT = "a dict of columns needs the type of its rows: type=NAME"
_TEXT_HINT = "a str is a path: give a text of records as omnigraph.writers.inputs.Text(...)"


class ArrowStream(Protocol):
    """What a frame of polars, DuckDB and others is to Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule of an Arrow stream."""


# A path as a text or a `Path`; a table, reader, dataset or frame of one type; records as a text or
# as mappings. Pandas frames are taken for what they are, though nothing here names pandas.
SingleSource: TypeAlias = (
    str
    | os.PathLike[str]
    | Text
    | pa.Table
    | pa.RecordBatch
    | pa.RecordBatchReader
    | pds.Dataset
    | ArrowStream
    | Iterable[Mapping[str, Any]]
)
# A mapping has columns if the type of its rows is given, and otherwise a source for each type.
InputSource: TypeAlias = SingleSource | Mapping[str, Any]


def read_input(source: InputSource, accepted: AcceptedSchema, options: InputOptions) -> Input:
    """The rows of a source by type, or a `LoadError` that lists up to 20 places and what is wrong.

    Records name their types, unless the options do. A table needs the type of its rows there.
    """
    reading = RowSink(accepted, options)
    if isinstance(source, Mapping) and options.type is None:
        _read_types(source, reading)
    else:
        _read_source(source, reading)
    return reading.finish_input()


def _read_types(source: Mapping[str, Any], reading: RowSink) -> None:
    """Read a source for each type."""
    if not source or not {"type", "edge"}.isdisjoint(source):
        problem = "an empty dict" if not source else "a single record: give a list of records"
        raise _build_source_error(f"cannot load {problem}", reading)
    options = reading.options
    for name, each in source.items():
        reading.begin_file("types", noun="type")
        if not isinstance(name, str):
            raise _build_source_error(f"a {type(name).__name__} is not the name of a type", reading)
        reading.options = replace(options, type=name)
        resolve_named_type(reading, hint=_COLUMNS_HINT)
        _read_source(each, reading, name)
    reading.options = options


def _read_source(source: Any, reading: RowSink, name: str | None = None) -> None:
    if isinstance(source, Text):
        _read_text(source, reading)
    elif isinstance(source, str | os.PathLike):
        read_path(Path(source), reading)
    elif (reader := _find_reader(source, reading)) is not None:
        reading.begin_file(name or "table", noun="row")
        read_table(_iter_batches(reader, reading), reader.schema, reading)
    elif isinstance(source, Mapping):
        _read_columns(source, reading, name or "columns")
    else:
        _read_records(source, reading, name or "records")


def _build_source_error(problem: str, reading: RowSink, hint: str | None = None) -> LoadError:
    """The error for something that is not a source."""
    reading.begin_file("source", noun="record")
    return reading.build_failure(0, RecordError(problem, rule="source", hint=hint))


def _read_columns(source: Mapping[str, Any], reading: RowSink, name: str) -> None:
    reading.begin_file(name, noun="row")
    try:
        table = build_column_table(source)
    except WrongColumnError as failure:
        if is_rectangular(source):
            # Row by row, the error names the value that does not fit.
            records = list(iter_column_records(source))
            _read_exactly(records, 1, RecordReader(reading), reading)
            return
        raise reading.build_failure(
            0, RecordError(sanitize_message(str(failure)), rule="source")
        ) from failure
    read_table(table.to_batches(), table.schema, reading)


def _read_text(source: Text, reading: RowSink) -> None:
    reading.begin_file(source.name, noun="line" if reading.is_strict else "record")
    text = source.text
    # Half a surrogate pair becomes bytes that are not UTF-8, and is refused as such.
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    read_json(BytesIO(data), reading)


def _find_reader(source: Any, reading: RowSink) -> pa.RecordBatchReader | None:
    try:
        return find_table_reader(source)
    except (AttributeError, OSError, TypeError, ValueError) as failure:
        reading.begin_file("table", noun="row")
        raise reading.build_failure(
            0, RecordError(sanitize_message(str(failure)), rule="source")
        ) from failure


def find_table_reader(source: Any) -> pa.RecordBatchReader | None:
    """A reader of a table or frame; None for anything else."""
    if isinstance(source, pa.RecordBatchReader):
        return source
    if isinstance(source, pds.Dataset):
        return source.scanner().to_reader()
    if type(source).__module__.partition(".")[0] == "pandas":
        # Pandas has its missing numbers as NaN, which become nulls here, and its index apart.
        return pa.Table.from_pandas(source, preserve_index=False).to_reader()
    if isinstance(source, pa.RecordBatch) or hasattr(source, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(source)]).to_reader()
    if hasattr(source, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(source)
    return None


def _iter_batches(reader: pa.RecordBatchReader, reading: RowSink) -> Iterator[pa.RecordBatch]:
    batches = iter(reader)
    while True:
        try:
            batch = next(batches, None)
        except (OSError, pa.ArrowException) as failure:
            raise reading.build_failure(
                0, RecordError(sanitize_message(str(failure)), rule="source")
            ) from failure
        if batch is None:
            return
        yield batch


def _read_records(source: Any, reading: RowSink, name: str) -> None:
    reading.begin_file(name, noun="record")
    if isinstance(source, bytes | bytearray) or not isinstance(source, Iterable):
        raise reading.build_failure(
            0,
            RecordError(
                f"cannot load a {type(source).__name__}: give a path, a table, a frame,"
                " a list of records, or Text",
                rule="source",
            ),
        )
    exact, number = RecordReader(reading), 1
    if reading.options.type is not None:
        add_named_type(reading)
    for chunk in iter_record_chunks(source):
        if reading.options.type is None or not _read_many(chunk, number, reading):
            _read_exactly(chunk, number, exact, reading)
        number += len(chunk)


def _read_many(records: list[Any], first_number: int, reading: RowSink) -> bool:
    """Read plain records as tables; False if some are not records, or their values differ."""
    if not all(isinstance(record, Mapping) for record in records):
        return False
    is_patch = reading.options.is_patch
    try:
        type_key = resolve_named_type(reading)
        columns = list_optional_columns(reading, type_key, is_patch=False)
        tables = build_record_tables(
            records,
            first_number=first_number,
            is_patch=is_patch,
            optional=[name for name, _ in columns],
        )
    except WrongColumnError:
        return False
    if any("data" in table.column_names for table, _ in tables):
        # Most likely a record with a type of its own, of which the exact reader has more to say.
        return False
    for table, numbers in tables:
        parts = _number_batches(table, numbers)
        read_numbered_batches(parts, table.schema, reading, convert_column=coerce_column)
    return True


def _number_batches(
    table: pa.Table, numbers: RowNumbers
) -> Iterator[tuple[pa.RecordBatch, RowNumbers]]:
    """The batches of a table, each with the numbers of its rows."""
    start = 0
    for batch in table.to_batches():
        yield batch, numbers[start : start + batch.num_rows]
        start += batch.num_rows


def _read_exactly(
    records: list[Any], first_number: int, exact: RecordReader, reading: RowSink
) -> None:
    for number, record in enumerate(records, start=first_number):
        exact.read_record(record, number)
    for part in exact.drain_rows():
        reading.add_rows(
            part.type_key,
            part.rows,
            part.numbers,
            part.absent,
            are_named=reading.options.type is None,
        )
    reading.count_records(len(records))


def read_path(path: Path, reading: RowSink) -> None:
    """Read a file, all files of a folder, or all files that match a pattern."""
    for file in _list_files(path, reading):
        _read_file(file, reading)


def _list_files(path: Path, reading: RowSink) -> list[Path]:
    try:
        files, problem = find_data_files(path)
    except (OSError, ValueError) as failure:
        raise _build_path_error(path, _format_reason(failure), reading) from failure
    if not files:
        raise _build_path_error(path, problem, reading)
    return files


def find_data_files(path: Path) -> tuple[list[Path], str]:
    """The files that a path stands for, and what to say when there is none."""
    if path.is_file():
        return [path], ""
    if path.is_dir():
        return _select_data_files(path.iterdir()), "no files are in the folder"
    if any(sign in str(path) for sign in _PATTERN):
        return _select_data_files(map(Path, glob.glob(str(path)))), "no file matches the pattern"
    if path.exists():
        return [], "a pipe or a device is not read; write the data to a file"
    return [], "no such file"


def _select_data_files(found: Iterable[Path]) -> list[Path]:
    return sorted(
        each for each in found if not each.name.startswith(_HIDDEN_PREFIXES) and each.is_file()
    )


def _build_path_error(path: Path, problem: str, reading: RowSink) -> LoadError:
    """The error for a path that leads to no file; a text of records is the usual mistake."""
    text = str(path)
    hint = _TEXT_HINT if text.lstrip().startswith(_RECORD_OPENINGS) else None
    reading.begin_file(sanitize_message(text), noun="record")
    return reading.build_failure(
        0, RecordError(sanitize_message(problem), rule="source", hint=hint)
    )


def _format_reason(failure: Exception) -> str:
    """What the system says, without its numbers."""
    return getattr(failure, "strerror", None) or str(failure)


def _read_file(file: Path, reading: RowSink) -> None:
    kind, is_compressed = read_suffix(file)
    read = _READERS.get(kind)
    if read is None or (is_compressed and read in (_read_parquet_file, _read_orc_file)):
        reading.begin_file(str(file), noun="record")
        known = ", ".join(_READERS)
        raise reading.build_failure(
            0, RecordError(f"not a kind of file that can be loaded: {known}", rule="source")
        )
    with _raise_readable_errors(reading):
        read(file, reading)


def read_suffix(file: Path) -> tuple[str, bool]:
    """The suffix that says what a file holds, and whether another says that it is compressed."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    is_compressed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    kinds = suffixes[:-1] if is_compressed else suffixes
    return kinds[-1] if kinds else "", is_compressed


@contextmanager
def _raise_readable_errors(reading: RowSink) -> Iterator[None]:
    """Turn what the system or a decoder says about a file into an error that names it."""
    try:
        yield
    except (OSError, pa.ArrowException) as failure:
        raise reading.build_failure(
            0, RecordError(sanitize_message(_format_reason(failure)), rule="source")
        ) from failure


def _read_json_file(file: Path, reading: RowSink) -> None:
    reading.begin_file(str(file), noun="line" if reading.is_strict else "record")
    with pa.input_stream(str(file), compression="detect") as stream:
        read_json(stream, reading)


def _read_parquet_file(file: Path, reading: RowSink) -> None:
    reading.begin_file(str(file), noun="row")
    with pq.ParquetFile(file) as parquet:
        read_table(parquet.iter_batches(BATCH_ROWS), parquet.schema_arrow, reading)


def _read_orc_file(file: Path, reading: RowSink) -> None:
    reading.begin_file(str(file), noun="row")
    with pa.OSFile(str(file), "rb") as stream:
        found = orc.ORCFile(stream)
        read_table(map(found.read_stripe, range(found.nstripes)), found.schema, reading)


def _read_graphml_file(file: Path, reading: RowSink) -> None:
    reading.begin_file(str(file), noun="line")
    with pa.input_stream(str(file), compression="detect") as stream:
        read_graphml(stream, reading)


def _read_csv_file(file: Path, reading: RowSink) -> None:
    reading.begin_file(str(file), noun="line")
    with pa.input_stream(str(file), compression="detect") as stream:
        resolve_named_type(reading)
        read_csv(CsvRecords(stream, reading.build_failure), reading)


_READERS: dict[str, Callable[[Path, RowSink], None]] = {
    ".jsonl": _read_json_file,
    ".ndjson": _read_json_file,
    ".json": _read_json_file,
    ".parquet": _read_parquet_file,
    ".csv": _read_csv_file,
    ".orc": _read_orc_file,
    ".graphml": _read_graphml_file,
}

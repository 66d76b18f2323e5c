"""From anything that holds records or a table to rows by type."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.errors import LoadError
from omnigraph.lang.quoting import sanitize_message
from omnigraph.schema.accepted_schema import AcceptedSchema
from omnigraph.writers.inputs.csv_reader import read_csv
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.exact_json import RecordReader
from omnigraph.writers.inputs.input_rows import Input, InputOptions, Text
from omnigraph.writers.inputs.input_tables import BATCH_ROWS, read_table, resolve_named_type
from omnigraph.writers.inputs.json_reader import read_json
from omnigraph.writers.inputs.row_sink import RecordError, RowSink, require_no_type

_CHUNK_RECORDS = 8_192
_COMPRESSED = (".gz", ".zst", ".bz2")
_PATTERN = "*?["

# Part files are data; these are notes that their writers leave beside them.
_HIDDEN_PREFIXES = ("_", ".")
_RECORD_OPENINGS = ("{", "[")
_TEXT_HINT = "a str is a path: give a text of records as omnigraph.writers.inputs.Text(...)"


class ArrowStream(Protocol):
    """What a frame of polars, DuckDB and others is to Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule of an Arrow stream."""


# A path as a text or a `Path`; a table, reader, dataset or frame of one type; records as a text or
# as mappings. Pandas frames are taken for what they are, though nothing here names pandas.
InputSource: TypeAlias = (
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


def read_input(source: InputSource, accepted: AcceptedSchema, options: InputOptions) -> Input:
    """The rows of a source by type, or a `LoadError` that tells up to 20 places and what is wrong.

    A table needs the type of its rows in the options; records name theirs.
    """
    reading = RowSink(accepted, options)
    if isinstance(source, Text):
        _read_text(source, reading)
    elif isinstance(source, str | os.PathLike):
        read_path(Path(source), reading)
    elif (reader := _find_reader(source, reading)) is not None:
        reading.begin_file("table", noun="row")
        read_table(_iter_batches(reader, reading), reader.schema, reading)
    else:
        _read_records(source, reading)
    return reading.finish_input()


def _read_text(source: Text, reading: RowSink) -> None:
    reading.begin_file(source.name, noun="line" if reading.is_strict else "record")
    require_no_type(reading)
    text = source.text
    # Half a surrogate pair becomes bytes that are no UTF-8, and is refused as such.
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


def _read_records(source: Any, reading: RowSink) -> None:
    reading.begin_file("records", noun="record")
    if isinstance(source, Mapping | bytes | bytearray) or not isinstance(source, Iterable):
        raise reading.build_failure(
            0,
            RecordError(
                f"cannot load a {type(source).__name__}: give a path, a table, a frame,"
                " a list of records, or Text",
                rule="source",
            ),
        )
    require_no_type(reading)
    exact, numbered = RecordReader(reading), enumerate(source, start=1)
    while chunk := list(islice(numbered, _CHUNK_RECORDS)):
        for number, record in chunk:
            exact.read_record(record, number)
        for type_key, found in exact.drain_rows().items():
            reading.add_rows(type_key, *found)
        reading.count_records(len(chunk))


def read_path(path: Path, reading: RowSink) -> None:
    """Read a file, all files of a folder, or all files that match a pattern."""
    for file in _list_files(path, reading):
        _read_file(file, reading)


def _list_files(path: Path, reading: RowSink) -> list[Path]:
    try:
        files, problem = _find_files(path)
    except (OSError, ValueError) as failure:
        raise _build_path_error(path, _format_reason(failure), reading) from failure
    if not files:
        raise _build_path_error(path, problem, reading)
    return files


def _find_files(path: Path) -> tuple[list[Path], str]:
    """The files that a path stands for, and what to say when there is none."""
    if path.is_file():
        return [path], ""
    if path.is_dir():
        return _select_data_files(path.iterdir()), "no files are in the folder"
    if any(sign in str(path) for sign in _PATTERN):
        return _select_data_files(map(Path, glob.glob(str(path)))), "no file matches the pattern"
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
    suffixes = [suffix.lower() for suffix in file.suffixes]
    is_compressed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    kinds = suffixes[:-1] if is_compressed else suffixes
    read = _READERS.get(kinds[-1] if kinds else "")
    if read is None or (is_compressed and read in (_read_parquet_file, _read_orc_file)):
        reading.begin_file(str(file), noun="record")
        known = ", ".join(_READERS)
        raise reading.build_failure(
            0, RecordError(f"not a kind of file that can be loaded: {known}", rule="source")
        )
    with _raise_readable_errors(reading):
        read(file, reading)


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
    require_no_type(reading)
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
}

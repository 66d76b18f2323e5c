"""Paths: files, folders and patterns of part files, each read by what its name says it is."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.diagnostics.shown import sanitize_message
from omnigraph.errors import LoadError
from omnigraph.writers.inputs.csv_files import read_csv
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.json_input import read_json
from omnigraph.writers.inputs.reading import RecordError, RowSink, require_no_type
from omnigraph.writers.inputs.tables import BATCH_ROWS, read_table, resolve_named_type

_COMPRESSED = (".gz", ".zst", ".bz2")
_PATTERN = "*?["
# Part files are data; these are notes that their writers leave beside them.
_HIDDEN_PREFIXES = ("_", ".")
_RECORD_OPENINGS = ("{", "[")
_TEXT_HINT = "a str is a path: give a text of records as omnigraph.writers.inputs.Text(...)"


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
        read_csv(CsvRecords(stream, reading), reading)


_READERS: dict[str, Callable[[Path, RowSink], None]] = {
    ".jsonl": _read_json_file,
    ".ndjson": _read_json_file,
    ".json": _read_json_file,
    ".parquet": _read_parquet_file,
    ".csv": _read_csv_file,
    ".orc": _read_orc_file,
}

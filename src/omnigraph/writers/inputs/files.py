"""Paths: files, folders and patterns of part files, each read by what its name says it is."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.diagnostics.shown import readable
from omnigraph.errors import LoadError
from omnigraph.writers.inputs.csv_files import read_csv
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.json_input import read_json
from omnigraph.writers.inputs.reading import Reading, Refused, require_no_type
from omnigraph.writers.inputs.tables import BATCH_ROWS, named_type, read_table

_COMPRESSED = (".gz", ".zst", ".bz2")
_PATTERN = "*?["
# Part files are data; these are notes that their writers leave beside them.
_HIDDEN = ("_", ".")
_OF_RECORDS = ("{", "[")
_TEXT_HINT = "a str is a path: give a text of records as omnigraph.writers.inputs.Text(...)"


def read_path(path: Path, reading: Reading) -> None:
    """Read a file, all files of a folder, or all files that match a pattern."""
    for file in _files_of(path, reading):
        _read_file(file, reading)


def _files_of(path: Path, reading: Reading) -> list[Path]:
    try:
        files, problem = _found(path)
    except (OSError, ValueError) as failure:
        raise _unusable(path, _reason(failure), reading) from failure
    if not files:
        raise _unusable(path, problem, reading)
    return files


def _found(path: Path) -> tuple[list[Path], str]:
    """The files that a path stands for, and what to say when there is none."""
    if path.is_file():
        return [path], ""
    if path.is_dir():
        return _data_files(path.iterdir()), "no files are in the folder"
    if any(sign in str(path) for sign in _PATTERN):
        return _data_files(map(Path, glob.glob(str(path)))), "no file matches the pattern"
    return [], "no such file"


def _data_files(found: Iterable[Path]) -> list[Path]:
    return sorted(each for each in found if not each.name.startswith(_HIDDEN) and each.is_file())


def _unusable(path: Path, problem: str, reading: Reading) -> LoadError:
    """The error for a path that leads to no file; a text of records is the usual mistake."""
    text = str(path)
    hint = _TEXT_HINT if text.lstrip().startswith(_OF_RECORDS) else None
    reading.begin(readable(text), noun="record")
    return reading.fail(0, Refused(readable(problem), rule="source", hint=hint))


def _reason(failure: Exception) -> str:
    """What the system says, without its numbers."""
    return getattr(failure, "strerror", None) or str(failure)


def _read_file(file: Path, reading: Reading) -> None:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    is_compressed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    kinds = suffixes[:-1] if is_compressed else suffixes
    read = _READERS.get(kinds[-1] if kinds else "")
    if read is None or (is_compressed and read in (_read_parquet, _read_orc)):
        reading.begin(str(file), noun="record")
        known = ", ".join(_READERS)
        raise reading.fail(
            0, Refused(f"not a kind of file that can be loaded: {known}", rule="source")
        )
    with _readable(reading):
        read(file, reading)


@contextmanager
def _readable(reading: Reading) -> Iterator[None]:
    """Turn what the system or a decoder says about a file into an error that names it."""
    try:
        yield
    except (OSError, pa.ArrowException) as failure:
        raise reading.fail(0, Refused(readable(_reason(failure)), rule="source")) from failure


def _read_json(file: Path, reading: Reading) -> None:
    reading.begin(str(file), noun="line" if reading.is_strict else "record")
    require_no_type(reading)
    with pa.input_stream(str(file), compression="detect") as stream:
        read_json(stream, reading)


def _read_parquet(file: Path, reading: Reading) -> None:
    reading.begin(str(file), noun="row")
    with pq.ParquetFile(file) as parquet:
        read_table(parquet.iter_batches(BATCH_ROWS), parquet.schema_arrow, reading)


def _read_orc(file: Path, reading: Reading) -> None:
    reading.begin(str(file), noun="row")
    with pa.OSFile(str(file), "rb") as stream:
        found = orc.ORCFile(stream)
        read_table(map(found.read_stripe, range(found.nstripes)), found.schema, reading)


def _read_csv(file: Path, reading: Reading) -> None:
    reading.begin(str(file), noun="line")
    with pa.input_stream(str(file), compression="detect") as stream:
        named_type(reading)
        read_csv(CsvRecords(stream, reading), reading)


_READERS: dict[str, Callable[[Path, Reading], None]] = {
    ".jsonl": _read_json,
    ".ndjson": _read_json,
    ".json": _read_json,
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".orc": _read_orc,
}

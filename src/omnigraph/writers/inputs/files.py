"""Paths: files, folders and patterns of part files, each read by what its name says it is."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.diagnostics.shown import readable
from omnigraph.writers.inputs.csv_files import read_csv
from omnigraph.writers.inputs.json_input import read_json
from omnigraph.writers.inputs.reading import Reading, Refused, require_no_type
from omnigraph.writers.inputs.tables import BATCH_ROWS, read_table

_COMPRESSED = (".gz", ".zst", ".bz2")
_PATTERN = "*?["
# Part files are data; these are notes that their writers leave beside them.
_HIDDEN = ("_", ".")


def read_path(path: Path, reading: Reading) -> None:
    """Read a file, all files of a folder, or all files that match a pattern."""
    for file in _files_of(path, reading):
        _read_file(file, reading)


def _files_of(path: Path, reading: Reading) -> list[Path]:
    if path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if each.is_file())
        files = [file for file in found if not file.name.startswith(_HIDDEN)]
        problem = "no files are in the folder"
    elif any(sign in str(path) for sign in _PATTERN):
        files = sorted(Path(each) for each in glob.glob(str(path)) if os.path.isfile(each))
        problem = "no file matches the pattern"
    else:
        files, problem = [], "no such file"
    if not files:
        reading.begin(str(path), noun="record")
        raise reading.fail(0, Refused(problem, rule="source"))
    return files


def _read_file(file: Path, reading: Reading) -> None:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    is_compressed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    kinds = suffixes[:-1] if is_compressed else suffixes
    read = _READERS.get(kinds[-1] if kinds else "")
    if read is None or (is_compressed and read is _read_parquet):
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
        problem = getattr(failure, "strerror", None) or str(failure)
        raise reading.fail(0, Refused(readable(problem), rule="source")) from failure


def _read_json(file: Path, reading: Reading) -> None:
    reading.begin(str(file), noun="line" if reading.is_strict else "record")
    require_no_type(reading)
    with pa.input_stream(str(file), compression="detect") as stream:
        read_json(stream, reading)


def _read_parquet(file: Path, reading: Reading) -> None:
    reading.begin(str(file), noun="row")
    with pq.ParquetFile(file) as parquet:
        read_table(parquet.iter_batches(BATCH_ROWS), parquet.schema_arrow, reading)


def _read_csv(file: Path, reading: Reading) -> None:
    reading.begin(str(file), noun="row")
    with pa.input_stream(str(file), compression="detect") as stream:
        read_csv(stream, reading)


_READERS: dict[str, Callable[[Path, Reading], None]] = {
    ".jsonl": _read_json,
    ".ndjson": _read_json,
    ".json": _read_json,
    ".parquet": _read_parquet,
    ".csv": _read_csv,
}

"""The source of a load as the JSON lines that a request carries."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq

from omnigraph.errors import (
    RemoteUnsupportedError,
    Violation,
    WriteRefusedError,
    format_violations,
)
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.json_encoding import encode_json_objects
from omnigraph.writers.inputs import Text

_LINES: Final = frozenset({".jsonl", ".ndjson", ".json"})
_SOURCE: Final = "a load of {}"


def read_body(source: Any, *, url: str) -> bytes:  # Any: what `Branch.load` takes
    """The records of a source as JSON lines; a table has one for each of its rows."""
    if isinstance(source, Text):
        return source.text if isinstance(source.text, bytes) else source.text.encode()
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(source), url)
    if isinstance(source, pds.Dataset):
        return _encode_table(source.to_table())
    if isinstance(source, pa.Table | pa.RecordBatch):
        return _encode_table(source)
    if hasattr(source, "__arrow_c_stream__"):
        return _encode_table(pa.RecordBatchReader.from_stream(source).read_all())
    if type(source).__module__.partition(".")[0] == "pandas":
        return _encode_table(pa.Table.from_pandas(source, preserve_index=False))
    if isinstance(source, Mapping):
        raise RemoteUnsupportedError(url, _SOURCE.format("columns in a dict"))
    return b"".join(json.dumps(record).encode() + b"\n" for record in source)


@contextmanager
def name_places(source: Any) -> Iterator[None]:  # Any: what `Branch.load` takes
    """Around a load: a server names the lines of a body, and callers know those of a file."""
    try:
        yield
    except WriteRefusedError as failure:
        if not isinstance(source, str | os.PathLike):
            raise
        failure.violations = tuple(_move(each, str(source)) for each in failure.violations)
        if failure.violations:
            failure.message = format_violations(failure.violations, failure.count)
        raise


def _move(violation: Violation, file: str) -> Violation:
    places = (violation.place, violation.earlier)
    place, earlier = (each and f"{file} {each.partition(' ')[2]}" for each in places)
    return violation if place is None else violation.move(place, earlier)


def _read_file(path: Path, url: str) -> bytes:
    suffix = path.suffix.lower()
    if "://" in str(path) or path.is_dir():
        raise RemoteUnsupportedError(url, _SOURCE.format("what is not a file on this machine"))
    if suffix == ".parquet":
        return _encode_table(pq.read_table(path))
    if suffix not in _LINES:
        raise RemoteUnsupportedError(url, _SOURCE.format(f"a {suffix or 'plain'} file"))
    return path.read_bytes()


def _encode_table(table: pa.Table | pa.RecordBatch) -> bytes:
    """A line for each row; a value that is null has no member, as in plain records."""
    columns = [flatten_chunks(column) for column in table.columns]
    if not len(table):
        return b""
    texts = encode_json_objects(table.column_names, columns)
    ends = pa.array([0, len(texts)], pa.int64())
    joined = pa.compute.binary_join(
        pa.LargeListArray.from_arrays(ends, texts), pa.scalar("\n", pa.large_utf8())
    )
    whole: bytes = joined[0].as_buffer().to_pybytes()
    return whole + b"\n"

"""From anything that holds records or a table to rows by type."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.dataset as pds

from omnigraph.diagnostics.shown import sanitize_message
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.writers.inputs.data import Input, InputOptions, Text
from omnigraph.writers.inputs.files import read_path
from omnigraph.writers.inputs.json_input import read_json
from omnigraph.writers.inputs.reading import RecordError, RowSink, require_no_type
from omnigraph.writers.inputs.records import RecordReader
from omnigraph.writers.inputs.tables import read_table

_CHUNK_RECORDS = 8_192


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

"""The first rows of a source, as a table for each type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.quoting import sanitize_message
from omnigraph.writers.inputs.csv_reader import parse_block, parse_column_names
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.input_reader import find_data_files, find_table_reader, read_suffix
from omnigraph.writers.inputs.record_tables import (
    RECORDS_PER_TABLE,
    WrongColumnError,
    build_column_table,
    build_record_tables,
)
from omnigraph.writers.inputs.row_sink import RecordError

SAMPLE_ROWS = 100_000
_SAMPLE_BYTES = 64 * 1024**2
# The member that names the type of a record, whose properties are in `data`.
_KINDS = ("type", "edge")


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of one type; `is_text` if every value of the source is a text."""

    table: pa.Table
    is_text: bool = False
    # None where the source does not say it: then its columns do.
    is_edge: bool | None = None


def read_samples(name: str, source: Any) -> dict[str, Sample]:  # Any: what a load takes
    """The first rows of a source by type: the name given, or those that its records name."""
    try:
        if isinstance(source, str | Path):
            return _read_path(name, Path(source))
        return {name: Sample(_read_value(source))}
    except (OSError, RecordError, ValueError, pa.ArrowException) as failure:
        problem = sanitize_message(getattr(failure, "strerror", None) or str(failure))
        raise InvalidArgumentError(name, problem) from failure


def _read_value(source: Any) -> pa.Table:
    reader = find_table_reader(source)
    if reader is not None:
        return _take_rows(reader, reader.schema)
    if isinstance(source, Mapping):
        return build_column_table(source).slice(0, SAMPLE_ROWS)
    if isinstance(source, bytes | bytearray) or not isinstance(source, Iterable):
        raise WrongColumnError(
            f"a {type(source).__name__} holds no rows: give a path, a table, a frame,"
            " or a list of records"
        )
    records = list(islice(source, RECORDS_PER_TABLE))
    if not all(isinstance(record, Mapping) for record in records):
        raise WrongColumnError("not every element of the list is a record")
    return build_record_tables(records, first_number=1, is_patch=False)[0][0]


def _take_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The first rows of batches; no more of them are read than that needs."""
    taken: list[pa.RecordBatch] = []
    for batch in batches:
        taken.append(batch)
        if sum(each.num_rows for each in taken) >= SAMPLE_ROWS:
            break
    return pa.Table.from_batches(taken, schema).slice(0, SAMPLE_ROWS)


def _read_path(name: str, path: Path) -> dict[str, Sample]:
    """The rows of the first file that a path stands for: the files of a folder are alike."""
    files, problem = find_data_files(path)
    if not files:
        raise OSError(f"{path}: {problem}")
    read = _READERS.get(read_suffix(files[0])[0])
    if read is None:
        known = ", ".join(_READERS)
        raise OSError(f"{files[0]}: not a kind of file that can be loaded: {known}")
    return read(name, files[0])


def _read_parquet(name: str, file: Path) -> dict[str, Sample]:
    with pq.ParquetFile(file) as parquet:
        return {name: Sample(_take_rows(parquet.iter_batches(), parquet.schema_arrow))}


def _read_orc(name: str, file: Path) -> dict[str, Sample]:
    with pa.OSFile(str(file), "rb") as stream:
        found = orc.ORCFile(stream)
        stripes = map(found.read_stripe, range(found.nstripes))
        return {name: Sample(_take_rows(stripes, found.schema))}


def _read_csv(name: str, file: Path) -> dict[str, Sample]:
    with pa.input_stream(str(file), compression="detect") as stream:
        records = CsvRecords(stream, lambda _number, problem: problem)
        names = parse_column_names(records.header)
        schema = pa.schema([(each, pa.utf8()) for each in names])
        parsed = (parse_block(block, names).rows for block in records.iter_blocks())
        batches = (batch for rows in parsed for batch in rows.to_batches())
        return {name: Sample(_take_rows(batches, schema), is_text=True)}


def _read_json(name: str, file: Path) -> dict[str, Sample]:
    with pa.input_stream(str(file), compression="detect") as stream:
        data = stream.read(_SAMPLE_BYTES)
    if len(data) == _SAMPLE_BYTES:
        data = data[: data.rfind(b"\n") + 1]
    lines = pa.array(data.splitlines(), pa.binary())
    lines = lines.filter(pc.greater(pc.binary_length(lines), 0)).slice(0, SAMPLE_ROWS)
    first = set(_parse_json(lines.slice(0, 1), None).column_names)
    if "data" in first and not first.isdisjoint(_KINDS):
        return dict(_iter_named_types(lines))
    return {name: Sample(_parse_texts(lines))}


def _iter_named_types(lines: pa.Array) -> Iterator[tuple[str, Sample]]:
    """The lines of each type by themselves: members of two types may differ in what they hold."""
    kinds = _parse_json(lines, pa.schema([(each, pa.utf8()) for each in _KINDS]))
    for member in _KINDS:
        for name in pc.unique(kinds[member].drop_null()).to_pylist():
            chosen = pc.equal(kinds[member], name).fill_null(False).combine_chunks()
            parsed = _parse_texts(lines.filter(chosen))
            yield name, Sample(_flatten_records(parsed), is_edge=member == "edge")


def _flatten_records(records: pa.Table) -> pa.Table:
    """The properties of records, and the ends of edges."""
    ends = records.select([each for each in ("from", "to") if each in records.column_names])
    data = records["data"].combine_chunks()
    for field, values in zip(data.type, data.flatten(), strict=True):
        ends = ends.append_column(field, values)
    return ends


def _parse_texts(lines: pa.Array) -> pa.Table:
    """Lines as a table in which what looks like a time is still a text."""
    found = _parse_json(lines, None).schema
    return _parse_json(lines, pa.schema([field.with_type(_as_text(field.type)) for field in found]))


def _as_text(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(type_):
        return pa.utf8()
    if pa.types.is_list(type_):
        return pa.list_(_as_text(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_as_text(field.type)) for field in type_])
    return type_


def _parse_json(lines: pa.Array, schema: pa.Schema | None) -> pa.Table:
    data = b"\n".join(lines.to_pylist()) + b"\n"
    return pj.read_json(
        BytesIO(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=schema,
            newlines_in_values=False,
            unexpected_field_behavior="infer" if schema is None else "ignore",
        ),
    )


_READERS: dict[str, Callable[[str, Path], dict[str, Sample]]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
    ".json": _read_json,
    ".orc": _read_orc,
}

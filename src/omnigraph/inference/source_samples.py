"""The first rows of a source, as a table for each type."""

from __future__ import annotations

from collections import Counter
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
from omnigraph.lang.quoting import sanitize_message, sanitize_text
from omnigraph.writers.inputs.csv_reader import (
    build_ragged_error,
    parse_block,
    parse_column_names,
)
from omnigraph.writers.inputs.csv_records import CsvBlock, CsvRecords
from omnigraph.writers.inputs.exact_json import decode_line
from omnigraph.writers.inputs.input_reader import find_data_files, find_table_reader, read_suffix
from omnigraph.writers.inputs.input_tables import UTF8_HINT
from omnigraph.writers.inputs.record_tables import (
    RECORDS_PER_TABLE,
    WrongColumnError,
    build_column_table,
    build_record_tables,
)
from omnigraph.writers.inputs.row_sink import RecordError
from omnigraph.writers.inputs.value_coercion import format_value

SAMPLE_ROWS = 100_000
_SAMPLE_BYTES = 64 * 1024**2
# The first integer that no signed one of 64 bits is.
_SIGNED_END = 2.0**63
# The member that names the type of a record, whose properties are in `data`.
_KINDS = ("type", "edge")
_TWICE_HINT = "rename one of the two"
_ONE_TYPE_HINT = "give a member values of one type in all records"
_LINES_HINT = "write one JSON object for each record, on a line of its own"


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
            found = _read_path(name, Path(source))
        else:
            found = {name: Sample(_read_value(source))}
        for each in found.values():
            _require_columns(each.table)
    except (OSError, RecordError, ValueError, pa.ArrowException) as failure:
        words = getattr(failure, "strerror", None) or ": ".join(map(str, failure.args))
        hint = getattr(failure, "hint", None)
        raise InvalidArgumentError(name, sanitize_message(words), hint=hint) from failure
    return found


def _require_columns(rows: pa.Table) -> None:
    """Refuse a table without columns, one with two of a name, and texts that are not texts."""
    if not rows.column_names:
        raise RecordError("it has no columns: nothing says what its records hold")
    counts = Counter(rows.column_names)
    for column, values in zip(rows.column_names, rows.columns, strict=True):
        if counts[column] > 1:
            raise RecordError(f"column '{sanitize_text(column)}' is there twice", hint=_TWICE_HINT)
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as failure:
            problem = f"column '{sanitize_text(column)}' holds text that is not UTF-8"
            raise RecordError(problem, hint=UTF8_HINT) from failure


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
        records = CsvRecords(stream, _build_placed_error)
        names = parse_column_names(records.header)
        schema = pa.schema([(each, pa.utf8()) for each in names])
        parsed = (_parse_whole(block, names) for block in records.iter_blocks())
        batches = (batch for rows in parsed for batch in rows.to_batches())
        return {name: Sample(_take_rows(batches, schema), is_text=True)}


def _parse_whole(block: CsvBlock, names: list[str]) -> pa.Table:
    """The rows of a block; a record that is not a row is refused as a load refuses it."""
    parsed = parse_block(block, names)
    if len(parsed.ragged):
        record = int(parsed.ragged[0])
        problem = build_ragged_error(block, record, len(names))
        raise _build_placed_error(int(block.frame.lines[record]), problem)
    return parsed.rows


def _build_placed_error(line: int, problem: RecordError) -> RecordError:
    """The same problem with the line where it is; 0 stands for the file."""
    return RecordError(f"line {line}: {problem}", hint=problem.hint) if line else problem


def _read_json(name: str, file: Path) -> dict[str, Sample]:
    with pa.input_stream(str(file), compression="detect") as stream:
        data = stream.read(_SAMPLE_BYTES)
    if len(data) == _SAMPLE_BYTES:
        data = data[: data.rfind(b"\n") + 1]
    lines = pa.array(data.splitlines(), pa.binary())
    try:
        return _read_json_lines(
            name, lines.filter(pc.greater(pc.binary_length(lines), 0)).slice(0, SAMPLE_ROWS)
        )
    except pa.ArrowInvalid as failure:
        _require_records(lines)
        raise RecordError(str(failure), hint=_ONE_TYPE_HINT) from failure


def _require_records(lines: pa.Array) -> None:
    """Refuse the first line that is not a record, in the words of a load."""
    for number, line in enumerate(lines.to_pylist(), start=1):
        if not line.strip():
            continue
        try:
            record = decode_line(line.decode())
        except UnicodeDecodeError as failure:
            problem = f"invalid UTF-8 at byte {failure.start + 1}"
            raise _build_placed_error(number, RecordError(problem, hint=UTF8_HINT)) from failure
        except RecordError as problem:
            placed = RecordError(str(problem), hint=_LINES_HINT)
            raise _build_placed_error(number, placed) from problem
        if not isinstance(record, Mapping):
            shown = f"a record must be one object, got {format_value(record)}"
            raise _build_placed_error(number, RecordError(shown, hint=_LINES_HINT))


def _read_json_lines(name: str, lines: pa.Array) -> dict[str, Sample]:
    if not len(lines):
        raise RecordError("it has no records")
    first = set(_parse_json(lines.slice(0, 1), None).column_names)
    # An edge needs no properties.
    is_named = "data" in first or {"edge", "from", "to"} <= first
    if is_named and not first.isdisjoint(_KINDS):
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
    if "data" not in records.column_names or pa.types.is_null(records["data"].type):
        return ends
    data = records["data"].combine_chunks()
    if not pa.types.is_struct(data.type):
        raise RecordError(f"'data' holds the properties of a record, and is a {data.type}")
    for field, values in zip(data.type, data.flatten(), strict=True):
        ends = ends.append_column(field, values)
    return ends


def _parse_texts(lines: pa.Array) -> pa.Table:
    """Lines as a table in which what looks like a time is still a text."""
    found = _parse_json(lines, None)
    try:
        return _parse_json(lines, _choose_schema(found, may_be_unsigned=True))
    except pa.ArrowInvalid:
        # Numbers with an exponent: no integers, however whole they are.
        return _parse_json(lines, _choose_schema(found, may_be_unsigned=False))


def _choose_schema(rows: pa.Table, *, may_be_unsigned: bool) -> pa.Schema:
    return pa.schema(
        [
            field.with_type(_choose_type(values.combine_chunks(), may_be_unsigned=may_be_unsigned))
            for field, values in zip(rows.schema, rows.columns, strict=True)
        ]
    )


def _choose_type(values: pa.Array, *, may_be_unsigned: bool) -> pa.DataType:
    """The type to read values by: Arrow makes floats of integers beyond 63 bits."""
    kind = values.type
    if pa.types.is_temporal(kind):
        return pa.utf8()
    if pa.types.is_list(kind):
        return pa.list_(_choose_type(values.flatten(), may_be_unsigned=may_be_unsigned))
    if pa.types.is_struct(kind):
        parts = zip(kind, values.flatten(), strict=True)
        chosen = (
            field.with_type(_choose_type(part, may_be_unsigned=may_be_unsigned))
            for field, part in parts
        )
        return pa.struct(list(chosen))
    is_unsigned = may_be_unsigned and pa.types.is_float64(kind) and _are_unsigned(values)
    return pa.uint64() if is_unsigned else kind


def _are_unsigned(values: pa.Array) -> bool:
    """Whether all floats are whole, and one of them is an integer of 64 bits but not of 63."""
    low, high = (each.as_py() for each in pc.min_max(values).values())
    if high is None or low < 0 or not _SIGNED_END <= high <= 2 * _SIGNED_END:
        return False
    return bool(pc.all(pc.equal(pc.floor(values), values)).as_py())


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

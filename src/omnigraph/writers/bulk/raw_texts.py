"""The task that reads records again as they stand in their files, for those who mend them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.errors import LoadError, OmnigraphError
from omnigraph.schema.accepted import AcceptedSchema, TypeKey, TypeKind, list_key_members
from omnigraph.schema.values import format_canonical
from omnigraph.writers.bulk.origins import RecordOrigin
from omnigraph.writers.bulk.stores import Stores, get_stores
from omnigraph.writers.bulk.streams import open_csv_records, open_lines, open_range, read_batches
from omnigraph.writers.bulk.units import Format, InputSplit, noun_of
from omnigraph.writers.inputs.arrow_values import coerce_ids
from omnigraph.writers.inputs.csv_files import coerce_texts, parse_column_names, parse_text_columns
from omnigraph.writers.inputs.data import InputOptions
from omnigraph.writers.inputs.lines import BLOCK_BYTES, iter_line_blocks
from omnigraph.writers.inputs.reading import RecordError, RowSink
from omnigraph.writers.inputs.required import type_of
from omnigraph.writers.inputs.tables import ORIGIN, REFUSED, REFUSED_RECORD, resolve_named_type
from omnigraph.writers.inputs.value_reading import BLOB_PREFIX, MisfitError, make_coercer

# A longer record is cut: the file and the line lead to the rest of it.
RAW_CHARS_MAX: Final = 64 * 1024
_RAW_BYTES_MAX: Final = 4 * RAW_CHARS_MAX


@dataclass(frozen=True, slots=True)
class RawRequest:
    """Which records of a unit are asked for, by number, in order."""

    split: InputSplit
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record as it stands; its type and id as far as they can be told.

    `origin` is the record that a row was made of.
    """

    number: int
    text: str
    type_name: str | None
    entity_id: str | None
    origin: RecordOrigin | None = None


def read_raw_records(question: RawRequest) -> tuple[RawRecord, ...]:
    """The records that are asked for."""
    unit = question.split
    stores = get_stores(unit.job.location)
    accepted = stores.get_schema(unit.job).accepted
    with open_range(unit.file_range, unit.job, stores.objects) as stream:
        if unit.file_range.format is Format.JSONL:
            return tuple(_read_raw_lines(stream, question, stores))
        read = _read_raw_csv if unit.file_range.format is Format.CSV else _read_raw_rows
        found: list[RawRecord] = []
        # Why a file cannot be read to its end was told: this is about the records before it.
        with suppress(pa.ArrowException, LoadError):
            found.extend(read(stream, question, accepted))
        return tuple(found)


def _read_raw_lines(
    stream: pa.NativeFile, question: RawRequest, stores: Stores
) -> Iterator[RawRecord]:
    accepted = stores.get_schema(question.split.job).accepted
    reading = RowSink(accepted, InputOptions())
    reading.begin_file(question.split.file_range.name, noun="line")
    wanted = np.array(question.numbers, np.int64)
    source = open_lines(stream, question.split.file_range)
    for lines in iter_line_blocks(source, reading, block_bytes=BLOCK_BYTES):
        count = len(lines.offsets) - 1
        last = lines.first_number + count - 1
        here = wanted[(wanted >= lines.first_number) & (wanted <= last)]
        texts = lines.texts.take(pa.array(here - lines.first_number)).to_pylist()
        for number, data in zip(here.tolist(), texts, strict=True):
            text = data.decode(errors="replace").rstrip("\r\n")
            type_name, entity_id = _identify_record(text, accepted)
            yield RawRecord(number, text[:RAW_CHARS_MAX], type_name, entity_id)
        if last >= wanted[-1]:
            return


def _read_raw_csv(
    stream: pa.NativeFile, question: RawRequest, accepted: AcceptedSchema
) -> Iterator[RawRecord]:
    piece = question.split.file_range
    reading = RowSink(accepted, InputOptions(type=piece.type))
    reading.begin_file(piece.name, noun=noun_of(piece.format))
    records = open_csv_records(stream, piece, reading)
    names = parse_column_names(records.header)
    wanted = np.array(question.numbers, np.int64)
    for block in records.iter_blocks():
        end = block.first_line + block.line_count
        here = wanted[(wanted >= block.first_line) & (wanted < end)]
        if not len(here):
            continue
        frame = block.frame
        is_wanted = np.isin(frame.lines, here)
        is_whole = is_wanted & frame.are_whole(len(names))
        ids = dict.fromkeys(frame.lines[is_wanted].tolist())
        if is_whole.any():
            rows = _decode_keys(
                parse_text_columns(block.select_records(is_whole), names),
                resolve_named_type(reading),
                accepted,
            )
            for number, row in zip(frame.lines[is_whole].tolist(), rows, strict=True):
                ids[number] = _derive_node_id(
                    row, row.get("id", row.get("@id")), piece.type, accepted
                )
        for record in np.flatnonzero(is_wanted).tolist():
            number = int(frame.lines[record])
            text = block.format_record(record, _RAW_BYTES_MAX)[:RAW_CHARS_MAX]
            yield RawRecord(number, text, piece.type and piece.type.rpartition(":")[2], ids[number])
        if end > wanted[-1]:
            return


def _decode_keys(
    texts: pa.Table, type_key: TypeKey, accepted: AcceptedSchema
) -> list[dict[str, Any]]:
    """What the ids of rows are made of, as values."""
    type_ = type_of(accepted, type_key)
    columns = {}
    for name in texts.column_names:
        column = texts[name].combine_chunks()
        if name in (type_.key or ()):
            found = coerce_texts(column, type_.properties[name].type, is_strict=True).values
            # Days and instants as counts: Python has no values for all of them.
            width = found.type.bit_width if pa.types.is_date(found.type) else 0
            columns[name] = found.view(f"int{width}") if width else found
        elif name in ("id", "@id") and name not in type_.properties:
            columns[name] = coerce_ids(column).values
    return pa.table(columns).to_pylist() if columns else [{}] * texts.num_rows


def _read_raw_rows(
    stream: pa.NativeFile, question: RawRequest, accepted: AcceptedSchema
) -> Iterator[RawRecord]:
    piece = question.split.file_range
    _, batches = read_batches(stream, piece)
    wanted, first = np.array(question.numbers, np.int64), 1
    for batch in batches:
        here = wanted[(wanted >= first) & (wanted < first + batch.num_rows)]
        rows = batch.take(pa.array(here - first)).to_pylist()
        for number, row in zip(here.tolist(), rows, strict=True):
            # A row that was refused before it came here has the record it was made of.
            why, origin = row.pop(REFUSED, None), row.pop(ORIGIN, None)
            text = _encode_row(row) if why is None else str(why[REFUSED_RECORD])
            entity_id = _derive_node_id(row, row.get("id", row.get("@id")), piece.type, accepted)
            yield RawRecord(
                number,
                text[:RAW_CHARS_MAX],
                # Which kind of type it is goes before a colon.
                piece.type and piece.type.rpartition(":")[2],
                entity_id,
                origin and tuple(origin.values()),
            )
        first += batch.num_rows


def _encode_row(row: Mapping[str, Any]) -> str:
    """A row of a table as JSON, with texts for what JSON has no values for."""
    plain = {name: _to_json_value(value) for name, value in row.items()}
    return json.dumps(plain, ensure_ascii=False, default=str, allow_nan=False)


def _to_json_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return f"{BLOB_PREFIX}{base64.b64encode(value).decode()}"
    if isinstance(value, list):
        return [_to_json_value(each) for each in value]
    if isinstance(value, dict):
        return {name: _to_json_value(each) for name, each in value.items()}
    return value


def _identify_record(text: str, accepted: AcceptedSchema) -> tuple[str | None, str | None]:
    """The type and the id of a record, as far as it can be read."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(record, Mapping):
        return None, None
    name = record.get("type", record.get("edge"))
    data = record.get("data")
    if not isinstance(name, str):
        return None, None
    values = data if isinstance(data, Mapping) else {}
    return name, _derive_node_id(values, record.get("id"), name, accepted)


def _derive_node_id(
    values: Mapping[str, Any], given: object, name: str | None, accepted: AcceptedSchema
) -> str | None:
    """The id of a node; None where it cannot be told."""
    key = TypeKey(TypeKind.NODE, (name or "").rpartition(":")[2])
    if key.name not in accepted.catalog.nodes:
        return None
    type_ = type_of(accepted, key)
    if not type_.key:
        return given if isinstance(given, str) else None
    texts = []
    with suppress(MisfitError, RecordError, OmnigraphError, ValueError, TypeError):
        for member in list_key_members(accepted, key.name, kind=key.kind):
            property_type = type_.properties[member].type
            value = make_coercer(property_type, is_strict=True)(values.get(member))
            if value is None:
                return None
            texts.append(format_canonical(value, property_type))
        if len(texts) == 1:
            return texts[0]
        return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    return None

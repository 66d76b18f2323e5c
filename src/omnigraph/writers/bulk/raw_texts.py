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
from omnigraph.schema.accepted import AcceptedSchema, TypeKey, TypeKind, key_order
from omnigraph.schema.values import canonical_text
from omnigraph.writers.bulk.origins import Origin
from omnigraph.writers.bulk.stores import Stores, stores_of
from omnigraph.writers.bulk.streams import batches_of, lines_of, opened_piece, records_of
from omnigraph.writers.bulk.units import Format, Unit, noun_of
from omnigraph.writers.inputs.arrow_values import id_texts
from omnigraph.writers.inputs.csv_files import column_names, texts_of, texts_to
from omnigraph.writers.inputs.data import InputOptions
from omnigraph.writers.inputs.lines import BLOCK_BYTES, blocks_of_lines
from omnigraph.writers.inputs.reading import Reading, Refused
from omnigraph.writers.inputs.required import type_of
from omnigraph.writers.inputs.tables import ORIGIN, REFUSED, REFUSED_RECORD, named_type
from omnigraph.writers.inputs.value_reading import BLOB_PREFIX, Misfit, value_reader

# A longer record is cut: the file and the line lead to the rest of it.
RAW_CHARS_MAX: Final = 64 * 1024
_RAW_BYTES_MAX: Final = 4 * RAW_CHARS_MAX


@dataclass(frozen=True, slots=True)
class RawQuestion:
    """Which records of a unit are asked for, by number, in order."""

    unit: Unit
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """A record as it stands; its type and id as far as they can be told.

    `origin` is the record that a row was made of.
    """

    number: int
    text: str
    type_name: str | None
    entity_id: str | None
    origin: Origin | None = None


def read_raw(question: RawQuestion) -> tuple[Raw, ...]:
    """The records that are asked for."""
    unit = question.unit
    stores = stores_of(unit.job.place)
    accepted = stores.schema(unit.job).accepted
    with opened_piece(unit.piece, unit.job, stores.notes) as stream:
        if unit.piece.format is Format.JSONL:
            return tuple(_raw_lines(stream, question, stores))
        read = _raw_records if unit.piece.format is Format.CSV else _raw_rows
        found: list[Raw] = []
        # Why a file cannot be read to its end was told: this is about the records before it.
        with suppress(pa.ArrowException, LoadError):
            found.extend(read(stream, question, accepted))
        return tuple(found)


def _raw_lines(stream: pa.NativeFile, question: RawQuestion, stores: Stores) -> Iterator[Raw]:
    accepted = stores.schema(question.unit.job).accepted
    reading = Reading(accepted, InputOptions())
    reading.begin(question.unit.piece.name, noun="line")
    wanted = np.array(question.numbers, np.int64)
    source = lines_of(stream, question.unit.piece)
    for lines in blocks_of_lines(source, reading, block_bytes=BLOCK_BYTES):
        count = len(lines.offsets) - 1
        last = lines.first_number + count - 1
        here = wanted[(wanted >= lines.first_number) & (wanted <= last)]
        texts = lines.texts.take(pa.array(here - lines.first_number)).to_pylist()
        for number, data in zip(here.tolist(), texts, strict=True):
            text = data.decode(errors="replace").rstrip("\r\n")
            type_name, entity_id = _named(text, accepted)
            yield Raw(number, text[:RAW_CHARS_MAX], type_name, entity_id)
        if last >= wanted[-1]:
            return


def _raw_records(
    stream: pa.NativeFile, question: RawQuestion, accepted: AcceptedSchema
) -> Iterator[Raw]:
    piece = question.unit.piece
    reading = Reading(accepted, InputOptions(type=piece.type))
    reading.begin(piece.name, noun=noun_of(piece.format))
    records = records_of(stream, piece, reading)
    names = column_names(records.header)
    wanted = np.array(question.numbers, np.int64)
    for block in records.blocks():
        end = block.first_line + block.line_count
        here = wanted[(wanted >= block.first_line) & (wanted < end)]
        if not len(here):
            continue
        frame = block.frame
        is_wanted = np.isin(frame.lines, here)
        is_whole = is_wanted & frame.are_whole(len(names))
        ids = dict.fromkeys(frame.lines[is_wanted].tolist())
        if is_whole.any():
            rows = _keys(texts_of(block.of(is_whole), names), named_type(reading), accepted)
            for number, row in zip(frame.lines[is_whole].tolist(), rows, strict=True):
                ids[number] = _id_of(row, row.get("id", row.get("@id")), piece.type, accepted)
        for record in np.flatnonzero(is_wanted).tolist():
            number = int(frame.lines[record])
            text = block.text(record, _RAW_BYTES_MAX)[:RAW_CHARS_MAX]
            yield Raw(number, text, piece.type and piece.type.rpartition(":")[2], ids[number])
        if end > wanted[-1]:
            return


def _keys(texts: pa.Table, type_key: TypeKey, accepted: AcceptedSchema) -> list[dict[str, Any]]:
    """What the ids of rows are made of, as values."""
    type_ = type_of(accepted, type_key)
    columns = {}
    for name in texts.column_names:
        column = texts[name].combine_chunks()
        if name in (type_.key or ()):
            found = texts_to(column, type_.properties[name].type, is_strict=True).values
            # Days and instants as counts: Python has no values for all of them.
            width = found.type.bit_width if pa.types.is_date(found.type) else 0
            columns[name] = found.view(f"int{width}") if width else found
        elif name in ("id", "@id") and name not in type_.properties:
            columns[name] = id_texts(column).values
    return pa.table(columns).to_pylist() if columns else [{}] * texts.num_rows


def _raw_rows(
    stream: pa.NativeFile, question: RawQuestion, accepted: AcceptedSchema
) -> Iterator[Raw]:
    piece = question.unit.piece
    _, batches = batches_of(stream, piece)
    wanted, first = np.array(question.numbers, np.int64), 1
    for batch in batches:
        here = wanted[(wanted >= first) & (wanted < first + batch.num_rows)]
        rows = batch.take(pa.array(here - first)).to_pylist()
        for number, row in zip(here.tolist(), rows, strict=True):
            # A row that was refused before it came here has the record it was made of.
            why, origin = row.pop(REFUSED, None), row.pop(ORIGIN, None)
            text = _json(row) if why is None else str(why[REFUSED_RECORD])
            entity_id = _id_of(row, row.get("id", row.get("@id")), piece.type, accepted)
            yield Raw(
                number,
                text[:RAW_CHARS_MAX],
                # Which kind of type it is goes before a colon.
                piece.type and piece.type.rpartition(":")[2],
                entity_id,
                origin and tuple(origin.values()),
            )
        first += batch.num_rows


def _json(row: Mapping[str, Any]) -> str:
    """A row of a table as JSON, with texts for what JSON has no values for."""
    plain = {name: _plain(value) for name, value in row.items()}
    return json.dumps(plain, ensure_ascii=False, default=str, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return f"{BLOB_PREFIX}{base64.b64encode(value).decode()}"
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _named(text: str, accepted: AcceptedSchema) -> tuple[str | None, str | None]:
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
    return name, _id_of(values, record.get("id"), name, accepted)


def _id_of(
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
    with suppress(Misfit, Refused, OmnigraphError, ValueError, TypeError):
        for member in key_order(accepted, key.name, kind=key.kind):
            property_type = type_.properties[member].type
            value = value_reader(property_type, is_strict=True)(values.get(member))
            if value is None:
                return None
            texts.append(canonical_text(value, property_type))
        if len(texts) == 1:
            return texts[0]
        return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    return None

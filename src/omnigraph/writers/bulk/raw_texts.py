"""The task that reads records again as they stand in their files, for those who mend them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.errors import OmnigraphError
from omnigraph.schema.accepted import AcceptedSchema, TypeKey, TypeKind, key_order
from omnigraph.schema.values import canonical_text
from omnigraph.writers.bulk.stores import Stores, stores_of
from omnigraph.writers.bulk.streams import batches_of, lines_of, opened_piece
from omnigraph.writers.bulk.units import Format, Unit
from omnigraph.writers.inputs.csv_files import open_texts
from omnigraph.writers.inputs.data import InputOptions
from omnigraph.writers.inputs.lines import BLOCK_BYTES, blocks_of_lines
from omnigraph.writers.inputs.reading import Reading, Refused
from omnigraph.writers.inputs.required import type_of
from omnigraph.writers.inputs.tables import REFUSED, REFUSED_RECORD
from omnigraph.writers.inputs.value_reading import Misfit, value_reader

# A longer record is cut: the file and the line lead to the rest of it.
RAW_CHARS_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class RawQuestion:
    """Which records of a unit are asked for, by number, in order."""

    unit: Unit
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """A record as it stands; its type and id as far as they can be told."""

    number: int
    text: str
    type_name: str | None
    entity_id: str | None


def read_raw(question: RawQuestion) -> tuple[Raw, ...]:
    """The records that are asked for."""
    unit = question.unit
    stores = stores_of(unit.job.place)
    accepted = stores.schema(unit.job).accepted
    with opened_piece(unit.piece, unit.job, stores.notes) as stream:
        if unit.piece.format is Format.JSONL:
            return tuple(_raw_lines(stream, question, stores))
        found: list[Raw] = []
        # Why a file cannot be read to its end was told: this is about the records before it.
        with suppress(pa.ArrowException):
            found.extend(_raw_rows(stream, question, accepted))
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


def _raw_rows(
    stream: pa.NativeFile, question: RawQuestion, accepted: AcceptedSchema
) -> Iterator[Raw]:
    piece = question.unit.piece
    batches = open_texts(stream, [], []) if piece.format is Format.CSV else None
    if batches is None:
        _, batches = batches_of(stream, piece)
    wanted, first = np.array(question.numbers, np.int64), 1
    for batch in batches:
        here = wanted[(wanted >= first) & (wanted < first + batch.num_rows)]
        rows = batch.take(pa.array(here - first)).to_pylist()
        for number, row in zip(here.tolist(), rows, strict=True):
            # A row that was refused before it came here has the record it was made of.
            why = row.pop(REFUSED, None)
            text = json.dumps(row, ensure_ascii=False, default=str)
            text = text if why is None else str(why[REFUSED_RECORD])
            entity_id = _id_of(row, row.get("id", row.get("@id")), piece.type, accepted)
            yield Raw(number, text[:RAW_CHARS_MAX], piece.type, entity_id)
        first += batch.num_rows


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

"""Records that a load cannot write: listed in an error, and written to a file with the reasons."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.bulk_sources import LocateOrigins, OriginRecord, RecordOrigin
from omnigraph.bulk.row_checks import LOAD_PROBLEMS_MAX
from omnigraph.bulk.split_reader import open_csv_records, open_lines, open_range, read_batches
from omnigraph.bulk.splits import Format, InputSplit, Stores, get_stores, noun_of
from omnigraph.errors import (
    KeyConflictError,
    LoadError,
    OmnigraphError,
    Violation,
    WriteRefusedError,
    format_violations,
)
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind, list_key_members
from omnigraph.schema.property_values import encode_blob, format_canonical
from omnigraph.storage.objects.object_store import Objects
from omnigraph.writers.inputs.coerced_columns import coerce_ids
from omnigraph.writers.inputs.csv_reader import coerce_texts, parse_column_names, parse_text_columns
from omnigraph.writers.inputs.input_rows import InputOptions
from omnigraph.writers.inputs.input_tables import (
    ORIGIN,
    REFUSED,
    REFUSED_RECORD,
    resolve_named_type,
)
from omnigraph.writers.inputs.line_blocks import BLOCK_BYTES, iter_line_blocks
from omnigraph.writers.inputs.required_values import type_of
from omnigraph.writers.inputs.row_sink import RecordError, RowSink
from omnigraph.writers.inputs.value_coercion import MisfitError, make_coercer
from omnigraph.writers.key_violations import OWN_ID_HINT
from omnigraph.writers.validate.findings import CheckStage, hint_of

_REJECTS_SCHEMA: Final = pa.schema(
    [
        ("place", pa.utf8()),
        ("file", pa.utf8()),
        ("number", pa.int64()),
        ("type", pa.utf8()),
        ("id", pa.utf8()),
        ("property", pa.utf8()),
        ("rule", pa.utf8()),
        ("reason", pa.utf8()),
        ("raw", pa.utf8()),
    ]
)

# A longer record is cut: the file and the line lead to the rest of it.
RAW_CHARS_MAX: Final = 64 * 1024
_RAW_BYTES_MAX: Final = 4 * RAW_CHARS_MAX


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A record that cannot be written: where it is, and why; `raw` is its text if it was read.

    `order` is its file and its number there; `key` its unit and its number there. `origin` is the
    record that the row was made of, if that is known. `earlier` is the key of the row that has the
    same id.
    """

    stage: CheckStage
    key: tuple[int, int]
    order: tuple[int, int]
    file: str
    violation: Violation
    hint: str | None = None
    origin: OriginRecord | None = None
    earlier: tuple[int, int] | None = None

    @property
    def number(self) -> int | None:
        """Its number in its file."""
        return self.order[1] if self.origin is None else self.origin.number

    @property
    def sort_key(self) -> tuple[str, int, tuple[int, int]]:
        """What to sort by: the file and the number there."""
        if self.origin is None:
            return "", 0, self.order
        return self.origin.file, self.origin.number or 0, self.order


def locate_rejects(
    rejects: Sequence[RejectedRecord],
    raws: Mapping[tuple[int, int], RawRecord],
    locate: LocateOrigins,
) -> list[RejectedRecord]:
    """Rejected rows with the records they were made of, as far as those are found."""
    keys = dict.fromkeys(
        [*(each.key for each in rejects), *(each.earlier for each in rejects if each.earlier)]
    )
    named = {key: raws[key].origin for key in keys if key in raws}
    origins = {key: origin for key, origin in named.items() if origin is not None}
    found = locate(list(origins.values())) if origins else {}
    known = {key: found[origin] for key, origin in origins.items() if origin in found}
    return [_with_origin(each, known) if each.key in known else each for each in rejects]


def _with_origin(
    reject: RejectedRecord, known: Mapping[tuple[int, int], OriginRecord]
) -> RejectedRecord:
    origin = known[reject.key]
    earlier = None if reject.earlier is None else known.get(reject.earlier)
    other = None if earlier is None else earlier.location
    violation = reject.violation.move(origin.location, other)
    return replace(reject, violation=violation, origin=origin)


def list_keys(rejects: Iterable[RejectedRecord]) -> Iterator[tuple[int, int]]:
    """The keys of rejected rows, and of the earlier ones that have their ids."""
    for reject in rejects:
        yield reject.key
        if reject.earlier is not None:
            yield reject.earlier


def build_refusal(rejects: Sequence[RejectedRecord], count: int) -> WriteRefusedError:
    """The error that lists what is wrong with a load, what comes first in the input first."""
    ordered = sorted(rejects, key=lambda each: (each.stage, each.sort_key))[:LOAD_PROBLEMS_MAX]
    violations = [each.violation for each in ordered]
    first = ordered[0]
    match first.stage:
        case CheckStage.READ:
            hints = dict.fromkeys(each.hint for each in ordered if each.hint)
            return LoadError(
                format_violations(violations, count),
                record=first.number or 0,
                violations=violations,
                count=count,
                hint="; ".join(hints) or None,
            )
        case CheckStage.EXISTS:
            found, *others = violations
            assert found.type_name is not None, "an entity that exists has a type"
            assert found.entity_id is not None, "an entity that exists has an id"
            return KeyConflictError(
                found.type_name, found.entity_id, place=found.place, others=others, count=count
            )
    hint = hint_of(first.violation.rule)
    if first.stage is CheckStage.DUPLICATE:
        hint = OWN_ID_HINT if first.violation.rule == "id" else None
    return WriteRefusedError(
        format_violations(violations, count), violations=violations, count=count, hint=hint
    )


def write_rejects(
    objects: Objects,
    name: str,
    rejects: Sequence[RejectedRecord],
    raws: Mapping[tuple[int, int], RawRecord],
) -> str:
    """Write rejected records as Parquet into a store; the address of the file."""
    ordered = sorted(rejects, key=lambda each: (each.sort_key, each.stage))
    rows = [_encode_reject(each, raws.get(each.key)) for each in ordered]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, _REJECTS_SCHEMA), sink)
    objects.put(name, bytes(sink.getvalue()))
    return f"{objects.uri}/{name}"


def _encode_reject(reject: RejectedRecord, raw: RawRecord | None) -> dict[str, object]:
    violation, origin = reject.violation, reject.origin
    text = None if raw is None else raw.text
    return {
        "place": violation.place,
        "file": reject.file if origin is None else origin.file,
        "number": reject.number,
        "type": violation.type_name or (None if raw is None else raw.type_name),
        "id": violation.entity_id or (None if raw is None else raw.entity_id),
        "property": violation.property,
        "rule": violation.rule,
        "reason": violation.message,
        "raw": text if origin is None else origin.text[:RAW_CHARS_MAX],
    }


@dataclass(frozen=True, slots=True)
class RawRequest:
    """Which records of a unit are asked for, by number, in order."""

    split: InputSplit
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record as it stands; its type and id as far as they are known.

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
    mapped = unit.file_range.mapped
    if mapped is not None:
        blocks = mapped.reader.iter_blocks()
        batches = (mapped.rule.map_block(block, has_origins=True) for block in blocks)
        return tuple(_iter_raw_rows(batches, question, accepted))
    with open_range(unit.file_range, unit.job, stores.objects) as stream:
        if unit.file_range.format is Format.JSONL:
            return tuple(_read_raw_lines(stream, question, stores))
        read = _read_raw_csv if unit.file_range.format is Format.CSV else _read_raw_rows
        found: list[RawRecord] = []
        # Why a file cannot be read to its end was reported: this is about the records before it.
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
            type_name, entity_id = _identify_record(text, accepted, question.split.file_range.type)
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
    _, batches = read_batches(stream, question.split.file_range)
    return _iter_raw_rows(batches, question, accepted)


def _iter_raw_rows(
    batches: Iterator[pa.RecordBatch], question: RawRequest, accepted: AcceptedSchema
) -> Iterator[RawRecord]:
    piece = question.split.file_range
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
        return encode_blob(value)
    if isinstance(value, list):
        return [_to_json_value(each) for each in value]
    if isinstance(value, dict):
        return {name: _to_json_value(each) for name, each in value.items()}
    return value


def _identify_record(
    text: str, accepted: AcceptedSchema, given_type: str | None
) -> tuple[str | None, str | None]:
    """The type and the id of a record, as far as it can be read."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return given_type, None
    if not isinstance(record, Mapping):
        return given_type, None
    if given_type is not None:
        plain_id = record.get("@id", record.get("id"))
        return given_type, _derive_node_id(record, plain_id, given_type, accepted)
    name = record.get("type", record.get("edge"))
    data = record.get("data")
    if not isinstance(name, str):
        return None, None
    values = data if isinstance(data, Mapping) else {}
    return name, _derive_node_id(values, record.get("id"), name, accepted)


def _derive_node_id(
    values: Mapping[str, Any], given: object, name: str | None, accepted: AcceptedSchema
) -> str | None:
    """The id of a node; None where it is not known."""
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

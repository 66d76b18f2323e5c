"""Lines many at a time, by Arrow's JSON reader: whatever is in doubt is left to the exact one.

Lines are grouped by the type they seem to name; plain records are all of the type that the caller
names. Each group is read with a schema that holds exactly
the members of that type, so that unknown and repeated members, wrong types, numbers out of range
and broken JSON make Arrow refuse. A group that is refused is cut into smaller ones, down to a few
lines. Arrow is more generous than a record may be in some points; lines that meet one are in doubt:

    null for a member that must be text or an object   Arrow shows it as a missing member
    NaN, Infinity and infinite 32-bit floats           found among the values
    negative zeros                                     `-0` is an integer, and has no sign
    two objects on a line                              more rows than lines
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, arrow_type_of
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.property_types import (
    FLOATS,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
    make_scalar_type,
)
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.inputs.coerced_columns import WrongArrowTypeError, coerce_column, owners_of
from omnigraph.writers.inputs.exact_json import (
    RecordPart,
    decode_line,
    list_optional_columns,
    resolve_type,
)
from omnigraph.writers.inputs.input_tables import map_system_names, resolve_named_type
from omnigraph.writers.inputs.line_blocks import Lines
from omnigraph.writers.inputs.required_values import type_of
from omnigraph.writers.inputs.row_sink import RecordError, RowNumbers, RowSink, incoming_schema_of

# Fewer lines are not worth the start of Arrow's reader.
_LINES_MIN = 64
# How many smaller groups one that was refused becomes.
_PIECES = 8
_PARSE_BLOCK_BYTES = 1024**2
# How many lines are examined to learn whether dates are texts or counts.
_SAMPLE_LINES = 8
# Every type of a block costs a look at all its lines.
_NAMES_MAX = 1_000

_NAMED = r'^\{\s*"(?P<kind>type|edge)"\s*:\s*"(?P<name>[^"\\]*)"'
_NAMES = pa.schema([("type", pa.utf8()), ("edge", pa.utf8())])
_NULL_MEMBER = r'"(id|data|from|to)"\s*:\s*null'
# Letters and other ASCII that no writer escapes, but that could hide the name of a member.
_ESCAPED_LETTER = r"\\u00[4-7]"
_ESCAPED_NAME = r"\\u00[2-7]"

# What stands beside `data` in a record that names its type.
_ENVELOPE = frozenset({"type", "edge", "id", "from", "to", "data"})

_Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class _LineGroup:
    """Lines that seem to be records of one type, by the name they give it."""

    type_key: TypeKey
    # Under which member a record names its type; None for plain records.
    member: str | None
    texts: pa.Array
    numbers: RowNumbers
    # No `null` and no escape is anywhere in the block of the lines.
    is_plain: bool

    def slice_lines(self, start: int, count: int) -> _LineGroup:
        """Some of the lines."""
        texts, numbers = self.texts.slice(start, count), self.numbers[start : start + count]
        return replace(self, texts=texts, numbers=numbers)


def read_lines(lines: Lines, reading: RowSink) -> tuple[list[RecordPart], RowNumbers]:
    """The rows of most lines of a block, and the numbers of the lines left to be read exactly."""
    parts: list[RecordPart] = []
    is_left = ~lines.is_blank
    for group in _iter_groups(lines, reading):
        for part in _read_group(group, reading):
            parts.append(part)
            is_left[part.numbers - lines.first_number] = False
    return parts, lines.numbers[is_left]


def _iter_groups(lines: Lines, reading: RowSink) -> Iterator[_LineGroup]:
    candidates = lines.is_framed
    if np.count_nonzero(candidates) < _LINES_MIN:
        return
    texts, numbers = lines.texts, lines.numbers
    if not candidates.all():
        texts, numbers = texts.filter(pa.array(candidates)), numbers[candidates]
    texts, numbers = _select_valid_texts(texts, numbers)
    is_plain = b"null" not in lines.block and b"\\u00" not in lines.block
    if reading.options.type is not None:
        yield _LineGroup(resolve_named_type(reading), None, texts, numbers, is_plain)
        return
    members, names = _guess_types(texts)
    labels = pc.binary_join_element_wise(members, names, " ").dictionary_encode()
    if len(labels.dictionary) > _NAMES_MAX:
        return
    codes = labels.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code, label in enumerate(labels.dictionary.to_pylist()):
        member, _, name = label.partition(" ")
        try:
            type_key = resolve_type(reading, member, name)
        except RecordError:
            continue
        chosen = codes == code
        group = _LineGroup(type_key, member, texts, numbers, is_plain)
        if not chosen.all():
            mask = pa.array(chosen)
            group = replace(group, texts=texts.filter(mask), numbers=numbers[chosen])
        yield group


def _select_valid_texts(texts: pa.Array, numbers: RowNumbers) -> tuple[pa.Array, RowNumbers]:
    """The lines that are UTF-8, found by halving as long as there is a broken one."""
    try:
        return texts.cast(pa.utf8()), numbers
    except pa.ArrowInvalid:
        half = len(texts) // 2
        if half < _LINES_MIN:
            return pa.array([], pa.utf8()), numbers[:0]
        left = _select_valid_texts(texts.slice(0, half), numbers[:half])
        right = _select_valid_texts(texts.slice(half), numbers[half:])
        return pa.concat_arrays([left[0], right[0]]), np.concatenate([left[1], right[1]])


def _guess_types(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Under which member each line names which type; a guess that the schema will check."""
    found = pc.extract_regex(texts, _NAMED)
    members, names = pc.struct_field(found, "kind"), pc.struct_field(found, "name")
    if not names.null_count:
        return members, names
    is_open = names.is_null()
    parsed = _parse_lines(texts.filter(is_open), _NAMES, unexpected="ignore")
    if parsed is None:
        return members, names
    types, edges = (parsed[name].combine_chunks() for name in ("type", "edge"))
    kinds = pc.if_else(types.is_valid(), "type", pc.if_else(edges.is_valid(), "edge", None))
    members = pc.replace_with_mask(members, is_open, kinds)
    return members, pc.replace_with_mask(names, is_open, pc.coalesce(types, edges))


def _read_group(group: _LineGroup, reading: RowSink) -> Iterator[RecordPart]:
    count = len(group.texts)
    if count < _LINES_MIN:
        return
    parts = _read_all_lines(group, reading)
    if parts is not None:
        yield from parts
        return
    # A compatible block is read by Arrow as a whole or not at all.
    if not reading.is_strict or count <= _LINES_MIN:
        return
    step = -(-count // _PIECES)
    for start in range(0, count, step):
        yield from _read_group(group.slice_lines(start, min(step, count - start)), reading)


def _read_all_lines(group: _LineGroup, reading: RowSink) -> list[RecordPart] | None:
    """The rows of all lines that are beyond doubt; None when Arrow refuses one of them."""
    type_ = type_of(reading.accepted, group.type_key)
    types = {name: property_.type for name, property_ in type_.properties.items()}
    is_patch = reading.options.is_patch
    if group.member is not None:
        is_patch = reading.options.patches_records
    optional = list_optional_columns(reading, group.type_key, is_patch=is_patch)
    if group.member is not None and not _ENVELOPE.isdisjoint(name for name, _ in optional):
        # Which of the two such a member is, only its position says.
        return None
    make_schema = _plain_schema_of if group.member is None else _schema_of
    parsed = _parse_lines(group.texts, make_schema(group, types), unexpected="error")
    if parsed is None:
        return None
    doubts = [None if group.is_plain else _find_null_members(group)]
    data = (parsed["data"] if group.member else parsed.to_struct_array()).combine_chunks()
    shape = reading.shape_of(group.type_key)
    columns: dict[str, pa.Array] = {}
    for name, property_type in types.items():
        values = pc.struct_field(data, name)
        try:
            found = coerce_column(values, property_type, is_strict=reading.is_strict)
        except WrongArrowTypeError:
            return None
        columns[shape.columns[name]] = found.values
        doubts += [found.bad, _find_negative_zeros(values, property_type)]
    fixed, more_doubts = _build_fixed_columns(parsed, data, group, types)
    schema = incoming_schema_of(shape)
    arrays = [(fixed | columns)[name] for name in schema.names]
    rows = pa.table(arrays, schema=schema)
    absent = _find_absent_members(group, rows, optional)
    return _select_certain(group, rows, [*doubts, *more_doubts], absent)


def _find_absent_members(
    group: _LineGroup, rows: pa.Table, optional: Iterable[tuple[str, str]]
) -> dict[str, np.ndarray[Any, np.dtype[np.bool_]]]:
    """For each column, the records that do not have the member, if some do not.

    A name in quotes before a colon is a member: within a text, its quotes are escaped.
    """
    found: dict[str, _Mask] = {}
    for name, column in optional:
        if rows[column].null_count:
            is_there = pc.match_substring_regex(group.texts, f'"{re.escape(name)}"\\s*:')
            is_absent = ~is_there.to_numpy(zero_copy_only=False)
            if is_absent.any():
                found[column] = is_absent
    return found


def _select_certain(
    group: _LineGroup,
    rows: pa.Table,
    doubts: list[pa.Array | None],
    absent: Mapping[str, _Mask],
) -> list[RecordPart]:
    """The rows without a doubt, in parts whose records have the same members."""
    numbers = group.numbers
    is_doubtful = np.zeros(len(numbers), np.bool_)
    for doubt in doubts:
        if doubt is not None:
            is_doubtful |= doubt.to_numpy(zero_copy_only=False)
    if is_doubtful.any():
        rows, numbers = rows.filter(pa.array(~is_doubtful)), numbers[~is_doubtful]
    if not absent:
        return [RecordPart(group.type_key, rows, numbers)]
    masks = np.stack([mask[~is_doubtful] for mask in absent.values()], axis=1)
    patterns, owners = np.unique(masks, axis=0, return_inverse=True)
    parts = []
    for place, pattern in enumerate(patterns):
        chosen = np.flatnonzero(owners.reshape(-1) == place)
        columns = frozenset(
            column for column, is_set in zip(absent, pattern, strict=True) if is_set
        )
        parts.append(
            RecordPart(group.type_key, rows.take(pa.array(chosen)), numbers[chosen], columns)
        )
    return parts


def _schema_of(group: _LineGroup, types: dict[str, PropertyType]) -> pa.Schema:
    """Exactly the members that a strict record of the type may have."""
    counted = _find_count_columns(group, types)
    members = [
        pa.field(name, _json_type_of(type_, is_count=name in counted))
        for name, type_ in types.items()
    ]
    if "id" not in types:
        members.append(pa.field("id", pa.utf8()))
    ends = ["from", "to"] if group.type_key.kind is TypeKind.EDGE else []
    texts = [pa.field(name, pa.utf8()) for name in (group.member, "id", *ends)]
    return pa.schema([*texts, pa.field("data", pa.struct(members))])


def _plain_schema_of(group: _LineGroup, types: dict[str, PropertyType]) -> pa.Schema:
    """Exactly the members that a plain record of the type may have."""
    fixed = map_system_names(group.type_key, types)
    counted = _find_count_columns(group, types, fixed)
    members = [
        pa.field(name, _json_type_of(type_, is_count=name in counted))
        for name, type_ in types.items()
    ]
    ids = [pa.field(name, pa.int64() if name in counted else pa.utf8()) for name in fixed]
    return pa.schema([*members, *ids])


def _json_type_of(type_: PropertyType, *, is_count: bool) -> pa.DataType:
    match type_.value:
        case VectorType():
            return pa.list_(pa.float64())
        case ListType(element):
            return pa.list_(_json_type_of(make_scalar_type(element), is_count=is_count))
        case ScalarType(scalar) if scalar in (Scalar.DATE, Scalar.DATETIME):
            return pa.int64() if is_count else pa.utf8()
        case ScalarType(scalar) if scalar in FLOATS:
            # A 32-bit float is the rounded 64-bit one: read at once, some would round otherwise.
            return pa.float64()
        case ScalarType(Scalar.BLOB) | EnumType():
            return pa.utf8()
    return arrow_type_of(type_)


def _find_count_columns(
    group: _LineGroup, types: dict[str, PropertyType], fixed: Iterable[str] = ()
) -> set[str]:
    """Dates and ids that the first lines give as numbers; the schema finds out if others do not."""
    temporal = [name for name, type_ in types.items() if _element_of(type_) in _TEMPORAL]
    names = [*temporal, *fixed]
    if not names:
        return set()
    counted: set[str] = set()
    for text in group.texts.slice(0, _SAMPLE_LINES).to_pylist():
        try:
            record = decode_line(text)
            data = record["data"] if group.member else record
            samples = {name: data.get(name) for name in names}
        except (RecordError, TypeError, KeyError, AttributeError):
            continue
        for name, value in samples.items():
            sample = value[0] if isinstance(value, list) and value else value
            if isinstance(sample, int):
                counted.add(name)
    return counted


_TEMPORAL = (Scalar.DATE, Scalar.DATETIME)


def _element_of(type_: PropertyType) -> Scalar | None:
    return type_.value.element if isinstance(type_.value, ListType) else type_.scalar


def _parse_lines(texts: pa.Array, schema: pa.Schema, *, unexpected: str) -> pa.Table | None:
    """The objects of lines, one of each; None when Arrow refuses, or finds more of them."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    start, end = int(offsets[0]), int(offsets[-1])
    longest = int(np.diff(offsets).max())
    try:
        parsed = pj.read_json(
            pa.BufferReader(texts.buffers()[2].slice(start, end - start)),
            read_options=pj.ReadOptions(block_size=max(_PARSE_BLOCK_BYTES, longest + 1)),
            parse_options=pj.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior=unexpected
            ),
        )
    except pa.ArrowException:
        return None
    return parsed if parsed.num_rows == len(texts) else None


def _find_null_members(group: _LineGroup) -> pa.Array:
    """Lines where a member that must be there with a value, or not at all, may be null.

    In plain records null is a value, but a name that is written in escapes is not found.
    """
    texts = group.texts
    if group.member is None:
        return pc.match_substring_regex(texts, _ESCAPED_NAME)
    has_null = pc.match_substring_regex(texts, _NULL_MEMBER)
    has_escape = pc.match_substring_regex(texts, _ESCAPED_LETTER)
    return pc.or_(has_null, has_escape)


def _find_negative_zeros(values: pa.Array, type_: PropertyType) -> pa.Array | None:
    """Rows with a negative zero."""
    if pa.types.is_list(values.type) and pa.types.is_float64(values.type.value_type):
        elements = values.flatten()
        is_negative = _are_negative_zeros(elements)
        if not is_negative.any():
            return None
        rows = np.zeros(len(values), np.bool_)
        rows[owners_of(values)[is_negative]] = True
        return pa.array(rows)
    if type_.scalar not in FLOATS:
        return None
    return pa.array(_are_negative_zeros(values))


def _are_negative_zeros(values: pa.Array) -> _Mask:
    numbers = values.to_numpy(zero_copy_only=False)
    return np.asarray((numbers == 0) & np.signbit(numbers))


def _build_fixed_columns(
    parsed: pa.Table, data: pa.Array, group: _LineGroup, types: dict[str, PropertyType]
) -> tuple[dict[str, pa.Array], list[pa.Array]]:
    """The ids and ends, and rows where something about them is in doubt."""
    if group.member is None:
        return _build_plain_columns(parsed, group, types)
    ids = parsed["id"].combine_chunks()
    doubts = []
    if "id" not in types:
        inner = pc.struct_field(data, "id")
        doubts.append(pc.and_(ids.is_valid(), inner.is_valid()))
        ids = pc.coalesce(ids, inner)
    fixed = {ID_COLUMN: ids}
    if group.type_key.kind is TypeKind.EDGE:
        for member, column in (("from", SOURCE_COLUMN), ("to", TARGET_COLUMN)):
            fixed[column] = parsed[member].combine_chunks()
            doubts.append(fixed[column].is_null())
    return fixed, doubts


def _build_plain_columns(
    parsed: pa.Table, group: _LineGroup, types: dict[str, PropertyType]
) -> tuple[dict[str, pa.Array], list[pa.Array]]:
    """The ids and ends of plain records, and rows that lack an end or have two of one."""
    fixed: dict[str, pa.Array] = {}
    doubts = []
    for name, column in map_system_names(group.type_key, types).items():
        values = parsed[name].combine_chunks().cast(pa.utf8())
        if column in fixed:
            doubts.append(pc.and_(fixed[column].is_valid(), values.is_valid()))
            values = pc.coalesce(fixed[column], values)
        fixed[column] = values
    doubts += [values.is_null() for column, values in fixed.items() if column != ID_COLUMN]
    return fixed, doubts

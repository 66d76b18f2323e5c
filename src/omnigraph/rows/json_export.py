"""The entities of a view as lines of JSON that a load reads back unchanged.

In: a view, and the types that are wanted. Out: chunks of whole lines, edges before nodes, types by
name, entities by id in byte order; a value that is null has no member. Guarantee: one snapshot has
one export, byte for byte, and of a type only the ids are in memory at once. All files of a type are
compared with their digests before its first line: damage ends in an error, whatever their size.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import TypeNotFoundError
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.json_encoding import (
    TEXT,
    concatenate_texts,
    encode_json_texts,
    join_bytes,
    quote_json_strings,
)
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN

# The first rows of a type show how large its rows are; a few blobs may be all that memory takes.
FIRST_ROWS: Final = 1024
FIRST_ROWS_WITH_BLOBS: Final = 16
# Rows may become larger on the way, so no read is much larger than the one it is judged by.
GROWTH_MAX: Final = 16
# Rows in order of ids lie anywhere in a table, so few large reads are cheaper than many small ones.
READ_BYTES: Final = 128 * 1024 * 1024
CHUNK_BYTES: Final = 8 * 1024 * 1024


def export_lines(
    view: View,
    *,
    types: Collection[str] | None = None,
    kinds: Collection[TypeKind] = (TypeKind.EDGE, TypeKind.NODE),
    with_nulls: bool = False,
) -> Iterator[bytes]:
    """Every entity as a line, or those of some types; a type that is not there is refused at once.

    A name means the node type and the edge type of that name; no names mean all types. A property
    without a value is left out, or null if asked for.
    """
    wanted = [type_key for type_key in _select_types(view, types or ()) if type_key.kind in kinds]
    return (
        chunk
        for type_key in wanted
        for chunk in _export_type(view, type_key, with_nulls=with_nulls)
    )


def _select_types(view: View, names: Collection[str]) -> list[TypeKey]:
    known = sorted(view.types, key=str)
    known_names = {type_key.name for type_key in known}
    if unknown := set(names) - known_names:
        name = min(unknown)
        raise TypeNotFoundError(name, hint=suggest_similar(name, known_names))
    return [type_key for type_key in known if not names or type_key.name in names]


def _export_type(view: View, type_key: TypeKey, *, with_nulls: bool) -> Iterator[bytes]:
    table, shape = view.open_table(type_key), view.get_shape(type_key)
    if not table.count():
        return
    table.require_whole()
    keys = table.scan(columns=[ID_COLUMN, ROW_ID])
    row_ids = keys[ROW_ID].take(pc.sort_indices(keys[ID_COLUMN])).combine_chunks()
    del keys
    start, rows_max = 0, _choose_first_rows(shape)
    while start < len(row_ids):
        wanted = row_ids.slice(start, rows_max)
        rows = table.take(wanted, columns=shape.schema.names)
        bytes_per_row = max(1, rows.nbytes // len(rows))
        for chunk in _split_rows(rows, rows_max=max(1, CHUNK_BYTES // bytes_per_row)):
            yield encode_lines(chunk, shape, with_nulls=with_nulls)
        start += len(wanted)
        rows_max = min(max(1, READ_BYTES // bytes_per_row), GROWTH_MAX * len(wanted))


def _split_rows(rows: pa.Table, *, rows_max: int) -> Iterator[pa.Table]:
    for start in range(0, len(rows), rows_max):
        yield rows.slice(start, rows_max)


def _choose_first_rows(shape: TableShape) -> int:
    has_blobs = any(pa.types.is_large_binary(field.type) for field in shape.schema)
    return FIRST_ROWS_WITH_BLOBS if has_blobs else FIRST_ROWS


def encode_lines(rows: pa.Table, shape: TableShape, *, with_nulls: bool = False) -> bytes:
    """Rows of a type, with all columns of its table, as lines."""
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    is_edge = shape.type_key.kind is TypeKind.EDGE
    opening = f'{{"{"edge" if is_edge else "type"}":{json.dumps(shape.type_key.name)},"id":'
    parts: list[pa.Array | str] = [opening, quote_json_strings(columns[ID_COLUMN])]
    if is_edge:
        parts += [',"from":', quote_json_strings(columns[SOURCE_COLUMN])]
        parts += [',"to":', quote_json_strings(columns[TARGET_COLUMN])]
    members = encode_properties(columns, shape, with_nulls=with_nulls)
    return join_bytes(concatenate_texts(*parts, ',"data":{', *members, "}}\n"))


def encode_properties(
    columns: Mapping[str, pa.Array], shape: TableShape, *, with_nulls: bool = False
) -> list[pa.Array]:
    """The members of each row's properties with commas between them, by default without nulls.

    What shows entities anywhere else spells them the same way. A type without properties has none.
    """
    members = []
    for name, column in shape.columns.items():
        values = encode_json_texts(columns[column])
        if with_nulls and values.null_count:
            values = pc.fill_null(values, pa.scalar("null", values.type))
        members.append(concatenate_texts(f"{json.dumps(name)}:", values))
    if not members:
        return []
    # Arrow loses a row that has nothing to join, so every row starts with an empty text.
    empty, comma = pa.scalar("", TEXT), pa.scalar(",", TEXT)
    texts = pc.binary_join_element_wise(empty, *members, comma, null_handling="skip")
    return [pc.ascii_ltrim(texts, ",")]

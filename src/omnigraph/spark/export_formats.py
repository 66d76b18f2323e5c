"""Rows of one type as the bytes of a file, or of a part of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.json_encoding import TEXT, concatenate_texts, encode_json_texts
from omnigraph.rows.json_export import encode_lines
from omnigraph.rows.result_types import ID_FIELD, to_result_values
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.versioning.effects import ID_COLUMN

_ENDS: Final = {"from": SOURCE_COLUMN, "to": TARGET_COLUMN}
# The first is what starts the others; what XML cannot hold at all becomes a replacement character.
_XML: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"))
_NOT_XML: Final = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]"
_GRAPHML: Final = "http://graphml.graphdrawing.org/xmlns"


class Format(StrEnum):
    """What an export writes."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"
    GRAPHML = "graphml"


@dataclass(frozen=True, slots=True)
class ExportedType:
    """A type that is written: how its rows lie, and for edges the types of their two ends."""

    shape: TableShape
    ends: tuple[str, str] | None = None


def encode_file(rows: pa.Table, exported: ExportedType, form: Format) -> bytes:
    """Rows with all columns of their table as a file; a load reads JSON lines and Parquet back.

    CSV has lists and vectors as JSON, blobs as in JSON lines. Of GraphML, it is a part without the
    beginning and the end of the document.
    """
    shape = exported.shape
    match form:
        case Format.JSONL:
            return encode_lines(rows, shape)
        case Format.PARQUET:
            sink = pa.BufferOutputStream()
            pyarrow.parquet.write_table(_rename_columns(rows, shape), sink, compression="zstd")
            return bytes(sink.getvalue())
        case Format.CSV:
            sink = pa.BufferOutputStream()
            names = _map_column_names(shape)
            texts = {
                name: _format_values(rows[held].combine_chunks()) for name, held in names.items()
            }
            pyarrow.csv.write_csv(pa.table(texts), sink)
            return bytes(sink.getvalue())
        case Format.GRAPHML:
            return _encode_elements(rows, exported)
    assert_never(form)


def encode_graphml_start(shapes: Iterable[TableShape]) -> bytes:
    """The beginning of a GraphML document about some types."""
    keys = {
        (_format_graphml_key(shape, name, kind), shape.type_key.kind, name, kind)
        for shape in shapes
        for name, column in shape.columns.items()
        for kind in [_graphml_type_of(shape.schema.field(column).type)]
    }
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<graphml xmlns="{_GRAPHML}">']
    lines += [
        f'<key id="{kind}.@type" for="{kind}" attr.name="@type" attr.type="string"/>'
        for kind in (TypeKind.NODE, TypeKind.EDGE)
    ]
    lines += [
        f'<key id="{key}" for="{kind}" attr.name="{name}" attr.type="{type_}"/>'
        for key, kind, name, type_ in sorted(keys)
    ]
    return "\n".join([*lines, '<graph edgedefault="directed">', ""]).encode()


def encode_graphml_end() -> bytes:
    """The end of a GraphML document."""
    return b"</graph>\n</graphml>\n"


def _map_column_names(shape: TableShape) -> dict[str, str]:
    """What files call the columns of a table; a load reads these names."""
    ends = _ENDS if shape.type_key.kind is TypeKind.EDGE else {}
    return {ID_FIELD: ID_COLUMN, **ends, **shape.columns}


def _rename_columns(rows: pa.Table, shape: TableShape) -> pa.Table:
    names = _map_column_names(shape)
    return pa.table({name: to_result_values(rows[column]) for name, column in names.items()})


def _format_values(values: pa.Array) -> pa.Array:
    """Values as texts, of which texts are written as they are and lists as JSON."""
    kind = values.type
    if pa.types.is_string(kind):
        return values
    texts = encode_json_texts(values)
    is_nested = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
    # Quotes of JSON: no text of these types has one inside.
    return texts if is_nested else pc.replace_substring(texts, '"', "")


def _encode_elements(rows: pa.Table, exported: ExportedType) -> bytes:
    key, shape = exported.shape.type_key, exported.shape
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    parts: list[pa.Array | str] = [f'<{key.kind} id="{key.name}:', _escape_xml(columns[ID_COLUMN])]
    if exported.ends is not None:
        source, target = exported.ends
        parts += [f'" source="{source}:', _escape_xml(columns[SOURCE_COLUMN])]
        parts += [f'" target="{target}:', _escape_xml(columns[TARGET_COLUMN])]
    parts.append(f'"><data key="{key.kind}.@type">{key.name}</data>')
    for name, column in shape.columns.items():
        declared = _format_graphml_key(shape, name, _graphml_type_of(columns[column].type))
        data = f'<data key="{declared}">'
        texts = concatenate_texts(data, _escape_xml(_format_values(columns[column])), "</data>")
        parts.append(pc.fill_null(texts, pa.scalar("", TEXT)))
    lines = concatenate_texts(*parts, f"</{key.kind}>\n")
    return "".join(lines.to_pylist()).encode()


def _escape_xml(texts: pa.Array) -> pa.Array:
    found = pc.replace_substring_regex(texts.cast(TEXT), _NOT_XML, "\ufffd")
    for character, spelled in _XML:
        found = pc.replace_substring(found, character, spelled)
    return found


def _graphml_type_of(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_int32(kind):
        return "int"
    if pa.types.is_integer(kind):
        return "long"
    if pa.types.is_float32(kind):
        return "float"
    return "double" if pa.types.is_floating(kind) else "string"


def _format_graphml_key(shape: TableShape, name: str, kind: str) -> str:
    return f"{shape.type_key.kind}.{name}.{kind}"

"""GraphML: one document of all types, which a load reads back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.exports.property_texts import format_property_texts
from omnigraph.exports.xml_format import (
    TYPE_NAME,
    ExportedType,
    XmlFormat,
    declared_of,
    encode_identity,
    escape_xml,
    list_declared,
)
from omnigraph.rows.columns import TableShape
from omnigraph.rows.json_encoding import TEXT, concatenate_texts, join_bytes
from omnigraph.schema.accepted_schema import TypeKind

_NAMESPACE: Final = "http://graphml.graphdrawing.org/xmlns"
_declared_of = partial(declared_of, integer="int")


def _encode_start(shapes: Sequence[TableShape]) -> bytes:
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<graphml xmlns="{_NAMESPACE}">']
    lines += [
        f'<key id="{kind}.{TYPE_NAME}" for="{kind}" attr.name="{TYPE_NAME}" attr.type="string"/>'
        for kind in (TypeKind.NODE, TypeKind.EDGE)
    ]
    lines += [
        f'<key id="{each.key}" for="{each.kind}" attr.name="{each.name}"'
        f' attr.type="{each.value_type}"/>'
        for each in list_declared(shapes, integer="int")
    ]
    return "\n".join([*lines, '<graph edgedefault="directed">', ""]).encode()


def _encode_elements(rows: pa.Table, exported: ExportedType) -> bytes:
    shape, key = exported.shape, exported.shape.type_key
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    parts = encode_identity(columns, exported)
    parts.append(f'"><data key="{key.kind}.{TYPE_NAME}">{key.name}</data>')
    for name, column in shape.columns.items():
        data = f'<data key="{_declared_of(shape, name).key}">'
        texts = escape_xml(format_property_texts(columns[column]))
        parts.append(pc.fill_null(concatenate_texts(data, texts, "</data>"), pa.scalar("", TEXT)))
    return join_bytes(concatenate_texts(*parts, f"</{key.kind}>\n"))


GRAPHML: Final = XmlFormat(
    _encode_start, _encode_elements, between=b"", end=b"</graph>\n</graphml>\n"
)

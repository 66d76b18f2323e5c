"""GEXF 1.3: one document of all types, for Gephi and other programs that draw graphs."""

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
from omnigraph.versioning.effects import ID_COLUMN

_declared_of = partial(declared_of, integer="integer")


def _encode_start(shapes: Sequence[TableShape]) -> bytes:
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<gexf xmlns="http://gexf.net/1.3" version="1.3">',
        '<graph defaultedgetype="directed">',
    ]
    attributes = list_declared(shapes, integer="integer")
    for kind in (TypeKind.NODE, TypeKind.EDGE):
        lines.append(f'<attributes class="{kind}">')
        lines.append(f'<attribute id="{kind}.{TYPE_NAME}" title="{TYPE_NAME}" type="string"/>')
        lines += [
            f'<attribute id="{each.key}" title="{each.name}" type="{each.value_type}"/>'
            for each in attributes
            if each.kind is kind
        ]
        lines.append("</attributes>")
    return "\n".join([*lines, "<nodes>", ""]).encode()


def _encode_elements(rows: pa.Table, exported: ExportedType) -> bytes:
    shape, key = exported.shape, exported.shape.type_key
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    label = key.name if exported.ends is not None else escape_xml(columns[ID_COLUMN])
    parts = [*encode_identity(columns, exported), '" label="', label, '"><attvalues>']
    parts.append(f'<attvalue for="{key.kind}.{TYPE_NAME}" value="{key.name}"/>')
    for name, column in shape.columns.items():
        value = f'<attvalue for="{_declared_of(shape, name).key}" value="'
        texts = escape_xml(format_property_texts(columns[column]))
        parts.append(pc.fill_null(concatenate_texts(value, texts, '"/>'), pa.scalar("", TEXT)))
    return join_bytes(concatenate_texts(*parts, f"</attvalues></{key.kind}>\n"))


GEXF: Final = XmlFormat(
    _encode_start,
    _encode_elements,
    between=b"</nodes>\n<edges>\n",
    end=b"</edges>\n</graph>\n</gexf>\n",
)

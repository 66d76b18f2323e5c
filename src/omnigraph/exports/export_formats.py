"""The formats of an export, and rows of one type as the bytes of a file of theirs."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from omnigraph.errors import InvalidArgumentError
from omnigraph.exports.gexf_format import GEXF
from omnigraph.exports.graphml_format import GRAPHML
from omnigraph.exports.property_texts import format_property_texts
from omnigraph.exports.xml_format import ExportedType, XmlFormat
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.json_export import encode_lines
from omnigraph.rows.result_types import ID_FIELD, to_result_values
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.versioning.effects import ID_COLUMN

_ENDS: Final = {"from": SOURCE_COLUMN, "to": TARGET_COLUMN}


class Format(StrEnum):
    """What an export writes."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"
    GRAPHML = "graphml"
    GEXF = "gexf"

    @property
    def document(self) -> XmlFormat | None:
        """How the one document of all types is made; None for files by type."""
        return _DOCUMENTS.get(self)


_DOCUMENTS: Final = {Format.GRAPHML: GRAPHML, Format.GEXF: GEXF}


def choose_format(name: str | None, address: str) -> Format:
    """The format that a caller names, or that the name of a document says; else Parquet."""
    if name is None:
        ending = os.path.splitext(address)[1].lower()
        return next((each for each in _DOCUMENTS if ending == f".{each.value}"), Format.PARQUET)
    try:
        return Format(name)
    except ValueError:
        known = ", ".join(f"'{each.value}'" for each in Format)
        raise InvalidArgumentError("format", f"'{name}' is not one of {known}") from None


def encode_file(rows: pa.Table, exported: ExportedType, form: Format) -> bytes:
    """Rows with all columns of their table as a file, or as a part of a document.

    CSV has lists and vectors as JSON, blobs as in JSON lines.
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
                name: format_property_texts(rows[held].combine_chunks())
                for name, held in names.items()
            }
            pyarrow.csv.write_csv(pa.table(texts), sink)
            return bytes(sink.getvalue())
        case Format.GRAPHML | Format.GEXF:
            return _DOCUMENTS[form].encode_elements(rows, exported)
    assert_never(form)


def _map_column_names(shape: TableShape) -> dict[str, str]:
    """What files call the columns of a table; a load reads these names."""
    ends = _ENDS if shape.type_key.kind is TypeKind.EDGE else {}
    return {ID_FIELD: ID_COLUMN, **ends, **shape.columns}


def _rename_columns(rows: pa.Table, shape: TableShape) -> pa.Table:
    names = _map_column_names(shape)
    return pa.table({name: to_result_values(rows[column]) for name, column in names.items()})

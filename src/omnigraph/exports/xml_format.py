"""What documents of XML have in common: their parts, their types of values, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.json_encoding import TEXT
from omnigraph.schema.accepted_schema import TypeKind
from omnigraph.versioning.effects import ID_COLUMN

# The attribute that names the type of an element.
TYPE_NAME: Final = "@type"
# The first is what starts the others. Line breaks and tabs would become spaces in attributes, and a
# carriage return a line feed everywhere.
_ESCAPES: Final = (
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("\t", "&#9;"),
    ("\n", "&#10;"),
    ("\r", "&#13;"),
)
# What XML cannot hold at all becomes a replacement character.
_NOT_XML: Final = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]"


@dataclass(frozen=True, slots=True)
class ExportedType:
    """A type that is written: how its rows lie, and for edges the types of their two ends."""

    shape: TableShape
    ends: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class XmlFormat:
    """How a document of all types is put together: nodes, and then edges."""

    encode_start: Callable[[Sequence[TableShape]], bytes]
    encode_elements: Callable[[pa.Table, ExportedType], bytes]
    between: bytes
    end: bytes


def escape_xml(texts: pa.Array) -> pa.Array:
    """Texts as they stand in an attribute or an element; nulls stay null."""
    found = pc.replace_substring_regex(texts.cast(TEXT), _NOT_XML, "\ufffd")
    for character, spelled in _ESCAPES:
        found = pc.replace_substring(found, character, spelled)
    return found


def encode_identity(columns: dict[str, pa.Array], exported: ExportedType) -> list[pa.Array | str]:
    """The opening of each element: its id and its ends, which are ids with their types."""
    key = exported.shape.type_key
    parts: list[pa.Array | str] = [f'<{key.kind} id="{key.name}:', escape_xml(columns[ID_COLUMN])]
    if exported.ends is not None:
        source, target = exported.ends
        parts += [f'" source="{source}:', escape_xml(columns[SOURCE_COLUMN])]
        parts += [f'" target="{target}:', escape_xml(columns[TARGET_COLUMN])]
    return parts


@dataclass(frozen=True, slots=True)
class DeclaredProperty:
    """A property in the head of a document: properties of one name and type are one attribute."""

    kind: TypeKind
    name: str
    value_type: str

    @property
    def key(self) -> str:
        """What elements refer to it by."""
        return f"{self.kind}.{self.name}.{self.value_type}"


def list_declared(shapes: Sequence[TableShape], *, integer: str) -> list[DeclaredProperty]:
    """The attributes of some types; `integer` is what the format calls one of 32 bits."""
    found = {
        declared_of(shape, name, integer=integer) for shape in shapes for name in shape.columns
    }
    return sorted(found, key=lambda each: each.key)


def declared_of(shape: TableShape, name: str, *, integer: str) -> DeclaredProperty:
    """The attribute of a property."""
    kind = shape.schema.field(shape.columns[name]).type
    return DeclaredProperty(shape.type_key.kind, name, _name_value_type(kind, integer))


def _name_value_type(kind: pa.DataType, integer: str) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_int32(kind):
        return integer
    if pa.types.is_integer(kind):
        return "long"
    if pa.types.is_float32(kind):
        return "float"
    return "double" if pa.types.is_floating(kind) else "string"

"""GraphML documents: nodes and edges of several types, whose values are texts.

As an export writes them, elements name their types in `@type`, and ids are those of entities after
the name of their type. In documents of other programs all nodes are of the one node type of the
schema, or of the type that is named, and edges alike; a node whose type has a key gets its id from
there, and edges name it by the id it has in the document. Nodes come before the edges that name
them. The attributes that a document declares are the columns of a table: what an element leaves out
is null, and of a property that is not declared it says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.lang.quoting import sanitize_message, sanitize_text
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType
from omnigraph.writers.inputs.csv_reader import coerce_texts
from omnigraph.writers.inputs.exact_json import resolve_type
from omnigraph.writers.inputs.graphml_parser import Element, GraphmlError, GraphmlParser
from omnigraph.writers.inputs.input_tables import TableColumns, resolve_named_type
from omnigraph.writers.inputs.line_blocks import Stream
from omnigraph.writers.inputs.required_values import type_of
from omnigraph.writers.inputs.row_sink import RecordError, RowSink

_BLOCK_BYTES: Final = 1024 * 1024
# Elements wait as Python objects until so much of the document was read.
_WAITING_BYTES_MAX: Final = 16 * 1024 * 1024
_TYPE: Final = "@type"
_ID: Final = "@id"
_ENDS: Final = ("from", "to")
_TYPE_HINT: Final = "give each element its type as data of the attribute '@type'"


def read_graphml(stream: Stream, reading: RowSink) -> None:
    """Read a document to its end."""
    document = _Document(reading)
    parser = GraphmlParser(document.add_element)
    document.declared = parser.declared
    waiting = 0
    try:
        while block := stream.read(_BLOCK_BYTES):
            parser.read_block(block)
            waiting += len(block)
            if waiting >= _WAITING_BYTES_MAX:
                document.flush_rows()
                waiting = 0
        parser.read_block(b"", is_last=True)
    except GraphmlError as refused:
        raise reading.build_failure(refused.line, refused) from refused
    document.flush_rows()


class _Document:
    """The elements of a document by type."""

    def __init__(self, reading: RowSink) -> None:
        self.declared: Mapping[TypeKind, Mapping[str, str | None]] = {}
        self._reading = reading
        self._types: dict[tuple[TypeKind, str | None], TypeKey] = {}
        self._rows: dict[TypeKey, _TypeRows] = {}
        # The ids of nodes that a document calls otherwise than an export would.
        self._node_ids: dict[str, str] = {}
        self._waiting = 0

    def add_element(self, element: Element) -> None:
        """Keep an element; one of an unknown type, or with unknown data, is refused."""
        self._waiting += 1
        try:
            default = self.declared[element.kind].get(_TYPE)
            self._rows_of(element.kind, element.data.pop(_TYPE, default)).add_element(element)
        except RecordError as refused:
            self._reading.reject_record(element.line, refused)

    def flush_rows(self) -> None:
        """Give away what waits."""
        for rows in self._rows.values():
            rows.flush()
        self._reading.count_records(self._waiting)
        self._waiting = 0

    def _rows_of(self, kind: TypeKind, name: str | None) -> _TypeRows:
        if (kind, name) not in self._types:
            self._types[kind, name] = self._find_type(kind, name)
        type_key = self._types[kind, name]
        if type_key not in self._rows:
            declared = self.declared[kind]
            self._rows[type_key] = _TypeRows(self._reading, type_key, declared, self._node_ids)
        return self._rows[type_key]

    def _find_type(self, kind: TypeKind, name: str | None) -> TypeKey:
        if name is not None:
            return resolve_type(self._reading, "type" if kind is TypeKind.NODE else "edge", name)
        if self._reading.options.type is not None:
            named = resolve_named_type(self._reading)
            if named.kind is kind:
                return named
        catalog = self._reading.accepted.catalog
        known = list(catalog.nodes if kind is TypeKind.NODE else catalog.edges)
        if len(known) != 1:
            problem = f"{kind} without a type: the schema has {len(known)} {kind} types"
            raise RecordError(problem, rule="type", hint=_TYPE_HINT)
        return TypeKey(kind, known[0])


class _TypeRows:
    """Elements of one type that wait to become rows."""

    def __init__(
        self,
        reading: RowSink,
        type_key: TypeKey,
        declared: Mapping[str, str | None],
        node_ids: dict[str, str],
    ) -> None:
        type_, shape = type_of(reading.accepted, type_key), reading.shape_of(type_key)
        self._reading = reading
        self._type_key = type_key
        self._node_ids = node_ids
        self._is_keyed = bool(shape.key)
        # The id of a node is the text of its key, if that is one property.
        self._key = next(iter(shape.key)) if len(shape.key) == 1 else None
        self._prefix = f"{type_key.name}:"
        self._ends: tuple[str, ...] = ()
        if isinstance(type_, EdgeType):
            self._ends = (f"{type_.source}:", f"{type_.target}:")
        # With their defaults.
        self._properties = [(name, declared[name]) for name in type_.properties if name in declared]
        self._known = frozenset({*type_.properties, _ID})
        names = [_ID, *(_ENDS if self._ends else ()), *(name for name, _ in self._properties)]
        self._schema = pa.schema([pa.field(name, pa.utf8()) for name in names])
        self._columns: list[list[str | None]] = [[] for _ in names]
        self._lines: list[int] = []
        self._table = TableColumns.from_schema(self._schema, type_key, reading, coerce_texts)
        self._table.begin(reading)

    def add_element(self, element: Element) -> None:
        """Keep an element."""
        data = element.data
        if self._reading.is_strict and not data.keys() <= self._known:
            raise self._build_unknown_error(data)
        values: list[str | None] = [self._find_id(element)]
        for prefix, end in zip(self._ends, (element.source, element.target), strict=False):
            found = self._node_ids.get(end)
            values.append(end.removeprefix(prefix) if found is None else found)
        values += [data.get(name, default) for name, default in self._properties]
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        self._lines.append(element.line)

    def flush(self) -> None:
        """Hand the rows on."""
        if not self._lines:
            return
        arrays = [pa.array(column, pa.utf8()) for column in self._columns]
        batch = pa.record_batch(arrays, schema=self._schema)
        numbers = np.array(self._lines, np.int64)
        for column in self._columns:
            column.clear()
        self._lines.clear()
        self._table.read_batch(batch, numbers, self._reading)

    def _find_id(self, element: Element) -> str | None:
        """The id that an element brings; a node that is called otherwise is noted for its edges."""
        given = element.data.get(_ID)
        if given is None and element.id is not None and element.id.startswith(self._prefix):
            return element.id[len(self._prefix) :]
        if given is None and not self._is_keyed:
            given = element.id
        if not self._ends and element.id is not None:
            entity_id = given if self._key is None else element.data.get(self._key, given)
            if (
                entity_id is not None
                and self._node_ids.setdefault(element.id, entity_id) != entity_id
            ):
                # Edges would end at one of them.
                raise RecordError(f"two nodes have the id '{sanitize_text(element.id)}'", rule="id")
        return given

    def _build_unknown_error(self, data: dict[str, str]) -> RecordError:
        name, type_name = min(data.keys() - self._known), self._type_key.name
        shown = sanitize_text(name)
        return RecordError(
            f"unknown input field '{shown}' of {type_name}",
            rule="member",
            type_name=type_name,
            property=shown,
        ).with_suggestion(sanitize_message(name), self._known)

"""Records one by one: exactly what each member may be, and how a refusal is worded.

This is the authority on records. Whatever reads many at a time must give the same rows, or leave
the record to this reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.diagnostics.shown import readable, shown
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.inputs.reading import Numbers, Reading, Refused, incoming_schema
from omnigraph.writers.inputs.required import type_of
from omnigraph.writers.inputs.value_reading import Misfit, Read, require_text, spelled, value_reader

Members = Mapping[str, Any]  # Any: the value of a JSON member

_NODE_ENVELOPE = frozenset({"type", "id", "data"})
_EDGE_ENVELOPE = frozenset({"edge", "from", "to", "id", "data"})
_NO_MEMBERS: Members = {}


class RecordReader:
    """Turns records into rows; a record that is refused is noted and left out."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._rows: dict[TypeKey, _TypeRows] = {}
        # Edge types go by any case of their name.
        self._types: dict[tuple[str, str], _TypeRows] = {}

    def read(self, record: object, number: int) -> None:
        """Keep the row of a record, or note what is wrong with it."""
        try:
            self._read(record, number)
        except Refused as refused:
            self._reading.refuse(number, refused)

    def drain(self) -> dict[TypeKey, tuple[pa.Table, Numbers]]:
        """The rows read since the last time, by type, in the order of their records."""
        drained = {key: rows.drain() for key, rows in self._rows.items()}
        return {key: found for key, found in drained.items() if len(found[1])}

    def _read(self, record: object, number: int) -> None:
        if not isinstance(record, Mapping):
            raise Refused(f"a record must be one object, got {spelled(record)}")
        if "type" not in record and "edge" not in record:
            raise Refused("expected 'type' or 'edge' field, exactly one of 'type' or 'edge'")
        kind = "type" if "type" in record else "edge"
        rows = self._rows_of(kind, _text(record, kind))
        data = record.get("data", _NO_MEMBERS)
        if self._reading.is_strict:
            rows.refuse_unknown(record, data)
        if not isinstance(data, Mapping):
            data = _NO_MEMBERS
        given_id = rows.given_id(record, data, is_strict=self._reading.is_strict)
        ends = (_text(record, "from"), _text(record, "to")) if kind == "edge" else ()
        rows.add(number, (given_id, *ends), data)

    def _rows_of(self, kind: str, name: str) -> _TypeRows:
        if (kind, name) not in self._types:
            key = resolve(self._reading, kind, name)
            if key not in self._rows:
                self._rows[key] = _TypeRows(self._reading, key)
            self._types[kind, name] = self._rows[key]
        return self._types[kind, name]


def resolve(reading: Reading, kind: str, name: str) -> TypeKey:
    """The type that a record names: nodes exactly, edges in any case."""
    catalog = reading.accepted.catalog
    type_ = catalog.nodes.get(name) if kind == "type" else catalog.edge(name)
    if type_ is None:
        known = catalog.nodes if kind == "type" else catalog.edges
        unknown = Refused(f"unknown {kind} '{shown(name)}'", rule="type", value=shown(name))
        raise unknown.near(name, known)
    return TypeKey(TypeKind.NODE if kind == "type" else TypeKind.EDGE, type_.name)


class _TypeRows:
    """The rows of one type, as a list per column."""

    def __init__(self, reading: Reading, key: TypeKey) -> None:
        type_: NodeType | EdgeType = type_of(reading.accepted, key)
        shape = reading.shape(key)
        self._is_edge = key.kind is TypeKind.EDGE
        self._name = key.name
        self._schema = incoming_schema(shape)
        self._properties = frozenset(type_.properties)
        self._names = [ID_COLUMN, *([SOURCE_COLUMN, TARGET_COLUMN] if self._is_edge else [])]
        self._columns: dict[str, list[Any]] = {name: [] for name in self._schema.names}
        self._readers: list[tuple[str, Read, list[Any]]] = [
            (
                name,
                value_reader(property_.type, is_strict=reading.is_strict),
                self._columns[shape.columns[name]],
            )
            for name, property_ in type_.properties.items()
        ]
        self._numbers: list[int] = []

    def refuse_unknown(self, record: Members, data: object) -> None:
        """Refuse members that a strict record of this type cannot have."""
        if "type" in record and "edge" in record:
            raise Refused("exactly one of 'type' or 'edge' is needed")
        if not isinstance(data, Mapping):
            raise Refused(f"field 'data' must be an object, got {spelled(data)}")
        envelope = _EDGE_ENVELOPE if self._is_edge else _NODE_ENVELOPE
        for name in record.keys() - envelope:
            raise _unknown(name, "unknown top-level field", known=envelope)
        for name in data.keys() - self._properties - {"id"}:
            is_end = self._is_edge and name in ("src", "dst")
            problem = "reserved structural state" if is_end else "unknown input field"
            raise _unknown(name, problem, known=self._properties, type_name=self._name)

    def given_id(self, record: Members, data: Members, *, is_strict: bool) -> str | None:
        """The id a record brings, beside its type or, where no property is so called, in `data`."""
        given = _text(record, "id") if "id" in record else None
        if "id" not in data or "id" in self._properties:
            return given
        if given is not None:
            raise Refused("the id stands both beside the type and in 'data'", rule="id")
        if self._is_edge and not is_strict and not isinstance(data["id"], str):
            return None
        return _text(data, "id")

    def add(self, number: int, fixed: tuple[str | None, ...], data: Members) -> None:
        """Keep one row."""
        values = []
        for name, read, _ in self._readers:
            try:
                values.append(read(data.get(name)))
            except Misfit as misfit:
                raise Refused(
                    f"{self._name}.{name}: {misfit}",
                    rule="value",
                    type_name=self._name,
                    property=name,
                    value=spelled(data.get(name)),
                    hint=misfit.hint,
                ) from misfit
        for name, value in zip(self._names, fixed, strict=True):
            self._columns[name].append(value)
        for (_, _, column), value in zip(self._readers, values, strict=True):
            column.append(value)
        self._numbers.append(number)

    def drain(self) -> tuple[pa.Table, Numbers]:
        """The rows since the last time."""
        arrays = [_array(self._columns[field.name], field.type) for field in self._schema]
        numbers = np.array(self._numbers, np.int64)
        self._numbers.clear()
        for column in self._columns.values():
            column.clear()
        return pa.table(arrays, schema=self._schema), numbers


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    # Arrow would take a millisecond count for a date64 only in whole days.
    if pa.types.is_date64(kind):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)


def _text(members: Members, name: str) -> str:
    if name not in members:
        raise Refused(f"requires field '{name}'")
    value = members[name]
    if not isinstance(value, str):
        raise Refused(f"field '{name}' must be a string, got {spelled(value)}")
    try:
        return require_text(value)
    except Misfit as misfit:
        raise Refused(f"field '{name}': {misfit}") from misfit


def _unknown(
    name: object, problem: str, *, known: frozenset[str], type_name: str | None = None
) -> Refused:
    word = str(name)
    fields = {"type_name": type_name, "property": None if type_name is None else shown(word)}
    if word.startswith("_"):
        return Refused(f"reserved physical state '{shown(word)}'", rule="member", **fields)
    owner = "" if type_name is None else f" of {type_name}"
    unknown = Refused(f"{problem} '{shown(word)}'{owner}", rule="member", **fields)
    return unknown.near(readable(word), known)

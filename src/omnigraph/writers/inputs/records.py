"""Records one by one: exactly what each member may be, and how a refusal is worded.

This is the authority on records. Whatever reads many at a time must give the same rows, or leave
the record to this reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.diagnostics.shown import readable, shown
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.inputs.reading import (
    Numbers,
    Reading,
    Refused,
    incoming_schema,
    missing_value,
)
from omnigraph.writers.inputs.required import required_columns, type_of
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
        """Keep the row of a record, or note all that is wrong with it."""
        problems: list[Refused] = []
        with _noting(problems):
            self._read(record, number, problems)
        for problem in problems:
            self._reading.refuse(number, problem)

    def drain(self) -> dict[TypeKey, tuple[pa.Table, Numbers]]:
        """The rows read since the last time, by type, in the order of their records."""
        for key, rows in self._rows.items():
            if rows.refused.numbers:
                self._reading.examine(key, *rows.refused.drain())
        return {key: rows.good.drain() for key, rows in self._rows.items() if rows.good.numbers}

    def _read(self, record: object, number: int, problems: list[Refused]) -> None:
        if not isinstance(record, Mapping):
            raise Refused(f"a record must be one object, got {spelled(record)}")
        if "type" not in record and "edge" not in record:
            raise Refused("expected 'type' or 'edge' field, exactly one of 'type' or 'edge'")
        kind = "type" if "type" in record else "edge"
        rows = self._rows_of(kind, _text(record, kind))
        data = record.get("data", _NO_MEMBERS)
        if self._reading.is_strict:
            problems += rows.unknown(record, data)
        if not isinstance(data, Mapping):
            data = _NO_MEMBERS
        fixed: list[str | None] = [None]
        with _noting(problems):
            fixed = [rows.given_id(record, data, is_strict=self._reading.is_strict)]
        for end in ("from", "to") if kind == "edge" else ():
            fixed.append(None)
            with _noting(problems):
                fixed[-1] = _text(record, end)
        rows.add(number, fixed, data, problems)

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


@contextmanager
def _noting(problems: list[Refused]) -> Iterator[None]:
    """Note what is refused, and go on behind it."""
    try:
        yield
    except Refused as refused:
        problems.append(refused)


class _Rows:
    """Rows of one type, as a list per column."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        self.numbers: list[int] = []

    def drain(self) -> tuple[pa.Table, Numbers]:
        """The rows since the last time, and their numbers."""
        arrays = [_array(self.columns[field.name], field.type) for field in self._schema]
        numbers = np.array(self.numbers, np.int64)
        self.numbers.clear()
        for column in self.columns.values():
            column.clear()
        return pa.table(arrays, schema=self._schema), numbers


class _TypeRows:
    """The rows of one type: those that are good, and what is good of refused ones."""

    def __init__(self, reading: Reading, key: TypeKey) -> None:
        type_: NodeType | EdgeType = type_of(reading.accepted, key)
        shape = reading.shape(key)
        self._is_edge = key.kind is TypeKind.EDGE
        self._name = key.name
        self.good = _Rows(incoming_schema(shape))
        self.refused = _Rows(incoming_schema(shape))
        self._properties = frozenset(type_.properties)
        ends = [SOURCE_COLUMN, TARGET_COLUMN] if self._is_edge else []
        self._names = [ID_COLUMN, *ends, *(shape.columns[name] for name in type_.properties)]
        self._readers: list[tuple[str, Read]] = [
            (name, value_reader(property_.type, is_strict=reading.is_strict))
            for name, property_ in type_.properties.items()
        ]
        self._required = {
            name: message for _, name, message in required_columns(type_, shape) if name is not None
        }

    def unknown(self, record: Members, data: object) -> Iterator[Refused]:
        """The members that a strict record of this type cannot have."""
        if "type" in record and "edge" in record:
            raise Refused("exactly one of 'type' or 'edge' is needed")
        if not isinstance(data, Mapping):
            raise Refused(f"field 'data' must be an object, got {spelled(data)}")
        envelope = _EDGE_ENVELOPE if self._is_edge else _NODE_ENVELOPE
        for name in sorted(record.keys() - envelope, key=str):
            yield _unknown(name, "unknown top-level field", known=envelope)
        for name in sorted(data.keys() - self._properties - {"id"}, key=str):
            is_end = self._is_edge and name in ("src", "dst")
            problem = "reserved structural state" if is_end else "unknown input field"
            yield _unknown(name, problem, known=self._properties, type_name=self._name)

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

    def add(
        self, number: int, fixed: list[str | None], data: Members, problems: list[Refused]
    ) -> None:
        """Keep one row, with what is good of it if there are problems."""
        values: list[Any] = list(fixed)
        misfits: dict[str, Misfit] = {}
        for name, read in self._readers:
            try:
                values.append(read(data.get(name)))
            except Misfit as misfit:
                misfits[name] = misfit
                values.append(None)
        if misfits or problems:
            problems += self._misfitting(misfits, data)
            problems += self._missing(values, misfits)
        rows = self.refused if problems else self.good
        for name, value in zip(self._names, values, strict=True):
            rows.columns[name].append(value)
        rows.numbers.append(number)

    def _misfitting(self, misfits: Mapping[str, Misfit], data: Members) -> Iterator[Refused]:
        for name, misfit in misfits.items():
            yield Refused(
                f"{self._name}.{name}: {misfit}",
                rule="value",
                type_name=self._name,
                property=name,
                value=spelled(data.get(name)),
                hint=misfit.hint,
            )

    def _missing(self, values: list[Any], misfits: Mapping[str, Misfit]) -> Iterator[Refused]:
        """What a refused record lacks; what others lack is found for many of them at once."""
        own = values[-len(self._readers) :] if self._readers else []
        for (name, _), value in zip(self._readers, own, strict=True):
            if value is None and name in self._required and name not in misfits:
                yield missing_value(self._name, name, self._required[name])


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

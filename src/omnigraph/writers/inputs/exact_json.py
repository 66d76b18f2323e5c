"""Records one by one: exactly what each member may be, and how a refusal is worded.

This is the authority on records. Whatever reads many at a time must give the same rows, or leave
the record to this reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.lang.quoting import sanitize_message, sanitize_text
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.inputs.input_rows import NONE_ABSENT, AbsentColumns
from omnigraph.writers.inputs.input_tables import map_system_names, resolve_named_type
from omnigraph.writers.inputs.required_values import iter_required_columns, type_of
from omnigraph.writers.inputs.row_sink import (
    RecordError,
    RowNumbers,
    RowSink,
    build_missing_error,
    incoming_schema_of,
)
from omnigraph.writers.inputs.value_coercion import (
    CoerceValue,
    MisfitError,
    format_value,
    make_coercer,
    require_text,
)

Members = Mapping[str, Any]  # Any: the value of a JSON member
_NODE_ENVELOPE = frozenset({"type", "id", "data"})
_EDGE_ENVELOPE = frozenset({"edge", "from", "to", "id", "data"})
_NO_MEMBERS: Members = {}
_TYPE_HINT = "for records without a type: --type NAME on the command line, type=NAME in Python"
_BEYOND_BLANKS = re.compile(r"[^ \t\r\n]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LINES_HINT: Final = (
    "an entity is one line; JSON that is printed over several lines is read with the dialect"
    " 'compatible': --dialect compatible"
)


@dataclass(frozen=True, slots=True)
class RecordPart:
    """Rows of one type, their numbers, and the columns that none of their records has."""

    type_key: TypeKey
    rows: pa.Table
    numbers: RowNumbers
    absent: AbsentColumns = NONE_ABSENT


class RecordReader:
    """Turns records into rows; a record that is refused is noted and left out.

    If the caller names the type, a record is plain: its members are properties, its id and, for an
    edge, its ends, as in a row of a table. Otherwise a record names its type and has its properties
    in `data`.
    """

    def __init__(self, reading: RowSink) -> None:
        self._reading = reading
        self._rows: dict[tuple[TypeKey, AbsentColumns], _TypeRows] = {}
        # Edge types go by any case of their name.
        self._types: dict[tuple[str, str], TypeKey] = {}
        self._plain = None if reading.options.type is None else PlainMembers(reading)

    def read_record(self, record: object, number: int) -> None:
        """Keep the row of a record, or note all that is wrong with it."""
        problems: list[RecordError] = []
        with _collect_errors(problems):
            self._read_members(record, number, problems)
        for problem in problems:
            self._reading.reject_record(number, problem)

    def drain_rows(self) -> list[RecordPart]:
        """The rows read since the last time, by type, in the order of their records."""
        for (key, _), rows in self._rows.items():
            if rows.refused.numbers:
                self._reading.check_rejected_rows(key, *rows.refused.drain_rows())
        return [
            RecordPart(key, *rows.good.drain_rows(), absent)
            for (key, absent), rows in self._rows.items()
            if rows.good.numbers
        ]

    def _read_members(self, record: object, number: int, problems: list[RecordError]) -> None:
        if not isinstance(record, Mapping):
            raise RecordError(f"a record must be one object, got {format_value(record)}")
        if self._plain is not None:
            absent = self._plain.find_absent(record)
            rows = self._get_rows(self._plain.type_key, absent)
            self._plain.require_no_own_type(record)
            if self._reading.is_strict:
                problems += self._plain.iter_unknown_members(record)
            ends = self._plain.find_fixed_values(record, problems)
            rows.add_row(number, ends, record, problems)
            return
        if "type" not in record and "edge" not in record:
            raise RecordError(
                "expected 'type' or 'edge' field, exactly one of 'type' or 'edge'", hint=_TYPE_HINT
            )
        kind = "type" if "type" in record else "edge"
        data = record.get("data", _NO_MEMBERS)
        rows = self._get_type_rows(kind, _require_text_member(record, kind), data)
        if self._reading.is_strict:
            problems += rows.iter_unknown_members(record, data)
        if not isinstance(data, Mapping):
            data = _NO_MEMBERS
        fixed: list[str | None] = [None]
        with _collect_errors(problems):
            fixed = [rows.find_record_id(record, data, is_strict=self._reading.is_strict)]
        for end in ("from", "to") if kind == "edge" else ():
            fixed.append(None)
            with _collect_errors(problems):
                fixed[-1] = _require_text_member(record, end)
        rows.add_row(number, fixed, data, problems)

    def _get_type_rows(self, kind: str, name: str, data: object) -> _TypeRows:
        if (kind, name) not in self._types:
            self._types[kind, name] = resolve_type(self._reading, kind, name)
        key = self._types[kind, name]
        is_patch = self._reading.options.patches_records
        if not isinstance(data, Mapping):
            return self._get_rows(key, NONE_ABSENT)
        columns = list_optional_columns(self._reading, key, is_patch=is_patch)
        return self._get_rows(key, frozenset(each for name, each in columns if name not in data))

    def _get_rows(self, key: TypeKey, absent: AbsentColumns) -> _TypeRows:
        if (key, absent) not in self._rows:
            self._rows[key, absent] = _TypeRows(self._reading, key, absent)
        return self._rows[key, absent]


class PlainMembers:
    """What the members of a plain record of one type stand for."""

    def __init__(self, reading: RowSink) -> None:
        self.type_key = resolve_named_type(reading)
        type_ = type_of(reading.accepted, self.type_key)
        self._properties = frozenset(type_.properties)
        types = {name: property_.type for name, property_ in type_.properties.items()}
        # The names of the id and of each end, in the order of the columns of a row.
        self._fixed: dict[str, list[str]] = {}
        for name, column in map_system_names(self.type_key, types).items():
            self._fixed.setdefault(column, []).append(name)
        self._known = self._properties.union(*self._fixed.values())
        # A record of a merge leaves what it does not mention as it is.
        is_patch = reading.options.is_patch
        self._optional = list_optional_columns(reading, self.type_key, is_patch=is_patch)

    def find_absent(self, record: Members) -> AbsentColumns:
        """The columns of which a record says nothing, if that differs from null."""
        return frozenset(column for name, column in self._optional if name not in record)

    def require_no_own_type(self, record: Members) -> None:
        """Refuse a record with `data` beside its type: its properties are not its members."""
        unknown = record.keys() - self._known
        if "data" in unknown and not {"type", "edge"}.isdisjoint(unknown):
            raise RecordError("the record names its own type: leave the type out", rule="type")

    def iter_unknown_members(self, record: Members) -> Iterator[RecordError]:
        """The members that a strict record of this type cannot have."""
        for name in sorted(record.keys() - self._known, key=str):
            yield _build_unknown_error(
                name, "unknown input field", known=self._known, type_name=self.type_key.name
            )

    def find_fixed_values(self, record: Members, problems: list[RecordError]) -> list[str | None]:
        """The id and the ends of a record."""
        found: list[str | None] = []
        for column, names in self._fixed.items():
            found.append(None)
            with _collect_errors(problems):
                given = [name for name in names if record.get(name) is not None]
                if len(given) > 1:
                    problem = f"'{given[0]}' and '{given[1]}' exclude each other"
                    raise RecordError(problem, rule="id" if column == ID_COLUMN else "member")
                if given:
                    found[-1] = _require_id(record, given[0])
                elif column != ID_COLUMN:
                    raise RecordError(f"requires field '{names[0]}'", rule="member")
        return found


def list_optional_columns(
    reading: RowSink, type_key: TypeKey, *, is_patch: bool
) -> tuple[tuple[str, str], ...]:
    """The properties whose absence is not the same as null, and the column of each.

    In a patch these are all that no id depends on, otherwise those with a default.
    """
    shape = reading.shape_of(type_key)
    if is_patch:
        return tuple((name, each) for name, each in shape.columns.items() if name not in shape.key)
    known = reading.list_default_columns(type_key)
    return tuple((name, each) for name, each in shape.columns.items() if each in known)


def resolve_type(reading: RowSink, kind: str, name: str) -> TypeKey:
    """The type that a record names: nodes exactly, edges in any case."""
    catalog = reading.accepted.catalog
    type_ = catalog.nodes.get(name) if kind == "type" else catalog.find_edge(name)
    if type_ is None:
        known = catalog.nodes if kind == "type" else catalog.edges
        unknown = RecordError(
            f"unknown {kind} '{sanitize_text(name)}'", rule="type", value=sanitize_text(name)
        )
        raise unknown.with_suggestion(name, known)
    return TypeKey(TypeKind.NODE if kind == "type" else TypeKind.EDGE, type_.name)


@contextmanager
def _collect_errors(problems: list[RecordError]) -> Iterator[None]:
    """Note what is refused, and go on after it."""
    try:
        yield
    except RecordError as refused:
        problems.append(refused)


class _ColumnLists:
    """Rows of one type, as a list per column."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.columns: dict[str, list[Any]] = {name: [] for name in schema.names}
        self.numbers: list[int] = []

    def drain_rows(self) -> tuple[pa.Table, RowNumbers]:
        """The rows since the last time, and their numbers."""
        arrays = [build_array(self.columns[field.name], field.type) for field in self._schema]
        numbers = np.array(self.numbers, np.int64)
        self.numbers.clear()
        for column in self.columns.values():
            column.clear()
        return pa.table(arrays, schema=self._schema), numbers


class _TypeRows:
    """The rows of one type: those that are good, and what is good of refused ones."""

    def __init__(self, reading: RowSink, key: TypeKey, absent: AbsentColumns) -> None:
        type_: NodeType | EdgeType = type_of(reading.accepted, key)
        shape = reading.shape_of(key)
        self._is_edge = key.kind is TypeKind.EDGE
        self._name = key.name
        self.good = _ColumnLists(incoming_schema_of(shape))
        self.refused = _ColumnLists(incoming_schema_of(shape))
        self._properties = frozenset(type_.properties)
        ends = [SOURCE_COLUMN, TARGET_COLUMN] if self._is_edge else []
        self._names = [ID_COLUMN, *ends, *(shape.columns[name] for name in type_.properties)]
        self._readers: list[tuple[str, CoerceValue]] = [
            (name, make_coercer(property_.type, is_strict=reading.is_strict))
            for name, property_ in type_.properties.items()
        ]
        self._required = {
            name: message
            for column, name, message in iter_required_columns(type_, shape)
            if name is not None and column not in absent
        }

    def iter_unknown_members(self, record: Members, data: object) -> Iterator[RecordError]:
        """The members that a strict record of this type cannot have."""
        if "type" in record and "edge" in record:
            raise RecordError("exactly one of 'type' or 'edge' is needed")
        if not isinstance(data, Mapping):
            raise RecordError(f"field 'data' must be an object, got {format_value(data)}")
        envelope = _EDGE_ENVELOPE if self._is_edge else _NODE_ENVELOPE
        for name in sorted(record.keys() - envelope, key=str):
            yield _build_unknown_error(name, "unknown top-level field", known=envelope)
        for name in sorted(data.keys() - self._properties - {"id"}, key=str):
            is_end = self._is_edge and name in ("src", "dst")
            problem = "reserved structural state" if is_end else "unknown input field"
            yield _build_unknown_error(name, problem, known=self._properties, type_name=self._name)

    def find_record_id(self, record: Members, data: Members, *, is_strict: bool) -> str | None:
        """The id a record brings, beside its type or, where no property is so called, in `data`."""
        given = _require_text_member(record, "id") if "id" in record else None
        if "id" not in data or "id" in self._properties:
            return given
        if given is not None:
            raise RecordError("the id stands both beside the type and in 'data'", rule="id")
        if self._is_edge and not is_strict and not isinstance(data["id"], str):
            return None
        return _require_text_member(data, "id")

    def add_row(
        self, number: int, fixed: list[str | None], data: Members, problems: list[RecordError]
    ) -> None:
        """Keep one row, with what is good of it if there are problems."""
        values: list[Any] = list(fixed)
        misfits: dict[str, MisfitError] = {}
        for name, read in self._readers:
            try:
                values.append(read(data.get(name)))
            except MisfitError as misfit:
                misfits[name] = misfit
                values.append(None)
        if misfits or problems:
            problems += self._iter_misfits(misfits, data)
            problems += self._iter_missing(values, misfits)
        rows = self.refused if problems else self.good
        for name, value in zip(self._names, values, strict=True):
            rows.columns[name].append(value)
        rows.numbers.append(number)

    def _iter_misfits(
        self, misfits: Mapping[str, MisfitError], data: Members
    ) -> Iterator[RecordError]:
        for name, misfit in misfits.items():
            yield RecordError(
                f"{self._name}.{name}: {misfit}",
                rule="value",
                type_name=self._name,
                property=name,
                value=format_value(data.get(name)),
                hint=misfit.hint,
            )

    def _iter_missing(
        self, values: list[Any], misfits: Mapping[str, MisfitError]
    ) -> Iterator[RecordError]:
        """What a refused record lacks; what others lack is found for many of them at once."""
        own = values[-len(self._readers) :] if self._readers else []
        for (name, _), value in zip(self._readers, own, strict=True):
            if value is None and name in self._required and name not in misfits:
                yield build_missing_error(self._name, name, self._required[name])


def build_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column of values as their property keeps them."""
    # Arrow would take a millisecond count for a date64 only in whole days.
    if pa.types.is_date64(kind):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)


def _require_text_member(members: Members, name: str) -> str:
    if name not in members:
        raise RecordError(f"requires field '{name}'")
    value = members[name]
    if not isinstance(value, str):
        raise RecordError(f"field '{name}' must be a string, got {format_value(value)}")
    try:
        return require_text(value)
    except MisfitError as misfit:
        raise RecordError(f"field '{name}': {misfit}") from misfit


def _require_id(members: Members, name: str) -> str:
    """An id, which may be the number that a key spells."""
    value = members[name]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else _require_text_member(members, name)


def _build_unknown_error(
    name: object, problem: str, *, known: frozenset[str], type_name: str | None = None
) -> RecordError:
    word = str(name)
    fields = {
        "type_name": type_name,
        "property": None if type_name is None else sanitize_text(word),
    }
    if word.startswith("_"):
        return RecordError(
            f"reserved physical state '{sanitize_text(word)}'", rule="member", **fields
        )
    owner = "" if type_name is None else f" of {type_name}"
    unknown = RecordError(f"{problem} '{sanitize_text(word)}'{owner}", rule="member", **fields)
    return unknown.with_suggestion(sanitize_message(word), known)


def decode_line(line: str) -> Any:  # Any: JSON
    """The one value of a line; a member that comes twice is refused at any depth."""
    try:
        value = _STRICT.decode(line)
    except (ValueError, RecursionError) as failure:
        broken = _build_broken_error(failure, 0)
        # A line that ends inside of a value is the first of several.
        if isinstance(failure, json.JSONDecodeError) and not line[failure.pos :].strip():
            broken.hint = _LINES_HINT
        raise broken from failure
    _require_characters(line, value)
    return value


def decode_next(text: str, start: int) -> tuple[Any, int] | None:  # Any: JSON
    """The next value of a text from a place on, and where it ends; None after the last."""
    found = _BEYOND_BLANKS.search(text, start)
    if found is None:
        return None
    try:
        value, end = _COMPATIBLE.raw_decode(text, found.start())
    except (ValueError, RecursionError) as failure:
        raise _build_broken_error(failure, found.start()) from failure
    if _SURROGATE_ESCAPE.search(text, start, end):
        _require_characters(text[start:end], value)
    return value, end


class BrokenJsonError(RecordError):
    """A text that is not JSON; more of it may be missing."""


def _build_broken_error(failure: Exception, start: int) -> RecordError:
    if isinstance(failure, RecursionError):
        return BrokenJsonError("invalid strict JSON: nested too deeply", rule="json")
    if isinstance(failure, json.JSONDecodeError):
        return BrokenJsonError(
            f"invalid strict JSON: {failure.msg} at character {failure.pos - start + 1}",
            rule="json",
        )
    return BrokenJsonError(sanitize_message(str(failure)), rule="json")


def _require_characters(text: str, value: Any) -> None:
    if _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as failure:
            raise RecordError(
                "surrogates not allowed: a text holds half of a character"
            ) from failure
        except RecursionError as failure:
            raise _build_broken_error(failure, 0) from failure


def _build_unique_members(members: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(members)
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"duplicate JSON member '{sanitize_text(name)}'")
            seen.add(name)
    return found


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"invalid strict JSON: {constant} is not a number")


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_build_unique_members, parse_constant=_reject_constant
)
_COMPATIBLE: Final = json.JSONDecoder(parse_constant=_reject_constant)

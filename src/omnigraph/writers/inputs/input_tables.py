"""Tables and frames of one type: columns named like its properties, converted a column at a time.

An edge has its ends in `from` and `to`, or in `@src` and `@dst` as a table of a snapshot has them.
A given identity is in `@id`, or in `id` where the type has no property of that name. A column that
a table does not have is handed on as absent, which is not the same as null.

A row that was made of a record may say itself why it cannot be written, in `@refused`: a struct of
the property, the message, and the record. Where that record can be found again may be in `@origin`,
which nothing else reads. Elsewhere such columns are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.lang.quoting import sanitize_message, sanitize_text
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET
from omnigraph.schema.property_types import FLOATS, NUMERIC, PropertyType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.inputs.coerced_columns import (
    CoercedColumn,
    WrongArrowTypeError,
    coerce_column,
    coerce_ids,
    decode_plain,
)
from omnigraph.writers.inputs.input_rows import AbsentColumns
from omnigraph.writers.inputs.required_values import iter_required_columns, type_of
from omnigraph.writers.inputs.row_sink import (
    RecordError,
    RowNumbers,
    RowSink,
    build_missing_error,
    incoming_schema_of,
)
from omnigraph.writers.inputs.value_coercion import MisfitError, format_value, make_coercer

BATCH_ROWS = 262_144
_ID_NAME = "@id"
REFUSED = "@refused"
ORIGIN = "@origin"
# Whether a row only names an entity, which ends: such rows are taken out where frames are staged.
DELETED = "@deleted"
REFUSED_PROPERTY, REFUSED_MESSAGE, REFUSED_RECORD = "property", "message", "record"
# Of the record, so much is shown; a file of rejects has all of it.
_RECORD_CHARS_SHOWN = 200
UTF8_HINT = "save the text as UTF-8"
# The names that a column with the ends of edges may have.
_ENDS = {SOURCE_COLUMN: ("from", SOURCE), TARGET_COLUMN: ("to", TARGET)}
# What each of these columns holds, the rule that a wrong one breaks, and its name if required.
_SYSTEM_COLUMNS: Final[Mapping[str, tuple[str, str, str | None]]] = {
    ID_COLUMN: ("id", "id", None),
    SOURCE_COLUMN: ("source", "member", "from"),
    TARGET_COLUMN: ("target", "member", "to"),
}


class CoerceColumn(Protocol):
    """What makes a column the column of a property."""

    def __call__(
        self, values: pa.Array, type_: PropertyType, /, *, is_strict: bool
    ) -> CoercedColumn:
        """The values as the property keeps them, or `WrongArrowType`."""


def read_table(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    reading: RowSink,
    *,
    convert_column: CoerceColumn = coerce_column,
) -> None:
    """Read the batches of a table with these columns."""
    read_numbered_batches(_iter_numbered(batches), schema, reading, convert_column=convert_column)


def read_numbered_batches(
    batches: Iterable[tuple[pa.RecordBatch, RowNumbers]],
    schema: pa.Schema,
    reading: RowSink,
    *,
    convert_column: CoerceColumn,
) -> None:
    """Read batches whose rows have their numbers beside them."""
    type_key = resolve_named_type(reading)
    columns = TableColumns.from_schema(schema, type_key, reading, convert_column)
    columns.begin(reading)
    for batch, numbers in batches:
        columns.read_batch(batch, numbers, reading)
        reading.count_records(batch.num_rows)


def resolve_named_type(reading: RowSink, *, hint: str | None = None) -> TypeKey:
    """The type that the caller says the rows are of: `Person`, or `node:Person` to be precise."""
    catalog, name = reading.accepted.catalog, reading.options.type
    if name is None:
        raise reading.build_failure(
            0,
            RecordError(
                "a table does not say of which type its rows are: give the type",
                rule="type",
                hint="--type NAME on the command line, type=NAME in Python",
            ),
        )
    kind, _, bare = name.rpartition(":")
    if kind in ("", "node") and bare in catalog.nodes:
        return TypeKey(TypeKind.NODE, bare)
    edge = catalog.find_edge(bare)
    if kind in ("", "edge") and edge is not None:
        return TypeKey(TypeKind.EDGE, edge.name)
    unknown = RecordError(
        f"unknown type '{sanitize_text(name)}'", rule="type", hint=hint, value=sanitize_text(name)
    )
    raise reading.build_failure(0, unknown.with_suggestion(bare, [*catalog.nodes, *catalog.edges]))


def add_named_type(reading: RowSink) -> None:
    """Keep no rows of the named type: a type that occurs without rows occurs nevertheless."""
    type_key = resolve_named_type(reading)
    empty = incoming_schema_of(reading.shape_of(type_key)).empty_table()
    reading.add_rows(type_key, empty, np.array([], np.int64))


@dataclass(frozen=True)
class TableColumns:
    """Which column of a table holds what."""

    type_key: TypeKey
    # The index of each property, end or id among the columns of the table, by physical column.
    ids: dict[str, int]
    properties: dict[str, tuple[int, PropertyType]]
    absent: AbsentColumns
    convert: CoerceColumn

    @classmethod
    def from_schema(
        cls, schema: pa.Schema, type_key: TypeKey, reading: RowSink, convert_column: CoerceColumn
    ) -> TableColumns:
        """Find the columns, or raise the error that names which are unknown, missing or twice."""
        type_ = type_of(reading.accepted, type_key)
        types = {name: property_.type for name, property_ in type_.properties.items()}
        names = map_system_names(type_key, types)
        marks = (REFUSED, ORIGIN) if reading.may_mark else ()
        given = [name for name in schema.names if name not in marks]
        shape = reading.shape_of(type_key)
        needed = {
            name
            for name in types
            if name in shape.key
            or (type_.properties[name].must_be_given and not reading.options.is_patch)
        }
        problems = list(_iter_name_errors(given, type_key.name, types, ids=names, needed=needed))
        for problem in problems[:-1]:
            reading.reject_record(0, problem)
        if problems:
            raise reading.build_failure(0, problems[-1])
        indexes = {name: index for index, name in enumerate(schema.names)}
        return cls(
            type_key,
            {column: indexes[name] for name, column in names.items() if name in indexes},
            {name: (indexes[name], types[name]) for name in types if name in indexes},
            frozenset(shape.columns[name] for name in types if name not in indexes),
            convert_column,
        )

    def begin(self, reading: RowSink) -> None:
        """Keep no rows: a type that occurs without rows occurs nevertheless."""
        empty = incoming_schema_of(reading.shape_of(self.type_key)).empty_table()
        reading.add_rows(self.type_key, empty, np.array([], np.int64), self.absent)

    def read_batch(self, batch: pa.RecordBatch, numbers: RowNumbers, reading: RowSink) -> None:
        """Convert the columns of a batch; rows with a value that does not fit are refused."""
        shape = reading.shape_of(self.type_key)
        found: dict[str, CoercedColumn] = {}
        is_unmarked = self._are_unmarked(batch, numbers, reading)
        is_good = is_unmarked.copy()
        sources: dict[str, tuple[str, int, PropertyType | None]] = {}
        for column, index in self.ids.items():
            sources[column] = (batch.schema.names[index], index, None)
        for name, (index, property_type) in self.properties.items():
            sources[shape.columns[name]] = (name, index, property_type)
        for column, (name, index, type_) in sources.items():
            values = batch.column(index)
            found[column] = self._coerce_values(values, name, type_, reading)
            if (bad := found[column].bad) is not None:
                rows = np.flatnonzero(bad.to_numpy(zero_copy_only=False))
                is_good[rows] = False
                for row in rows[: reading.shown_max].tolist():
                    refused = self._build_value_error(values, row, (name, type_), reading)
                    reading.reject_record(int(numbers[row]), refused)
                reading.count_rejected(len(rows) - reading.shown_max)
        schema = incoming_schema_of(shape)
        arrays = [
            found[field.name].values
            if field.name in found
            else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        table = pa.table(arrays, schema=schema)
        if not is_good.all():
            is_refused = is_unmarked & ~is_good
            self._reject_missing(found, is_refused, numbers, reading)
            refused = table.filter(pa.array(is_refused))
            reading.check_rejected_rows(self.type_key, refused, numbers[is_refused])
            table, numbers = table.filter(pa.array(is_good)), numbers[is_good]
        reading.add_rows(self.type_key, table, numbers, self.absent)

    def _reject_missing(
        self,
        found: dict[str, CoercedColumn],
        is_refused: npt.NDArray[np.bool_],
        numbers: RowNumbers,
        reading: RowSink,
    ) -> None:
        """Refuse rows with a bad value for the values they lack, too."""
        type_, shape = type_of(reading.accepted, self.type_key), reading.shape_of(self.type_key)
        for column, name, message in iter_required_columns(type_, shape):
            if column in self.absent:
                continue
            values, bad = found[column]
            if not values.null_count:
                continue
            is_missing = is_refused & values.is_null().to_numpy(zero_copy_only=False)
            if bad is not None:
                is_missing &= ~bad.to_numpy(zero_copy_only=False)
            missing = numbers[is_missing]
            for number in missing[: reading.shown_max].tolist():
                reading.reject_record(number, build_missing_error(type_.name, name, message))
            reading.count_rejected(len(missing) - reading.shown_max)

    def _are_unmarked(
        self, batch: pa.RecordBatch, numbers: RowNumbers, reading: RowSink
    ) -> npt.NDArray[np.bool_]:
        """Which rows do not say that they cannot be written; those that do are refused."""
        index = batch.schema.get_field_index(REFUSED)
        if index < 0:
            return np.ones(batch.num_rows, np.bool_)
        marks = batch.column(index)
        is_good = np.array(marks.is_null())
        rows = np.flatnonzero(~is_good)
        for row in rows[: reading.shown_max].tolist():
            why = marks[row].as_py()
            record = why[REFUSED_RECORD]
            refused = RecordError(
                f"{why[REFUSED_MESSAGE]}: {sanitize_message(record[:_RECORD_CHARS_SHOWN])}",
                rule="value",
                hint="mend the record or its mapping, or leave it out: on_error quarantine",
                type_name=self.type_key.name,
                property=why[REFUSED_PROPERTY],
            )
            reading.reject_record(int(numbers[row]), refused)
        reading.count_rejected(len(rows) - reading.shown_max)
        return is_good

    def _coerce_values(
        self, values: pa.Array, name: str, type_: PropertyType | None, reading: RowSink
    ) -> CoercedColumn:
        try:
            if type_ is None:
                return coerce_ids(values)
            return self.convert(values, type_, is_strict=reading.is_strict)
        except (WrongArrowTypeError, pa.ArrowException) as failure:
            wanted = "text" if type_ is None else str(type_)
            because = f": {failure}" if str(failure) else ""
            wrong = RecordError(
                f"{self.type_key.name}.{name}: expects {wanted}, the column is of Arrow type"
                f" {values.type}{because}",
                rule="value",
                type_name=self.type_key.name,
                property=name,
            )
            raise reading.build_failure(0, wrong) from failure

    def _build_value_error(
        self,
        values: pa.Array,
        row: int,
        column: tuple[str, PropertyType | None],
        reading: RowSink,
    ) -> RecordError:
        name, type_ = column
        value, misfit = _explain_misfit(values, row, type_, is_strict=reading.is_strict)
        return RecordError(
            f"{self.type_key.name}.{name}: {misfit}",
            rule="value",
            hint=misfit.hint,
            type_name=self.type_key.name,
            property=name,
            value=value,
        )


def map_system_names(type_key: TypeKey, types: dict[str, PropertyType]) -> dict[str, str]:
    """The physical column of every name that stands for the id or an end."""
    ends = _ENDS if type_key.kind is TypeKind.EDGE else {}
    names = {name: column for column, aliases in ends.items() for name in aliases}
    return {_ID_NAME: ID_COLUMN, **names} | ({} if "id" in types else {"id": ID_COLUMN})


def _iter_name_errors(
    given: list[str],
    type_name: str,
    types: dict[str, PropertyType],
    *,
    ids: dict[str, str],
    needed: set[str],
) -> Iterator[RecordError]:
    """What is wrong with the names of the columns."""
    for name in dict.fromkeys(given):
        if given.count(name) > 1:
            yield RecordError(f"column '{sanitize_text(name)}' is there twice", rule="member")
        if name not in types and name not in ids:
            unknown = f"unknown column '{sanitize_text(name)}' of {type_name}"
            refused = RecordError(
                unknown, rule="member", type_name=type_name, property=sanitize_text(name)
            )
            yield refused.with_suggestion(name, [*types, *ids])
    yield from _iter_system_errors(given, ids)
    for name in types:
        if name not in given and name in needed:
            yield RecordError(
                f"non-nullable property '{name}' has null or invalid values:"
                " the table has no such column",
                rule="required",
                property=name,
            )


def _iter_system_errors(given: list[str], ids: dict[str, str]) -> Iterator[RecordError]:
    """What is wrong with the columns that hold the id and the ends."""
    for column, (noun, rule, needed) in _SYSTEM_COLUMNS.items():
        names = [name for name in ids if ids[name] == column]
        found = sorted((name for name in names if name in given), reverse=True)
        if len(found) > 1:
            problem = f"the {noun} stands both in column '{found[0]}' and in column '{found[1]}'"
            yield RecordError(problem, rule=rule)
        if names and not found and needed is not None:
            yield RecordError(f"requires field '{needed}': the table has no such column", rule=rule)


def _explain_misfit(
    values: pa.Array, row: int, type_: PropertyType | None, *, is_strict: bool
) -> tuple[str, MisfitError]:
    """A bad value, and what is wrong with it in the words of the exact reader."""
    wanted = "text" if type_ is None else str(type_)
    single = decode_plain(values.slice(row, 1))
    try:
        value = single[0].as_py()
    except UnicodeDecodeError as failure:
        return "?", MisfitError(f"invalid UTF-8 at byte {failure.start + 1}", hint=UTF8_HINT)
    except (ValueError, OverflowError, pa.ArrowException):
        # Instants of other millennia, and of a precision, that Python has no values for.
        value = _format_instant(single)
        if value is None or type_ is None:
            return "?", MisfitError(f"does not fit {wanted}")
    if type_ is not None:
        read = make_coercer(type_, is_strict=is_strict)
        try:
            read(_parse_number(value, type_))
            read(value)
        except MisfitError as misfit:
            return format_value(value), misfit
        except (ValueError, OverflowError) as failure:
            return format_value(value), MisfitError(str(failure))
    return format_value(value), MisfitError(f"{format_value(value)} does not fit {wanted}")


def _parse_number(value: Any, type_: PropertyType) -> Any:
    """The number that a text spells: its range says more than that it is a text."""
    if isinstance(value, str) and type_.scalar in NUMERIC:
        with suppress(ArithmeticError, ValueError):
            return Decimal(value) if type_.scalar in FLOATS else int(value)
    return value


def _format_instant(single: pa.Array) -> str | None:
    """An instant as its count and unit; None for what is not an instant."""
    if not pa.types.is_temporal(single.type):
        return None
    is_day = pa.types.is_date32(single.type)
    count = single.cast(pa.int32() if is_day else pa.int64())[0].as_py()
    return f"{count} {single.type}"


def _iter_numbered(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[pa.RecordBatch, RowNumbers]]:
    """The same rows in batches that are neither empty nor too long, with their numbers."""
    number = 1
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(start, BATCH_ROWS)
            yield part, np.arange(number, number + part.num_rows, dtype=np.int64)
            number += part.num_rows

"""Inputs as data: what the rows of each type are, and where each of them came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias

import pyarrow as pa

from omnigraph.rows.columns import TableShape
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey
from omnigraph.writers.graph_change import AbsentRows, RowOrigins

# The physical columns of a type that a table does not have.
AbsentColumns: TypeAlias = frozenset[str]
NONE_ABSENT: Final[AbsentColumns] = frozenset()

# Called with the number of records read so far, after every block of an input.
Progress: TypeAlias = Callable[[int], None]


class Dialect(Enum):
    """How strictly JSON records are read; tables have no such choice but for lost precision."""

    # One object on each line, every member known and of the right type.
    STRICT = "strict"
    # Any sequence of objects; what is unknown is ignored, a value of a wrong type is null.
    COMPATIBLE = "compatible"


class Missing(Enum):
    """What a patch does with entities that do not exist."""

    INSERT = "insert"
    SKIP = "skip"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class InputOptions:
    """How to read an input; `type` names the node or edge type of a table or frame.

    With `is_patch`, a table may lack any column that is not needed to identify its rows: the load
    leaves the committed values of such columns as they are. With `patches_records`, this is so for
    the members of records that name their type, too, and `missing` says what becomes of entities
    that do not exist.
    """

    dialect: Dialect = Dialect.STRICT
    type: str | None = None
    progress: Progress | None = None
    is_patch: bool = False
    patches_records: bool = False
    missing: Missing = Missing.INSERT
    # The time of the load in milliseconds, which defaults may read.
    now: int | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """Records as a text in memory; the name stands for a file in messages."""

    text: str | bytes
    name: str = "input"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file, or what stands for one in messages, and what is counted in it."""

    name: str
    # `line`, `record` or `row`.
    noun: str

    def location_of(self, number: int) -> str:
        """Where a record is, for people; 0 stands for the file as a whole."""
        return f"{self.name} {self.noun} {number}" if number else self.name


@dataclass(frozen=True)
class FileOrigins(RowOrigins):
    """Origins in files: the number of each row counts in the file of that row."""

    files: tuple[InputFile, ...] = ()
    # One int32 per row, an index into the files; None when there is one.
    indexes: pa.Array | None = None

    def location_of(self, row: int) -> str:
        """Where a row came from, for people."""
        file, number = self.order_of(row)
        return self.files[file].location_of(number)

    def order_of(self, row: int) -> tuple[int, int]:
        """The file and the number of a row, to sort by."""
        file = 0 if self.indexes is None else self.indexes[row].as_py()
        return file, self.numbers[row].as_py()

    def select_rows(self, rows: pa.Array) -> FileOrigins:
        """The origins of some of the rows."""
        indexes = None if self.indexes is None else self.indexes.take(rows)
        return replace(self, numbers=self.numbers.take(rows), indexes=indexes)


@dataclass(frozen=True)
class IncomingRows:
    """The rows of one type: all columns of its shape, where `__id` is the given id or null.

    Every value has the form its property needs; no rule of the schema was checked. `absent` are the
    rows whose table has no such column: there they hold null, which is not a value of the input.
    """

    shape: TableShape
    rows: pa.Table
    origins: FileOrigins
    absent: AbsentRows = field(default_factory=dict)


@dataclass(frozen=True)
class Input:
    """Everything that was read, by type: nodes by name, then edges by name."""

    accepted: AcceptedSchema
    dialect: Dialect
    types: Mapping[TypeKey, IncomingRows]
    # The time of the load in milliseconds.
    now: int | None = None

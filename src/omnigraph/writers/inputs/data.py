"""Inputs as data: what the rows of each type are, and where each of them came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from omnigraph.execution.columns import TableShape
from omnigraph.schema.accepted import AcceptedSchema, TypeKey
from omnigraph.writers.change import Origins

# Called with the number of records read so far, after every block of an input.
Progress: TypeAlias = Callable[[int], None]


class Dialect(Enum):
    """How strictly JSON records are read; tables have no such choice but for lost precision."""

    # One object on each line, every member known and of the right type.
    STRICT = "strict"
    # Any sequence of objects; what is unknown is ignored, a value of a wrong type is null.
    COMPATIBLE = "compatible"


@dataclass(frozen=True, slots=True)
class InputOptions:
    """How to read an input; `type` names the node or edge type of a table or frame."""

    dialect: Dialect = Dialect.STRICT
    type: str | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """Records as a text in memory; the name stands for a file in messages."""

    text: str | bytes
    name: str = "input"


@dataclass(frozen=True)
class FileOrigins(Origins):
    """Origins in several files: the number of each row counts in the file of that row."""

    names: tuple[str, ...] = ()
    # One int32 per row, an index into the names.
    files: pa.Array | None = None

    def place(self, row: int) -> str:
        """Where a row came from, for people."""
        if self.files is None:
            return super().place(row)
        name = self.names[self.files[row].as_py()]
        return f"{name} {self.noun} {self.numbers[row].as_py()}"

    def order(self, row: int) -> tuple[int, int]:
        """The file and the number of a row, to sort by."""
        file = 0 if self.files is None else self.files[row].as_py()
        return file, self.numbers[row].as_py()

    def taken(self, rows: pa.Array) -> FileOrigins:
        """The origins of some of the rows."""
        files = None if self.files is None else self.files.take(rows)
        return FileOrigins(self.source, self.numbers.take(rows), self.noun, self.names, files)


@dataclass(frozen=True)
class Incoming:
    """The rows of one type: all columns of its shape, where `__id` is the given id or null.

    Every value has the form its property needs; no rule of the schema was checked.
    """

    shape: TableShape
    rows: pa.Table
    origins: FileOrigins


@dataclass(frozen=True)
class Input:
    """Everything that was read, by type: nodes by name, then edges by name."""

    accepted: AcceptedSchema
    dialect: Dialect
    types: Mapping[TypeKey, Incoming]

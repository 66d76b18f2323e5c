"""One reading of an input: the rows of each type so far, their places, and what was refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.diagnostics import did_you_mean
from omnigraph.errors import VIOLATIONS_SHOWN_MAX, LoadError, ResourceLimit, Violation
from omnigraph.execution.columns import TableShape, table_shape
from omnigraph.schema.accepted import AcceptedSchema, TypeKey, TypeKind
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.change import AbsentRows
from omnigraph.writers.inputs.data import (
    NONE_ABSENT,
    AbsentColumns,
    Dialect,
    File,
    FileOrigins,
    Incoming,
    Input,
    InputOptions,
)
from omnigraph.writers.inputs.required import OrderedViolation, load_error, missing_values

# What one load may hold in memory, in bytes of Arrow columns.
LOAD_BYTES_MAX = 4 * 1024**3

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


class Refused(Exception):
    """What is wrong with a record: the message, and the same for a program."""

    def __init__(
        self, message: str, *, rule: str = "form", hint: str | None = None, **fields: str | None
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.hint = hint
        self.fields = fields
        # A word that may be a misspelling of one of some known ones.
        self.suggestion: tuple[str, Iterable[str]] | None = None

    def near(self, word: str, known: Iterable[str]) -> Refused:
        """The same, with a word to look up among known ones if the message is shown."""
        self.suggestion = (word, known)
        return self


@dataclass
class _Rows:
    """The parts of one type: rows, their numbers, their file, and the columns it does not have."""

    tables: list[pa.Table] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    absent: list[AbsentColumns] = field(default_factory=list)

    def absent_rows(self) -> AbsentRows:
        """For each column that some part lacks, the rows of those parts."""
        counts = [len(each) for each in self.numbers]
        return {
            column: np.repeat([column in each for each in self.absent], counts)
            for column in sorted(frozenset().union(*self.absent))
        }


class Reading:
    """Where the readers of all formats put what they read."""

    def __init__(self, accepted: AcceptedSchema, options: InputOptions) -> None:
        self.accepted = accepted
        self.options = options
        self.is_strict = options.dialect is Dialect.STRICT
        self.records = 0
        # How many bad values of one column of one batch are told one by one.
        self.told_max = VIOLATIONS_SHOWN_MAX
        # Whether the rows of tables may say why they cannot be written: only if we made them.
        self.may_mark = False
        self._shapes: dict[TypeKey, TableShape] = {}
        self._rows: dict[TypeKey, _Rows] = {}
        self._files: list[File] = []
        self._violations: list[OrderedViolation] = []
        self._refused = 0
        self._bytes = 0

    def begin(self, name: str, *, noun: str) -> None:
        """Go on with another file; what is added from now on came from it."""
        self._files.append(File(name, noun))

    def shape(self, type_key: TypeKey) -> TableShape:
        """How the rows of a type lie in its table."""
        if type_key not in self._shapes:
            self._shapes[type_key] = table_shape(self.accepted, type_key)
        return self._shapes[type_key]

    def add(
        self,
        type_key: TypeKey,
        rows: pa.Table,
        numbers: Numbers,
        absent: AbsentColumns = NONE_ABSENT,
    ) -> None:
        """Keep rows of a type, with all its columns, and the number of each row in its file.

        Columns that the file does not have are null in the rows.
        """
        assert rows.num_rows == len(numbers)
        self._bytes += rows.nbytes + numbers.nbytes
        if self._bytes > LOAD_BYTES_MAX:
            raise ResourceLimit(
                "the size in memory of one load, in bytes",
                limit=LOAD_BYTES_MAX,
                actual=self._bytes,
                hint="split the input into several loads",
            )
        found = self._rows.setdefault(type_key, _Rows())
        found.tables.append(rows)
        found.numbers.append(numbers)
        found.files.append(len(self._files) - 1)
        found.absent.append(absent)

    def count(self, records: int) -> None:
        """So many more records were looked at."""
        self.records += records
        if self.options.progress is not None and records:
            self.options.progress(self.records)

    def place(self, number: int) -> str:
        """Where a record of the current file is; 0 stands for the file as a whole."""
        return self._files[-1].place(number)

    def refuse(self, number: int, refused: Refused) -> None:
        """Note what is wrong with a record; the first of them are told one by one."""
        self._refused += 1
        if self._refused > VIOLATIONS_SHOWN_MAX:
            return
        message = str(refused)
        if refused.suggestion is not None and (hint := did_you_mean(*refused.suggestion)):
            message = f"{message}; {hint}"
        violation = Violation(refused.rule, message, place=self.place(number), **refused.fields)
        order = (len(self._files) - 1, number)
        self._violations.append(OrderedViolation(order, violation, refused.hint))

    def examine(self, type_key: TypeKey, rows: pa.Table, numbers: Numbers) -> None:
        """Take what is good of refused records, null for the rest, to tell what else is wrong.

        A load at once does not: it checks the rules of the schema when all values have their form.
        """

    def refuse_more(self, count: int) -> None:
        """So many more records are wrong in the way that was noted before."""
        self._refused += max(count, 0)

    def fail(self, number: int, refused: Refused) -> LoadError:
        """The error for a record after which nothing can be read, and for those before it."""
        self.refuse(number, refused)
        return self._error()

    def finish(self) -> Input:
        """Everything that was read, or the error that tells what was refused."""
        if self._refused:
            raise self._error()
        return Input(self.accepted, self.options.dialect, self._types())

    def _types(self) -> dict[TypeKey, Incoming]:
        ordered = sorted(self._rows, key=lambda key: (key.kind is TypeKind.EDGE, key.name))
        return {key: self._incoming(key) for key in ordered}

    def _error(self) -> LoadError:
        # Nobody will look at the rows after this, so that what they lack is told here.
        missing, count = missing_values(self._types(), self.accepted)
        return load_error([*self._violations, *missing], self._refused + count)

    def _incoming(self, type_key: TypeKey) -> Incoming:
        found, shape = self._rows.pop(type_key), self.shape(type_key)
        rows = pa.concat_tables(found.tables)
        numbers = pa.array(np.concatenate(found.numbers))
        indexes = None
        if len(self._files) > 1:
            counts = [len(each) for each in found.numbers]
            indexes = pa.array(np.repeat(np.array(found.files, np.int32), counts))
        first, *_ = files = tuple(self._files)
        origins = FileOrigins(first.name, numbers, first.noun, files, indexes)
        return Incoming(shape, rows, origins, found.absent_rows())


def incoming_schema(shape: TableShape) -> pa.Schema:
    """The columns of a type whose ids need not be known yet."""
    return pa.schema([pa.field(ID_COLUMN, pa.utf8()), *list(shape.schema)[1:]])


def missing_value(type_name: str, name: str | None, message: str) -> Refused:
    """A value that must be there and is not."""
    return Refused(message, rule="required", type_name=type_name, property=name, value="null")


def require_no_type(reading: Reading) -> None:
    """Refuse a type given for records, each of which names its own."""
    if reading.options.type is not None:
        raise reading.fail(
            0, Refused("every record names its own type: leave the type out", rule="type")
        )

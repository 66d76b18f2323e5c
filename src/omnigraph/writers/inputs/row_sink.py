"""One reading of an input: the rows of each type so far, their places, and what was refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, LoadError, ResourceLimitError, Violation
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.rows.columns import TableShape, build_table_shape
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import AbsentRows
from omnigraph.writers.inputs.input_rows import (
    NONE_ABSENT,
    AbsentColumns,
    Dialect,
    FileOrigins,
    IncomingRows,
    Input,
    InputFile,
    InputOptions,
)
from omnigraph.writers.inputs.required_values import (
    OrderedViolation,
    build_load_error,
    find_missing_values,
)

# What one load may hold in memory, in bytes of Arrow columns.
LOAD_BYTES_MAX = 4 * 1024**3

RowNumbers = np.ndarray[tuple[int], np.dtype[np.int64]]
FileIndexes = np.ndarray[tuple[int], np.dtype[np.int32]]


class RecordError(Exception):
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

    def with_suggestion(self, word: str, known: Iterable[str]) -> RecordError:
        """The same, with a word to look up among known ones if the message is shown."""
        self.suggestion = (word, known)
        return self


@dataclass
class _TypeParts:
    """The parts of one type: rows, their numbers, their file, and the columns it does not have."""

    tables: list[pa.Table] = field(default_factory=list)
    numbers: list[RowNumbers] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    absent: list[AbsentColumns] = field(default_factory=list)

    def collect_absent_rows(self) -> AbsentRows:
        """For each column that some part lacks, the rows of those parts."""
        counts = [len(each) for each in self.numbers]
        return {
            column: np.repeat([column in each for each in self.absent], counts)
            for column in sorted(frozenset().union(*self.absent))
        }


class RowSink:
    """Where the readers of all formats put what they read."""

    def __init__(self, accepted: AcceptedSchema, options: InputOptions) -> None:
        self.accepted = accepted
        self.options = options
        self.is_strict = options.dialect is Dialect.STRICT
        self.records = 0
        # How many bad values of one column of one batch are listed one by one.
        self.shown_max = VIOLATIONS_SHOWN_MAX
        # Whether the rows of tables may say why they cannot be written: only if we made them.
        self.may_mark = False
        self._shapes: dict[TypeKey, TableShape] = {}
        self._rows: dict[TypeKey, _TypeParts] = {}
        self._files: list[InputFile] = []
        self._violations: list[OrderedViolation] = []
        self._refused = 0
        self._bytes = 0

    def begin_file(self, name: str, *, noun: str) -> None:
        """Go on with another file; what is added from now on came from it."""
        self._files.append(InputFile(name, noun))

    def shape_of(self, type_key: TypeKey) -> TableShape:
        """How the rows of a type lie in its table."""
        if type_key not in self._shapes:
            self._shapes[type_key] = build_table_shape(self.accepted, type_key)
        return self._shapes[type_key]

    def add_rows(
        self,
        type_key: TypeKey,
        rows: pa.Table,
        numbers: RowNumbers,
        absent: AbsentColumns = NONE_ABSENT,
    ) -> None:
        """Keep rows of a type, with all its columns, and the number of each row in its file.

        Columns that the file does not have are null in the rows.
        """
        assert rows.num_rows == len(numbers)
        self._bytes += rows.nbytes + numbers.nbytes
        if self._bytes > LOAD_BYTES_MAX:
            raise ResourceLimitError(
                "the size in memory of one load, in bytes",
                limit=LOAD_BYTES_MAX,
                actual=self._bytes,
                hint="split the input into several loads",
            )
        found = self._rows.setdefault(type_key, _TypeParts())
        found.tables.append(rows)
        found.numbers.append(numbers)
        found.files.append(len(self._files) - 1)
        found.absent.append(absent)

    def count_records(self, records: int) -> None:
        """So many more records were examined."""
        self.records += records
        if self.options.progress is not None and records:
            self.options.progress(self.records)

    def location_of(self, number: int) -> str:
        """Where a record of the current file is; 0 stands for the file as a whole."""
        return self._files[-1].location_of(number)

    def reject_record(self, number: int, refused: RecordError) -> None:
        """Note what is wrong with a record; the first of them are listed one by one."""
        self._refused += 1
        if self._refused > VIOLATIONS_SHOWN_MAX:
            return
        message = str(refused)
        if refused.suggestion is not None and (hint := suggest_similar(*refused.suggestion)):
            message = f"{message}; {hint}"
        violation = Violation(
            refused.rule, message, place=self.location_of(number), **refused.fields
        )
        order = (len(self._files) - 1, number)
        self._violations.append(OrderedViolation(order, violation, refused.hint))

    def check_rejected_rows(self, type_key: TypeKey, rows: pa.Table, numbers: RowNumbers) -> None:
        """Take what is good of refused records, null for the rest, to report what else is wrong.

        A load at once does not: it checks the rules of the schema when all values have their form.
        """

    def count_rejected(self, count: int) -> None:
        """So many more records are wrong in the way that was noted before."""
        self._refused += max(count, 0)

    def build_failure(self, number: int, refused: RecordError) -> LoadError:
        """The error for a record after which nothing can be read, and for those before it."""
        self.reject_record(number, refused)
        return self._build_load_error()

    def finish_input(self) -> Input:
        """Everything that was read, or the error that lists what was refused."""
        if self._refused:
            raise self._build_load_error()
        return Input(self.accepted, self.options.dialect, self._build_types())

    def _build_types(self) -> dict[TypeKey, IncomingRows]:
        ordered = sorted(self._rows, key=lambda key: (key.kind is TypeKind.EDGE, key.name))
        return {key: self._build_incoming(key) for key in ordered}

    def _build_load_error(self) -> LoadError:
        # The rows are not examined after this, so that what they lack is reported here.
        missing, count = find_missing_values(self._build_types(), self.accepted)
        return build_load_error([*self._violations, *missing], self._refused + count)

    def _build_incoming(self, type_key: TypeKey) -> IncomingRows:
        found, shape = self._rows.pop(type_key), self.shape_of(type_key)
        rows, absent = pa.concat_tables(found.tables), found.collect_absent_rows()
        numbers = np.concatenate(found.numbers)
        counts = [len(each) for each in found.numbers]
        indexes = np.repeat(np.array(found.files, np.int32), counts)
        order = _find_order(indexes, numbers) if len(set(found.absent)) > 1 else None
        if order is not None:
            rows, numbers, indexes = rows.take(pa.array(order)), numbers[order], indexes[order]
            absent = {column: mask[order] for column, mask in absent.items()}
        first, *_ = files = tuple(self._files)
        places = pa.array(indexes) if len(files) > 1 else None
        origins = FileOrigins(first.name, pa.array(numbers), first.noun, files, places)
        return IncomingRows(shape, rows, origins, absent)


def _find_order(files: FileIndexes, numbers: RowNumbers) -> RowNumbers | None:
    """The order of rows by their files and numbers; None where they have it.

    Records of one block with different members come in several parts.
    """
    is_later = (np.diff(files) > 0) | ((np.diff(files) == 0) & (np.diff(numbers) >= 0))
    return None if is_later.all() else np.lexsort((numbers, files))


def incoming_schema_of(shape: TableShape) -> pa.Schema:
    """The columns of a type whose ids need not be known yet."""
    return pa.schema([pa.field(ID_COLUMN, pa.utf8()), *list(shape.schema)[1:]])


def build_missing_error(type_name: str, name: str | None, message: str) -> RecordError:
    """A value that must be there and is not."""
    return RecordError(message, rule="required", type_name=type_name, property=name, value="null")

"""One reading of an input: the rows of each type so far, their places, and what was refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, LoadError, ResourceLimitError, Violation
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.rows.columns import TableShape, build_table_shape
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.default_values import (
    DefaultValues,
    format_unfit_default,
    list_default_columns,
    mask_everywhere,
)
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
    type_of,
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
        *,
        are_named: bool = False,
    ) -> None:
        """Keep rows of a type, with all its columns, and the number of each row in its file.

        Columns that the file does not have are null in the rows. Records that are named say their
        type themselves, and are whole unless the load is a patch.
        """
        filled = self.choose_filled(type_key, absent, are_named=are_named)
        if filled:
            rows, numbers = self.fill_defaults(type_key, filled, rows, numbers)
            absent -= filled
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

    def list_default_columns(self, type_key: TypeKey) -> frozenset[str]:
        """The columns of a type whose absence is not the same as null, because of a default."""
        return list_default_columns(type_of(self.accepted, type_key), self.shape_of(type_key))

    def choose_filled(
        self, type_key: TypeKey, absent: AbsentColumns, *, are_named: bool
    ) -> AbsentColumns:
        """The absent columns that have a default, unless entities that exist keep their values."""
        keeps = self.options.patches_records if are_named else self.options.is_patch
        return absent & self.list_default_columns(type_key) if absent and not keeps else NONE_ABSENT

    def fill_defaults(
        self, type_key: TypeKey, columns: AbsentColumns, rows: pa.Table, numbers: RowNumbers
    ) -> tuple[pa.Table, RowNumbers]:
        """Rows with the defaults of some columns; where there is none, the record is refused."""
        is_good = np.ones(rows.num_rows, np.bool_)

        def reject(is_unfit: np.ndarray[Any, np.dtype[np.bool_]], name: str) -> None:
            message = format_unfit_default(type_key.name, name)
            fields = {"type_name": type_key.name, "property": name}
            for number in numbers[is_unfit & is_good][: self.shown_max].tolist():
                self.reject_record(number, RecordError(message, rule="value", **fields))
            self.count_rejected(int(np.count_nonzero(is_unfit & is_good)) - self.shown_max)
            is_good[is_unfit] = False

        type_, shape = type_of(self.accepted, type_key), self.shape_of(type_key)
        defaults = DefaultValues.from_type(type_, shape, self.options.now)
        filled = defaults.fill_rows(rows, mask_everywhere(columns, rows.num_rows), reject=reject)
        if not is_good.all():
            filled, numbers = filled.filter(pa.array(is_good)), numbers[is_good]
        return filled, numbers

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
        types, options = self._build_types(), self.options
        return Input(self.accepted, options.dialect, types, options.now)

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

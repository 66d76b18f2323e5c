"""One unit read by the readers of every load: its rows in portions, and what was refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.diagnostics import did_you_mean
from omnigraph.diagnostics.shown import readable
from omnigraph.errors import LoadError, Violation
from omnigraph.schema.accepted import AcceptedSchema, TypeKey
from omnigraph.writers.bulk.problems import Problem, Step
from omnigraph.writers.bulk.stores import Stores
from omnigraph.writers.bulk.streams import batches_of, lines_of, opened_piece, records_of
from omnigraph.writers.bulk.units import Format, Piece, Unit, noun_of
from omnigraph.writers.inputs.csv_files import read_csv, read_header
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.data import NONE_ABSENT, AbsentColumns, InputOptions
from omnigraph.writers.inputs.json_input import read_json
from omnigraph.writers.inputs.lines import Stream
from omnigraph.writers.inputs.reading import Numbers, Reading, Refused
from omnigraph.writers.inputs.tables import named_type, read_table
from omnigraph.writers.load import LoadMode

# Rows and bytes of one type that wait in memory before they are given away.
_PORTION_ROWS: Final = 1024 * 1024
PORTION_BYTES: Final = 256 * 1024**2


# Takes rows of a type, their numbers, and the columns that their file does not have.
Keep: TypeAlias = Callable[[TypeKey, pa.Table, Numbers, AbsentColumns], None]
Examine: TypeAlias = Callable[[TypeKey, pa.Table, Numbers], None]


class UnitReading(Reading):
    """A reading that gives its rows away in portions, and tells records by their numbers.

    `examine` gets what is good of refused records, to tell what else is wrong with them.
    """

    def __init__(
        self, accepted: AcceptedSchema, unit: Unit, keep: Keep, examine: Examine | None = None
    ) -> None:
        is_patch = unit.job.mode is LoadMode.MERGE
        super().__init__(accepted, InputOptions(type=unit.piece.type, is_patch=is_patch))
        self.told_max = unit.job.told_max
        self.may_mark = unit.job.may_mark
        self.problems: list[Problem] = []
        self.refused = 0
        # Blank lines count too: the numbers of the next unit go on from here.
        self.lines = 0
        self.is_complete = False
        self._keep = keep
        self._examine = examine
        self._waiting: dict[TypeKey, list[tuple[pa.Table, Numbers]]] = {}
        self._absent: dict[TypeKey, AbsentColumns] = {}

    def add(
        self,
        type_key: TypeKey,
        rows: pa.Table,
        numbers: Numbers,
        absent: AbsentColumns = NONE_ABSENT,
    ) -> None:
        """Keep rows of a type until they are a portion."""
        # A unit is of one file: all its rows of a type have the same columns.
        self._absent[type_key] = absent
        waiting = self._waiting.setdefault(type_key, [])
        waiting.append((rows, numbers))
        count = sum(len(found) for _, found in waiting)
        if count >= _PORTION_ROWS or sum(each.nbytes for each, _ in waiting) >= PORTION_BYTES:
            self._give(type_key)

    def examine(self, type_key: TypeKey, rows: pa.Table, numbers: Numbers) -> None:
        """Have looked what else is wrong with refused records."""
        if self._examine is not None and self._has_room:
            self._examine(type_key, rows, numbers)

    def refuse(self, number: int, refused: Refused) -> None:
        """Note what is wrong with a record."""
        self.refused += 1
        if not self._has_room:
            return
        message = str(refused)
        if refused.suggestion is not None and (hint := did_you_mean(*refused.suggestion)):
            message = f"{message}; {hint}"
        violation = Violation(refused.rule, message, **refused.fields)
        self.problems.append(Problem(Step.READ, number, violation, refused.hint))

    def refuse_more(self, count: int) -> None:
        """So many more records are wrong in the way that was noted before."""
        self.refused += max(count, 0)

    def fail(self, number: int, refused: Refused) -> LoadError:
        """The error after which nothing more of the unit can be read."""
        self.refuse(number, refused)
        return LoadError(str(refused), record=number)

    def give_rest(self) -> None:
        """Give away what is left."""
        for type_key in list(self._waiting):
            self._give(type_key)

    @property
    def _has_room(self) -> bool:
        return len(self.problems) < self.told_max

    def _give(self, type_key: TypeKey) -> None:
        waiting = self._waiting.pop(type_key)
        rows = pa.concat_tables([each for each, _ in waiting])
        numbers = np.concatenate([found for _, found in waiting])
        self._keep(type_key, rows, numbers, self._absent[type_key])


_Read: TypeAlias = Callable[[pa.NativeFile, Piece, UnitReading], None]


def read_unit(
    unit: Unit, stores: Stores, keep: Keep, examine: Examine | None = None
) -> UnitReading:
    """Read a unit; what stops the reading is a problem of its file."""
    reading = UnitReading(stores.schema(unit.job).accepted, unit, keep, examine)
    return _done(unit, stores, reading, _read)


def read_head(unit: Unit, stores: Stores) -> UnitReading:
    """Look at the type and the columns of the table file of a unit, and at none of its rows."""
    reading = UnitReading(stores.schema(unit.job).accepted, unit, _forget)
    return _done(unit, stores, reading, _look)


def _done(unit: Unit, stores: Stores, reading: UnitReading, read: _Read) -> UnitReading:
    piece = unit.piece
    reading.begin(piece.name, noun=noun_of(piece.format))
    try:
        with opened_piece(piece, unit.job, stores.notes) as stream:
            read(stream, piece, reading)
    except LoadError:
        assert reading.problems, "a reading that stops says why"
    except (OSError, pa.ArrowException) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        reading.refuse(0, Refused(readable(reason), rule="source"))
    else:
        reading.give_rest()
        reading.is_complete = True
    return reading


def _read(stream: pa.NativeFile, piece: Piece, reading: UnitReading) -> None:
    if piece.format is Format.JSONL:
        lines = _CountedLines(lines_of(stream, piece))
        read_json(lines, reading)
        reading.lines = lines.count
        return
    if piece.format is Format.CSV:
        named_type(reading)
        reading.lines = read_csv(records_of(stream, piece, reading), reading)
        return
    schema, batches = batches_of(stream, piece)
    read_table(batches, schema, reading)
    reading.lines = reading.records


def _look(stream: pa.NativeFile, piece: Piece, reading: UnitReading) -> None:
    named_type(reading)
    if piece.format is Format.CSV:
        read_header(CsvRecords(stream, reading), reading)
        return
    schema, _ = batches_of(stream, piece)
    read_table((), schema, reading)


def _forget(_type: TypeKey, _rows: pa.Table, _numbers: Numbers, _absent: AbsentColumns) -> None:
    """A head has no rows."""


class _CountedLines:
    """A stream that knows how many lines were read from it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.count = 0

    def read(self, nbytes: int, /) -> bytes:
        """Up to so many of the next bytes."""
        data = self._stream.read(nbytes)
        self.count += data.count(b"\n")
        return data

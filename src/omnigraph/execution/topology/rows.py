"""The rows of one version of a table, each with a number for as long as its entity lives."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.source import Numbers
from omnigraph.execution.topology.files import Files
from omnigraph.execution.topology.growing import GrowingArray
from omnigraph.execution.topology.memory import DERIVED, Memory, Parts
from omnigraph.execution.topology.numbering import Numbering, numbering_from
from omnigraph.execution.topology.piece import Keepable, Piece
from omnigraph.storage.pins import Pin
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.storage.table import Table

RowIds: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]

# The row of a number whose entity is gone.
NO_ROW: Final = np.uint64(2**64 - 1)
# Row ids up to so many times the number of rows are looked up in an array of all of them.
_SPARSE_MAX: Final = 4
# Pieces of an older version wait under their own names, after this.
_WAS: Final = "was "
# Smaller types are read from their tables as fast as from files.
_FILES_ROWS_MIN: Final = 1_000
# After so many versions that were extended from another, pieces are put together and saved again.
SETTLED_EVERY: Final = 128
# The name of the numbers themselves among the files of a version.
ROWS: Final = "rows"
_NUMBERING: Final = "numbering"
_T = TypeVar("_T", bound=Keepable)


@dataclass(frozen=True, slots=True)
class Inherited:
    """A piece of an older version: what it knows of are so many numbers, at rows up to one.

    From a file it comes as arrays.
    """

    value: Any  # Any: a piece of any kind
    size: int
    highest_row: int
    is_alive: Mask | None

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.value.nbytes)


@dataclass(frozen=True, slots=True)
class News:
    """The rows of a version that are above one, the highest of them, and their numbers."""

    above: int
    highest: int
    at: Numbers
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Kept:
    """Where pieces are kept: in memory, and maybe in files."""

    memory: Memory
    files: Files | None = None


class DenseRows:
    """The numbered rows of one version; columns are read in the order of numbers.

    Everything but the numbers can be read again, so it may be given up at any time.
    """

    def __init__(
        self,
        table: Table,
        numbering: Numbering,
        row_ids: GrowingArray,
        *,
        kept: Kept,
        generation: int = 0,
        news: News | None = None,
    ) -> None:
        self.table = table
        self.numbering = numbering
        # The row of each number; `NO_ROW` where the entity is gone.
        self.row_ids: RowIds = row_ids.values
        self.growing_row_ids = row_ids
        self.kept = kept
        # How many versions were extended, one from the other, since all was read.
        self.generation = generation
        self._news = news
        self.parts = Parts(kept.memory)

    @property
    def pin(self) -> Pin:
        """The version."""
        return self.table.pin

    @property
    def size(self) -> int:
        """How many numbers there are, with those whose entities are gone."""
        return len(self.row_ids)

    @property
    def count(self) -> int:
        """How many entities there are."""
        return self.pin.rows

    @property
    def nbytes(self) -> int:
        """How much memory the numbers themselves take."""
        return self.row_ids.nbytes

    @cached_property
    def is_alive(self) -> Mask | None:
        """Which numbers have an entity; None if all have."""
        return None if self.count == self.size else self.row_ids != NO_ROW

    @property
    def all(self) -> Numbers:
        """The numbers of all entities, ascending."""
        return self.parts.get(f"{DERIVED}all", self._all)

    @cached_property
    def highest_row(self) -> int:
        """The highest row id; every row that is added later has a higher one. -1 without rows."""
        if self._news is not None:
            return self._news.highest
        living = self.row_ids if self.is_alive is None else self.row_ids[self.is_alive]
        return int(living.max()) if len(living) else -1

    def at_rows(self, row_ids: RowIds) -> Numbers:
        """The numbers of rows; -1 where there is none."""
        if not self.count:
            return np.full(len(row_ids), -1, np.int32)
        if self.highest_row <= _SPARSE_MAX * max(self.size, 1024):
            numbers = self.parts.get(f"{DERIVED}by_row", self._by_row)
            # The last place is that of all row ids that are too high.
            return numbers.take(np.minimum(row_ids, np.uint64(len(numbers) - 1)))
        order = self.parts.get(f"{DERIVED}row_order", self._row_order)
        ordered = self.parts.get(f"{DERIVED}ordered", lambda: self.row_ids.take(order))
        places = np.minimum(np.searchsorted(ordered, row_ids), self.size - 1)
        is_there = (ordered.take(places) == row_ids) & (row_ids != NO_ROW)
        return np.where(is_there, order.take(places), -1).astype(np.int32)

    # ---- pieces ----

    @property
    def is_settled(self) -> bool:
        """Whether pieces are put together here, so that they can be saved."""
        return self.generation % SETTLED_EVERY == 0

    def part(
        self,
        name: str,
        make: Callable[[], _T],
        *,
        extend: Callable[[Inherited], _T | None],
        restore: Callable[[Piece, Inherited], _T],
    ) -> _T:
        """A piece: in memory, or from a file, or extended from an older version, or made.

        `restore` is given what a file holds, and what it knows of.
        """

        def made() -> _T:
            saved = self._loaded(name)
            if saved is not None:
                return restore(saved, self.inherited(saved))
            was: Inherited | None = self.parts.give_up(_WAS + name)
            if was is not None and isinstance(was.value, Piece):
                was = replace(was, value=restore(was.value, was))
            found = None if was is None else extend(was)
            if found is None:
                found = make()
            self._save(name, found)
            return found

        return self.parts.get(name, made)

    def replace_part(self, name: str, value: Keepable) -> None:
        """Have another piece under a name."""
        self.parts.keep(name, value)
        self._save(name, value)

    @property
    def piece_names(self) -> set[str]:
        """The names of the pieces that are in memory or in files."""
        files = self.kept.files
        saved = [] if files is None else files.names(self.pin)
        return {*self.parts.names, *saved} - {ROWS}

    def inherit(self, older: DenseRows) -> None:
        """Have the pieces of an older version, to extend those that are asked for."""
        for name in older.piece_names:
            value = older.parts.peek(name)
            if value is None:
                value = older._loaded(name)
            if isinstance(value, Inherited):
                self.parts.keep(name, value)
            elif value is not None and DERIVED not in name:
                self.parts.keep(_WAS + name, older.inherited(value))

    def inherited(self, value: Keepable | Piece) -> Inherited:
        """A piece of this version for a later one."""
        return Inherited(value, self.size, self.highest_row, self.is_alive)

    def save(self) -> None:
        """Save the numbers themselves, without which no other piece is of use."""
        self._save(ROWS, self)

    def to_piece(self) -> Piece:
        """The numbers as arrays."""
        return Piece({"row_ids": self.row_ids})

    def _save(self, name: str, value: Keepable) -> None:
        files = self.kept.files
        if files is None or not self.is_settled or self.count < _FILES_ROWS_MIN:
            return

        def piece() -> Piece | None:
            found = value.to_piece()
            numbering = list(self.numbering.segments)
            return found and Piece(found.arrays, {**found.notes, _NUMBERING: numbering})

        files.save(self.pin, name, piece)

    def _loaded(self, name: str) -> Piece | None:
        """A piece in a file that speaks of these very numbers."""
        files = self.kept.files
        piece = None if files is None else files.load(self.pin, name)
        if piece is None or numbering_from(piece.notes[_NUMBERING]) != self.numbering:
            return None
        return piece

    # ---- reading ----

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns in the order of numbers, with nulls where the entity is gone."""
        found = self.table.scan(columns=[*columns, ROW_ID])
        row_ids = found[ROW_ID].to_numpy()
        found = found.select(list(columns))
        if np.array_equal(row_ids, self.row_ids):
            return found
        places = np.full(self.size, -1, np.int64)
        places[self.at_rows(row_ids)] = np.arange(len(row_ids))
        is_gone = places < 0
        return found.take(pa.array(places, mask=is_gone if is_gone.any() else None))

    def read_since(self, was: Inherited, columns: Sequence[str]) -> tuple[Numbers, pa.Table]:
        """Some columns of the rows that are newer than a piece, with their numbers."""
        news = self._news
        if news is None or news.above != was.highest_row:
            return self._scanned_since(was, columns)
        if not set(columns) <= set(news.rows.column_names):
            return self._scanned_since(was, columns)
        return news.at, news.rows.select(list(columns))

    def _scanned_since(self, was: Inherited, columns: Sequence[str]) -> tuple[Numbers, pa.Table]:
        text = f"{ROW_ID} > {was.highest_row}" if was.highest_row >= 0 else None
        found = self.table.scan(columns=[*columns, ROW_ID], filter=text)
        return self.at_rows(found[ROW_ID].to_numpy()), found.select(list(columns))

    def read_batches(self, columns: Sequence[str]) -> Iterator[tuple[Numbers, pa.RecordBatch]]:
        """Some columns of all rows, a batch at a time, with the numbers of the rows."""
        done = 0
        for batch in self.table.batches(columns=[*columns, ROW_ID]):
            row_ids = batch.column(ROW_ID).to_numpy()
            here = slice(done, done + len(row_ids))
            if np.array_equal(row_ids, self.row_ids[here]):
                numbers = np.arange(here.start, here.stop, dtype=np.int32)
            else:
                numbers = self.at_rows(row_ids)
            done = here.stop
            yield numbers, batch

    # ---- what is derived from the numbers ----

    def _all(self) -> Numbers:
        if self.is_alive is None:
            return np.arange(self.size, dtype=np.int32)
        return np.flatnonzero(self.is_alive).astype(np.int32)

    def _by_row(self) -> Numbers:
        """The number of each row id, with one place more."""
        found = np.full(self.highest_row + 2, -1, np.int32)
        found[self.row_ids.take(self.all).astype(np.int64)] = self.all
        return found

    def _row_order(self) -> Numbers:
        """All numbers, in the order of their rows."""
        return np.argsort(self.row_ids, kind="stable").astype(np.int32)


def numbered(table: Table, *, kept: Kept) -> DenseRows:
    """The rows of a version, numbered in the order they are stored."""
    row_ids = table.scan(columns=[ROW_ID])[ROW_ID].to_numpy()
    # Whoever reads the same rows in the same order gives out the same numbers.
    name = f"{table.pin.path}@{table.pin.version}:{zlib.crc32(row_ids):08x}"
    numbering = Numbering().extended(len(row_ids), name)
    return DenseRows(table, numbering, GrowingArray(row_ids), kept=kept)


def restored(table: Table, *, kept: Kept) -> DenseRows | None:
    """The rows of a version, numbered as a file says; None if there is none."""
    piece = None if kept.files is None else kept.files.load(table.pin, ROWS)
    if piece is None:
        return None
    numbering = numbering_from(piece.notes[_NUMBERING])
    return DenseRows(table, numbering, GrowingArray(piece.arrays["row_ids"]), kept=kept)

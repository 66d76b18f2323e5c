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

from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology.append_array import AppendArray, PatchedArray
from omnigraph.execution.sources.topology.cache_files import Cacheable, CacheBlock, CacheFiles
from omnigraph.execution.sources.topology.entity_numbering import Numbering, decode_numbering
from omnigraph.execution.sources.topology.memory_cache import DERIVED, CachePartition, MemoryCache
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import Table

RowIds: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]

# The row of a number whose entity is gone.
NO_ROW: Final = np.uint64(2**64 - 1)
# The name of all pieces of an older version.
_WAS: Final = "was"
# Smaller types are read from their tables as fast as from files.
_FILES_ROWS_MIN: Final = 1_000
# After so many versions that were extended from another, pieces are saved again.
SETTLED_EVERY: Final = 128
# The rows of the last versions are at hand for pieces that did not follow each of them.
DELTAS_MAX: Final = 64
DELTA_ROWS_MAX: Final = 16_384
# The name of the numbers themselves among the files of a version.
ROWS: Final = "rows"
_NUMBERING: Final = "numbering"
_T = TypeVar("_T", bound=Cacheable)


@dataclass(frozen=True, slots=True)
class InheritedEntry:
    """A piece of an older version, with the rows of the numbers that it knows of.

    From a file it comes as arrays.
    """

    value: Any  # Any: a piece of any kind
    generation: int
    highest_row: int
    row_ids: PatchedArray

    @property
    def size(self) -> int:
        """How many numbers it knows of."""
        return len(self.row_ids)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.value.nbytes)


@dataclass(frozen=True, slots=True)
class InheritedEntries:
    """The pieces of older versions that are not extended yet, by name, and their sizes."""

    entries: dict[str, InheritedEntry]
    sizes: dict[str, int]

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return sum(self.sizes.values())


@dataclass(frozen=True, slots=True)
class VersionDelta:
    """What a version changed: the rows that it added with their numbers, and who ended."""

    generation: int
    at: DenseIds
    row_ids: RowIds
    rows: pa.Table
    # The numbers that had an entity before and have none any more.
    ended: DenseIds


@dataclass(frozen=True, slots=True)
class VersionHistory:
    """How a version came from others.

    So many of them were extended, one from the other, since all was read. What the last of them
    changed is known, that of this one last, and the highest row id there ever was.
    """

    generation: int
    deltas: tuple[VersionDelta, ...]
    highest_row: int


@dataclass(frozen=True, slots=True)
class RowDifference:
    """The numbers that have another row than before, those that are new, and those that ended."""

    changed: DenseIds
    added: DenseIds
    ended: DenseIds


@dataclass(frozen=True, slots=True)
class CacheTiers:
    """Where pieces are kept: in memory, and maybe in files."""

    memory: MemoryCache
    files: CacheFiles | None = None


class DenseRows:
    """The numbered rows of one version; columns are read in the order of numbers.

    Everything but the numbers can be read again, so it may be given up at any time.
    """

    def __init__(
        self,
        table: Table,
        numbering: Numbering,
        rows: PatchedArray,
        *,
        kept: CacheTiers,
        past: VersionHistory | None = None,
        is_restored: bool = False,
    ) -> None:
        self.table = table
        self.numbering = numbering
        # The row of each number; `NO_ROW` where the entity is gone.
        self.rows = rows
        self.kept = kept
        self.generation = 0 if past is None else past.generation
        self.news = () if past is None else past.deltas
        # Whether the numbers come from a file.
        self.is_restored = is_restored
        self._highest_row = None if past is None else past.highest_row
        self.parts = CachePartition(kept.memory)

    @property
    def pin(self) -> Pin:
        """The version."""
        return self.table.pin

    @property
    def size(self) -> int:
        """How many numbers there are, with those whose entities are gone."""
        return len(self.rows)

    @property
    def count(self) -> int:
        """How many entities there are."""
        return self.pin.rows

    @property
    def gone(self) -> int:
        """How many numbers have no entity any more."""
        return self.size - self.count

    @property
    def row_ids(self) -> RowIds:
        """The row of every number."""
        return self.rows.whole

    @property
    def nbytes(self) -> int:
        """How much memory the numbers themselves take."""
        return self.rows.nbytes

    @cached_property
    def is_alive(self) -> Mask | None:
        """Which numbers have an entity; None if all have."""
        return None if self.count == self.size else self.row_ids != NO_ROW

    def compute_alive(self, at: DenseIds) -> Mask | None:
        """Which of some numbers have an entity; None if all have."""
        if self.count == self.size:
            return None
        is_alive: Mask = self.rows.take(at) != NO_ROW
        return is_alive

    def is_alive_one(self, number: int) -> bool:
        """Whether a number has an entity."""
        return self.count == self.size or bool(self.rows.take_one(number) != NO_ROW)

    @property
    def all(self) -> DenseIds:
        """The numbers of all entities, ascending."""
        return self.parts.get(f"{DERIVED}all", self._list_all)

    @property
    def highest_row(self) -> int:
        """The highest row id; every row that is added later has a higher one. -1 without rows."""
        if self._highest_row is None:
            living = self.row_ids if self.is_alive is None else self.row_ids[self.is_alive]
            self._highest_row = int(living.max()) if len(living) else -1
        return self._highest_row

    def find_by_row_ids(self, row_ids: RowIds) -> DenseIds:
        """The numbers of rows; -1 where there is none."""
        found = self.rows.find(row_ids)
        found[row_ids == NO_ROW] = -1
        return found

    def find_difference(self, was: InheritedEntry) -> RowDifference:
        """What is different from the version of a piece."""
        if self.news and was.generation == self.generation - 1 == self.news[-1].generation - 1:
            news = self.news[-1]
            is_added = news.at >= was.size
            return RowDifference(news.at[~is_added], news.at[is_added], news.ended)
        changed = self.rows.find_differences(was.row_ids)
        is_ended = self.rows.take(changed) == NO_ROW
        added = np.arange(was.size, self.size, dtype=np.int32)
        is_alive = self.compute_alive(added)
        return RowDifference(
            changed[~is_ended],
            added if is_alive is None else added[is_alive],
            # Those who were gone already have no row in either.
            changed[is_ended],
        )

    # ---- pieces ----

    @property
    def is_settled(self) -> bool:
        """Whether pieces are saved here."""
        return self.generation % SETTLED_EVERY == 0

    def get_or_make(
        self,
        name: str,
        make: Callable[[], _T],
        *,
        extend: Callable[[InheritedEntry], _T | None],
        restore: Callable[[CacheBlock, InheritedEntry], _T],
    ) -> _T:
        """A piece: in memory, or from a file, or extended from an older version, or made.

        `restore` is given what a file holds, and what it knows of.
        """

        def made() -> _T:
            saved = self._load_block(name)
            if saved is not None:
                return restore(saved, self.to_inherited(saved))
            was = self._pop_inherited(name)
            if was is not None and isinstance(was.value, CacheBlock):
                was = replace(was, value=restore(was.value, was))
            found = None if was is None else extend(was)
            if found is None:
                found = make()
            self._save_entry(name, found)
            return found

        return self.parts.get(name, made)

    def replace_entry(self, name: str, value: Cacheable) -> None:
        """Have another piece under a name."""
        self.parts.keep(name, value)
        self._save_entry(name, value)

    @property
    def entry_names(self) -> set[str]:
        """The names of the pieces that are in memory or in files."""
        files = self.kept.files
        saved = [] if files is None else files.list_names(self.pin)
        return {*self.parts.names, *saved} - {ROWS, _WAS}

    def inherit(self, older: DenseRows) -> None:
        """Have the pieces of an older version, to extend those that are asked for."""
        before: InheritedEntries | None = older.parts.peek(_WAS)
        pieces = {} if before is None else dict(before.entries)
        sizes = {} if before is None else dict(before.sizes)
        names = older.entry_names if older.is_settled else set(older.parts.names) - {_WAS}
        for name in names:
            value = older.parts.peek(name)
            if value is None:
                value = older._load_block(name)
            if value is not None and DERIVED not in name:
                pieces[name] = older.to_inherited(value)
                sizes[name] = older.parts.size_of(name)
        # What both versions hold is counted with the newer one.
        older.parts.share()
        self.parts.keep(_WAS, InheritedEntries(pieces, sizes))

    def _pop_inherited(self, name: str) -> InheritedEntry | None:
        """A piece of an older version, which is not asked for again."""
        known: InheritedEntries | None = self.parts.peek(_WAS)
        found = None if known is None else known.entries.pop(name, None)
        if known is not None and found is not None:
            known.sizes.pop(name)
            self.parts.recount(_WAS, sum(list(known.sizes.values())))
        return found

    def to_inherited(self, value: Cacheable | CacheBlock) -> InheritedEntry:
        """A piece of this version for a later one."""
        return InheritedEntry(value, self.generation, self.highest_row, self.rows)

    def save(self) -> None:
        """Save the numbers themselves, without which no other piece is of use."""
        self._save_entry(ROWS, self)

    def to_block(self) -> CacheBlock:
        """The numbers as arrays."""
        return CacheBlock({"row_ids": self.rows.merge()})

    def _save_entry(self, name: str, value: Cacheable) -> None:
        files = self.kept.files
        if files is None or not self.is_settled or self.count < _FILES_ROWS_MIN:
            return

        def piece() -> CacheBlock | None:
            found = value.to_block()
            numbering = list(self.numbering.segments)
            return found and CacheBlock(found.arrays, {**found.metadata, _NUMBERING: numbering})

        files.save(self.pin, name, piece)

    def _load_block(self, name: str) -> CacheBlock | None:
        """A piece in a file that speaks of these very numbers."""
        files = self.kept.files if self.is_settled else None
        piece = None if files is None else files.load(self.pin, name)
        if piece is None or decode_numbering(piece.metadata[_NUMBERING]) != self.numbering:
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
        places[self.find_by_row_ids(row_ids)] = np.arange(len(row_ids))
        is_gone = places < 0
        return found.take(pa.array(places, mask=is_gone if is_gone.any() else None))

    def read_since(self, was: InheritedEntry, columns: Sequence[str]) -> tuple[DenseIds, pa.Table]:
        """Some columns of the rows that are newer than a piece, with their numbers."""
        news = [each for each in self.news if each.generation > was.generation]
        is_known = len(news) == self.generation - was.generation and all(
            set(columns) <= set(each.rows.column_names) for each in news
        )
        if not news or not is_known:
            return self._scan_since(was, columns)
        if len(news) == 1:
            return news[0].at, news[0].rows.select(list(columns))
        at = np.concatenate([each.at for each in news])
        rows = pa.concat_tables([each.rows.select(list(columns)) for each in news])
        # A row that another one took the place of since then does not count.
        is_current = self.rows.take(at) == np.concatenate([each.row_ids for each in news])
        if is_current.all():
            return at, rows
        return at[is_current], rows.filter(pa.array(is_current))

    def _scan_since(self, was: InheritedEntry, columns: Sequence[str]) -> tuple[DenseIds, pa.Table]:
        if was.highest_row >= self.highest_row:
            fields = [self.table.schema.field(name) for name in columns]
            return np.zeros(0, np.int32), pa.schema(fields).empty_table()
        text = f"{ROW_ID} > {was.highest_row}" if was.highest_row >= 0 else None
        found = self.table.scan(columns=[*columns, ROW_ID], filter=text)
        return self.find_by_row_ids(found[ROW_ID].to_numpy()), found.select(list(columns))

    def read_batches(self, columns: Sequence[str]) -> Iterator[tuple[DenseIds, pa.RecordBatch]]:
        """Some columns of all rows, a batch at a time, with the numbers of the rows."""
        done = 0
        for batch in self.table.scan_batches(columns=[*columns, ROW_ID]):
            row_ids = batch.column(ROW_ID).to_numpy()
            here = slice(done, done + len(row_ids))
            if np.array_equal(row_ids, self.row_ids[here]):
                numbers = np.arange(here.start, here.stop, dtype=np.int32)
            else:
                numbers = self.find_by_row_ids(row_ids)
            done = here.stop
            yield numbers, batch

    # ---- what is derived from the numbers ----

    def _list_all(self) -> DenseIds:
        if self.is_alive is None:
            return np.arange(self.size, dtype=np.int32)
        return np.flatnonzero(self.is_alive).astype(np.int32)


def number_rows(table: Table, *, kept: CacheTiers) -> DenseRows:
    """The rows of a version, numbered in the order they are stored."""
    row_ids = table.scan(columns=[ROW_ID])[ROW_ID].to_numpy()
    # The same rows read in the same order get the same numbers.
    name = f"{table.pin.path}@{table.pin.version}:{zlib.crc32(row_ids):08x}"
    numbering = Numbering().extend(len(row_ids), name)
    return DenseRows(table, numbering, PatchedArray(AppendArray(row_ids)), kept=kept)


def restore_rows(table: Table, *, kept: CacheTiers) -> DenseRows | None:
    """The rows of a version, numbered as a file says; None if there is none."""
    piece = None if kept.files is None else kept.files.load(table.pin, ROWS)
    if piece is None:
        return None
    numbering = decode_numbering(piece.metadata[_NUMBERING])
    rows = PatchedArray(AppendArray(piece.arrays["row_ids"]))
    return DenseRows(table, numbering, rows, kept=kept, is_restored=True)

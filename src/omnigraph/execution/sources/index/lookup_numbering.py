"""Numbers for what a query meets, given in the order in which it meets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ResourceLimitError
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.sorted_search import find_positions

RowIds = npt.NDArray[np.uint64]
# Called with how many bytes are kept from now on, before they are allocated.
MemoryAllocator: TypeAlias = Callable[[int], None]
# A row id twice, once in order, and its number.
_ROW_BYTES: Final = 20
DENSE_IDS_MAX: Final = 2**31 - 1
# No row has this id.
NO_ROW: Final = np.uint64(2**64 - 1)
_NO_ROWS: Final[RowIds] = np.empty(0, np.uint64)


class IdNumbering:
    """Numbers of ids."""

    def __init__(self, hold: MemoryAllocator) -> None:
        self._hold = hold
        self.ids: pa.Array = pa.array([], pa.utf8())

    def __len__(self) -> int:
        return len(self.ids)

    def find_numbers(self, ids: pa.Array) -> DenseIds:
        """The numbers of ids; -1 for an id that has none."""
        if not len(self.ids):
            return np.full(len(ids), -1, np.int32)
        return _to_int32(pc.fill_null(pc.index_in(ids, value_set=self.ids), -1))

    def assign_numbers(self, ids: pa.Array) -> DenseIds:
        """The numbers of ids; an id that has none gets the next one."""
        found = self.find_numbers(ids)
        unknown = np.flatnonzero(found < 0)
        if not len(unknown):
            return found
        new = (ids if len(unknown) == len(ids) else ids.take(pa.array(unknown))).dictionary_encode()
        _require_room(len(self.ids) + len(new.dictionary))
        self._hold(new.dictionary.nbytes)
        found[unknown] = _to_int32(new.indices) + np.int32(len(self.ids))
        self.ids = pa.concat_arrays([self.ids, new.dictionary])
        return found


class RowNumbering:
    """Numbers of rows by row id, for entities that nothing refers to by id."""

    def __init__(self, hold: MemoryAllocator) -> None:
        self._hold = hold
        self.row_ids: RowIds = _NO_ROWS
        self._sorted: RowIds = _NO_ROWS
        self._numbers: DenseIds = np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self.row_ids)

    def assign_numbers(self, row_ids: RowIds) -> tuple[DenseIds, npt.NDArray[np.int64]]:
        """The numbers of distinct rows, and the places of the rows that got theirs just now."""
        found = find_sorted(self._sorted, self._numbers, row_ids)
        places = np.flatnonzero(found < 0)
        if not len(places):
            return found, places
        first = len(self.row_ids)
        _require_room(first + len(places))
        self._hold(len(places) * _ROW_BYTES)
        found[places] = np.arange(first, first + len(places), dtype=np.int32)
        self.row_ids = np.concatenate([self.row_ids, row_ids[places]])
        order = np.argsort(self.row_ids, kind="stable")
        self._sorted, self._numbers = self.row_ids[order], order.astype(np.int32)
        return found, places


def find_sorted(keys: RowIds, numbers: DenseIds, wanted: RowIds) -> DenseIds:
    """The numbers beside the wanted keys among sorted ones; -1 where there is none."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int32)
    places, is_there = find_positions(wanted, keys)
    return np.where(is_there, numbers.take(places, mode="clip"), np.int32(-1))


def _require_room(count: int) -> None:
    if count > DENSE_IDS_MAX:
        what = "the number of entities of a type that a query meets"
        raise ResourceLimitError(what, limit=DENSE_IDS_MAX, actual=count)


def _to_int32(values: pa.Array) -> DenseIds:
    return np.array(values.to_numpy(zero_copy_only=False), np.int32)

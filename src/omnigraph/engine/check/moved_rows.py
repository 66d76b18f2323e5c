"""The rows that a commit moved, from its tables; what two versions share is not read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.check.checked_reads import TornFiles
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN

NO_IDS = pa.array([], pa.large_string())
_NO_ROWS = pa.table({ID_COLUMN: NO_IDS, ROW_ID: pa.array([], pa.uint64())})


@dataclass(frozen=True, slots=True)
class MovedRows:
    """The ids that a commit inserted, deleted and wrote again.

    Along a line of versions a row id names one row for good: a row that both versions have needs
    no comparison, and a row that was written again has another one. `before` and `after` are ids
    and row ids of all rows that are not in the same place of the same file in both versions; of
    these, `gone` and `came` are in one version only.
    """

    before: pa.Table
    after: pa.Table
    inserted: pa.Array
    deleted: pa.Array
    rewritten: pa.Array
    removed_rows: pa.Table
    added_rows: pa.Table
    kept_rows: int


def compare_versions(before: Pin | None, after: Pin, torn: TornFiles) -> MovedRows:
    """Compare two versions of a table; without a first one, all rows are new."""
    if before is None:
        old, new, shared = _NO_ROWS, _TableVersion(after, torn).read_all(), 0
    else:
        old, new, shared = _exclude_shared_rows(
            _TableVersion(before, torn), _TableVersion(after, torn)
        )
    # Rows that were copied, or a table with another column, mostly keep their order.
    same = _count_common_rows(old, new)
    ours, theirs = old.slice(same), new.slice(same)
    gone, came = _split_exclusive_rows(ours, theirs)
    old_ids, new_ids = concatenate_chunks(gone[ID_COLUMN]), concatenate_chunks(came[ID_COLUMN])
    return MovedRows(
        before=old,
        after=new,
        inserted=exclude_ids(new_ids, old_ids),
        deleted=exclude_ids(old_ids, new_ids),
        rewritten=intersect_ids(new_ids, old_ids),
        removed_rows=gone,
        added_rows=came,
        kept_rows=shared + new.num_rows - came.num_rows,
    )


def _split_exclusive_rows(ours: pa.Table, theirs: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that only the first and only the second of two tables has."""
    if ours.num_rows == 0:
        return ours, theirs
    places = pc.index_in(theirs[ROW_ID], value_set=concatenate_chunks(ours[ROW_ID]))
    is_same = pc.equal(theirs[ID_COLUMN], ours[ID_COLUMN].take(places))
    is_same = pc.fill_null(is_same, fill_value=False)
    is_kept = np.zeros(ours.num_rows, np.bool_)
    is_kept[places.filter(is_same).to_numpy()] = True
    return ours.filter(pa.array(~is_kept)), theirs.filter(pc.invert(is_same))


class _TableVersion:
    """One of two versions that are compared."""

    def __init__(self, pin: Pin, torn: TornFiles) -> None:
        self._pin = pin
        self._torn = torn
        with torn.explain_failures(pin):
            self.table = torn.tables.open(pin)

    def read_all(self) -> pa.Table:
        """The ids and row ids of all rows."""
        return self._read(lambda table: table.scan(columns=[ID_COLUMN, ROW_ID]))

    def read_fragments(self, ids: set[int]) -> pa.Table:
        """The ids and row ids of the rows in some fragments."""
        chosen = sorted(ids)
        return self._read(lambda table: table.scan_fragments(chosen, columns=[ID_COLUMN, ROW_ID]))

    def read_by_row_id(self, row_ids: npt.NDArray[np.uint64]) -> pa.Table:
        """The ids and row ids of some rows."""
        if len(row_ids) == 0:
            return _NO_ROWS
        wanted = pa.array(row_ids)
        return self._read(lambda table: table.fetch_rows(wanted, columns=[ID_COLUMN, ROW_ID]))

    def read_row_ids(self, ids: set[int]) -> npt.NDArray[np.uint64]:
        """The row ids in some fragments, which are read without their data."""
        with self._torn.explain_failures(self._pin):
            found = self.table.scan_fragments(sorted(ids), columns=[ROW_ID])
        row_ids: npt.NDArray[np.uint64] = found[ROW_ID].cast(pa.uint64()).to_numpy()
        return row_ids

    def _read(self, action: Callable[[Table], pa.Table]) -> pa.Table:
        with self._torn.explain_failures(self._pin):
            found = action(self.table)
        return pa.table(
            {
                ID_COLUMN: concatenate_chunks(found[ID_COLUMN].cast(pa.large_string())),
                ROW_ID: concatenate_chunks(found[ROW_ID].cast(pa.uint64())),
            }
        )


def _exclude_shared_rows(
    before: _TableVersion, after: _TableVersion
) -> tuple[pa.Table, pa.Table, int]:
    """The rows of two versions without those that are the same bytes in both, and how many are."""
    is_alike = before.table.pin.path == after.table.pin.path
    if not is_alike or before.table.field_ids != after.table.field_ids:
        return before.read_all(), after.read_all(), 0
    ours, theirs = before.table.fragments, after.table.fragments
    both = ours.keys() & theirs.keys()
    shared = {id_ for id_ in both if ours[id_] == theirs[id_]}
    shrunk = {id_ for id_ in both - shared if ours[id_].data == theirs[id_].data}
    gone, came = _split_exclusive_ids(before.read_row_ids(shrunk), after.read_row_ids(shrunk))
    known = shared | shrunk
    old = [before.read_fragments(ours.keys() - known), before.read_by_row_id(gone)]
    new = [after.read_fragments(theirs.keys() - known), after.read_by_row_id(came)]
    kept = sum(theirs[id_].rows for id_ in known) - len(came)
    return pa.concat_tables(old), pa.concat_tables(new), kept


def _split_exclusive_ids(
    ours: npt.NDArray[np.uint64], theirs: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """What only the first and only the second of two lists has."""
    # Most commits end a few rows, so that the lists begin alike and end alike.
    start = _count_common_prefix(ours, theirs)
    ours, theirs = ours[start:], theirs[start:]
    end = _count_common_prefix(ours[::-1], theirs[::-1])
    ours, theirs = ours[: len(ours) - end], theirs[: len(theirs) - end]
    return np.setdiff1d(ours, theirs), np.setdiff1d(theirs, ours)


def _count_common_prefix(ours: npt.NDArray[np.uint64], theirs: npt.NDArray[np.uint64]) -> int:
    count = min(len(ours), len(theirs))
    is_other = ours[:count] != theirs[:count]
    first = int(np.argmax(is_other)) if count else 0
    return first if count and is_other[first] else count


def _count_common_rows(before: pa.Table, after: pa.Table) -> int:
    """How many rows two versions start with are the same."""
    count = min(before.num_rows, after.num_rows)
    ours, theirs = before.slice(0, count), after.slice(0, count)
    is_same = pc.and_(
        pc.equal(ours[ROW_ID], theirs[ROW_ID]), pc.equal(ours[ID_COLUMN], theirs[ID_COLUMN])
    )
    first = pc.index(is_same, value=False).as_py()
    return count if first < 0 else int(first)


def exclude_ids(ids: pa.Array, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The ids that are not among others."""
    if not len(ids) or not len(others):
        return ids
    return ids.filter(pc.invert(pc.is_in(ids, value_set=concatenate_chunks(others))))


def intersect_ids(ids: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The ids that are among others."""
    if not len(ids) or not len(others):
        return NO_IDS
    return concatenate_chunks(ids.filter(pc.is_in(ids, value_set=concatenate_chunks(others))))


def concatenate_chunks(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The same values in one piece."""
    return ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids

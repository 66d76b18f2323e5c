"""From one version of a table to a later one: numbers stay, and only what changed is read.

Every copy of an entity has a row id of its own, higher than those before it, for as long as the
copy lives. So the rows that were added are those above the highest one known, and the change sets
in between say who they must be. Where they are not, nothing is believed, and all is read again.
So it is after a change set that says that everybody was replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.source import Numbers
from omnigraph.execution.topology.growing import GrowingArray
from omnigraph.execution.topology.rows import NO_ROW, DenseRows, Mask, News, RowIds
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.storage.table import LOOKUPS_MAX, Table
from omnigraph.versioning.changes import LoadedChange
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.record import Bulk, Changed

# When more numbers than this have no entity any more, numbers are given out again.
GONE_SHARE_MAX: Final = 0.5

# The numbers of living entities; -1 for other ids. None gives a new number to every new copy.
NumbersOf: TypeAlias = Callable[[pa.Array], Numbers] | None


def extended(
    older: DenseRows, table: Table, changes: Sequence[LoadedChange], *, numbers_of: NumbersOf
) -> DenseRows | None:
    """The rows of a later version under the numbers they had; None if it has to be read."""
    if any(isinstance(change, Bulk) and change.replaces for change in changes):
        return None
    told = _told(changes)
    text = f"{ROW_ID} > {older.highest_row}" if older.highest_row >= 0 else None
    new = table.scan(columns=[*_columns(older, table), ROW_ID], filter=text)
    ids = new[ID_COLUMN].combine_chunks()
    if not told.explains(ids):
        return None
    at = _numbers(older, ids, numbers_of)
    row_ids = _row_ids(older, new[ROW_ID].to_numpy(), at)
    if told.ends_any or int(at.min(initial=older.size)) < older.size:
        row_ids = GrowingArray(row_ids.values.copy())
        if numbers_of is None:
            row_ids.values[_are_dead(row_ids.values, older, table, told)] = NO_ROW
        else:
            row_ids.values[at] = new[ROW_ID].to_numpy()
            gone = numbers_of(told.dead)
            row_ids.values[gone[gone >= 0]] = NO_ROW
    later = DenseRows(
        table,
        older.numbering.extended(len(row_ids.values) - older.size),
        row_ids,
        kept=older.kept,
        generation=older.generation + 1,
        news=_news(older, at, new),
    )
    if not _is_sound(later):
        return None
    later.inherit(older)
    return later


def _columns(older: DenseRows, table: Table) -> list[str]:
    """What is read of new rows: their ids, and all that pieces will be extended with."""
    names = older.piece_names
    ends = {SOURCE_COLUMN, TARGET_COLUMN} if "ends" in names else set()
    return [name for name in table.schema.names if name in {ID_COLUMN, *ends, *names}]


# ---- what change sets tell ----


@dataclass(frozen=True, slots=True)
class _Told:
    """Whom the changes leave alive with a new copy, and whom not."""

    living: pa.Array
    dead: pa.Array
    # Whether a copy that was there before has ended.
    ends_any: bool
    # Whether there are others who were added, by the files that hold them.
    has_others: bool

    def explains(self, added: pa.Array) -> bool:
        """Whether rows of these ids are exactly those that there must be."""
        ids = added.cast(pa.large_string())
        if len(pc.unique(ids)) < len(ids) or _common(ids, self.dead):
            return False
        is_complete = _common(self.living, ids) == len(self.living)
        return is_complete and (self.has_others or len(self.living) == len(ids))


def _told(changes: Sequence[LoadedChange]) -> _Told:
    texts: list[pa.Array] = [pa.array([], pa.large_string())]
    are_alive = [np.zeros(0, np.bool_)]
    changed = [change for change in changes if isinstance(change, Changed)]
    for change in changed:
        parts = (change.inserted, True), (change.updated, True), (change.deleted, False)
        for ids, is_kept in parts:
            texts.append(ids.to_array())
            are_alive.append(np.full(len(ids), is_kept))
    everybody = pa.chunked_array(texts).combine_chunks().dictionary_encode()
    # Of several changes of one entity the last one is assigned last.
    is_alive = np.zeros(len(everybody.dictionary), np.bool_)
    is_alive[everybody.indices.to_numpy()] = np.concatenate(are_alive)
    return _Told(
        living=everybody.dictionary.filter(pa.array(is_alive)),
        dead=everybody.dictionary.filter(pa.array(~is_alive)),
        ends_any=any(len(each.updated) or len(each.deleted) for each in changed),
        has_others=any(isinstance(change, Bulk) for change in changes),
    )


def _common(left: pa.Array, right: pa.Array) -> int:
    found: int = pc.sum(pc.is_in(left, value_set=right)).as_py() if len(left) else 0
    return found


# ---- numbers ----


def _numbers(older: DenseRows, ids: pa.Array, numbers_of: NumbersOf) -> Numbers:
    """The number of each new row: that of its entity, or the next one."""
    if numbers_of is None:
        return np.arange(older.size, older.size + len(ids), dtype=np.int32)
    at = numbers_of(ids)
    is_new = at < 0
    at[is_new] = np.arange(np.count_nonzero(is_new), dtype=np.int32) + older.size
    return at


def _row_ids(older: DenseRows, new: RowIds, at: Numbers) -> GrowingArray:
    """The row of every number, where only numbers were added."""
    return older.growing_row_ids.appended(new[at >= older.size])


def _are_dead(row_ids: RowIds, older: DenseRows, table: Table, told: _Told) -> Mask:
    """Which rows were there and are not in the version any more."""
    ids = pa.concat_arrays([told.living, told.dead])
    indexed = {index.column for index in older.table.indexes}
    if ID_COLUMN in indexed and len(ids) <= LOOKUPS_MAX:
        ended = older.table.find(ID_COLUMN, ids)[ROW_ID].to_numpy()
        return np.isin(row_ids, ended)
    living = table.scan(columns=[ROW_ID])[ROW_ID].to_numpy()
    is_living = np.zeros(int(living.max(initial=0)) + 2, np.bool_)
    is_living[living.astype(np.int64)] = True
    # The last place is that of all row ids that are too high.
    return ~is_living.take(np.minimum(row_ids, np.uint64(len(is_living) - 1)))


def _news(older: DenseRows, at: Numbers, new: pa.Table) -> News:
    above = older.highest_row
    highest = int(new[ROW_ID].to_numpy().max()) if len(at) else above
    return News(above, max(above, highest), at, new.drop([ROW_ID]))


def _is_sound(later: DenseRows) -> bool:
    """Whether as many numbers have a row as there are rows, and not too few of them do."""
    gone = int(np.count_nonzero(later.row_ids == NO_ROW))
    return later.size - gone == later.count and gone <= GONE_SHARE_MAX * later.size

"""From one version of a table to a later one: numbers stay, and only what changed is read.

Every copy of an entity has a row id of its own, higher than those before it, for as long as the
copy lives. So the rows that were added are those above the highest one known, and the change sets
in between say who they must be. Where they are not, nothing is believed, and all is read again.
So it is after a change set that says that every entity was replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.sorted_arrays import NO_DENSE_IDS
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology.topology_rows import (
    DELTA_ROWS_MAX,
    DELTAS_MAX,
    NO_ROW,
    DenseRows,
    RowIds,
    VersionDelta,
    VersionHistory,
)
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.recent_writes import RowChanges
from omnigraph.storage.tables.row_ids import ROW_ID
from omnigraph.storage.tables.table_reader import LOOKUPS_MAX, Table
from omnigraph.versioning import change_sets
from omnigraph.versioning.change_sets import LoadedChange
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.log import Log
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import (
    GENESIS_SEQ,
    Bulk,
    Changed,
    ChangeSet,
    Maintenance,
    Record,
    Spilled,
)

# When more numbers than this have no entity any more, numbers are given out again.
GONE_SHARE_MAX: Final = 0.5

# The numbers of living entities; -1 for other ids. None gives a new number to every new copy.
FindDenseIds: TypeAlias = Callable[[pa.Array], DenseIds] | None

# A version that is older than this is cheaper to read again than to be brought up to date.
RECORDS_MAX: Final = 512

# So is one that differs in more than this share of its rows.
CHANGED_SHARE_MAX: Final = 0.1
_PAGE: Final = 32


def extend_rows(
    older: DenseRows, table: Table, changes: Sequence[LoadedChange], *, numbers_of: FindDenseIds
) -> DenseRows | None:
    """The rows of a later version under the numbers they had; None if it has to be read."""
    if any(isinstance(change, Bulk) and change.replaces for change in changes):
        return None
    expected = _collect_expected(changes)
    text = f"{ROW_ID} > {older.highest_row}" if older.highest_row >= 0 else None
    new = table.scan(columns=[*_list_columns(older, table), ROW_ID], filter=text)
    if not expected.matches_ids(new[ID_COLUMN].combine_chunks()):
        return None
    row_ids: RowIds = new[ROW_ID].to_numpy()
    if np.any(row_ids[1:] < row_ids[:-1]):
        # Numbers are given out in the order of rows.
        order = np.argsort(row_ids)
        row_ids, new = row_ids[order], new.take(pa.array(order))
    if numbers_of is None:
        ended = _find_dead(older, table, expected) if expected.has_ended else NO_DENSE_IDS
    else:
        gone = numbers_of(expected.dead)
        ended = gone[gone >= 0]
    return _build_later(
        older, table, _AddedRows(row_ids, new.drop([ROW_ID])), ended, numbers_of=numbers_of
    )


def apply_row_changes(
    older: DenseRows, table: Table, changes: RowChanges, *, numbers_of: FindDenseIds
) -> DenseRows | None:
    """The rows of a later version that this process made; None if it has to be read."""
    ended = older.find_by_row_ids(changes.dead)
    new = _AddedRows(changes.row_ids, changes.rows)
    return _build_later(older, table, new, ended[ended >= 0], numbers_of=numbers_of)


class _AddedRows(NamedTuple):
    """Rows that were added, in the order of their row ids."""

    row_ids: RowIds
    rows: pa.Table


def _build_later(
    older: DenseRows, table: Table, new: _AddedRows, ended: DenseIds, *, numbers_of: FindDenseIds
) -> DenseRows | None:
    """The rows of a later version, given what was added and who ended or has another row."""
    at = _assign_dense_ids(older, new.rows[ID_COLUMN], numbers_of)
    ended = np.sort(ended[np.isin(ended, at, invert=True)]) if len(ended) else NO_DENSE_IDS
    size = max(older.size, int(at.max(initial=-1)) + 1)
    if size - older.size > np.count_nonzero(at >= older.size):
        return None
    places = np.concatenate([ended, at])
    row_ids = np.concatenate([np.full(len(ended), NO_ROW), new.row_ids])
    generation = older.generation + 1
    news = VersionDelta(generation, at, new.row_ids, new.rows, ended)
    highest_row = int(new.row_ids[-1]) if len(new.row_ids) else older.highest_row
    later = DenseRows(
        table,
        older.numbering.extend(size - older.size),
        older.rows.patch(places, row_ids, size=size),
        kept=older.kept,
        past=VersionHistory(generation, _append_delta(older, news), highest_row),
    )
    if not _is_sound(older, later, ended):
        return None
    later.inherit(older)
    return later


def _list_columns(older: DenseRows, table: Table) -> list[str]:
    """What is read of new rows: their ids, and all that pieces will be extended with."""
    names = older.entry_names
    ends = {SOURCE_COLUMN, TARGET_COLUMN} if "ends" in names else set()
    return [name for name in table.schema.names if name in {ID_COLUMN, *ends, *names}]


# ---- what change sets say ----


@dataclass(frozen=True, slots=True)
class _ExpectedRows:
    """Whom the changes leave alive with a new copy, and whom not."""

    living: pa.Array
    dead: pa.Array
    # Whether a copy that was there before has ended.
    has_ended: bool
    # Whether there are others who were added, by the files that hold them.
    has_others: bool

    def matches_ids(self, added: pa.Array) -> bool:
        """Whether rows of these ids are exactly those that there must be."""
        ids = added.cast(pa.large_string())
        if len(pc.unique(ids)) < len(ids) or _count_common(ids, self.dead):
            return False
        is_complete = _count_common(self.living, ids) == len(self.living)
        return is_complete and (self.has_others or len(self.living) == len(ids))


def _collect_expected(changes: Sequence[LoadedChange]) -> _ExpectedRows:
    texts: list[pa.Array] = [pa.array([], pa.large_string())]
    are_alive = [np.zeros(0, np.bool_)]
    changed = [change for change in changes if isinstance(change, Changed)]
    for change in changed:
        parts = (change.inserted, True), (change.updated, True), (change.deleted, False)
        for ids, is_kept in parts:
            texts.append(ids.to_array())
            are_alive.append(np.full(len(ids), is_kept))
    every_id = pa.chunked_array(texts).combine_chunks().dictionary_encode()
    # Of several changes of one entity the last one is assigned last.
    is_alive = np.zeros(len(every_id.dictionary), np.bool_)
    is_alive[every_id.indices.to_numpy()] = np.concatenate(are_alive)
    return _ExpectedRows(
        living=every_id.dictionary.filter(pa.array(is_alive)),
        dead=every_id.dictionary.filter(pa.array(~is_alive)),
        has_ended=any(len(each.updated) or len(each.deleted) for each in changed),
        has_others=any(isinstance(change, Bulk) for change in changes),
    )


def _count_common(left: pa.Array, right: pa.Array) -> int:
    found: int = pc.sum(pc.is_in(left, value_set=right)).as_py() if len(left) else 0
    return found


# ---- numbers ----


def _assign_dense_ids(older: DenseRows, ids: pa.ChunkedArray, numbers_of: FindDenseIds) -> DenseIds:
    """The number of each new row: that of its entity, or the next one."""
    if numbers_of is None:
        return np.arange(older.size, older.size + len(ids), dtype=np.int32)
    at = numbers_of(flatten_chunks(ids))
    is_new = at < 0
    at[is_new] = np.arange(np.count_nonzero(is_new), dtype=np.int32) + older.size
    return at


def _find_dead(older: DenseRows, table: Table, expected: _ExpectedRows) -> DenseIds:
    """The numbers of rows that were there and are not in the version any more."""
    ids = pa.concat_arrays([expected.living, expected.dead])
    indexed = {index.column for index in older.table.indexes}
    if ID_COLUMN in indexed and len(ids) <= LOOKUPS_MAX:
        ended = older.find_by_row_ids(older.table.find(ID_COLUMN, ids)[ROW_ID].to_numpy())
        return ended[ended >= 0]
    living = table.scan(columns=[ROW_ID])[ROW_ID].to_numpy()
    is_living = np.zeros(older.size, np.bool_)
    known = older.find_by_row_ids(living)
    is_living[known[known >= 0]] = True
    if older.is_alive is not None:
        is_living |= ~older.is_alive
    return np.flatnonzero(~is_living).astype(np.int32)


def _append_delta(older: DenseRows, news: VersionDelta) -> tuple[VersionDelta, ...]:
    """The news of the last versions with those of one more, without too many rows."""
    kept = [*older.news, news][-DELTAS_MAX:]
    rows = 0
    for place in range(len(kept) - 1, -1, -1):
        rows += len(kept[place].at)
        if rows > DELTA_ROWS_MAX:
            return tuple(kept[place + 1 :])
    return tuple(kept)


def _is_sound(older: DenseRows, later: DenseRows, ended: DenseIds) -> bool:
    """Whether as many numbers have a row as there are rows, and not too few of them do."""
    was_alive = older.compute_alive(ended)
    gone = older.gone + (len(ended) if was_alive is None else int(np.count_nonzero(was_alive)))
    return later.gone == gone and gone <= GONE_SHARE_MAX * later.size


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """A known version, and the changes after it in their order."""

    pin: Pin
    changes: tuple[ChangeSet, ...]

    @property
    def is_small(self) -> bool:
        """Whether so little happened that the known version is worth to be extended."""
        is_replaced = any(isinstance(each, Bulk) and each.replaces for each in self.changes)
        changed = sum(map(_count_changed, self.changes))
        return not is_replaced and changed <= CHANGED_SHARE_MAX * max(self.pin.rows, 1)


class ChangeSource(Protocol):
    """The changes of tables between versions."""

    def find_changes_since(
        self, snapshot: Snapshot, type_key: str, known: Container[str]
    ) -> ChangesSince | None:
        """The newest known version before a snapshot, and what happened to the type since then.

        None if there is none, or none that is worth it.
        """

    def load(self, change: ChangeSet) -> LoadedChange:
        """A change with the ids it names."""


class LogChangeSource:
    """The changes that the records of a graph name."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def find_changes_since(
        self, snapshot: Snapshot, type_key: str, known: Container[str]
    ) -> ChangesSince | None:
        """The newest known version before a snapshot, and what happened to the type since then."""
        found: list[ChangeSet] = []
        for record in self._iter_records(snapshot):
            pin = record.pins.get(type_key)
            if pin is not None and pin.version in known:
                return ChangesSince(pin, tuple(reversed(found)))
            if _is_named_by(record, type_key):
                return None
            if type_key in record.changes:
                found.append(record.changes[type_key])
        return None

    def load(self, change: ChangeSet) -> LoadedChange:
        """A change with the ids it names."""
        return change_sets.load_change_set(self._log.objects, change)

    def _iter_records(self, snapshot: Snapshot) -> Iterator[Record]:
        """The records that made a snapshot, newest first, as far as they are stored."""
        last, first = snapshot.seq, max(snapshot.seq - RECORDS_MAX, GENESIS_SEQ)
        commit: str | None = snapshot.commit
        while last >= first:
            page = range(last, max(last - _PAGE, first - 1), -1)
            places = [(snapshot.stream.owner_of(seq).id, seq) for seq in page]
            for entry in self._log.read_many(places):
                # Another commit was put where the one that was there had been collected.
                if not isinstance(entry, Record) or entry.commit != commit:
                    return
                yield entry
                commit = entry.parent
            last -= _PAGE


def _is_named_by(record: Record, type_key: str) -> bool:
    """Whether a record gave the type its name, so that older ones know it by another, or not."""
    return type_key in (*record.registered, *record.renamed.values(), *record.renamed)


def _count_changed(change: ChangeSet) -> int:
    match change:
        case Changed():
            return len(change.inserted) + len(change.updated) + len(change.deleted)
        case Spilled():
            return change.inserted + change.updated + change.deleted
        case Bulk():
            return change.rows
        case Maintenance():
            return 0

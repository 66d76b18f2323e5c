"""The ids that records name, per table, and the candidates for a change between two views."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import assert_never

import pyarrow as pa

from omnigraph.changes.rows_by_id import read_all_ids
from omnigraph.changes.type_pairs import TypePair, pair_types
from omnigraph.errors import HistoryGoneError
from omnigraph.rows.view import View
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning import change_sets
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.id_sets import EMPTY, IdSet
from omnigraph.versioning.lineage import Lineage
from omnigraph.versioning.record import Bulk, Changed, Maintenance, Record

_NO_IDS = pa.array([], pa.large_string())


@dataclass(frozen=True, slots=True)
class WrittenIds:
    """The ids of one type that records wrote; `is_all` means all entities, before and after."""

    ids: IdSet = EMPTY
    is_all: bool = False


@dataclass(slots=True)
class _TableWrites:
    sets: list[IdSet] = field(default_factory=list)
    is_all: bool = False


def collect_writes(
    records: Iterable[Record],
    objects: Objects,
    tables: Tables,
    *,
    paths: Collection[str] | None = None,
) -> dict[str, WrittenIds]:
    """What records wrote, by the path of the table: a type that was created again has another.

    Only some paths, if they are given. Maintenance writes no entities.
    """
    found: dict[str, _TableWrites] = {}
    for record in records:
        for type_key, change in record.changes.items():
            pin = record.pins.get(type_key)
            # A type that ended with the commit has no table any more that could be looked into.
            if pin is None or (paths is not None and pin.path not in paths):
                continue
            match change_sets.load_change_set(objects, change):
                case Changed(inserted, updated, deleted):
                    of_path = found.setdefault(pin.path, _TableWrites())
                    of_path.sets += [inserted, updated, deleted]
                case Bulk(replaces=True):
                    found.setdefault(pin.path, _TableWrites()).is_all = True
                case Bulk() as bulk:
                    found.setdefault(pin.path, _TableWrites()).sets.append(
                        read_bulk_ids(bulk, pin, tables)
                    )
                case Maintenance():
                    pass
                case other:
                    assert_never(other)
    return {
        path: WrittenIds(is_all=True) if each.is_all else WrittenIds(IdSet.union_of(each.sets))
        for path, each in found.items()
    }


def find_candidates(
    old: View, new: View, lineage: Lineage, *, pairs: Iterable[TypePair] | None = None
) -> Iterator[tuple[TypePair, pa.Array]]:
    """For every type that may have changed, the ids outside of which it has not.

    They are those that were written since the lines of the two commits parted, on either side.
    Where records of that time were collected, every entity is a candidate.
    """
    chosen = pair_types(old, new, lineage) if pairs is None else list(pairs)
    moved = [pair for pair in chosen if _has_new_version(pair, old, new)]
    if not moved:
        return
    paths = {_table_path_of(new, pair) for pair in moved if _is_one_table(pair, old, new)}
    written = _collect_writes_since(old, new, lineage, paths) if paths else {}
    for pair in moved:
        if not _is_one_table(pair, old, new):
            yield pair, _read_all_ids(old, new, pair)
            continue
        found = written.get(_table_path_of(new, pair), WrittenIds())
        ids = _read_all_ids(old, new, pair) if found.is_all else found.ids.to_array()
        if len(ids):
            yield pair, ids


def _collect_writes_since(
    old: View, new: View, lineage: Lineage, paths: Collection[str]
) -> dict[str, WrittenIds]:
    """What was written to some tables since the lines of two views parted."""
    try:
        start = lineage.find_last_shared(old.snapshot, new.snapshot).seq
        records = [
            *lineage.read_between(old.snapshot, start),
            *lineage.read_between(new.snapshot, start),
        ]
    except HistoryGoneError:
        return dict.fromkeys(paths, WrittenIds(is_all=True))
    # A table that a record brings leaves no entity out: one of another line comes with the ids of
    # all its rows, and one that was away comes back as the line has had it last.
    return collect_writes(records, lineage.log.objects, new.tables, paths=paths)


def read_bulk_ids(bulk: Bulk, pin: Pin, tables: Tables) -> IdSet:
    """The ids in the files of a bulk load, at the version that it made."""
    rows = tables.open(pin).scan_files(bulk.files, columns=[ID_COLUMN])
    return IdSet(rows[ID_COLUMN])


def _has_new_version(pair: TypePair, old: View, new: View) -> bool:
    if pair.old is None or pair.new is None:
        return True
    pins = old.snapshot.pins[str(pair.old)], new.snapshot.pins[str(pair.new)]
    return pins[0] != pins[1]


def _is_one_table(pair: TypePair, old: View, new: View) -> bool:
    if pair.old is None or pair.new is None:
        return False
    return old.snapshot.pins[str(pair.old)].path == _table_path_of(new, pair)


def _table_path_of(new: View, pair: TypePair) -> str:
    return new.snapshot.pins[str(pair.new)].path


def _read_all_ids(old: View, new: View, pair: TypePair) -> pa.Array:
    parts = [
        read_all_ids(view, key)
        for view, key in ((old, pair.old), (new, pair.new))
        if key is not None
    ]
    return IdSet(pa.chunked_array(parts, pa.large_string())).to_array() if parts else _NO_IDS

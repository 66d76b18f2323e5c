"""Keys: the ids of busy types in memory, so that a small write needs no scan to know who exists.

A set of ids belongs to one table life on one branch and is true at one version; it is carried
forward by the change sets of the records in between. What changed after the version that is asked
about is looked up in the table instead, so that every answer is exactly that of the snapshot.

Each set has a lock of its own, which is held while its table or its records are read: writers of
one type wait for one reading of it, and nobody waits for that of another type.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import CorruptObject
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.versioning import changes as change_sets
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.log import Head, Log
from omnigraph.versioning.record import Changed, ChangeSet, Maintenance, Record, Spilled
from omnigraph.writers.limits import ASKED_MAX

# About 100 bytes per id: the sets of all types together stay below some 200 MB.
IDS_MAX: Final = 2_000_000
# A larger type is looked up in its table, where an index serves it.
TYPE_IDS_MAX: Final = 1_000_000
# A set costs about as much as one look-up per so many rows of the table.
ROWS_PER_LOOK: Final = 50_000
# How many recent changes are remembered for questions about older versions. A single commit that
# changes more is not carried over either: its set is read again, if it is still asked for.
RECENT_MAX: Final = 50_000
# A set that is further behind than this is cheaper to read again than to carry forward.
RECORDS_MAX: Final = 512
# How many types of how many branches are watched; who has not been asked for longest goes first.
PLACES_MAX: Final = 4_096

# The answer about ids of which none is known.
_NOBODY: Final = pa.array(np.zeros(ASKED_MAX, np.bool_))


@dataclass(slots=True)
class _Known:
    """The ids of one table life at one version; `recent` has the version of every later change."""

    path: str
    seq: int
    ids: set[str]
    complete_above: int
    recent: dict[str, int] = field(default_factory=dict)

    def note(self, change: Changed, seq: int) -> None:
        """Carry the set over one commit."""
        deleted, inserted = list(change.deleted), list(change.inserted)
        self.ids.difference_update(deleted)
        self.ids.update(inserted)
        self.recent.update(dict.fromkeys(deleted, seq))
        self.recent.update(dict.fromkeys(inserted, seq))
        self.seq = seq
        if len(self.recent) > RECENT_MAX:
            self.recent.clear()
            self.complete_above = seq


@dataclass(slots=True, eq=False)
class _Place:
    """One type on one branch: its set, if it has one, or how often one was missed.

    `size` is how many ids the set holds; it is also read by those who do not hold the lock.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    known: _Known | None = None
    looks: int = 0
    size: int = 0

    def keep(self, known: _Known | None) -> None:
        """Have another set, or none."""
        self.known, self.looks = known, 0
        self.size = 0 if known is None else len(known.ids)


class Keys:
    """The known ids of one graph; safe to share between threads."""

    def __init__(self, log: Log) -> None:
        self._log = log
        # Guards the dictionary only: nothing is read while it is held.
        self._lock = threading.Lock()
        self._places: OrderedDict[tuple[str, str], _Place] = OrderedDict()

    def existing(self, view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array:
        """Which of the ids the type holds at a snapshot, as a mask."""
        pin = view.snapshot.pins[str(type_key)]
        if pin.rows == 0 or len(ids) == 0:
            return pa.array(np.zeros(len(ids), np.bool_))
        answer = None
        if len(ids) <= ASKED_MAX:
            place = self._place(view, type_key)
            with place.lock:
                known = self._current(place, view, type_key)
                answer = None if known is None else _answer(known, view.snapshot.seq, ids)
        return _found(view, type_key, ids) if answer is None else answer

    def _place(self, view: View, type_key: TypeKey) -> _Place:
        name = (view.snapshot.stream.id, str(type_key))
        with self._lock:
            place = self._places.setdefault(name, _Place())
            self._places.move_to_end(name)
            while len(self._places) > PLACES_MAX:
                self._places.popitem(last=False)
        return place

    def _current(self, place: _Place, view: View, type_key: TypeKey) -> _Known | None:
        """The set of a type at the view's version or a later one; None when none is worth it."""
        snapshot = view.snapshot
        pin = snapshot.pins[str(type_key)]
        if place.known is not None and not self._is_carried(place.known, view, str(type_key)):
            place.keep(None)
        if place.known is None and _is_worth_it(place, pin.rows):
            ids = view.table(type_key).scan(columns=[ID_COLUMN])[ID_COLUMN].to_pylist()
            place.keep(_Known(pin.path, snapshot.seq, set(ids), complete_above=snapshot.seq))
            self._make_room(place)
        known = place.known
        if known is None or snapshot.seq < known.complete_above:
            return None
        place.size = len(known.ids)
        return known

    def _is_carried(self, known: _Known, view: View, type_key: str) -> bool:
        """Bring a set up to a version; False when it cannot be."""
        snapshot = view.snapshot
        if known.path != snapshot.pins[type_key].path or snapshot.seq - known.seq > RECORDS_MAX:
            return False
        if snapshot.seq <= known.seq:
            return True
        try:
            newer = self._log.between(snapshot.stream, known.seq, Head(snapshot))
        except CorruptObject:
            # Collected since this process last looked; if it is damage, `check` tells.
            return False
        for entry in newer:
            assert isinstance(entry, Record), "no entry before a snapshot ends its stream"
            if entry.registered or entry.dropped or entry.renamed:
                return False
            change = entry.changes.get(type_key)
            if change is not None and not isinstance(change, Maintenance):
                noted = self._noted(change)
                if noted is None:
                    return False
                known.note(noted, entry.seq)
            known.seq = entry.seq
        return True

    def _noted(self, change: ChangeSet) -> Changed | None:
        """A change set whose ids a set can be carried over; None if there are none, or too many."""
        if isinstance(change, Spilled | Changed) and _size(change) <= RECENT_MAX:
            loaded = change_sets.load(self._log.objects, change)
            return loaded if isinstance(loaded, Changed) else None
        return None

    def _make_room(self, newest: _Place) -> None:
        """Forget the sets that were not asked for longest, while there are too many ids."""
        with self._lock:
            total = sum(each.size for each in self._places.values())
            for name, place in list(self._places.items()):
                if total <= IDS_MAX:
                    return
                if place.size and place is not newest:
                    total -= place.size
                    del self._places[name]


def _size(change: Spilled | Changed) -> int:
    if isinstance(change, Spilled):
        return change.inserted + change.deleted
    return len(change.inserted) + len(change.deleted)


def _is_worth_it(place: _Place, rows: int) -> bool:
    if rows > TYPE_IDS_MAX:
        return False
    place.looks += 1
    return place.looks * ROWS_PER_LOOK >= rows


def _answer(known: _Known, seq: int, ids: pa.Array) -> pa.Array | None:
    """Which ids are in a set; None when one of them changed after the version asked about."""
    asked = ids.to_pylist()
    if any(known.recent.get(each, 0) > seq for each in asked):
        return None
    if known.ids.isdisjoint(asked):
        return _NOBODY.slice(0, len(asked))
    return pa.array([each in known.ids for each in asked], pa.bool_())


def _found(view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array:
    if len(ids) > ASKED_MAX:
        everybody = view.table(type_key).scan(columns=[ID_COLUMN])[ID_COLUMN]
        return pc.is_in(ids, value_set=everybody.combine_chunks())
    found = view.table(type_key).find(ID_COLUMN, ids)[ID_COLUMN]
    return pc.is_in(ids, value_set=found.combine_chunks())

"""Keys: the ids of busy types in memory, so that a small write needs no scan to know who exists.

A set of ids belongs to one table life on one branch and is true at one version; it is carried
forward by the change sets of the records in between. What changed after the version that is asked
about is looked up in the table instead, so that every answer is exactly that of the snapshot.

Branches of one table have most ids in common. What a set holds is an immutable base, which sets of
other branches share, and what differs from it: the set of a new branch is made from a base nearby
and the change sets in between, and costs what changed.

Each set has a lock of its own, which is held while its records or a small table are read: writers
of one type wait for one reading of it, and none waits for that of another type. The ids of a
large table are read in the background; until then, its index is asked.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterable
from concurrent.futures import Executor
from contextlib import suppress
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
from omnigraph.versioning.first_parents import last_gap, last_shared_place, tops_of
from omnigraph.versioning.log import Log
from omnigraph.versioning.record import Changed, ChangeSet, Maintenance, Record, Spilled
from omnigraph.versioning.snapshot import Head, Snapshot
from omnigraph.writers.id_table import IdTable
from omnigraph.writers.limits import ASKED_MAX

# About 40 bytes per id of a base: the sets of all types together stay below some 300 MB.
IDS_MAX: Final = 5_000_000
# A larger type is looked up in its table, where an index serves it.
TYPE_IDS_MAX: Final = 5_000_000
# So many ids are read in the time of a look-up or two.
READ_AT_ONCE_MAX: Final = 50_000
# More are read in the background, for a process that goes on to ask: after this many look-ups, and
# one more for so many rows.
LOOKS_MIN: Final = 3
ROWS_PER_LOOK: Final = 500_000
# How many recent changes are remembered for questions about older versions. A single commit that
# changes more is not carried over either: its set is read again, if it is still asked for.
RECENT_MAX: Final = 50_000
# A set that is further behind than this is cheaper to read again than to carry forward.
RECORDS_MAX: Final = 512
# What differs from a base is copied to no other branch, so a new base is made when it is more than
# this, and a share of the base. So bases grow geometrically, and their making costs little per id.
OWN_IDS_MIN: Final = 1_024
OWN_SHARE_MAX: Final = 1 / 8
# How many types of how many branches are watched; who has not been asked for longest goes first.
PLACES_MAX: Final = 4_096

# The answer about ids of which none is known.
_NOBODY: Final = pa.array(np.zeros(ASKED_MAX, np.bool_))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _Base:
    """The ids of one table life at one commit; sets of any branch may share it."""

    path: str
    at: Snapshot
    ids: IdTable


@dataclass(slots=True, eq=False)
class _Known:
    """The ids of one table life at one version: a base, without `gone`, and with `added`.

    `recent` has the version of every change above `complete_above`.
    """

    base: _Base
    seq: int
    complete_above: int
    added: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    recent: dict[str, int] = field(default_factory=dict)

    @property
    def own(self) -> int:
        """How many ids it holds besides those of its base."""
        return len(self.added) + len(self.gone)

    def which(self, ids: list[str]) -> list[bool]:
        """Which ids it has."""
        there = self.base.ids.among(ids) - self.gone
        return [each in there or each in self.added for each in ids]

    def change(self, *, inserted: Iterable[str], deleted: Iterable[str]) -> None:
        """Have some ids, and others no longer."""
        came, went = set(inserted), set(deleted)
        self.added -= went
        self.gone |= self.base.ids.among(went)
        self.gone -= came
        self.added |= came - self.base.ids.among(came)

    def note(self, change: Changed, seq: int) -> None:
        """Carry the set over one commit."""
        deleted, inserted = list(change.deleted), list(change.inserted)
        self.change(inserted=inserted, deleted=deleted)
        self.recent.update(dict.fromkeys(deleted, seq))
        self.recent.update(dict.fromkeys(inserted, seq))
        self.seq = seq
        if len(self.recent) > RECENT_MAX:
            self.recent.clear()
            self.complete_above = seq

    def is_far(self) -> bool:
        """Whether it has come so far from its base that it needs another one."""
        return self.own > max(OWN_IDS_MIN, OWN_SHARE_MAX * len(self.base.ids))

    def rebase(self, at: Snapshot) -> _Base:
        """Make a base of it, which is its own and nothing more."""
        ids = self.base.ids.changed(gone=self.gone, added=self.added)
        self.base = _Base(self.base.path, at, ids)
        self.added, self.gone = set(), set()
        return self.base


@dataclass(slots=True, eq=False)
class _Place:
    """One type on one branch: its set, if it has one, or how often one was missed.

    The set is replaced as a whole, and so may also be looked at without the lock.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    known: _Known | None = None
    looks: int = 0
    is_being_read: bool = False
    # Its ids take more memory than all sets may.
    is_too_large: bool = False

    def keep(self, known: _Known | None) -> None:
        """Have another set, or none."""
        self.known, self.looks = known, 0


class Keys:
    """The known ids of one graph; safe to share between threads.

    The ids of large tables are read on an executor, if there is one.
    """

    def __init__(self, log: Log, executor: Executor | None = None) -> None:
        self._log = log
        self._executor = executor
        # Guards the dictionary only: nothing is read while it is held.
        self._lock = threading.Lock()
        self._places: OrderedDict[tuple[str, str], _Place] = OrderedDict()
        # Those that some set uses.
        self._bases: weakref.WeakSet[_Base] = weakref.WeakSet()

    def existing(self, view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array:
        """Which of the ids the type holds at a snapshot, as a mask."""
        pin = view.snapshot.pins[str(type_key)]
        if pin.rows == 0 or len(ids) == 0:
            return pa.array(np.zeros(len(ids), np.bool_))
        answer = self.known(view, type_key, ids)
        return _found(view, type_key, ids) if answer is None else answer

    def known(self, view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array | None:
        """The same as far as it is known in memory; None if the table has to be asked."""
        if len(ids) > ASKED_MAX:
            return None
        place = self._place(view, type_key)
        with place.lock:
            known = self._current(place, view, type_key)
            return None if known is None else _answer(known, view.snapshot.seq, ids)

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
            self._fill(place, view, type_key)
            self._make_room(place)
        known = place.known
        if known is None or snapshot.seq < known.complete_above:
            return None
        if known.is_far() and known.seq == snapshot.seq:
            with self._lock:
                self._bases.add(known.rebase(snapshot))
            self._make_room(place)
        return known

    def _fill(self, place: _Place, view: View, type_key: TypeKey) -> None:
        """Give a place a set, now or later."""
        derived = self._derived(view, type_key)
        if derived is not None:
            place.keep(derived)
        elif self._executor is None or view.snapshot.pins[str(type_key)].rows <= READ_AT_ONCE_MAX:
            self._keep(place, self._read(view, type_key))
        elif not place.is_being_read:
            place.is_being_read = True
            self._read_later(self._executor, place, view, type_key)

    def _read(self, view: View, type_key: TypeKey) -> _Base:
        snapshot = view.snapshot
        ids = view.table(type_key).scan(columns=[ID_COLUMN])[ID_COLUMN]
        return _Base(snapshot.pins[str(type_key)].path, snapshot, IdTable(ids))

    def _read_later(self, executor: Executor, place: _Place, view: View, type_key: TypeKey) -> None:
        def read() -> None:
            try:
                base = self._read(view, type_key)
            finally:
                place.is_being_read = False
            with place.lock:
                if place.known is None:
                    self._keep(place, base)
            self._make_room(place)

        try:
            executor.submit(read)
        except RuntimeError:
            # The executor is shut down: the program is ending, and nothing depends on this.
            place.is_being_read = False

    def _keep(self, place: _Place, base: _Base) -> None:
        """Have a set that is a base and nothing more, unless it is too large."""
        place.is_too_large = base.ids.size > IDS_MAX
        if place.is_too_large:
            return
        with self._lock:
            self._bases.add(base)
        place.keep(_Known(base, base.at.seq, complete_above=base.at.seq))

    def _derived(self, view: View, type_key: TypeKey) -> _Known | None:
        """A set that shares the base of another branch; None if no base is near."""
        snapshot, path = view.snapshot, view.snapshot.pins[str(type_key)].path
        with self._lock:
            bases = [base for base in self._bases if base.path == path]
        tops = tops_of(snapshot)
        shared = [last_shared_place(tops_of(base.at), tops)[1] for base in bases]
        distances = [
            base.at.seq + snapshot.seq - 2 * seq for base, seq in zip(bases, shared, strict=True)
        ]
        if not bases or min(distances) > RECORDS_MAX:
            return None
        nearest = distances.index(min(distances))
        base, seq = bases[nearest], shared[nearest]
        known = _Known(base, snapshot.seq, complete_above=snapshot.seq)
        back = self._changes(base.at, seq, str(type_key))
        forth = self._changes(snapshot, seq, str(type_key))
        if back is None or forth is None:
            return None
        for change in reversed(back):
            known.change(inserted=change.deleted, deleted=change.inserted)
        for change in forth:
            known.change(inserted=change.inserted, deleted=change.deleted)
        return known

    def _changes(self, at: Snapshot, seq: int, type_key: str) -> list[Changed] | None:
        """What the commits of a line above a seq changed; None if that is not known or too much."""
        line = ((at.stream.owner(each).id, each) for each in range(seq + 1, at.seq + 1))
        entries = self._log.read_many(line)
        if last_gap(entries, up_to=at.commit) is not None:
            return None
        found = []
        for entry in entries:
            if not isinstance(entry, Record) or _has_moved_types(entry):
                return None
            change = entry.changes.get(type_key)
            if change is not None and not isinstance(change, Maintenance):
                noted = self._noted(change)
                if noted is None:
                    return None
                found.append(noted)
        return found

    def _is_carried(self, known: _Known, view: View, type_key: str) -> bool:
        """Bring a set up to a version; False when it cannot be."""
        snapshot = view.snapshot
        if (
            known.base.path != snapshot.pins[type_key].path
            or snapshot.seq - known.seq > RECORDS_MAX
        ):
            return False
        if snapshot.seq <= known.seq:
            return True
        try:
            newer = self._log.between(snapshot.stream, known.seq, Head(snapshot))
        except CorruptObject:
            # Collected since this process last looked; if it is damage, `check` finds it.
            return False
        for entry in newer:
            assert isinstance(entry, Record), "no entry before a snapshot ends its stream"
            if _has_moved_types(entry):
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
        """A change set whose ids a set can be carried over.

        None if it has none or too many, or if they are gone: then the ids are read again.
        """
        if isinstance(change, Spilled | Changed) and _size(change) <= RECENT_MAX:
            # A clean-up removes the file of a record that this process still remembers; if it is
            # damage, `check` finds it.
            with suppress(CorruptObject):
                loaded = change_sets.load(self._log.objects, change)
                return loaded if isinstance(loaded, Changed) else None
        return None

    def _make_room(self, newest: _Place) -> None:
        """Forget the sets that were not asked for longest, while there are too many ids."""
        with self._lock:
            sets = {name: place.known for name, place in self._places.items() if place.known}
            users = Counter(known.base for known in sets.values())
            total = sum(base.ids.size for base in users) + sum(each.own for each in sets.values())
            for name, known in sets.items():
                if total <= IDS_MAX:
                    return
                if known is not newest.known:
                    users[known.base] -= 1
                    total -= known.own + (0 if users[known.base] else known.base.ids.size)
                    del self._places[name]


def _has_moved_types(record: Record) -> bool:
    """Whether a type came, went or was renamed."""
    return bool(record.registered or record.dropped or record.renamed)


def _size(change: Spilled | Changed) -> int:
    if isinstance(change, Spilled):
        return change.inserted + change.deleted
    return len(change.inserted) + len(change.deleted)


def _is_worth_it(place: _Place, rows: int) -> bool:
    if rows > TYPE_IDS_MAX or place.is_too_large:
        return False
    place.looks += 1
    least = LOOKS_MIN + rows // ROWS_PER_LOOK
    return rows <= READ_AT_ONCE_MAX or place.looks >= least


def _answer(known: _Known, seq: int, ids: pa.Array) -> pa.Array | None:
    """Which ids are in a set; None when one of them changed after the version asked about."""
    asked = ids.to_pylist()
    if any(known.recent.get(each, 0) > seq for each in asked):
        return None
    is_there = known.which(asked)
    return pa.array(is_there, pa.bool_()) if any(is_there) else _NOBODY.slice(0, len(asked))


def _found(view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array:
    if len(ids) > ASKED_MAX:
        everybody = view.table(type_key).scan(columns=[ID_COLUMN])[ID_COLUMN]
        return pc.is_in(ids, value_set=everybody.combine_chunks())
    found = view.table(type_key).find(ID_COLUMN, ids)[ID_COLUMN]
    return pc.is_in(ids, value_set=found.combine_chunks())

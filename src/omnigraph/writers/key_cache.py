"""Keys: the ids of busy types in memory, so that a small write finds existing ids without a scan.

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
from collections import Counter
from collections.abc import Collection, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import CorruptObjectError
from omnigraph.lru_cache import LruCache
from omnigraph.rows.hashing import Hashes, hash_any_text, hash_any_texts
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.versioning import change_sets
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.first_parents import find_last_gap, find_last_shared_location, tops_of
from omnigraph.versioning.log import Log
from omnigraph.versioning.log_snapshot import Head, Snapshot
from omnigraph.versioning.record import Changed, ChangeSet, Maintenance, Record, Spilled
from omnigraph.writers.graph_change import LOOKUP_IDS_MAX

# About 40 bytes per id of a base: the sets of all types together stay below some 300 MB.
IDS_MAX: Final = 5_000_000

# A larger type is looked up in its table, where an index serves it.
TYPE_IDS_MAX: Final = 5_000_000

# So many ids are read in the time of a look-up or two.
READ_AT_ONCE_MAX: Final = 50_000

# More are read in the background, for a process that asks again: after this many look-ups, and
# one more for so many rows.
LOOKUPS_MIN: Final = 3
ROWS_PER_LOOKUP: Final = 500_000

# How many recent changes are remembered for questions about older versions. A single commit that
# changes more is not carried over either: its set is read again, if it is still asked for.
RECENT_MAX: Final = 50_000

# A set that lags by more than this is cheaper to read again than to carry forward.
RECORDS_MAX: Final = 512

# What differs from a base is copied to no other branch, so a new base is made when it is more than
# this, and a share of the base. So bases grow geometrically, and their making costs little per id.
OWN_IDS_MIN: Final = 1_024
OWN_SHARE_MAX: Final = 1 / 8

# How many types of how many branches are watched; the least recently used goes first.
SLOTS_MAX: Final = 4_096

# The answer about ids of which none is known.
_NONE_EXIST: Final = pa.array(np.zeros(LOOKUP_IDS_MAX, np.bool_))

# So few texts are looked for one by one.
FEW_MAX: Final = 16

# What an id of 24 characters takes.
ID_BYTES: Final = 40


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _BaseIds:
    """The ids of one table life at one commit; sets of any branch may share it."""

    path: str
    at: Snapshot
    ids: IdTable


@dataclass(slots=True, eq=False)
class _KnownIds:
    """The ids of one table life at one version: a base, without `gone`, and with `added`.

    `recent` has the version of every change above `complete_above`.
    """

    base: _BaseIds
    seq: int
    complete_above: int
    added: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    recent: dict[str, int] = field(default_factory=dict)

    @property
    def own(self) -> int:
        """How many ids it holds besides those of its base."""
        return len(self.added) + len(self.removed)

    def contains_each(self, ids: list[str]) -> list[bool]:
        """Which ids it has."""
        there = self.base.ids.select_known(ids) - self.removed
        return [each in there or each in self.added for each in ids]

    def apply_ids(self, *, inserted: Iterable[str], deleted: Iterable[str]) -> None:
        """Have some ids, and others no longer."""
        came, went = set(inserted), set(deleted)
        self.added -= went
        self.removed |= self.base.ids.select_known(went)
        self.removed -= came
        self.added |= came - self.base.ids.select_known(came)

    def apply_commit(self, change: Changed, seq: int) -> None:
        """Carry the set over one commit."""
        deleted, inserted = list(change.deleted), list(change.inserted)
        self.apply_ids(inserted=inserted, deleted=deleted)
        self.recent.update(dict.fromkeys(deleted, seq))
        self.recent.update(dict.fromkeys(inserted, seq))
        self.seq = seq
        if len(self.recent) > RECENT_MAX:
            self.recent.clear()
            self.complete_above = seq

    def is_far(self) -> bool:
        """Whether it has come so far from its base that it needs another one."""
        return self.own > max(OWN_IDS_MIN, OWN_SHARE_MAX * len(self.base.ids))

    def rebase(self, at: Snapshot) -> _BaseIds:
        """Make a base of it, which is its own and nothing more."""
        ids = self.base.ids.with_changes(gone=self.removed, added=self.added)
        self.base = _BaseIds(self.base.path, at, ids)
        self.added, self.removed = set(), set()
        return self.base


@dataclass(slots=True, eq=False)
class _KeySlot:
    """One type on one branch: its set, if it has one, or how often one was missed.

    The set is replaced as a whole, and so may also be examined without the lock.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    known: _KnownIds | None = None
    lookups: int = 0
    is_being_read: bool = False
    # Its ids take more memory than all sets may.
    is_too_large: bool = False

    def set_known(self, known: _KnownIds | None) -> None:
        """Have another set, or none."""
        self.known, self.lookups = known, 0


class KeyCache:
    """The known ids of one graph; safe to share between threads.

    The ids of large tables are read on an executor, if there is one.
    """

    def __init__(self, log: Log, executor: Executor | None = None) -> None:
        self._log = log
        self._executor = executor
        # So that a type gets one slot: nothing is read while it is held.
        self._lock = threading.Lock()
        self._slots: LruCache[tuple[str, str], _KeySlot] = LruCache(SLOTS_MAX)
        # Those that some set uses.
        self._bases: weakref.WeakSet[_BaseIds] = weakref.WeakSet()

    def create_empty(self) -> KeyCache:
        """A cache of its own, for a view of tables that no commit has."""
        return KeyCache(self._log)

    def find_existing(self, view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array:
        """Which of the ids the type holds at a snapshot, as a mask."""
        pin = view.snapshot.pins[str(type_key)]
        if pin.rows == 0 or len(ids) == 0:
            return pa.array(np.zeros(len(ids), np.bool_))
        answer = self.find_cached(view, type_key, ids)
        return _lookup_table(view, type_key, ids) if answer is None else answer

    def find_cached(self, view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array | None:
        """The same as far as it is known in memory; None if the table has to be asked."""
        if len(ids) > LOOKUP_IDS_MAX:
            return None
        place = self._get_slot(view, type_key)
        with place.lock:
            known = self._find_current(place, view, type_key)
            return None if known is None else _lookup_known(known, view.snapshot.seq, ids)

    def _get_slot(self, view: View, type_key: TypeKey) -> _KeySlot:
        name = (view.snapshot.stream.id, str(type_key))
        with self._lock:
            return self._slots.get(name) or self._slots.put(name, _KeySlot())

    def _find_current(self, place: _KeySlot, view: View, type_key: TypeKey) -> _KnownIds | None:
        """The set of a type at the view's version or a later one; None when none is worth it."""
        snapshot = view.snapshot
        pin = snapshot.pins[str(type_key)]
        if place.known is not None and not self._advance_known(place.known, view, str(type_key)):
            place.set_known(None)
        if place.known is None and _should_fill(place, pin.rows):
            self._fill_slot(place, view, type_key)
            self._evict_slots(place)
        known = place.known
        if known is None or snapshot.seq < known.complete_above:
            return None
        if known.is_far() and known.seq == snapshot.seq:
            with self._lock:
                self._bases.add(known.rebase(snapshot))
            self._evict_slots(place)
        return known

    def _fill_slot(self, place: _KeySlot, view: View, type_key: TypeKey) -> None:
        """Give a place a set, now or later."""
        derived = self._derive_from_base(view, type_key)
        if derived is not None:
            place.set_known(derived)
        elif self._executor is None or view.snapshot.pins[str(type_key)].rows <= READ_AT_ONCE_MAX:
            self._set_base(place, self._read_base(view, type_key))
        elif not place.is_being_read:
            place.is_being_read = True
            self._schedule_read(self._executor, place, view, type_key)

    def _read_base(self, view: View, type_key: TypeKey) -> _BaseIds:
        snapshot = view.snapshot
        ids = view.open_table(type_key).scan(columns=[ID_COLUMN])[ID_COLUMN]
        return _BaseIds(snapshot.pins[str(type_key)].path, snapshot, IdTable(ids))

    def _schedule_read(
        self, executor: Executor, place: _KeySlot, view: View, type_key: TypeKey
    ) -> None:
        def read() -> None:
            try:
                base = self._read_base(view, type_key)
            finally:
                place.is_being_read = False
            with place.lock:
                if place.known is None:
                    self._set_base(place, base)
            self._evict_slots(place)

        try:
            executor.submit(read)
        except RuntimeError:
            # The executor is shut down: the program is ending, and nothing depends on this.
            place.is_being_read = False

    def _set_base(self, place: _KeySlot, base: _BaseIds) -> None:
        """Have a set that is a base and nothing more, unless it is too large."""
        place.is_too_large = base.ids.size > IDS_MAX
        if place.is_too_large:
            return
        with self._lock:
            self._bases.add(base)
        place.set_known(_KnownIds(base, base.at.seq, complete_above=base.at.seq))

    def _derive_from_base(self, view: View, type_key: TypeKey) -> _KnownIds | None:
        """A set that shares the base of another branch; None if no base is near."""
        snapshot, path = view.snapshot, view.snapshot.pins[str(type_key)].path
        with self._lock:
            bases = [base for base in self._bases if base.path == path]
        tops = tops_of(snapshot)
        shared = [find_last_shared_location(tops_of(base.at), tops)[1] for base in bases]
        distances = [
            base.at.seq + snapshot.seq - 2 * seq for base, seq in zip(bases, shared, strict=True)
        ]
        if not bases or min(distances) > RECORDS_MAX:
            return None
        nearest = distances.index(min(distances))
        base, seq = bases[nearest], shared[nearest]
        known = _KnownIds(base, snapshot.seq, complete_above=snapshot.seq)
        back = self._read_changes(base.at, seq, str(type_key))
        forth = self._read_changes(snapshot, seq, str(type_key))
        if back is None or forth is None:
            return None
        for change in reversed(back):
            known.apply_ids(inserted=change.deleted, deleted=change.inserted)
        for change in forth:
            known.apply_ids(inserted=change.inserted, deleted=change.deleted)
        return known

    def _read_changes(self, at: Snapshot, seq: int, type_key: str) -> list[Changed] | None:
        """What the commits of a line above a seq changed; None if that is not known or too much."""
        line = ((at.stream.owner_of(each).id, each) for each in range(seq + 1, at.seq + 1))
        entries = self._log.read_many(line)
        if find_last_gap(entries, up_to=at.commit) is not None:
            return None
        found = []
        for entry in entries:
            if not isinstance(entry, Record) or _has_moved_types(entry):
                return None
            change = entry.changes.get(type_key)
            if change is not None and not isinstance(change, Maintenance):
                noted = self._load_change(change)
                if noted is None:
                    return None
                found.append(noted)
        return found

    def _advance_known(self, known: _KnownIds, view: View, type_key: str) -> bool:
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
            newer = self._log.read_between(snapshot.stream, known.seq, Head(snapshot))
        except CorruptObjectError:
            # Collected since this process last looked; if it is damage, `check` finds it.
            return False
        for entry in newer:
            assert isinstance(entry, Record), "no entry before a snapshot ends its stream"
            if _has_moved_types(entry):
                return False
            change = entry.changes.get(type_key)
            if change is not None and not isinstance(change, Maintenance):
                noted = self._load_change(change)
                if noted is None:
                    return False
                known.apply_commit(noted, entry.seq)
            known.seq = entry.seq
        return True

    def _load_change(self, change: ChangeSet) -> Changed | None:
        """A change set whose ids a set can be carried over.

        None if it has none or too many, or if they are gone: then the ids are read again.
        """
        if isinstance(change, Spilled | Changed) and _count_changed_ids(change) <= RECENT_MAX:
            # A clean-up removes the file of a record that this process still remembers; if it is
            # damage, `check` finds it.
            with suppress(CorruptObjectError):
                loaded = change_sets.load_change_set(self._log.objects, change)
                return loaded if isinstance(loaded, Changed) else None
        return None

    def _evict_slots(self, newest: _KeySlot) -> None:
        """Forget the sets that were not asked for longest, while there are too many ids."""
        with self._lock:
            sets = {name: place.known for name, place in self._slots.list_items() if place.known}
            users = Counter(known.base for known in sets.values())
            total = sum(base.ids.size for base in users) + sum(each.own for each in sets.values())
            for name, known in sets.items():
                if total <= IDS_MAX:
                    return
                if known is not newest.known:
                    users[known.base] -= 1
                    total -= known.own + (0 if users[known.base] else known.base.ids.size)
                    self._slots.discard(name)


def _has_moved_types(record: Record) -> bool:
    """Whether a type came, went or was renamed."""
    return bool(record.registered or record.dropped or record.renamed)


def _count_changed_ids(change: Spilled | Changed) -> int:
    if isinstance(change, Spilled):
        return change.inserted + change.deleted
    return len(change.inserted) + len(change.deleted)


def _should_fill(place: _KeySlot, rows: int) -> bool:
    if rows > TYPE_IDS_MAX or place.is_too_large:
        return False
    place.lookups += 1
    least = LOOKUPS_MIN + rows // ROWS_PER_LOOKUP
    return rows <= READ_AT_ONCE_MAX or place.lookups >= least


def _lookup_known(known: _KnownIds, seq: int, ids: pa.Array) -> pa.Array | None:
    """Which ids are in a set; None when one of them changed after the version asked about."""
    asked = ids.to_pylist()
    if any(known.recent.get(each, 0) > seq for each in asked):
        return None
    is_there = known.contains_each(asked)
    return pa.array(is_there, pa.bool_()) if any(is_there) else _NONE_EXIST.slice(0, len(asked))


def _lookup_table(view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array:
    if len(ids) > LOOKUP_IDS_MAX:
        stored_ids = view.open_table(type_key).scan(columns=[ID_COLUMN])[ID_COLUMN]
        return pc.is_in(ids, value_set=stored_ids.combine_chunks())
    found = view.open_table(type_key).find(ID_COLUMN, ids)[ID_COLUMN]
    return pc.is_in(ids, value_set=found.combine_chunks())


class IdTable:
    """An immutable set of ids."""

    __slots__ = ("_hashes", "_order", "_texts")

    def __init__(self, ids: pa.Array | pa.ChunkedArray) -> None:
        # Texts of 2 GB and more have wider offsets.
        chunks = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
        texts = pa.chunked_array(chunks, ids.type)
        is_wide = texts.nbytes >= np.iinfo(np.int32).max
        wide: pa.ChunkedArray = texts.cast(pa.large_string() if is_wide else pa.utf8())
        self._texts: pa.Array = wide.combine_chunks()
        hashes = hash_any_texts(self._texts)
        order = np.argsort(hashes)
        self._hashes: Hashes = hashes[order]
        self._order: npt.NDArray[np.uint32] = order.astype(np.uint32)

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def size(self) -> int:
        """How much memory it takes, in ids of ordinary length."""
        taken = self._texts.nbytes + self._hashes.nbytes + self._order.nbytes
        return max(len(self), int(taken) // ID_BYTES)

    def select_known(self, texts: Collection[str]) -> set[str]:
        """Those of some texts that are ids of it."""
        if len(texts) <= FEW_MAX:
            return {text for text in texts if self._contains_text(text)}
        asked = pa.array(texts, self._texts.type)
        return set(asked.filter(pa.array(self._find_positions(asked) >= 0)).to_pylist())

    def with_changes(self, *, gone: Collection[str], added: Iterable[str]) -> IdTable:
        """The same without some ids that it has, and with others that it lacks."""
        is_kept = np.ones(len(self), np.bool_)
        if gone:
            is_kept[self._find_positions(pa.array(list(gone), self._texts.type))] = False
        new = pa.array(list(added), self._texts.type)
        return IdTable(pa.chunked_array([self._texts.filter(pa.array(is_kept)), new]))

    def _contains_text(self, text: str) -> bool:
        """The same question about one text, in a tenth of the time."""
        wanted = np.uint64(hash_any_text(text))
        place = int(self._hashes.searchsorted(wanted))
        while place < len(self._hashes) and self._hashes[place] == wanted:
            if self._texts[int(self._order[place])].as_py() == text:
                return True
            place += 1
        return False

    def _find_positions(self, asked: pa.Array) -> npt.NDArray[np.int64]:
        """Where each text is among those of the table; -1 for one that it lacks."""
        hashes = hash_any_texts(asked)
        found = np.full(len(asked), -1, np.int64)
        near: npt.NDArray[Any] = np.searchsorted(self._hashes, hashes)
        left = np.arange(len(asked))
        # Ids that share a hash are neighbours: one step for each, and mostly one in all.
        while len(left):
            left = left[near[left] < len(self)]
            left = left[self._hashes[near[left]] == hashes[left]]
            places = self._order[near[left]]
            texts = self._texts.take(pa.array(places))
            is_same = pc.equal(texts, asked.take(pa.array(left))).to_numpy(zero_copy_only=False)
            found[left[is_same]] = places[is_same]
            left = left[~is_same]
            near[left] += 1
        return found

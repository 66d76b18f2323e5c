"""Keys: the ids of busy types in memory, so that a small write needs no scan to know who exists.

A set of ids belongs to one table life on one branch and is true at one version; it is carried
forward by the change sets of the records in between. What changed after the version that is asked
about is looked up in the table instead, so that every answer is exactly that of the snapshot.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.versioning import changes as change_sets
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.log import Head, Log
from omnigraph.versioning.record import Changed, Maintenance, Record

# About 100 bytes per id: the sets of all types together stay below some 200 MB.
IDS_MAX: Final = 2_000_000
# A larger type is looked up in its table, where an index serves it.
TYPE_IDS_MAX: Final = 1_000_000
# A scan of the table costs less than asking a set this often.
ASKED_MAX: Final = 10_000
# A set costs about as much as one look-up per so many rows of the table.
ROWS_PER_LOOK: Final = 50_000
# How many recent changes are remembered for questions about older versions.
RECENT_MAX: Final = 50_000
# A set that is further behind than this is cheaper to read again than to carry forward.
RECORDS_MAX: Final = 512


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
        for entity_id in change.deleted:
            self.ids.discard(entity_id)
            self.recent[entity_id] = seq
        for entity_id in change.inserted:
            self.ids.add(entity_id)
            self.recent[entity_id] = seq
        self.seq = seq
        if len(self.recent) > RECENT_MAX:
            self.recent.clear()
            self.complete_above = seq


class Keys:
    """The known ids of one graph; safe to share between threads."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._looks: dict[tuple[str, str], int] = {}

    def existing(self, view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array:
        """Which of the ids the type holds at a snapshot, as a mask."""
        pin = view.snapshot.pins[str(type_key)]
        if pin.rows == 0 or len(ids) == 0:
            return pa.array(np.zeros(len(ids), np.bool_))
        if len(ids) <= ASKED_MAX:
            with self._lock:
                known = self._current(view, type_key)
                if known is not None:
                    return self._answered(known, view, type_key, ids)
        return _found(view, type_key, ids)

    def _answered(self, known: _Known, view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array:
        asked, seq = ids.to_pylist(), view.snapshot.seq
        unsure = [each for each in asked if known.recent.get(each, 0) > seq]
        if not unsure:
            return pa.array([each in known.ids for each in asked], pa.bool_())
        return _found(view, type_key, ids)

    def _current(self, view: View, type_key: TypeKey) -> _Known | None:
        """The set of a type at the view's version or a later one; None when none is worth it."""
        snapshot = view.snapshot
        place = (snapshot.stream.id, str(type_key))
        path = snapshot.pins[str(type_key)].path
        known = self._known.get(place)
        if known is not None and not self._is_carried(known, view, str(type_key)):
            del self._known[place]
            known = None
        if known is None and self._is_worth_it(place, snapshot.pins[str(type_key)].rows):
            ids = view.table(type_key).scan(columns=[ID_COLUMN])[ID_COLUMN].to_pylist()
            known = _Known(path, snapshot.seq, set(ids), complete_above=snapshot.seq)
            self._keep(place, known)
        if known is None or snapshot.seq < known.complete_above:
            return None
        self._known.move_to_end(place)
        return known

    def _is_carried(self, known: _Known, view: View, type_key: str) -> bool:
        """Bring a set up to a version; False when it cannot be."""
        snapshot = view.snapshot
        if known.path != snapshot.pins[type_key].path or snapshot.seq - known.seq > RECORDS_MAX:
            return False
        if snapshot.seq <= known.seq:
            return True
        for entry in self._log.between(snapshot.stream, known.seq, Head(snapshot)):
            assert isinstance(entry, Record), "no entry before a snapshot ends its stream"
            change = entry.changes.get(type_key)
            loaded = None if change is None else change_sets.load(self._log.objects, change)
            if entry.registered or entry.dropped or entry.renamed:
                return False
            if isinstance(loaded, Changed):
                known.note(loaded, entry.seq)
            elif loaded is not None and not isinstance(loaded, Maintenance):
                return False
            known.seq = entry.seq
        return True

    def _is_worth_it(self, place: tuple[str, str], rows: int) -> bool:
        if rows > TYPE_IDS_MAX:
            return False
        looks = self._looks[place] = self._looks.get(place, 0) + 1
        return looks * ROWS_PER_LOOK >= rows

    def _keep(self, place: tuple[str, str], known: _Known) -> None:
        self._known[place] = known
        self._looks.pop(place, None)
        while (
            len(self._known) > 1 and sum(len(each.ids) for each in self._known.values()) > IDS_MAX
        ):
            self._known.popitem(last=False)


def _found(view: View, type_key: TypeKey, ids: pa.Array) -> pa.Array:
    if len(ids) > ASKED_MAX:
        everybody = view.table(type_key).scan(columns=[ID_COLUMN])[ID_COLUMN]
        return pc.is_in(ids, value_set=everybody.combine_chunks())
    found = view.table(type_key).find(ID_COLUMN, ids)[ID_COLUMN]
    return pc.is_in(ids, value_set=found.combine_chunks())

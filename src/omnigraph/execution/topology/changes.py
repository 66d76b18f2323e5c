"""What happened to a type between two versions of its table, as the log of a branch tells it."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from omnigraph.storage.pins import Pin
from omnigraph.versioning import changes as change_sets
from omnigraph.versioning.changes import LoadedChange
from omnigraph.versioning.log import Log
from omnigraph.versioning.record import (
    GENESIS_SEQ,
    Bulk,
    Changed,
    ChangeSet,
    Maintenance,
    Record,
    Spilled,
)
from omnigraph.versioning.snapshot import Snapshot

# A version that is further behind is cheaper to read again than to be brought up to date.
RECORDS_MAX: Final = 512
# So is one that differs in more than this share of its rows.
CHANGED_SHARE_MAX: Final = 0.1
_PAGE: Final = 32


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
    """Who tells what happened."""

    def find_changes_since(
        self, snapshot: Snapshot, type_key: str, known: Container[str]
    ) -> ChangesSince | None:
        """The newest known version before a snapshot, and what happened to the type since then.

        None if there is none, or none that is worth it.
        """

    def load(self, change: ChangeSet) -> LoadedChange:
        """A change with the ids it names."""


class LogChangeSource:
    """What the records of a graph tell."""

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

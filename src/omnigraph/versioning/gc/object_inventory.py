"""Every object there is, and what kind of object it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from omnigraph.storage.objects import layout
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.local_store import list_temporaries
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.sweeps import is_before


class ObjectKind(StrEnum):
    """What can be collected."""

    RECORD = "records"
    CHECKPOINT = "checkpoints"
    STREAM = "streams"
    CHANGE_SET = "change sets"
    PROBE = "probes"
    STAGED = "staged files"
    TEMPORARY = "temporary files"
    HOLD = "holds"
    DATA = "data files"
    VERSION = "versions"
    DELETION = "deletion files"
    INDEX = "index files"
    TRANSACTION = "transactions"


# What a write that is still under way may have written, and may yet refer to in its record.
PUBLISHABLE: Final = frozenset(
    {
        ObjectKind.CHANGE_SET,
        ObjectKind.DATA,
        ObjectKind.VERSION,
        ObjectKind.DELETION,
        ObjectKind.INDEX,
    }
)
# What no record can ever refer to.
UNREFERENCED: Final = frozenset({ObjectKind.PROBE, ObjectKind.STAGED, ObjectKind.TEMPORARY})
# What Lance keeps in a table, by folder. Anything else it may come to keep is left alone.
_OF_TABLES: Final = {
    "data": ObjectKind.DATA,
    "_versions": ObjectKind.VERSION,
    "_deletions": ObjectKind.DELETION,
    "_indices": ObjectKind.INDEX,
    "_transactions": ObjectKind.TRANSACTION,
}


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object that could be collected; `table` is the path of the table it belongs to."""

    path: str
    size: int
    kind: ObjectKind
    table: str | None = None


def list_before(objects: Objects, cutoff_us: int) -> list[StoredObject]:
    """Every object of a kind that is collected, and that was written before a time (µs)."""
    found = [
        stored
        for folder in _list_folders(objects)
        for entry in objects.list(folder)
        if is_before(entry.modified, cutoff_us) and (stored := _classify_entry(entry)) is not None
    ]
    return found + [
        StoredObject(entry.path, entry.size, ObjectKind.TEMPORARY)
        for entry in list_temporaries(objects.uri)
        if is_before(entry.modified, cutoff_us)
    ]


def _list_folders(objects: Objects) -> Iterable[str]:
    # Tables in memory are Lance's own and cannot be listed.
    is_memory = objects.uri.startswith("memory://")
    return (layout.MANIFEST,) if is_memory else (layout.MANIFEST, layout.TABLES)


def _classify_entry(entry: Entry) -> StoredObject | None:
    path = entry.path
    if path.startswith(f"{layout.TABLES}/"):
        parts = path.split("/", 3)
        kind = _OF_TABLES.get(parts[2]) if len(parts) == 4 else None
        return None if kind is None else StoredObject(path, entry.size, kind, "/".join(parts[:2]))
    own = _classify_manifest_object(path)
    return None if own is None else StoredObject(path, entry.size, own)


def _classify_manifest_object(path: str) -> ObjectKind | None:
    """The kind of an object beside the tables; None for one that stays for good."""
    if path.startswith(f"{layout.CHANGES}/"):
        return ObjectKind.CHANGE_SET
    if path.startswith(f"{layout.PROBES}/"):
        return ObjectKind.PROBE
    if path.startswith(f"{layout.STAGING}/"):
        return ObjectKind.STAGED
    if path.startswith(f"{layout.LEASES}/"):
        return ObjectKind.HOLD
    stream = layout.stream_of(path)
    if stream is None:
        return None
    if layout.parse_record_path(path) is not None:
        return ObjectKind.RECORD
    if layout.parse_checkpoint_path(path) is not None:
        return ObjectKind.CHECKPOINT
    # Floors stay for good: they are how a process that slept for long finds out.
    return ObjectKind.STREAM if path == layout.build_hint_path(stream) else None

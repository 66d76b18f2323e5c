"""Every object there is, and what kind of object it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.storage.paths import Entry
from omnigraph.storage.temporaries import temporaries
from omnigraph.versioning.sweeps import is_before


class Kind(StrEnum):
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
    {Kind.CHANGE_SET, Kind.DATA, Kind.VERSION, Kind.DELETION, Kind.INDEX}
)
# What no record can ever refer to.
UNREFERENCED: Final = frozenset({Kind.PROBE, Kind.STAGED, Kind.TEMPORARY})
# What Lance keeps in a table, by folder. Anything else it may come to keep is left alone.
_OF_TABLES: Final = {
    "data": Kind.DATA,
    "_versions": Kind.VERSION,
    "_deletions": Kind.DELETION,
    "_indices": Kind.INDEX,
    "_transactions": Kind.TRANSACTION,
}


@dataclass(frozen=True, slots=True)
class Stored:
    """An object that could be collected; `table` is the path of the table it belongs to."""

    path: str
    size: int
    kind: Kind
    table: str | None = None


def list_before(objects: Objects, cutoff_us: int) -> list[Stored]:
    """Every object of a kind that is collected, and that was written before a time (µs)."""
    found = [
        stored
        for folder in _folders(objects)
        for entry in objects.list(folder)
        if is_before(entry.modified, cutoff_us) and (stored := _stored(entry)) is not None
    ]
    return found + [
        Stored(entry.path, entry.size, Kind.TEMPORARY)
        for entry in temporaries(objects.uri)
        if is_before(entry.modified, cutoff_us)
    ]


def _folders(objects: Objects) -> Iterable[str]:
    # Tables in memory are Lance's own and cannot be listed.
    is_memory = objects.uri.startswith("memory://")
    return (layout.MANIFEST,) if is_memory else (layout.MANIFEST, layout.TABLES)


def _stored(entry: Entry) -> Stored | None:
    path = entry.path
    if path.startswith(f"{layout.TABLES}/"):
        parts = path.split("/", 3)
        kind = _OF_TABLES.get(parts[2]) if len(parts) == 4 else None
        return None if kind is None else Stored(path, entry.size, kind, "/".join(parts[:2]))
    own = _kind_of_manifest(path)
    return None if own is None else Stored(path, entry.size, own)


def _kind_of_manifest(path: str) -> Kind | None:
    """The kind of an object beside the tables; None for one that stays for good."""
    if path.startswith(f"{layout.CHANGES}/"):
        return Kind.CHANGE_SET
    if path.startswith(f"{layout.PROBES}/"):
        return Kind.PROBE
    if path.startswith(f"{layout.STAGING}/"):
        return Kind.STAGED
    if path.startswith(f"{layout.HOLDS}/"):
        return Kind.HOLD
    stream = layout.stream_of(path)
    if stream is None:
        return None
    if layout.seq_of_record(path) is not None:
        return Kind.RECORD
    if layout.seq_of_checkpoint(path) is not None:
        return Kind.CHECKPOINT
    # Floors stay for good: they are how a process that slept for long finds out.
    return Kind.STREAM if path == layout.hint(stream) else None

"""Records, checkpoints and hints as JSON bytes, and back."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final, TypeVar, assert_never

from omnigraph.lru_cache import LruCache
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.json_fields import Fields, decode_fields, encode_fields
from omnigraph.versioning.record import (
    Bulk,
    Changed,
    ChangeSet,
    Close,
    CommitRef,
    LogEntry,
    Maintenance,
    MergeDecision,
    Record,
    Signature,
    Spilled,
)

# Parsed records are immutable; so many serve rebases and listings without a read.
CACHED_ENTRIES_MAX: Final = 2048
CACHED_ENDS_MAX: Final = 1024

# A record with many pins or ids has tens of kilobytes, and takes up to four times as much memory
# as its stored bytes: so all of them stay below 100 MB.
CACHED_BYTES_MAX: Final = 16 * 1024 * 1024
CACHED_END_BYTES_MAX: Final = 4 * 1024 * 1024
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def encode_entry(entry: LogEntry) -> bytes:
    """The bytes of a record or a close record."""
    path = layout.build_record_path(entry.stream, entry.seq)
    match entry:
        case Record():
            return encode_fields(path, _encode_record(entry))
        case Close():
            return encode_fields(
                path,
                {
                    "close": True,
                    "stream": entry.stream,
                    "branch": entry.branch,
                    "seq": entry.seq,
                    "created_at": entry.created_at,
                    "actor": entry.actor,
                },
            )
        case _:
            assert_never(entry)


def decode_entry(stream: str, seq: int, data: bytes) -> LogEntry:
    """The record at a place of a stream; damage and a newer format are errors that name it."""
    fields = decode_fields(layout.build_record_path(stream, seq), data)
    fields.require("stream", stream)
    fields.require("seq", seq)
    if fields.get_flag("close"):
        return Close(
            stream=stream,
            branch=fields.get_text("branch"),
            seq=seq,
            created_at=fields.get_integer("created_at"),
            actor=fields.get_optional_text("actor"),
        )
    return _decode_record(fields, stream, seq)


def encode_pins(pins: Mapping[str, Pin]) -> dict[str, object]:
    """Pins by type key. Versions are hex text: bit 63 is set, so they do not fit JSON numbers."""
    return {
        type_key: {
            "v": pin.version,
            "uri": pin.path,
            "rows": pin.rows,
            "frags": pin.fragments,
            "hw": pin.high_water,
            **({} if pin.digest is None else {"digest": pin.digest}),
        }
        for type_key, pin in sorted(pins.items())
    }


def decode_pins(fields: Fields) -> dict[str, Pin]:
    """Pins by type key, as `pins_json` wrote them."""
    return {type_key: _decode_pin(pin) for type_key, pin in fields.iter_children()}


def encode_ref(ref: CommitRef) -> dict[str, object]:
    """A reference to a commit."""
    return {"branch": ref.branch, "stream": ref.stream, "seq": ref.seq, "commit": ref.commit}


def decode_ref(fields: Fields) -> CommitRef:
    """A reference to a commit, as `ref_json` wrote it."""
    return CommitRef(
        branch=fields.get_text("branch"),
        stream=fields.get_text("stream"),
        seq=fields.get_integer("seq"),
        commit=fields.get_text("commit"),
    )


def decode_change(fields: Fields) -> ChangeSet:
    """A change set as a record holds it."""
    if fields.get_flag("maint"):
        return Maintenance()
    if fields.has_field("bulk"):
        bulk = fields.get_child("bulk")
        return Bulk(bulk.get_texts("files"), bulk.get_integer("rows"), bulk.get_flag("replaces"))
    if fields.has_field("file"):
        return Spilled(
            file=fields.get_text("file"),
            inserted=fields.get_integer("n_ins", 0),
            updated=fields.get_integer("n_upd", 0),
            deleted=fields.get_integer("n_del", 0),
            digest=fields.get_optional_text("digest"),
        )
    return Changed(
        inserted=IdSet(fields.get_texts("ins")),
        updated=IdSet(fields.get_texts("upd")),
        deleted=IdSet(fields.get_texts("del")),
        marks=IdSet(fields.get_texts("marks")) if fields.has_field("marks") else None,
    )


def _encode_record(record: Record) -> dict[str, object]:
    signature = record.signature
    return {
        "stream": record.stream,
        "branch": record.branch,
        "seq": record.seq,
        "commit": record.commit,
        "parent": record.parent,
        "created_at": record.created_at,
        "made_at": record.made_at,
        "actor": signature.actor,
        "message": signature.message,
        "key": signature.key,
        "operations": signature.operations,
        "reverts": signature.reverts,
        "members": record.members if record.members > 1 else None,
        "schema": record.schema,
        "merge": encode_ref(record.merged) if record.merged else None,
        "preferred": dict(record.preferred),
        "decisions": [_encode_decision(each) for each in record.decisions],
        "registered": record.registered,
        "dropped": record.dropped,
        "renamed": dict(record.renamed),
        "partial": not record.is_whole,
        "fence": record.is_fence,
        "pins": encode_pins(record.pins),
        "changes": {key: _encode_change(change) for key, change in sorted(record.changes.items())},
    }


def _decode_record(fields: Fields, stream: str, seq: int) -> Record:
    return Record(
        stream=stream,
        branch=fields.get_text("branch"),
        seq=seq,
        commit=fields.get_text("commit"),
        parent=fields.get_optional_text("parent"),
        created_at=fields.get_integer("created_at"),
        schema=fields.get_text("schema"),
        pins=decode_pins(fields.get_child_or_empty("pins")),
        is_whole=not fields.get_flag("partial"),
        is_fence=fields.get_flag("fence"),
        changes={
            key: decode_change(item)
            for key, item in fields.get_child_or_empty("changes").iter_children()
        },
        signature=Signature(
            actor=fields.get_optional_text("actor"),
            message=fields.get_optional_text("message"),
            key=fields.get_optional_text("key"),
            operations=fields.get_texts("operations"),
            reverts=fields.get_optional_text("reverts"),
        ),
        members=fields.get_integer("members", 1),
        merged=decode_ref(fields.get_child("merge")) if fields.has_field("merge") else None,
        registered=fields.get_texts("registered"),
        dropped=fields.get_texts("dropped"),
        renamed=fields.get_child_or_empty("renamed").get_texts_by_name(),
        preferred=fields.get_child_or_empty("preferred").get_texts_by_name(),
        decisions=tuple(map(_decode_decision, fields.get_children("decisions"))),
        made_at=fields.get_integer("made_at") if fields.has_field("made_at") else None,
    )


def _encode_decision(decision: MergeDecision) -> dict[str, object]:
    named = {"type": decision.type_key, "id": decision.entity_id, "property": decision.property}
    return {**named, "kind": decision.kind, "take": decision.take, "states": decision.states}


def _decode_decision(fields: Fields) -> MergeDecision:
    return MergeDecision(
        type_key=fields.get_text("type"),
        entity_id=fields.get_text("id"),
        property=fields.get_optional_text("property"),
        kind=fields.get_text("kind"),
        take=fields.get_text("take"),
        states=fields.get_text("states"),
    )


def _decode_pin(fields: Fields) -> Pin:
    version = fields.get_text("v")
    try:
        return Pin(
            path=fields.get_text("uri"),
            version=version,
            rows=fields.get_integer("rows"),
            fragments=fields.get_integer("frags"),
            high_water=fields.get_integer("hw"),
            digest=fields.get_optional_text("digest"),
        )
    except ValueError:
        fields.raise_corrupt(f"'{version}' is not a version of a table")


def _encode_change(change: ChangeSet) -> dict[str, object]:
    match change:
        case Changed():
            ids = {
                "ins": list(change.inserted),
                "upd": list(change.updated),
                "del": list(change.deleted),
            }
            written: dict[str, object] = {name: found for name, found in ids.items() if found}
            # An empty list says that there are no marks; no list says that they are not known.
            return written if change.marks is None else {**written, "marks": list(change.marks)}
        case Spilled():
            counts = {
                "n_ins": change.inserted,
                "n_upd": change.updated,
                "n_del": change.deleted,
            }
            spilled: dict[str, object] = {name: n for name, n in counts.items() if n}
            if change.digest is not None:
                spilled["digest"] = change.digest
            return {"file": change.file, **spilled}
        case Bulk():
            bulk: dict[str, object] = {"files": list(change.files), "rows": change.rows}
            return {"bulk": {**bulk, "replaces": True} if change.replaces else bulk}
        case Maintenance():
            return {"maint": True}
        case _:
            assert_never(change)


class EntryCache:
    """Entries of all streams of one graph; safe to share between threads."""

    def __init__(self) -> None:
        # So that an older entry never replaces a newer end.
        self._lock = threading.Lock()
        self._entries: LruCache[tuple[str, int], LogEntry] = LruCache(
            CACHED_ENTRIES_MAX, bytes_max=CACHED_BYTES_MAX
        )
        # The newest entry of each stream as it is stored: to see that it still is.
        self._ends: LruCache[str, tuple[LogEntry, bytes]] = LruCache(
            CACHED_ENDS_MAX, bytes_max=CACHED_END_BYTES_MAX
        )

    def get(self, stream: str, seq: int) -> LogEntry | None:
        """An entry that was kept, or None."""
        return self._entries.get((stream, seq))

    def keep(self, entry: LogEntry, size: int | None = None) -> LogEntry:
        """Keep an entry of a stored size, and forget the ones that were not asked for longest."""
        if size is None:
            end = self._ends.get(entry.stream)
            data = end[1] if end is not None and end[0] is entry else encode_entry(entry)
            size = len(data)
        return self._entries.put((entry.stream, entry.seq), entry, size)

    def keep_end(self, entry: LogEntry, data: bytes) -> None:
        """Keep the bytes of an entry if it is the newest known one of its stream."""
        with self._lock:
            known = self._ends.get(entry.stream)
            if known is None or known[0].seq <= entry.seq:
                self._ends.put(entry.stream, (entry, data), len(data))

    def decode(self, stream: str, seq: int, data: bytes) -> LogEntry:
        """An entry from its bytes, which most often are the ones this process saw last."""
        known = self._ends.get(stream)
        if known is not None and known[0].seq == seq and known[1] == data:
            return known[0]
        return decode_entry(stream, seq, data)

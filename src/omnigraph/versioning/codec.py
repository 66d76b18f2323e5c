"""Records, checkpoints and hints as JSON bytes, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from omnigraph.storage import layout
from omnigraph.storage.pins import Pin
from omnigraph.versioning.fields import Fields, read_fields, write_fields
from omnigraph.versioning.idset import IdSet
from omnigraph.versioning.record import (
    Bulk,
    Changed,
    ChangeSet,
    Close,
    CommitRef,
    LogEntry,
    Maintenance,
    Record,
    Signature,
    Spilled,
)


def encode_entry(entry: LogEntry) -> bytes:
    """The bytes of a record or a close record."""
    path = layout.record(entry.stream, entry.seq)
    match entry:
        case Record():
            return write_fields(path, _record_fields(entry))
        case Close():
            return write_fields(
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
    fields = read_fields(layout.record(stream, seq), data)
    fields.require("stream", stream)
    fields.require("seq", seq)
    if fields.flag("close"):
        return Close(
            stream=stream,
            branch=fields.text("branch"),
            seq=seq,
            created_at=fields.integer("created_at"),
            actor=fields.text_or_none("actor"),
        )
    return _record(fields, stream, seq)


def pins_json(pins: Mapping[str, Pin]) -> dict[str, object]:
    """Pins by type key. Versions are hex text: bit 63 is set, so they are no JSON numbers."""
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


def read_pins(fields: Fields) -> dict[str, Pin]:
    """Pins by type key, as `pins_json` wrote them."""
    return {type_key: _pin(pin) for type_key, pin in fields.items()}


def ref_json(ref: CommitRef) -> dict[str, object]:
    """A reference to a commit."""
    return {"branch": ref.branch, "stream": ref.stream, "seq": ref.seq, "commit": ref.commit}


def read_ref(fields: Fields) -> CommitRef:
    """A reference to a commit, as `ref_json` wrote it."""
    return CommitRef(
        branch=fields.text("branch"),
        stream=fields.text("stream"),
        seq=fields.integer("seq"),
        commit=fields.text("commit"),
    )


def _record_fields(record: Record) -> dict[str, object]:
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
        "merge": ref_json(record.merged) if record.merged else None,
        "preferred": dict(record.preferred),
        "registered": record.registered,
        "dropped": record.dropped,
        "renamed": dict(record.renamed),
        "partial": not record.is_whole,
        "fence": record.is_fence,
        "pins": pins_json(record.pins),
        "changes": {key: _change_json(change) for key, change in sorted(record.changes.items())},
    }


def _record(fields: Fields, stream: str, seq: int) -> Record:
    return Record(
        stream=stream,
        branch=fields.text("branch"),
        seq=seq,
        commit=fields.text("commit"),
        parent=fields.text_or_none("parent"),
        created_at=fields.integer("created_at"),
        schema=fields.text("schema"),
        pins=read_pins(fields.child_or_empty("pins")),
        is_whole=not fields.flag("partial"),
        is_fence=fields.flag("fence"),
        changes={key: _change(item) for key, item in fields.child_or_empty("changes").items()},
        signature=Signature(
            actor=fields.text_or_none("actor"),
            message=fields.text_or_none("message"),
            key=fields.text_or_none("key"),
            operations=fields.texts("operations"),
            reverts=fields.text_or_none("reverts"),
        ),
        members=fields.integer("members", 1),
        merged=read_ref(fields.child("merge")) if fields.has("merge") else None,
        registered=fields.texts("registered"),
        dropped=fields.texts("dropped"),
        renamed=fields.child_or_empty("renamed").text_by_name(),
        preferred=fields.child_or_empty("preferred").text_by_name(),
        made_at=fields.integer("made_at") if fields.has("made_at") else None,
    )


def _pin(fields: Fields) -> Pin:
    version = fields.text("v")
    try:
        return Pin(
            path=fields.text("uri"),
            version=version,
            rows=fields.integer("rows"),
            fragments=fields.integer("frags"),
            high_water=fields.integer("hw"),
            digest=fields.text_or_none("digest"),
        )
    except ValueError:
        fields.refuse(f"'{version}' is not a version of a table")


def _change_json(change: ChangeSet) -> dict[str, object]:
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


def _change(fields: Fields) -> ChangeSet:
    if fields.flag("maint"):
        return Maintenance()
    if fields.has("bulk"):
        bulk = fields.child("bulk")
        return Bulk(bulk.texts("files"), bulk.integer("rows"), bulk.flag("replaces"))
    if fields.has("file"):
        return Spilled(
            file=fields.text("file"),
            inserted=fields.integer("n_ins", 0),
            updated=fields.integer("n_upd", 0),
            deleted=fields.integer("n_del", 0),
            digest=fields.text_or_none("digest"),
        )
    return Changed(
        inserted=IdSet(fields.texts("ins")),
        updated=IdSet(fields.texts("upd")),
        deleted=IdSet(fields.texts("del")),
        marks=IdSet(fields.texts("marks")) if fields.has("marks") else None,
    )

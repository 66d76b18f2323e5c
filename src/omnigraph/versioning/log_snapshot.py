"""A snapshot: a graph as of one commit, which is a schema and a pin for each type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from omnigraph.errors import CorruptObjectError
from omnigraph.storage.objects import layout
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.json_fields import decode_fields, encode_fields
from omnigraph.versioning.record import Close, CommitRef, LogEntry, Record, Stream
from omnigraph.versioning.record_codec import decode_pins, encode_pins


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The graph at one seq of a stream. A new branch is at the commit it started from."""

    stream: Stream
    seq: int
    commit: str
    created_at: int
    schema: str
    pins: Mapping[str, Pin]
    made_at: int | None = None

    @property
    def ref(self) -> CommitRef:
        """Where the commit of this snapshot is: in the stream that owns its record."""
        owner = self.stream.owner_of(self.seq)
        return CommitRef(owner.branch, owner.id, self.seq, self.commit)

    def advance(self, record: Record) -> Snapshot:
        """The snapshot that the next record of the stream makes."""
        pins = record.pins if record.is_whole else _overlay_pins(self.pins, record)
        return _build_snapshot(record, self.stream, pins)


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a stream: its newest snapshot, and whether the stream was closed after it."""

    snapshot: Snapshot
    is_closed: bool = False

    @property
    def next_seq(self) -> int:
        """Where the next entry of the stream goes."""
        return self.snapshot.seq + 1 + self.is_closed

    def advance(self, entry: LogEntry) -> Head:
        """The head that the next entry of the stream makes."""
        match entry:
            case Record():
                if entry.parent != self.snapshot.commit:
                    path = layout.build_record_path(entry.stream, entry.seq)
                    raise CorruptObjectError(path, f"it does not follow {self.snapshot.commit}")
                return Head(self.snapshot.advance(entry))
            case Close():
                return Head(self.snapshot, is_closed=True)
            case _:
                assert_never(entry)


def snapshot_of(record: Record, stream: Stream) -> Snapshot:
    """The snapshot of a record that holds all pins."""
    assert record.is_whole
    return _build_snapshot(record, stream, record.pins)


def fold_events(snapshot: Snapshot, records: Iterable[Record]) -> Snapshot:
    """The snapshot that the next records of a stream make, one after the other."""
    for record in records:
        snapshot = snapshot.advance(record)
    return snapshot


def _build_snapshot(record: Record, stream: Stream, pins: Mapping[str, Pin]) -> Snapshot:
    return Snapshot(
        stream=stream,
        seq=record.seq,
        commit=record.commit,
        created_at=record.created_at,
        schema=record.schema,
        pins=pins,
        made_at=record.made_at,
    )


def encode_checkpoint(snapshot: Snapshot) -> bytes:
    """The bytes of a checkpoint: the snapshot itself, without the stream's ancestry."""
    return encode_fields(
        layout.build_checkpoint_path(snapshot.stream.id, snapshot.seq),
        {
            "stream": snapshot.stream.id,
            "seq": snapshot.seq,
            "commit": snapshot.commit,
            "created_at": snapshot.created_at,
            "made_at": snapshot.made_at,
            "schema": snapshot.schema,
            "pins": encode_pins(snapshot.pins),
        },
    )


def decode_checkpoint(stream: Stream, seq: int, data: bytes) -> Snapshot:
    """The snapshot in a checkpoint of a stream."""
    fields = decode_fields(layout.build_checkpoint_path(stream.id, seq), data)
    fields.require("stream", stream.id)
    fields.require("seq", seq)
    return Snapshot(
        stream=stream,
        seq=seq,
        commit=fields.get_text("commit"),
        created_at=fields.get_integer("created_at"),
        schema=fields.get_text("schema"),
        pins=decode_pins(fields.get_child_or_empty("pins")),
        made_at=fields.get_integer("made_at") if fields.has_field("made_at") else None,
    )


def _overlay_pins(pins: Mapping[str, Pin], record: Record) -> dict[str, Pin]:
    gone = {*record.dropped, *record.renamed}
    kept = {type_key: pin for type_key, pin in pins.items() if type_key not in gone}
    return {**kept, **record.pins}


def build_lost_error(stream: Stream, seq: int) -> CorruptObjectError:
    """The error of a record that is missing at the end of its branch."""
    hint = (
        "restore it from a copy of the graph; if there is none, delete"
        f" {layout.build_hint_path(stream.id)} to go on from the newest record that is left"
    )
    reason = "it is missing, and it was the newest of its branch"
    return CorruptObjectError(layout.build_record_path(stream.id, seq), reason, hint=hint)

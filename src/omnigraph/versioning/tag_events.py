"""Tags as data: a name, the snapshot that it stands for, and the event that creates it."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.versioning.json_fields import Fields
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import Stream
from omnigraph.versioning.record_codec import decode_pins, decode_ref, encode_pins, encode_ref


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a commit, who gave it, and when (µs since 1970)."""

    name: str
    snapshot: Snapshot
    created_at: int
    actor: str | None = None


def build_tag_event(tag: Tag) -> dict[str, object]:
    """The event that creates a tag."""
    at = tag.snapshot
    owner = at.stream.owner_of(at.seq)
    return {
        "op": "create",
        "commit": encode_ref(at.ref),
        "ancestors": [encode_ref(origin) for origin in owner.origins],
        "committed_at": at.created_at,
        "made_at": at.made_at,
        "schema": at.schema,
        "pins": encode_pins(at.pins),
        "created_at": tag.created_at,
        "actor": tag.actor,
    }


def decode_tag(name: str, fields: Fields) -> Tag:
    """A tag from the event that created it."""
    return Tag(
        name,
        _decode_snapshot(fields),
        fields.get_integer("created_at"),
        fields.get_optional_text("actor"),
    )


def _decode_snapshot(fields: Fields) -> Snapshot:
    ref = decode_ref(fields.get_child("commit"))
    origins = tuple(decode_ref(each) for each in fields.get_children("ancestors"))
    return Snapshot(
        stream=Stream(ref.stream, ref.branch, origins),
        seq=ref.seq,
        commit=ref.commit,
        created_at=fields.get_integer("committed_at"),
        schema=fields.get_text("schema"),
        pins=decode_pins(fields.get_child_or_empty("pins")),
        made_at=fields.get_integer("made_at") if fields.has_field("made_at") else None,
    )

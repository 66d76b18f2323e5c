"""Tags: names for commits, which keep them from being collected.

The events of a name alternate as those of branches do. The event that creates a tag holds the whole
snapshot, so that a tag is enough to read its commit by, whatever becomes of the branch it was on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from omnigraph.errors import CommitNotFound, InvalidArgument, TagExists, TagNotFound
from omnigraph.ids import new_ulid, ulid_milliseconds
from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.versioning.codec import pins_json, read_pins, read_ref, ref_json
from omnigraph.versioning.events import is_live, newest, put_event, read_event
from omnigraph.versioning.fields import Fields
from omnigraph.versioning.record import Stream
from omnigraph.versioning.snapshot import Snapshot

NAME_LENGTH_MAX: Final = 200
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\\]|^\s|\s$")


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a commit, who gave it, and when (µs since 1970)."""

    name: str
    snapshot: Snapshot
    created_at: int
    actor: str | None = None


class RequireHeld(Protocol):
    """Refuses a commit that nobody but a tag holds."""

    def __call__(self, at: Snapshot, *, tag: str | None = None) -> object:
        """Refuse it."""


class Tags:
    """The tags of one graph."""

    def __init__(
        self, objects: Objects, now_us: Callable[[], int], require_held: RequireHeld
    ) -> None:
        self._objects = objects
        self._now_us = now_us
        self._require_held = require_held

    def list(self, *, deleted_since: int | None = None) -> list[Tag]:
        """Every tag, by name; with those deleted since a time (µs), if one is given."""
        generations = newest(self._objects, layout.TAGS, layout.tag_of_event)
        found = []
        for name, generation in sorted(generations.items()):
            if is_live(generation) or self._is_deleted_since(name, generation, deleted_since):
                found.append(self._read(name, generation - (not is_live(generation))))
        return found

    def get(self, name: str) -> Tag:
        """A tag by its name."""
        generation = self._generation(name)
        if not is_live(generation):
            raise TagNotFound(name)
        return self._read(name, generation)

    def create(self, name: str, *, at: Snapshot, actor: str | None = None) -> Tag:
        """Give a commit a name. It is kept, with everything in it, until the tag is deleted."""
        _check_name(name)
        generation = self._generation(name)
        if is_live(generation):
            raise TagExists(name)
        self._require_held(at)
        tag = Tag(name, at, self._now_us(), actor)
        if not self._put(name, generation + 1, event_of(tag)):
            raise TagExists(name)
        try:
            # A collector says what it lets go before it looks for tags. One that did not see this
            # tag is seen by it here.
            self._require_held(at, tag=name)
        except CommitNotFound:
            self._put(name, generation + 2, self._deletion(actor))
            raise
        return tag

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """Free a name; its commit is kept only as long as its branch keeps it."""
        generation = self._generation(name)
        if not is_live(generation):
            raise TagNotFound(name)
        if not self._put(name, generation + 1, self._deletion(actor)):
            raise TagNotFound(name)

    def holding(self, commit: str) -> tuple[Tag, ...]:
        """The tags of a commit."""
        return tuple(tag for tag in self.list() if tag.snapshot.commit == commit)

    def _deletion(self, actor: str | None) -> dict[str, object]:
        # The id makes two deletions different objects, of which one is told that it came late.
        return {"op": "delete", "id": new_ulid(), "created_at": self._now_us(), "actor": actor}

    def _generation(self, name: str) -> int:
        _check_name(name)
        found = newest(self._objects, layout.tag_folder(name), layout.tag_of_event)
        return found.get(name, 0)

    def _is_deleted_since(self, name: str, generation: int, time_us: int | None) -> bool:
        if time_us is None:
            return False
        deleted = read_event(self._objects, layout.tag_event(name, generation))
        return deleted.integer("created_at") >= time_us

    def _read(self, name: str, generation: int) -> Tag:
        fields = read_event(self._objects, layout.tag_event(name, generation))
        fields.require("op", "create")
        return read_tag(name, fields)

    def _put(self, name: str, generation: int, event: dict[str, object]) -> bool:
        path = layout.tag_event(name, generation)
        return put_event(self._objects, path, event, what=f"tag '{name}'")


def event_of(tag: Tag) -> dict[str, object]:
    """The event that creates a tag."""
    at = tag.snapshot
    owner = at.stream.owner(at.seq)
    return {
        "op": "create",
        "commit": ref_json(at.ref),
        "ancestors": [ref_json(origin) for origin in owner.origins],
        "committed_at": at.created_at,
        "schema": at.schema,
        "pins": pins_json(at.pins),
        "created_at": tag.created_at,
        "actor": tag.actor,
    }


def read_tag(name: str, fields: Fields) -> Tag:
    """A tag from the event that created it."""
    return Tag(name, _snapshot(fields), fields.integer("created_at"), fields.text_or_none("actor"))


def _snapshot(fields: Fields) -> Snapshot:
    ref = read_ref(fields.child("commit"))
    origins = tuple(read_ref(each) for each in fields.children("ancestors"))
    return Snapshot(
        stream=Stream(ref.stream, ref.branch, origins),
        seq=ref.seq,
        commit=ref.commit,
        created_at=fields.integer("committed_at"),
        schema=fields.text("schema"),
        pins=read_pins(fields.child_or_empty("pins")),
    )


def _check_name(name: str) -> None:
    reason = _reason_against(name)
    if reason is not None:
        raise InvalidArgument("name", f"'{name}' is not a name of a tag: {reason}")


def _reason_against(name: str) -> str | None:
    if not name:
        return "it is empty"
    if len(name) > NAME_LENGTH_MAX:
        return f"it has more than {NAME_LENGTH_MAX} characters"
    if ulid_milliseconds(name) is not None:
        return "it looks like the id of a commit"
    if _FORBIDDEN.search(name):
        return "it has control characters, a backslash, or space at an end"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "a part between slashes is empty or only dots"
    return None

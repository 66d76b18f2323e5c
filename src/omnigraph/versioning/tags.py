"""Tags: names for commits, which keep them from being collected.

The events of a name alternate as those of branches do. The event that creates a tag holds the whole
snapshot, so that a tag is enough to read its commit by, whatever becomes of the branch it was on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from omnigraph.errors import CommitNotFound, InvalidArgument, TagExists, TagNotFound
from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.versioning import names
from omnigraph.versioning.codec import pins_json, read_pins, read_ref, ref_json
from omnigraph.versioning.events import is_live, newest, put_event, read_event
from omnigraph.versioning.fields import Fields
from omnigraph.versioning.record import Stream
from omnigraph.versioning.snapshot import Snapshot


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
        self,
        objects: Objects,
        now_us: Callable[[], int],
        require_held: RequireHeld,
        *,
        is_branch: Callable[[str], bool],
    ) -> None:
        self._objects = objects
        self._now_us = now_us
        self._require_held = require_held
        self._is_branch = is_branch

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
        _require_name(name, names.reason_against_new(name))
        generation = self._generation(name)
        if is_live(generation):
            raise TagExists(name)
        if self._is_branch(name):
            _require_name(name, "it is the name of a branch")
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

    def has(self, name: str) -> bool:
        """Whether a tag has a name."""
        return is_live(self._generation(name))

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
        return names.deletion(now_us=self._now_us(), actor=actor)

    def _generation(self, name: str) -> int:
        _require_name(name, names.reason_against(name))
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


def _require_name(name: str, reason: str | None) -> None:
    if reason is not None:
        raise InvalidArgument("name", f"'{name}' is not a name of a tag: {reason}")

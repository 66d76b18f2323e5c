"""Tags: names for commits, which keep them from being collected.

Tags and branches share the events of names. The event that creates a tag holds the whole snapshot,
so that a tag is enough to read its commit by, whatever becomes of the branch it was on.

Graphs of earlier programs keep the events of tags apart from those of branches. Such tags are read
and deleted where they are, and none is created there, so that they decide nothing between two
creators: what is not live there never will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from omnigraph.errors import (
    InvalidArgumentError,
    StagingExpiredError,
    TagExistsError,
    TagNotFoundError,
)
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning import ref_events
from omnigraph.versioning.json_fields import Fields
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import Stream
from omnigraph.versioning.record_codec import decode_pins, decode_ref, encode_pins, encode_ref
from omnigraph.versioning.ref_events import (
    Chain,
    RefEvents,
    find_newest_generations,
    is_live,
    put_event,
    read_event,
)

# How often clean-ups may refuse the creation of one name; each takes a clean-up without grace.
CREATIONS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a commit, who gave it, and when (µs since 1970)."""

    name: str
    snapshot: Snapshot
    created_at: int
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class NewName:
    """A name that is being created: the number of its event, and the stream if it is a branch."""

    name: str
    generation: int
    stream: str | None = None


class BeginCreation(Protocol):
    """Keeps a commit while it is given a name; the name is created inside of it."""

    def __call__(self, at: Snapshot, creates: NewName) -> AbstractContextManager[None]:
        """Keep it."""


class Tags:
    """The tags of one graph."""

    def __init__(
        self,
        objects: Objects,
        events: RefEvents,
        now_us: Callable[[], int],
        *,
        require_retained: Callable[[Snapshot], object],
        begin_creation: BeginCreation,
    ) -> None:
        self._objects = objects
        self._events = events
        self._now_us = now_us
        self._require_retained = require_retained
        self._begin_creation = begin_creation

    def list(self, *, deleted_since: int | None = None) -> list[Tag]:
        """Every tag, by name; with those deleted since a time (µs), if one is given."""
        found = self._events.list_creations(deleted_since=deleted_since, only_announced=True)
        tags = [decode_tag(each.name, each.fields) for each in found if each.is_tag]
        return sorted([*tags, *self._list_legacy(deleted_since)], key=lambda tag: tag.name)

    def get(self, name: str) -> Tag:
        """A tag by its name."""
        found = self._read_chain(name)
        if found.is_live and self._events.is_tag(name, found):
            return decode_tag(name, self._events.read_creation(name, found.generation))
        if not is_live(generation := self._find_legacy_generation(name)):
            raise TagNotFoundError(name)
        return self._read_legacy(name, generation)

    def create(self, name: str, *, at: Snapshot, actor: str | None = None) -> Tag:
        """Give a commit a name. It is kept, with everything in it, until the tag is deleted."""
        _require_name(name, ref_events.find_new_name_problem(name))
        for _ in range(CREATIONS_MAX):
            generation = self._require_free(name).generation + 1
            self._require_retained(at)
            tag = Tag(name, at, self._now_us(), actor)
            with self._begin_creation(at, NewName(name, generation)):
                # A collector that did not see the lease has stated by now what it releases. The
                # others keep the commit, or refuse the event before they end the lease.
                self._require_retained(at)
                if self._events.put_tag(name, generation, build_tag_event(tag)):
                    return tag
        raise build_refused_error(f"tag '{name}'")

    def is_tag(self, name: str, found: Chain) -> bool:
        """Whether a name stands for a tag, given its events."""
        if found.is_live and self._events.is_tag(name, found):
            return True
        return is_live(self._find_legacy_generation(name))

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """Free a name; its commit is kept only as long as its branch keeps it."""
        found = self._read_chain(name)
        if found.is_live and self._events.is_tag(name, found):
            is_deleted = self._delete(name, found.generation, actor)
        else:
            is_deleted = self._delete_legacy(name, actor)
        if not is_deleted:
            raise TagNotFoundError(name)

    def find_by_commit(self, commit: str) -> tuple[Tag, ...]:
        """The tags of a commit."""
        return tuple(tag for tag in self.list() if tag.snapshot.commit == commit)

    def _require_free(self, name: str) -> Chain:
        """Refuse a name that a tag or a branch has; the events of one that is free."""
        _require_name(name, ref_events.find_name_problem(name))
        found = self._events.complete_chain(name, now_us=self._now_us())
        if self.is_tag(name, found):
            raise TagExistsError(name)
        if found.is_live:
            _require_name(name, "it is the name of a branch")
        return found

    def _read_chain(self, name: str) -> Chain:
        _require_name(name, ref_events.find_name_problem(name))
        return self._events.read_chain(name)

    def _delete(self, name: str, generation: int, actor: str | None) -> bool:
        """Put the event after a creation; True if it is there, False if another one is."""
        event = ref_events.build_deletion(now_us=self._now_us(), actor=actor)
        return self._events.put(name, generation + 1, event, what=f"tag '{name}'")

    def _list_legacy(self, deleted_since: int | None) -> Iterator[Tag]:
        """The tags that have events of their own, and those of them deleted since a time."""
        generations = self._list_legacy_generations(layout.TAGS)
        for name, generation in generations.items():
            if is_live(generation):
                yield self._read_legacy(name, generation)
            elif deleted_since is not None:
                deleted = read_event(self._objects, layout.build_tag_event_path(name, generation))
                if deleted.get_integer("created_at") >= deleted_since:
                    yield self._read_legacy(name, generation - 1)

    def _list_legacy_generations(self, folder: str) -> dict[str, int]:
        listed = (entry.path for entry in self._objects.list(folder))
        return find_newest_generations(listed, layout.parse_tag_event_path)

    def _find_legacy_generation(self, name: str) -> int:
        return self._list_legacy_generations(layout.build_tag_folder(name)).get(name, 0)

    def _read_legacy(self, name: str, generation: int) -> Tag:
        fields = read_event(self._objects, layout.build_tag_event_path(name, generation))
        fields.require("op", "create")
        return decode_tag(name, fields)

    def _delete_legacy(self, name: str, actor: str | None) -> bool:
        generation = self._find_legacy_generation(name)
        if not is_live(generation):
            return False
        event = ref_events.build_deletion(now_us=self._now_us(), actor=actor)
        path = layout.build_tag_event_path(name, generation + 1)
        return put_event(self._objects, path, event, what=f"tag '{name}'")


def build_refused_error(what: str) -> StagingExpiredError:
    """The error of a creation that one clean-up after the other refused."""
    message = f"clean-ups overtook the creation of {what} {CREATIONS_MAX} times"
    return StagingExpiredError(message, hint="create it again")


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


def _require_name(name: str, reason: str | None) -> None:
    if reason is not None:
        raise InvalidArgumentError("name", f"'{name}' is not a name of a tag: {reason}")

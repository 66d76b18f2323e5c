"""Tags: names for commits, which keep them from being collected.

Tags and branches share the events of names. The event that creates a tag holds the whole snapshot,
so that a tag is enough to read its commit by, whatever becomes of the branch it was on.

Graphs of format 1 may have tags whose events are apart from those of branches (`separate_tags`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from omnigraph.errors import (
    InvalidArgumentError,
    StagingExpiredError,
    TagExistsError,
    TagNotFoundError,
)
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning import ref_events
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.ref_events import Chain, RefEvents
from omnigraph.versioning.separate_tags import SeparateTags
from omnigraph.versioning.tag_events import Tag, build_tag_event, decode_tag

# How often clean-ups may refuse the creation of one name; each takes a clean-up without grace.
CREATIONS_MAX: Final = 16


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
        self.separate = SeparateTags(objects, now_us)

    def list(self, *, deleted_since: int | None = None) -> list[Tag]:
        """Every tag, by name; with those deleted since a time (µs), if one is given."""
        # An upgrade moves tags from here to there: the other way round one might be missed.
        separate = [*self.separate.list(deleted_since)]
        found = self._events.list_creations(deleted_since=deleted_since, only_announced=True)
        tags = [decode_tag(each.name, each.fields) for each in found if each.is_tag]
        # An upgrade that stopped leaves a tag in both places.
        apart = [tag for tag in separate if tag not in tags]
        return sorted([*tags, *apart], key=lambda tag: tag.name)

    def get(self, name: str) -> Tag:
        """A tag by its name."""
        _require_name(name, ref_events.find_name_problem(name))
        # Before the shared events, as in a list.
        apart = self.separate.get(name)
        found = self._events.read_chain(name)
        if found.is_live and self._events.is_tag(name, found):
            return decode_tag(name, self._events.read_creation(name, found.generation))
        if apart is None:
            raise TagNotFoundError(name)
        return apart

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
        return self.separate.is_tag(name)

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """Free a name; its commit is kept only as long as its branch keeps it."""
        _require_name(name, ref_events.find_name_problem(name))
        # The old events first: an upgrade looks at them once more after it created the new one.
        is_deleted = self.separate.delete(name, actor=actor)
        found = self._events.read_chain(name)
        if found.is_live and self._events.is_tag(name, found):
            is_deleted = self._delete(name, found.generation, actor)
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

    def _delete(self, name: str, generation: int, actor: str | None) -> bool:
        """Put the event after a creation; True if it is there, False if another one is."""
        event = ref_events.build_deletion(now_us=self._now_us(), actor=actor)
        return self._events.put(name, generation + 1, event, what=f"tag '{name}'")


def build_refused_error(what: str) -> StagingExpiredError:
    """The error of a creation that one clean-up after the other refused."""
    message = f"clean-ups overtook the creation of {what} {CREATIONS_MAX} times"
    return StagingExpiredError(message, hint="create it again")


def _require_name(name: str, reason: str | None) -> None:
    if reason is not None:
        raise InvalidArgumentError("name", f"'{name}' is not a name of a tag: {reason}")

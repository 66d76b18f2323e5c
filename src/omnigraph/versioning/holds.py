"""Holds: what keeps a commit while somebody makes another one from it.

A hold is put before the work and removed after it, like a tag without a name. One that a crash left
behind ends with the grace, and is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from omnigraph.errors import StorageError
from omnigraph.ids import new_ulid
from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.versioning.events import put_event
from omnigraph.versioning.fields import read_fields
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.tags import RequireHeld, Tag, event_of, read_tag


class Holds:
    """The holds of one graph."""

    def __init__(
        self, objects: Objects, now_us: Callable[[], int], require_held: RequireHeld
    ) -> None:
        self._objects = objects
        self._now_us = now_us
        self._require_held = require_held

    def list(self, *, since: int) -> list[Tag]:
        """The holds that were put since a time (µs), as tags that are named by their paths."""
        listed = [entry.path for entry in self._objects.list(layout.HOLDS)]
        # One that is gone by now has done its work.
        stored = [(path, data) for path in listed if (data := self._objects.get(path)) is not None]
        holds = [read_tag(path, read_fields(path, data)) for path, data in stored]
        return [hold for hold in holds if hold.created_at >= since]

    @contextmanager
    def held(self, *commits: Snapshot) -> Iterator[None]:
        """Around work that refers to commits in the end; those that nobody holds are refused."""
        for at in commits:
            self._require_held(at)
        paths = [layout.hold(new_ulid().lower()) for _ in commits]
        try:
            for path, at in zip(paths, commits, strict=True):
                event = event_of(Tag(path, at, self._now_us()))
                put_event(self._objects, path, event, what=f"the hold of commit '{at.commit}'")
            # A collector that did not see the holds has said by now what it lets go.
            for at in commits:
                self._require_held(at)
            yield
        finally:
            with suppress(StorageError):
                self._objects.delete(paths)

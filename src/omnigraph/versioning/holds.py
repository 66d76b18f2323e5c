"""Holds: what keeps a commit while somebody makes another one from it.

A hold is put before the work and removed after it, like a tag without a name. One that is older
than the grace is removed by a collector before it states what it lets go and fences the branches.
So a write that finds its hold after the newest commit it builds on can rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from omnigraph.errors import StagingExpiredError, StorageError
from omnigraph.ids import generate_ulid
from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.versioning.events import put_event
from omnigraph.versioning.fields import decode_fields
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.tags import RequireRetained, Tag, build_tag_event, decode_tag
from omnigraph.versioning.transaction import Retained


class Leases:
    """The holds of one graph."""

    def __init__(
        self, objects: Objects, now_us: Callable[[], int], require_held: RequireRetained
    ) -> None:
        self._objects = objects
        self._now_us = now_us
        self._require_held = require_held

    def list(self) -> list[Tag]:
        """All holds, as tags that are named by their paths."""
        listed = [entry.path for entry in self._objects.list(layout.LEASES)]
        # One that is gone by now has done its work.
        stored = [(path, data) for path in listed if (data := self._objects.get(path)) is not None]
        return [decode_tag(path, decode_fields(path, data)) for path, data in stored]

    @contextmanager
    def acquire(self, *commits: Snapshot) -> Iterator[Retained]:
        """Around work that refers to commits in the end; those that nothing holds are refused.

        The work must require what this gives, because a hold does not outlast every pause.
        """
        for at in commits:
            self._require_held(at)
        paths = [layout.build_lease_path(generate_ulid().lower()) for _ in commits]
        try:
            for path, at in zip(paths, commits, strict=True):
                event = build_tag_event(Tag(path, at, self._now_us()))
                put_event(self._objects, path, event, what=f"the hold of commit '{at.commit}'")
            # A collector that did not see the holds has said by now what it lets go.
            for at in commits:
                self._require_held(at)
            yield Retained(partial(self._require, paths))
        finally:
            with suppress(StorageError):
                self._objects.delete(paths)

    def _require(self, paths: Sequence[str]) -> None:
        if any(self._objects.get(path) is None for path in paths):
            raise StagingExpiredError(
                "a clean-up took this write for dead", hint="run the write again"
            )

"""Who holds a commit: branches, tags, and for the grace branches that were deleted.

A collector states what it lets go before it reads the roots for the last time. So whoever is about
to refer to a commit asks here twice: before saying so, and after, when a collector that did not see
the new reference has left a floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, Protocol

from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    SnapshotGoneError,
    StagingExpiredError,
    StorageError,
)
from omnigraph.ids import generate_ulid
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.json_fields import decode_fields
from omnigraph.versioning.log import Log
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import Stream
from omnigraph.versioning.ref_events import put_event
from omnigraph.versioning.retention_floors import Floors
from omnigraph.versioning.tags import RequireRetained, Tag, Tags, build_tag_event, decode_tag
from omnigraph.versioning.transaction import Retained

_SECOND: Final = 1_000_000


class BranchNames(Protocol):
    """What is asked of the names of branches."""

    def resolve(self, name: str) -> Stream:
        """The stream that a name stands for now."""

    def list_streams(self, *, deleted_since: int) -> tuple[tuple[Stream, bool], ...]:
        """The streams of all branches that are live, or were deleted since a time (µs)."""


class RetentionRoots:
    """Finds who holds a commit of one graph."""

    def __init__(
        self, log: Log, names: BranchNames, tags: Tags, *, now_us: Callable[[], int], grace_s: float
    ) -> None:
        self._log = log
        self._names = names
        self._tags = tags
        self._floors = Floors(log.objects)
        self._now_us = now_us
        self._grace_us = int(grace_s * _SECOND)

    def require_retained(
        self, at: Snapshot, *, tag: str | None = None, stream: str | None = None
    ) -> int:
        """Refuse a commit that nobody holds, besides a tag and a stream that are asking.

        Returns the seq of the oldest commit that is held with it.
        """
        oldest = self._read_own_floor(at)
        if oldest is None or oldest > at.seq:
            lines = self._list_line_floors(at, besides=stream)
            if not lines and any(
                found.name != tag for found in self._tags.find_by_commit(at.commit)
            ):
                return at.seq
            if not lines and oldest is not None:
                raise SnapshotGoneError(f"commit '{at.commit}' was collected", oldest=oldest)
            if not lines:
                raise SnapshotGoneError(
                    f"commit '{at.commit}' went with its branch: nobody holds it"
                )
            oldest = min(lines)
        self._require_stored(at)
        return oldest

    def _read_own_floor(self, at: Snapshot) -> int | None:
        """How far back the branch of a snapshot reaches; None if it is not live."""
        with suppress(BranchNotFoundError):
            if self._names.resolve(at.stream.branch).id == at.stream.id:
                return self._floors.read_floor(at.stream)
        return None

    def _list_line_floors(self, at: Snapshot, *, besides: str | None) -> list[int]:
        """How far back each branch that holds a commit reaches."""
        owner = at.ref.stream
        since = self._now_us() - self._grace_us
        floors = (
            self._floors.read_floor(line)
            for line, _ in self._names.list_streams(deleted_since=since)
            if line.id != besides and line.owner_of(at.seq).id == owner
        )
        return [floor for floor in floors if floor <= at.seq]

    def _require_stored(self, at: Snapshot) -> None:
        """Refuse a commit that this graph does not have: nobody could read it."""
        ref = at.ref
        # The record may be collected where the checkpoint of a branch keeps what it said.
        is_base = bool(at.stream.origins) and at.seq == at.stream.first_seq - 1
        is_known = self._log.is_stored(ref.stream, ref.seq) or (
            is_base
            and self._log.objects.get(layout.build_checkpoint_path(at.stream.id, at.seq))
            is not None
        )
        if not is_known or self._log.read_snapshot(at.stream, at.seq).commit != at.commit:
            raise CommitNotFoundError(f"this graph has no commit '{at.commit}'")


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

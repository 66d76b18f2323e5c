"""Who holds a commit: branches, tags, and for the grace branches that were deleted.

A collector states what it lets go before it reads the roots for the last time. So whoever is about
to refer to a commit asks here twice: before saying so, and after, when a collector that did not see
the new reference has left a floor.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from omnigraph.errors import BranchNotFound, CommitNotFound, SnapshotGone
from omnigraph.storage import layout
from omnigraph.versioning.floors import Floors
from omnigraph.versioning.log import Log
from omnigraph.versioning.record import Stream
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.tags import Tags

_SECOND: Final = 1_000_000


class Names(Protocol):
    """What is asked of the names of branches."""

    def resolve(self, name: str) -> Stream:
        """The stream that a name stands for now."""

    def streams(self, *, deleted_since: int) -> tuple[tuple[Stream, bool], ...]:
        """The streams of all branches that are live, or were deleted since a time (µs)."""


class Holders:
    """Finds who holds a commit of one graph."""

    def __init__(
        self, log: Log, names: Names, tags: Tags, *, now_us: Callable[[], int], grace_s: float
    ) -> None:
        self._log = log
        self._names = names
        self._tags = tags
        self._floors = Floors(log.objects)
        self._now_us = now_us
        self._grace_us = int(grace_s * _SECOND)

    def require(self, at: Snapshot, *, tag: str | None = None, stream: str | None = None) -> int:
        """Refuse a commit that nobody holds, besides a tag and a stream that are asking.

        Returns the seq of the oldest commit that is held with it.
        """
        oldest = self._own_floor(at)
        if oldest is None or oldest > at.seq:
            lines = self._floors_of_lines(at, besides=stream)
            if not lines and any(found.name != tag for found in self._tags.holding(at.commit)):
                return at.seq
            if not lines and oldest is not None:
                raise SnapshotGone(f"commit '{at.commit}' was collected", oldest=oldest)
            if not lines:
                raise SnapshotGone(f"commit '{at.commit}' went with its branch: nobody holds it")
            oldest = min(lines)
        self._require_stored(at)
        return oldest

    def _own_floor(self, at: Snapshot) -> int | None:
        """How far back the branch of a snapshot reaches; None if it is not live."""
        with suppress(BranchNotFound):
            if self._names.resolve(at.stream.branch).id == at.stream.id:
                return self._floors.of(at.stream)
        return None

    def _floors_of_lines(self, at: Snapshot, *, besides: str | None) -> list[int]:
        """How far back each branch that holds a commit reaches."""
        owner = at.ref.stream
        since = self._now_us() - self._grace_us
        floors = (
            self._floors.of(line)
            for line, _ in self._names.streams(deleted_since=since)
            if line.id != besides and line.owner(at.seq).id == owner
        )
        return [floor for floor in floors if floor <= at.seq]

    def _require_stored(self, at: Snapshot) -> None:
        """Refuse a commit that this graph does not have: nobody could read it."""
        ref = at.ref
        # The record may be collected where the checkpoint of a branch keeps what it said.
        is_base = bool(at.stream.origins) and at.seq == at.stream.first_seq - 1
        is_known = self._log.is_stored(ref.stream, ref.seq) or (
            is_base and self._log.objects.get(layout.checkpoint(at.stream.id, at.seq)) is not None
        )
        if not is_known or self._log.at(at.stream, at.seq).commit != at.commit:
            raise CommitNotFound(f"this graph has no commit '{at.commit}'")

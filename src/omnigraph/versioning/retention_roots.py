"""What retains a commit: branches, tags, for the grace branches that were deleted, and leases.

A collector states what it releases before it reads the roots for the last time. So a process that
is about to refer to a commit takes a lease first, and asks here after that whether the commit is
still retained: a collector that did not see the lease has left a floor by then.

A lease ends after the grace, which no pause of its process may make unsafe. Before a collector ends
one, it decides what the lease was for: a commit requires its lease to be there after the fence, and
the event of a new name loses its place (`ref_events`). So nothing that is visible is ever verified
afterwards, or withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final, Protocol

from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    InDoubtError,
    OmnigraphError,
    SnapshotGoneError,
    StagingExpiredError,
    StorageError,
)
from omnigraph.ids import generate_ulid
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.json_fields import Fields, decode_fields
from omnigraph.versioning.log import Log
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import CommitRef, Stream
from omnigraph.versioning.ref_events import RefEvents, put_event
from omnigraph.versioning.retention_floors import Floors
from omnigraph.versioning.tag_events import Tag, build_tag_event, decode_tag
from omnigraph.versioning.tags import NewName, Tags
from omnigraph.versioning.transaction import Retained

_SECOND: Final = 1_000_000


class BranchNames(Protocol):
    """What is asked of the names of branches."""

    def resolve(self, name: str) -> Stream:
        """The stream that a name stands for now."""

    def list_streams(self, *, deleted_since: int) -> tuple[tuple[Stream, bool], ...]:
        """The streams of all branches that are live, or were deleted since a time (µs)."""


class RetentionRoots:
    """Finds what retains a commit of one graph."""

    def __init__(
        self, log: Log, names: BranchNames, tags: Tags, *, now_us: Callable[[], int], grace_s: float
    ) -> None:
        self._log = log
        self._names = names
        self._tags = tags
        self._floors = Floors(log.objects)
        self._now_us = now_us
        self._grace_us = int(grace_s * _SECOND)

    def require_retained(self, at: Snapshot) -> int:
        """Refuse a commit that no branch and no tag retains.

        Returns the seq of the oldest commit that is retained with it.
        """
        oldest = self._read_own_floor(at)
        if oldest is None or oldest > at.seq:
            lines = self._list_line_floors(at)
            if not lines and self._tags.find_by_commit(at.commit):
                return at.seq
            if not lines and oldest is not None:
                raise SnapshotGoneError(f"commit '{at.commit}' was collected", oldest=oldest)
            if not lines:
                raise SnapshotGoneError(
                    f"commit '{at.commit}' went with its branch: nothing retains it"
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

    def _list_line_floors(self, at: Snapshot) -> list[int]:
        """How far back each branch that holds a commit reaches."""
        owner = at.ref.stream
        since = self._now_us() - self._grace_us
        floors = (
            self._floors.read_floor(line)
            for line, _ in self._names.list_streams(deleted_since=since)
            if line.owner_of(at.seq).id == owner
        )
        return [floor for floor in floors if floor <= at.seq]

    def _require_stored(self, at: Snapshot) -> None:
        """Refuse a commit that this graph does not have: it cannot be read."""
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


@dataclass(frozen=True, slots=True)
class Lease:
    """What keeps a commit for work under way; with the name that the work creates, if any."""

    path: str
    snapshot: Snapshot
    created_at: int
    creates: NewName | None = None

    @property
    def stream(self) -> Stream | None:
        """The stream of the branch that is being created."""
        new = self.creates
        if new is None or new.stream is None:
            return None
        return Stream(new.stream, new.name, list_origins(self.snapshot))


class Leases:
    """The leases of one graph."""

    def __init__(
        self,
        objects: Objects,
        events: RefEvents,
        now_us: Callable[[], int],
        require_retained: Callable[[Snapshot], object],
    ) -> None:
        self._objects = objects
        self._events = events
        self._now_us = now_us
        self._require_retained = require_retained

    def list(self) -> list[Lease]:
        """All leases."""
        listed = [entry.path for entry in self._objects.list(layout.LEASES)]
        # One that is gone by now has done its work.
        stored = [(path, data) for path in listed if (data := self._objects.get(path)) is not None]
        return [_decode_lease(path, decode_fields(path, data)) for path, data in stored]

    def end(self, leases: Sequence[Lease]) -> None:
        """Give up waiting for the work of some leases; for collectors."""
        for lease in leases:
            if (new := lease.creates) is not None:
                # Before the lease goes: the process that creates the name may go on at any time.
                self._events.refuse_creation(
                    new.name, new.generation, lease=lease.path, now_us=self._now_us()
                )
        self._objects.delete([lease.path for lease in leases])

    @contextmanager
    def begin_creation(self, at: Snapshot, creates: NewName) -> Iterator[None]:
        """Around the creation of a name for a commit, which has to be found retained inside."""
        path = _build_path()
        self._put(path, at, creates)
        try:
            yield
        except OmnigraphError as error:
            # An event in doubt may still come: then a collector decides, and ends the lease.
            if not isinstance(error, InDoubtError):
                self._remove([path])
            raise
        self._remove([path])

    @contextmanager
    def acquire(self, *commits: Snapshot) -> Iterator[Retained]:
        """Around work that refers to commits in the end; those that nothing retains are refused.

        The work must require what this gives, because a lease does not outlast every pause.
        """
        for at in commits:
            self._require_retained(at)
        paths = [_build_path() for _ in commits]
        try:
            for path, at in zip(paths, commits, strict=True):
                self._put(path, at)
            # A collector that did not see the leases has stated by now what it releases.
            for at in commits:
                self._require_retained(at)
            yield Retained(partial(self._require, paths))
        finally:
            self._remove(paths)

    def _put(self, path: str, at: Snapshot, creates: NewName | None = None) -> None:
        event = build_tag_event(Tag(path, at, self._now_us()))
        if creates is not None:
            event["creates"] = asdict(creates)
        put_event(self._objects, path, event, what=f"the lease of commit '{at.commit}'")

    def _remove(self, paths: Sequence[str]) -> None:
        # One that stays ends with a clean-up.
        with suppress(StorageError):
            self._objects.delete(paths)

    def _require(self, paths: Sequence[str]) -> None:
        if any(self._objects.get(path) is None for path in paths):
            raise StagingExpiredError(
                "a clean-up took this write for dead", hint="run the write again"
            )


def list_origins(at: Snapshot) -> tuple[CommitRef, ...]:
    """The commit a new branch starts from, and those that its stream started from in turn."""
    owner = at.stream.owner_of(at.seq)
    return (at.ref, *owner.origins)


def _build_path() -> str:
    return layout.build_lease_path(generate_ulid().lower())


def _decode_lease(path: str, fields: Fields) -> Lease:
    kept = decode_tag(path, fields)
    creates: NewName | None = None
    if fields.has_field("creates"):
        new = fields.get_child("creates")
        creates = NewName(
            new.get_text("name"), new.get_integer("generation"), new.get_optional_text("stream")
        )
    return Lease(path, kept.snapshot, kept.created_at, creates)

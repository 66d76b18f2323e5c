"""The session of one opened graph: its actor, and the resources it shares with others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from omnigraph.engine.arguments import require_text
from omnigraph.engine.commit import Commit, commit_of
from omnigraph.engine.resources import Environment, Resources, Storage
from omnigraph.errors import (
    BranchGoneError,
    BranchNotFoundError,
    CommitNotFoundError,
    CorruptObjectError,
    GraphClosedError,
    InvalidArgumentError,
    SnapshotGoneError,
    StorageError,
)
from omnigraph.rows.view import View, open_view
from omnigraph.storage.objects import layout
from omnigraph.versioning import Record, Snapshot, Stream


class Session:
    """What branches and snapshots need of the graph they belong to."""

    def __init__(
        self, storage: Storage, *, actor: str | None, environment: Environment | None = None
    ) -> None:
        if actor is not None and not require_text("actor", actor).strip():
            raise InvalidArgumentError("actor", "it is empty", hint="name an actor, or pass None")
        self.uri = storage.objects.uri
        self.actor = actor
        self._resources = Resources(storage, environment)
        self._is_open = True
        self._process = os.getpid()

    @property
    def resources(self) -> Resources:
        """What all handles on this graph share; refused after closing."""
        self.require_open()
        return self._resources

    def require_open(self) -> None:
        """Refuse every use after closing, and in a process that did not open the graph."""
        if not self._is_open:
            raise GraphClosedError(self.uri)
        # A forked child would wait for ever for threads that only its parent has.
        if os.getpid() != self._process:
            raise GraphClosedError(
                self.uri, hint="open it in each process, and start them with spawn"
            )

    def begin(self) -> None:
        """Take part in what the other handles of this process use; the graph must exist."""
        self._resources = self._resources.join_shared(self)

    def end(self) -> None:
        """Release the graph; calling it again is allowed."""
        if self._is_open:
            self._is_open = False
            self._resources.leave(self)

    def read_head(self, stream: Stream) -> Snapshot:
        """The newest snapshot of a branch that still has its name."""
        log = self.resources.log
        head = log.read_head(stream)
        if head.is_closed and not self._is_named(stream):
            raise BranchGoneError(stream.branch)
        return head.snapshot

    def open_view(self, snapshot: Snapshot) -> View:
        """A snapshot with its schema and its tables."""
        resources = self.resources
        return open_view(snapshot, resources.schemas, resources.storage.tables)

    @contextmanager
    def guard_reads(self, snapshot: Snapshot) -> Iterator[None]:
        """Around reads of a snapshot: raises `HistoryGoneError` if it was collected meanwhile."""
        try:
            yield
        except StorageError as error:
            if (gone := self._find_collected(snapshot)) is not None:
                raise gone from error
            raise

    def _find_collected(self, snapshot: Snapshot) -> SnapshotGoneError | None:
        resources = self._resources
        with suppress(StorageError):
            try:
                resources.branches.require_retained(snapshot)
            except SnapshotGoneError as gone:
                resources.log.invalidate_floor(snapshot.stream)
                return gone
            except CommitNotFoundError:
                resources.log.invalidate_floor(snapshot.stream)
                return SnapshotGoneError(
                    f"commit '{snapshot.commit}' was collected with its branch"
                )
        return None

    def read_commit(self, snapshot: Snapshot) -> Commit:
        """The commit of a snapshot."""
        ref = snapshot.ref
        record = self.resources.log.read(ref.stream, ref.seq)
        if isinstance(record, Record):
            return commit_of(record)
        is_collected = self.resources.log.is_collected(ref.stream, ref.seq)
        if not is_collected and self._is_named(snapshot.stream.owner_of(ref.seq)):
            raise CorruptObjectError(
                layout.build_record_path(ref.stream, ref.seq), "the record is missing"
            )
        raise CommitNotFoundError(f"the record of commit '{ref.commit}' is gone")

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"the graph at {self.uri} cannot be pickled: pass its address, and open it there"
        )

    def _is_named(self, stream: Stream) -> bool:
        """Whether the name still stands for the stream: a deletion may have stopped half way."""
        try:
            return self.resources.branches.resolve(stream.branch).id == stream.id
        except BranchNotFoundError:
            return False

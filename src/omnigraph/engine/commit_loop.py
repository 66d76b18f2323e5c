"""The commit loop: prepares a write on a snapshot, publishes it, and retries after conflicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from omnigraph.engine import arguments
from omnigraph.engine.commit import Commit
from omnigraph.engine.graph_session import Session
from omnigraph.errors import (
    BranchRefusedError,
    ConflictError,
    CorruptObjectError,
    EmbeddingError,
    InDoubtError,
    InvalidArgumentError,
    MergeConflictError,
    OmnigraphError,
    PolicyDeniedError,
    PolicyFailedError,
    PreconditionFailedError,
    QueryCancelledError,
    QueryTimeoutError,
    SchemaMovedError,
    SnapshotGoneError,
    StagingExpiredError,
    StorageError,
    StorageUnknownError,
    WriteRefusedError,
)
from omnigraph.ids import generate_ulid
from omnigraph.policy.acts import Act
from omnigraph.rows.view import View
from omnigraph.versioning import (
    BranchAt,
    Log,
    Record,
    Retained,
    Signature,
    Snapshot,
    Stream,
    Transaction,
)
from omnigraph.writers.prepare import Request

# Each start reads the source of a load again; a schema does not change, nor does a clean-up
# overtake a write, this often during one.
STARTS_MAX: Final = 32
# Errors that say for sure that no commit was made. After any other, the log is asked.
_REFUSALS: Final = (
    BranchRefusedError,
    ConflictError,
    EmbeddingError,
    MergeConflictError,
    PolicyDeniedError,
    PolicyFailedError,
    PreconditionFailedError,
    QueryCancelledError,
    QueryTimeoutError,
    SchemaMovedError,
    SnapshotGoneError,
    StagingExpiredError,
    WriteRefusedError,
)
# After these a commit may still come.
_UNDECIDED: Final = (InDoubtError, StorageUnknownError)
# What a write meets that reads files while a clean-up removes them, and what damage gives as well.
_MISSING: Final = (CorruptObjectError, StorageError)


# The keys of merges of proposals: a write with one of them would pass for such a merge.
RESERVED_KEYS: Final = "proposal:"


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which condition a write may happen, and what is said about it.

    `if_commit` is the id that the newest commit must have, maintenance aside; `key` is the same
    for every repetition of one request; `reverts` is the id of the commit that a revert undoes.
    `requires` is what else must hold at the commit. A write that `is_dry` ends before its commit.
    """

    if_commit: str | None = None
    message: str | None = None
    key: str | None = None
    reverts: str | None = None
    requires: tuple[Retained, ...] = ()
    is_dry: bool = False


def build_terms(
    if_commit: Commit | str | None,
    *,
    message: str | None,
    key: str | None = None,
    is_dry: bool = False,
) -> Terms:
    """The terms that a caller gives."""
    commit = if_commit.id if isinstance(if_commit, Commit) else if_commit
    return Terms(
        arguments.require_optional_text("if_commit", commit),
        arguments.require_optional_text("message", message),
        _require_own_key(key),
        is_dry=is_dry,
    )


def _require_own_key(value: object) -> str | None:
    """An idempotency key of a caller, which is none of those that merges of proposals have."""
    key = arguments.require_optional_key(value)
    if key is not None and key.startswith(RESERVED_KEYS):
        reason = f"keys that begin with '{RESERVED_KEYS}' are those of merges of proposals"
        raise InvalidArgumentError("key", reason, hint="begin it with another word")
    return key


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What became of a write: its commit, if there was anything to write.

    `is_repeated` says that an earlier request with the same key made the commit.
    """

    record: Record | None
    is_repeated: bool = False


class Operation(Protocol):
    """What a write prepares, on any snapshot."""

    @property
    def may_repeat(self) -> bool:
        """Whether the prepared write may be prepared again when others changed what it read."""

    def list_acts(self, branch: str) -> tuple[Act, ...]:
        """What the actor of a write to a branch must be allowed to do."""

    def prepare(self, view: View, request: Request) -> Transaction | None:
        """The write on a view; None when there is nothing to write."""

    def abandon(self) -> None:
        """Remove what was written for a write that will never be a commit."""


class SchemaChanged(Exception):
    """A preparation that another schema overtook, to be started anew from the newest snapshot.

    Preparations are repeated where others wait for them. What a write has to do for another
    schema, such as reading its source, is done in the thread of its author.
    """


class _Overtaken(Exception):
    """A write that failed, and made no commit, while a clean-up may have removed its files."""


def write(session: Session, stream: Stream, operation: Operation, terms: Terms) -> WriteOutcome:
    """Prepare an operation on the newest snapshot of a branch and publish it."""
    # Before anything is read, of the graph or of the source of a load.
    for act in operation.list_acts(stream.branch):
        session.authorize(act)
    for _ in range(STARTS_MAX):
        snapshot = session.read_head(stream)
        try:
            written = _write(session, snapshot, operation, terms)
        except (SchemaChanged, _Overtaken):
            continue
        except SnapshotGoneError:
            # A process that slept through a clean-up starts from the commit that is newest now.
            if session.read_head(stream).seq > snapshot.seq:
                continue
            operation.abandon()
            raise
        except _REFUSALS:
            operation.abandon()
            raise
        if written.is_repeated and terms.key is not None:
            # The key belongs to the commit of another request, so that this one can make none.
            operation.abandon()
        return written
    operation.abandon()
    raise ConflictError(
        f"branch '{stream.branch}' changed its schema or was cleaned up {STARTS_MAX} times"
    )


def _write(
    session: Session, snapshot: Snapshot, operation: Operation, terms: Terms
) -> WriteOutcome:
    resources, stream = session.resources, snapshot.stream
    if terms.key is not None:
        made = resources.history.find_by_key(stream, terms.key)
        if made is not None:
            return WriteOutcome(made, is_repeated=True)
    # Also a write that finds nothing to do must not say so about another head.
    if terms.if_commit is not None and not resources.log.is_at(snapshot, terms.if_commit):
        raise PreconditionFailedError(
            stream.branch, expected=terms.if_commit, actual=snapshot.commit
        )
    name = generate_ulid()
    request = Request(
        signature=Signature(
            session.actor, terms.message, terms.key, operations=(name,), reverts=terms.reverts
        ),
        requires=terms.requires + ((BranchAt(terms.if_commit),) if terms.if_commit else ()),
    )

    def again(newer: Snapshot) -> Transaction | None:
        with session.guard_reads(newer):
            prepared = operation.prepare(session.open_view(newer), request)
        session.authorize_write(operation.list_acts(stream.branch), prepared)
        return None if prepared is None else replace(prepared, after_fills=again)

    try:
        transaction = again(snapshot)
    except SchemaChanged:
        raise
    except BaseException as error:
        # Nothing was offered to the log: what was written ahead, up to a full disk, is garbage.
        _abandon(operation, error, resources.log, snapshot)
        raise
    if transaction is None or terms.is_dry:
        operation.abandon()
        return WriteOutcome(None)
    publisher = resources.publishers.get_publisher(stream)
    try:
        record = publisher.publish(
            transaction, prepare_again=again if operation.may_repeat else None
        )
    except _MISSING as error:
        if not isinstance(error, _UNDECIDED) and _is_absent(resources.log, snapshot, name):
            _abandon(operation, error, resources.log, snapshot)
        raise
    is_repeated = record is not None and name not in record.signature.operations
    return WriteOutcome(record, is_repeated=is_repeated)


def _abandon(operation: Operation, error: BaseException, log: Log, since: Snapshot) -> None:
    """Remove what a failed write has written; raise `_Overtaken` if a clean-up may be why."""
    operation.abandon()
    if isinstance(error, _MISSING) and _is_cleaned_up(log, since):
        raise _Overtaken from error


def _is_cleaned_up(log: Log, since: Snapshot) -> bool:
    """Whether a clean-up may have removed something since a snapshot that was the newest.

    Before it removes anything, it raises the floor or fences the branch.
    """
    try:
        if log.is_collected(since.stream.id, since.seq):
            return True
        newer = log.read_after(since.stream, since.seq)
    except OmnigraphError:
        return False
    return any(isinstance(entry, Record) and entry.is_fence for entry in newer)


def _is_absent(log: Log, since: Snapshot, operation: str) -> bool:
    """Whether no commit after a snapshot is that of an operation, as far as can be read."""
    try:
        newer = log.read_after(since.stream, since.seq)
        # Its commit may be among those that a clean-up released since.
        if log.is_collected(since.stream.id, since.seq + 1):
            return False
    except OmnigraphError:
        return False
    records = (entry for entry in newer if isinstance(entry, Record))
    return all(operation not in record.signature.operations for record in records)

"""The committer: a transaction becomes one record, on top of whatever others committed.

No other module has records created. Everything a commit writes before its record is unreachable;
the record makes all of it visible at once, and nothing durable has to follow it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, assert_never

from omnigraph.errors import (
    BranchGoneError,
    ConflictError,
    CorruptObjectError,
    GraphExistsError,
    InDoubtError,
    OmnigraphError,
    PreconditionFailedError,
    StagingExpiredError,
    StorageError,
    StorageUnknownError,
)
from omnigraph.ids import decode_ulid_ms
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.advisory_lock import acquire_lock
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning import change_sets
from omnigraph.versioning.commit_clock import Clock, Stamp
from omnigraph.versioning.effects import (
    Drop,
    EffectApplier,
    Register,
    Rename,
    TableStore,
    group_staged_files,
    is_rewritable,
)
from omnigraph.versioning.footprint import (
    Footprint,
    FootprintConflict,
    find_conflict,
)
from omnigraph.versioning.graph_format import CURRENT, encode_format
from omnigraph.versioning.log import WHOLE_PINS_MAX, Log
from omnigraph.versioning.log_snapshot import Head, Snapshot
from omnigraph.versioning.puts import Puts, pause_after
from omnigraph.versioning.record import (
    GENESIS_SEQ,
    MAIN,
    ChangeSet,
    Close,
    CommitRef,
    LogEntry,
    PutOutcome,
    Record,
    Signature,
    Spilled,
    Stream,
    generate_commit_id,
)
from omnigraph.versioning.sweeps import Sweeps
from omnigraph.versioning.transaction import (
    BranchAt,
    PrepareAgain,
    Requirement,
    Retained,
    Settings,
    Transaction,
)

# Lost races before a write may give up; each loss means that another commit went through.
ATTEMPTS_MAX: Final = 32
_CLEANUP: Final = Signature(message="cleanup")


@dataclass(frozen=True, slots=True)
class _PreparedCommit:
    """A transaction on its way: its effects applied by a workbench, its change sets sealed."""

    transaction: Transaction
    applier: EffectApplier
    changes: Mapping[str, ChangeSet]
    head: Snapshot


@dataclass(frozen=True, slots=True)
class _FinishedCommit:
    """A publication that needs no further record: it exists, or nothing is left to write.

    `head` is the end that it gave to the branch; None if another publication made the record,
    which then need not be the next one after the head that is known here.
    """

    record: Record | None
    head: Head | None = None


class Committer:
    """Publishes transactions on the streams of one graph; safe to share between threads."""

    def __init__(self, log: Log, tables: TableStore, settings: Settings | None = None) -> None:
        self.log = log
        self.tables = tables
        self.settings = settings or Settings()
        self.sweeps = Sweeps(log.objects)
        self._puts = Puts(log, self.settings.pause)
        self._clock = Clock(log.objects, self.settings.now_us, self.settings.read_store_time)

    def publish(
        self, transaction: Transaction, *, prepare_again: PrepareAgain | None = None
    ) -> Record | None:
        """Make a transaction a commit, on top of whatever others committed meanwhile.

        When another commit met the footprint, the write is prepared again if it can be, and is
        a ConflictError otherwise. None means that the repeated preparation found nothing to write.
        """
        state = self._prepare_commit(transaction)
        give_up_at = time.monotonic() + self.settings.retry_s_max
        for attempt in count():
            if attempt >= ATTEMPTS_MAX and time.monotonic() > give_up_at:
                break
            try:
                made = self._try_publish(state, prepare_again, is_first=attempt == 0)
            except Exception:
                state.applier.discard()
                raise
            if isinstance(made, _FinishedCommit):
                return made.record
            state = made
            pause_after(attempt, self.settings.pause)
        state.applier.discard()
        raise ConflictError(
            f"branch '{state.head.stream.branch}' moved {attempt} times during this write"
        )

    def _try_publish(
        self, state: _PreparedCommit, prepare_again: PrepareAgain | None, *, is_first: bool
    ) -> _PreparedCommit | _FinishedCommit:
        """One attempt on top of newer entries; the state to go on from after a loss."""
        moved = self._read_moved(state, prepare_again, is_first=is_first)
        if isinstance(moved, _FinishedCommit):
            return moved
        # Rows need no turn: they are the most work, and fit whatever version comes.
        moved.applier.write(moved.head.pins)
        stream = moved.head.stream
        with acquire_lock(self.log.objects.uri, layout.build_stream_folder(stream.id)) as has_turns:
            late = self._read_moved(moved, prepare_again) if has_turns else moved
            made = (
                late
                if isinstance(late, _FinishedCommit)
                else self._stage_and_put(late, prepare_again)
            )
        if isinstance(made, _FinishedCommit) and made.record is not None and made.head is not None:
            self.log.settle(made.record, made.head)
        return made

    def fence(self, stream: Stream) -> None:
        """Take the next seq of a branch, so that writes prepared before must look again.

        A branch that ends meanwhile needs no fence: nothing can be published on it.
        """
        with suppress(BranchGoneError):
            head = self.log.read_newest_head(stream)
            if not head.is_closed:
                self.publish(Transaction(head.snapshot, (), {}, signature=_CLEANUP, is_fence=True))

    def close(
        self, stream: Stream, *, actor: str | None = None, requires: tuple[BranchAt, ...] = ()
    ) -> None:
        """End a stream: every later write on it fails. Ending it again is not an error."""
        for attempt in range(ATTEMPTS_MAX):
            head = self.log.read_newest_head(stream)
            if head.is_closed:
                return
            self._require(requires, head.snapshot)
            created_at = self._clock.stamp(head.snapshot).created_at
            entry = Close(stream.id, stream.branch, head.next_seq, created_at, actor)
            if self._puts.put(entry) is PutOutcome.CREATED:
                self.log.settle(entry, head.advance(entry))
                return
            pause_after(attempt, self.settings.pause)
        raise ConflictError(
            f"branch '{stream.branch}' moved {ATTEMPTS_MAX} times during its deletion"
        )

    def create_graph(
        self, *, schema: str, pins: Mapping[str, Pin], signature: Signature | None = None
    ) -> Record:
        """Create the graph: its genesis record. Of two creators one wins."""
        # A crash between the two puts leaves a format and no graph; creating it again succeeds.
        with suppress(StorageUnknownError):
            self.log.objects.put_new(layout.FORMAT, encode_format(CURRENT))
        self.log.require_format()
        now = self._clock.stamp(None).created_at
        record = Record(
            stream=MAIN.id,
            branch=MAIN.branch,
            seq=GENESIS_SEQ,
            commit=generate_commit_id(now),
            parent=None,
            created_at=now,
            schema=schema,
            pins=dict(pins),
            signature=signature or Signature(),
            registered=tuple(sorted(pins)),
        )
        if self._puts.put(record) is not PutOutcome.CREATED:
            raise GraphExistsError(self.log.objects.uri)
        head = Head(Snapshot(MAIN, record.seq, record.commit, now, schema, record.pins))
        self.log.settle(record, head)
        return record

    def find_first_conflict(
        self, footprint: Footprint, schema: str, entries: list[LogEntry]
    ) -> tuple[Record, FootprintConflict] | None:
        """The first of some newer records that changed what a write depends on, or the schema."""
        for entry in entries:
            if not isinstance(entry, Record):
                continue
            if entry.schema != schema:
                # The write was validated by rules that are no longer in force.
                return entry, FootprintConflict("schema", None)
            found = find_conflict(footprint, entry.changes, self._load)
            if found is not None:
                return entry, found
        return None

    def _load(self, change: ChangeSet) -> change_sets.LoadedChange:
        return change_sets.load_change_set(self.log.objects, change)

    def _prepare_commit(self, transaction: Transaction) -> _PreparedCommit:
        sealed = {
            type_key: change_sets.seal_change_set(self.log.objects, change)
            for type_key, change in transaction.changes.items()
        }
        executor = self.settings.executor
        bench = EffectApplier(self.tables, transaction.effects, executor=executor)
        return _PreparedCommit(transaction, bench, sealed, transaction.snapshot)

    def _read_moved(
        self, state: _PreparedCommit, prepare_again: PrepareAgain | None, *, is_first: bool = False
    ) -> _PreparedCommit | _FinishedCommit:
        """The state on top of what was committed since its head.

        The first attempt relies on what this process knows, since its put notices the rest.
        """
        log, head = self.log, state.head
        try:
            if is_first:
                newer = log.read_between(head.stream, head.seq, log.remember(Head(head)))
                return self._rebase(state, newer, prepare_again)
            newer = log.read_after(head.stream, head.seq)
            return self._rebase(state, newer, prepare_again) if newer else state
        except CorruptObjectError:
            # What a collector removed is missing as well, and is not damage.
            if not log.is_collected(head.stream.id, head.seq + 1):
                raise
        return self._rebase_on_newest(state, prepare_again)

    def _rebase(
        self, state: _PreparedCommit, newer: list[LogEntry], prepare_again: PrepareAgain | None
    ) -> _PreparedCommit | _FinishedCommit:
        """The state on top of newer entries, prepared again if they changed what it read."""
        head = Head(state.head)
        for entry in newer:
            head = head.advance(entry)
        # First: a request that is repeated gets its commit, whatever happened to the branch since.
        if (made := _find_same_key(state.transaction.signature.key, newer)) is not None:
            if self.log.verify_put(made) is PutOutcome.CREATED:
                return _FinishedCommit(made)
            return self._rebase_on_newest(state, prepare_again)
        if head.is_closed:
            raise BranchGoneError(state.head.stream.branch)
        self._require(state.transaction.requires, head.snapshot)
        footprint = state.transaction.full_footprint if newer else {}
        met = self.find_first_conflict(footprint, state.transaction.snapshot.schema, newer)
        state = replace(state, head=head.snapshot)
        if met is not None:
            again = prepare_again or self._find_repeat(state.transaction, newer)
            return self._prepare_again(state, again, _build_conflict(state, *met))
        if any(isinstance(entry, Record) and entry.is_fence for entry in newer):
            return self._resume_after_fence(state, prepare_again)
        return state

    def _find_repeat(self, write: Transaction, newer: list[LogEntry]) -> PrepareAgain | None:
        """How a write is prepared again, if nothing met it but commits that filled vectors."""
        others = [each for each in newer if not (isinstance(each, Record) and each.is_fill)]
        if write.after_fills is None or len(others) == len(newer):
            return None
        met = self.find_first_conflict(write.full_footprint, write.snapshot.schema, others)
        return write.after_fills if met is None else None

    def _resume_after_fence(
        self, state: _PreparedCommit, prepare_again: PrepareAgain | None
    ) -> _PreparedCommit | _FinishedCommit:
        """The state after a fence: a collector may be removing what it had written before."""
        transaction = state.transaction
        is_spilled = any(isinstance(each, Spilled) for each in transaction.changes.values())
        if is_spilled or not all(map(is_rewritable, transaction.effects)):
            return self._prepare_again(state, prepare_again, _build_expired_error())
        # Rows in memory are written again; files of rows are compared with what may be removed.
        self.tables.forget_unpublished()
        state.applier.discard()
        return replace(self._prepare_commit(transaction), head=state.head)

    def _stage_and_put(
        self, state: _PreparedCommit, prepare_again: PrepareAgain | None
    ) -> _PreparedCommit | _FinishedCommit:
        """Stage the table versions and put the record; the state to go on from after a loss."""
        # Read after the head: a collector that states a cutoff later fences the branch after it.
        staged = group_staged_files(state.transaction.effects)
        if any(self.sweeps.may_remove(files, after=number) for number, files in staged.items()):
            return self._prepare_again(state, prepare_again, _build_expired_error())
        try:
            record = self._compose_record(state)
        except ConflictError as conflict:
            # The tables do not fit the effects any more, although no footprint was met.
            return self._prepare_again(state, prepare_again, conflict)
        # From here on its files may be those of a commit, unless the store says that they are not.
        state.applier.is_offered = True
        try:
            placed = self._puts.put_or_find(record)
        except StorageUnknownError:
            raise
        except StorageError:
            state.applier.is_offered = False
            raise
        # Files of a record that was put are left to a collector, which knows what refers to them.
        state.applier.is_offered = placed is not PutOutcome.TAKEN
        match placed:
            case PutOutcome.CREATED:
                return _FinishedCommit(record, Head(state.head.advance(record)))
            case PutOutcome.TAKEN:
                return state
            case PutOutcome.COLLECTED:
                return self._rebase_on_newest(state, prepare_again)

    def _rebase_on_newest(
        self, state: _PreparedCommit, prepare_again: PrepareAgain | None
    ) -> _PreparedCommit | _FinishedCommit:
        """The state on the newest head, where the commits before it were collected.

        What they changed cannot be compared with what the write read, so it is prepared anew.
        """
        key, stream = state.transaction.signature.key, state.head.stream
        self._refuse_let_go(state)
        head = self.log.read_newest_head(stream)
        if key:
            first = max(self.log.floors.read_stream_floor(stream.id), stream.first_seq)
            try:
                kept = _find_same_key(key, self.log.read_between(stream, first - 1, head))
            except CorruptObjectError:
                if not self.log.is_collected(stream.id, first):
                    raise
                # The next clean-up has come: the next attempt looks again.
                return state
            if kept is not None:
                return _FinishedCommit(kept)
            # Once more: it may have been released before the kept commits were read.
            self._refuse_let_go(state)
        if head.is_closed:
            raise BranchGoneError(stream.branch)
        self._require(state.transaction.requires, head.snapshot)
        return self._prepare_again(
            replace(state, head=head.snapshot), prepare_again, _build_expired_error()
        )

    def _refuse_let_go(self, state: _PreparedCommit) -> None:
        """Refuse a request whose commit was made and then released."""
        key, head = state.transaction.signature.key, state.head
        made = self.log.floors.find_key(head.stream.id, head.seq, key) if key else None
        if made is not None:
            raise InDoubtError(
                f"this request was committed as {made}, and collected since", commit=made
            )

    def _prepare_again(
        self, state: _PreparedCommit, prepare_again: PrepareAgain | None, refusal: OmnigraphError
    ) -> _PreparedCommit | _FinishedCommit:
        """The same write, prepared again on the new head, or the error that refuses it."""
        if prepare_again is None:
            raise refusal
        transaction = prepare_again(state.head)
        state.applier.discard()
        return _FinishedCommit(None) if transaction is None else self._prepare_commit(transaction)

    def _require(self, requirements: tuple[Requirement, ...], head: Snapshot) -> None:
        for requirement in requirements:
            match requirement:
                case Retained():
                    requirement.check()
                case BranchAt(commit):
                    if not self.log.is_at(head, commit):
                        branch = head.stream.branch
                        raise PreconditionFailedError(branch, expected=commit, actual=head.commit)
                case _:
                    assert_never(requirement)

    def _compose_record(self, state: _PreparedCommit) -> Record:
        """The record for the place after the head, once its table versions exist."""
        head, transaction = state.head, state.transaction
        touched = state.applier.apply(head.pins)
        pins = {key: pin for key, pin in {**head.pins, **touched}.items() if pin is not None}
        is_whole = len(pins) <= WHOLE_PINS_MAX
        stamp = self._stamp(head, transaction.merged)
        effects = transaction.effects
        return Record(
            stream=head.stream.id,
            branch=head.stream.branch,
            seq=head.seq + 1,
            commit=generate_commit_id(stamp.created_at),
            parent=head.commit,
            created_at=stamp.created_at,
            made_at=stamp.made_at,
            schema=transaction.schema or head.schema,
            pins=pins if is_whole else {key: pins[key] for key in touched if key in pins},
            is_whole=is_whole,
            changes=state.changes,
            signature=transaction.signature,
            members=transaction.members,
            merged=transaction.merged,
            preferred=transaction.preferred,
            decisions=transaction.decisions,
            registered=tuple(e.type_key for e in effects if isinstance(e, Register)),
            dropped=tuple(e.type_key for e in effects if isinstance(e, Drop)),
            renamed={e.type_key: e.to for e in effects if isinstance(e, Rename)},
            is_fence=transaction.is_fence,
        )

    def _stamp(self, head: Snapshot, merged: CommitRef | None) -> Stamp:
        """The stamp of a commit after both parents; an id has the millisecond of its commit."""
        after = 0 if merged is None else ((decode_ulid_ms(merged.commit) or 0) + 1) * 1000
        return self._clock.stamp(head, after=after)


def _find_same_key(key: str | None, entries: list[LogEntry]) -> Record | None:
    """The record that an earlier attempt of the same client request made."""
    records = (entry for entry in entries if isinstance(entry, Record))
    return next((found for found in records if key and found.signature.key == key), None)


def _build_expired_error() -> OmnigraphError:
    return StagingExpiredError(
        "a clean-up overtook this write: what it was prepared on or had written may be gone",
        hint="run the write again",
    )


def _build_conflict(
    state: _PreparedCommit, record: Record, found: FootprintConflict
) -> OmnigraphError:
    what = f"{found.type_key} '{found.entity_id}'" if found.entity_id else found.type_key
    return ConflictError(
        f"commit {record.commit} on branch '{state.head.stream.branch}' changed {what}",
        type_key=found.type_key,
        entity_id=found.entity_id,
        commit=record.commit,
    )

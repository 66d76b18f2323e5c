"""The publisher of a branch: writes that wait together become one record.

Threads that race for a record slow each other down, so within a process they queue. The first
thread in the queue publishes for all that wait after it; there is no extra thread to start
or stop. Between processes, publishers race.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final, TypeAlias

import pyarrow as pa

from omnigraph.errors import InDoubtError
from omnigraph.storage.tables.pins import Staged
from omnigraph.versioning.change_sets import combine_change_sets
from omnigraph.versioning.committer import Committer
from omnigraph.versioning.effects import Append, Effect, LocatedRows, Part, Replace, count_bytes
from omnigraph.versioning.footprint import Footprint, find_conflict, unite_footprints
from omnigraph.versioning.log_snapshot import Head, Snapshot
from omnigraph.versioning.record import Changed, ChangeSet, LogEntry, Record, Signature, Stream
from omnigraph.versioning.transaction import PrepareAgain, Transaction

# A batch larger than this only makes the first writer wait longer.
BATCH_WRITES_MAX: Final = 256
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024

# Called after every acknowledged commit, with the snapshot it made.
OnPublished: TypeAlias = Callable[[Snapshot], None]

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Share:
    """What a write brings to a record that it may have in common with others."""

    changes: Mapping[str, Changed]
    footprint: Footprint
    byte_count: int


@dataclass(slots=True, eq=False)
class _Ticket:
    """One waiting write and, later, what became of it; without a share it needs its own record.

    Its writer is called when it is done, and when no one publishes and it is the first to wait.
    """

    transaction: Transaction
    share: _Share | None
    prepare_again: PrepareAgain | None
    calls: SimpleQueue[None] = field(default_factory=SimpleQueue)
    is_done: bool = False
    record: Record | None = None
    error: BaseException | None = None

    def finish(self, record: Record | None) -> None:
        self.record, self.is_done = record, True

    def fail(self, error: BaseException) -> None:
        self.error, self.is_done = error, True

    def get_result(self) -> Record | None:
        if self.error is not None:
            raise self.error
        return self.record


@dataclass(slots=True)
class _Batch:
    """Writes that can share a record, and what they change together."""

    tickets: list[_Ticket] = field(default_factory=list)
    changes: dict[str, Changed] = field(default_factory=dict)
    byte_count: int = 0


class Publisher:
    """Publishes the writes of one process on one stream."""

    def __init__(
        self, committer: Committer, stream: Stream, *, on_published: OnPublished | None = None
    ) -> None:
        self._committer = committer
        self._stream = stream
        self._on_published = on_published
        self._lock = threading.Lock()
        self._queue: deque[_Ticket] = deque()
        self._is_busy = False

    def publish(
        self, transaction: Transaction, *, prepare_again: PrepareAgain | None = None
    ) -> Record | None:
        """Make a transaction a commit, alone or with others; as `Committer.publish`.

        The leader of the queue publishes for the others: rows of any size should be staged before,
        and `prepare_again` runs in the leader's thread and must not publish anything itself.
        """
        assert transaction.snapshot.stream.id == self._stream.id, "the publisher of another stream"
        # A transaction that cannot be batched must fail here, in the thread of its author.
        ticket = _Ticket(transaction, _build_share(transaction), prepare_again)
        try:
            with self._lock:
                self._queue.append(ticket)
            while not ticket.is_done:
                if not self._lead():
                    ticket.calls.get()
        except BaseException:
            self._leave(ticket)
            raise
        return ticket.get_result()

    def _leave(self, ticket: _Ticket) -> None:
        """Stop a waiting thread: what it has not begun must not happen, and others go on."""
        with self._lock:
            if ticket in self._queue:
                self._queue.remove(ticket)
            is_busy = self._is_busy
        if not is_busy:
            self._call_next()

    def _call_next(self) -> None:
        """Call the first waiting writer; a new one may publish before it."""
        with self._lock:
            first = self._queue[0] if self._queue else None
        if first is not None:
            first.calls.put(None)

    def _lead(self) -> bool:
        """Publish the next batch, unless another thread does, and call each of its writers."""
        tickets: list[_Ticket] = []
        is_leader = False
        try:
            with self._lock:
                if self._is_busy or not self._queue:
                    return False
                # The flag that the `finally` looks at is set first: a thread that is stopped
                # between the two leaves no writer waiting for a leader that is gone.
                is_leader = True
                self._is_busy = True
                tickets = self._take_batch()
            self._publish(tickets)
        except BaseException as error:
            # This thread is being stopped. The others must not wait for ever, nor write again
            # what may be written.
            for ticket in tickets:
                if not ticket.is_done:
                    ticket.fail(InDoubtError(f"the publishing thread was stopped: {error!r}"))
            raise
        finally:
            if is_leader:
                self._is_busy = False
                # First of all the next leader: it works while the others are called.
                self._call_next()
                for ticket in tickets:
                    ticket.calls.put(None)
        self._notify(tickets)
        return True

    def _take_batch(self) -> list[_Ticket]:
        """The first waiting write, and those after it that can share its record."""
        first = self._queue.popleft()
        try:
            return self._collect_batch(first)
        except BaseException:
            self._queue.appendleft(first)
            raise

    def _collect_batch(self, first: _Ticket) -> list[_Ticket]:
        if first.share is None:
            return [first]
        batch = _Batch()
        _join(batch, first, first.share)
        left: deque[_Ticket] = deque()
        for ticket in self._queue:
            share = ticket.share
            if share is not None and _fits(batch, ticket.transaction, share):
                _join(batch, ticket, share)
            else:
                left.append(ticket)
        self._queue = left
        return batch.tickets

    def _publish(self, tickets: list[_Ticket]) -> None:
        if len(tickets) > 1:
            self._publish_together(tickets)
        for ticket in tickets:
            if not ticket.is_done:
                self._publish_alone(ticket)

    def _publish_together(self, tickets: list[_Ticket]) -> None:
        """Publish the writes that nothing met since they were prepared; the others stay undone."""
        valid: list[_Ticket] = []
        try:
            seqs = [each.transaction.snapshot.seq for each in tickets]
            newest = tickets[seqs.index(max(seqs))].transaction.snapshot
            oldest = min(seqs)
            head = self._committer.log.remember(Head(newest))
            newer = self._committer.log.read_between(self._stream, oldest, head)
            valid = [
                each
                for each, seq in zip(tickets, seqs, strict=True)
                if self._is_valid(each, newer[seq - oldest :])
            ]
            if len(valid) < 2:
                return
            together = combine_transactions([each.transaction for each in valid], head.snapshot)
            record = self._committer.publish(together)
        except InDoubtError as error:
            for ticket in valid:
                ticket.fail(error)
        except Exception:  # noqa: BLE001 — the write it belongs to raises it again, below
            # Nothing was published. One by one, the error finds the write it belongs to.
            return
        else:
            for ticket in valid:
                ticket.finish(record)

    def _is_valid(self, ticket: _Ticket, newer: list[LogEntry]) -> bool:
        assert ticket.share is not None, "only writes that may share are published together"
        schema, footprint = ticket.transaction.snapshot.schema, ticket.share.footprint
        return self._committer.find_first_conflict(footprint, schema, newer) is None

    def _publish_alone(self, ticket: _Ticket) -> None:
        try:
            record = self._committer.publish(ticket.transaction, prepare_again=ticket.prepare_again)
        except Exception as error:  # noqa: BLE001 — it is raised again in the writer's thread
            ticket.fail(error)
        else:
            ticket.finish(record)

    def _notify(self, tickets: Iterable[_Ticket]) -> None:
        head = self._committer.log.get_known_head(self._stream)
        if self._on_published and head and any(ticket.record for ticket in tickets):
            try:
                self._on_published(head.snapshot)
            except Exception:
                # The commit exists: what is done after it cannot make it fail.
                _LOGGER.exception("after a commit on branch '%s'", self._stream.branch)


class Publishers:
    """The publishers of one graph in one process, one per stream: all its writers queue there."""

    def __init__(self, committer: Committer) -> None:
        self.committer = committer
        self.on_published: OnPublished | None = None
        self._lock = threading.Lock()
        self._by_stream: weakref.WeakValueDictionary[str, Publisher] = weakref.WeakValueDictionary()

    def get_publisher(self, stream: Stream) -> Publisher:
        """The publisher of a stream."""
        with self._lock:
            found = self._by_stream.get(stream.id)
            if found is None:
                found = Publisher(self.committer, stream, on_published=self._notify)
                self._by_stream[stream.id] = found
            return found

    def _notify(self, snapshot: Snapshot) -> None:
        if self.on_published is not None:
            self.on_published(snapshot)


def combine_transactions(transactions: list[Transaction], snapshot: Snapshot) -> Transaction:
    """One transaction for several that change different entities."""
    changes: dict[str, list[Changed]] = {}
    for transaction in transactions:
        for type_key, change in transaction.changes.items():
            changes.setdefault(type_key, []).append(_require_changed(change))
    signature = transactions[0].signature
    operations = tuple(name for each in transactions for name in each.signature.operations)
    return Transaction(
        snapshot=snapshot,
        effects=_combine_effects([effect for each in transactions for effect in each.effects]),
        changes={type_key: combine_change_sets(found) for type_key, found in changes.items()},
        footprint=unite_footprints(transaction.footprint for transaction in transactions),
        signature=Signature(signature.actor, signature.message, None, operations),
        members=sum(transaction.members for transaction in transactions),
    )


def _combine_effects(effects: list[Effect]) -> tuple[Effect, ...]:
    """One effect per type; the rows of all writes go into it together."""
    by_type: dict[str, list[Append | Replace]] = {}
    for effect in effects:
        assert isinstance(effect, Append | Replace)
        by_type.setdefault(effect.type_key, []).append(effect)
    return tuple(_combine_type_effects(key, group) for key, group in sorted(by_type.items()))


def _combine_type_effects(type_key: str, effects: list[Append | Replace]) -> Effect:
    new: tuple[Part, ...] = tuple(part for effect in effects for part in effect.new)
    replaces = [effect for effect in effects if isinstance(effect, Replace)]
    if not replaces:
        return Append(type_key, new)
    dead = replaces[0].dead.union(*(effect.dead for effect in replaces[1:]))
    return Replace(
        type_key, dead, new, _combine_located_rows([effect.found for effect in replaces])
    )


def _combine_located_rows(found: list[LocatedRows | None]) -> LocatedRows | None:
    known = [each for each in found if each is not None]
    versions = {each.version for each in known}
    if len(known) < len(found) or len(versions) > 1:
        return None
    # Only few rows are published together: their places are looked up again.
    return LocatedRows(versions.pop(), pa.concat_arrays([each.row_ids for each in known]))


def _build_share(transaction: Transaction) -> _Share | None:
    """What a write brings to a common record; None when it is about its own."""
    if (
        transaction.requires
        or transaction.signature.key is not None
        or transaction.signature.reverts is not None
        or transaction.schema is not None
        or transaction.merged is not None
        or transaction.preferred
        or transaction.is_fence
    ):
        return None
    changes = {
        type_key: change
        for type_key, change in transaction.changes.items()
        if isinstance(change, Changed)
    }
    effects = [effect for effect in transaction.effects if isinstance(effect, Append | Replace)]
    if len(changes) < len(transaction.changes) or len(effects) < len(transaction.effects):
        return None
    # Only rows that are still to be written count.
    parts = [part for effect in effects for part in effect.new if not isinstance(part, Staged)]
    return _Share(changes, transaction.full_footprint, sum(map(count_bytes, parts)))


def _fits(batch: _Batch, transaction: Transaction, share: _Share) -> bool:
    """Whether a write may join a batch: same actor, and untouched by what the batch changes."""
    if len(batch.tickets) >= BATCH_WRITES_MAX:
        return False
    if batch.byte_count + share.byte_count > BATCH_BYTES_MAX:
        return False
    first = batch.tickets[0].transaction
    signature, other = transaction.signature, first.signature
    if (signature.actor, signature.message) != (other.actor, other.message):
        return False
    if transaction.snapshot.schema != first.snapshot.schema:
        return False
    return find_conflict(share.footprint, batch.changes, _require_changed) is None


def _join(batch: _Batch, ticket: _Ticket, share: _Share) -> None:
    batch.tickets.append(ticket)
    batch.byte_count += share.byte_count
    for type_key, change in share.changes.items():
        known = batch.changes.get(type_key)
        batch.changes[type_key] = change if known is None else combine_change_sets([known, change])


def _require_changed(change: ChangeSet) -> Changed:
    assert isinstance(change, Changed)
    return change

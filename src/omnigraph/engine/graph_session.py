"""The session of one opened graph: its actor, and the resources it shares with others."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from omnigraph.embedding.embedder import EmbedMode
from omnigraph.engine.arguments import parse_choice, require_text
from omnigraph.engine.commit import Commit, commit_of
from omnigraph.engine.gate import Gate, check_types
from omnigraph.engine.resources import Environment, Resources, Storage
from omnigraph.engine.visible_rows import build_refusal
from omnigraph.errors import (
    BranchGoneError,
    BranchNotFoundError,
    CommitNotFoundError,
    CorruptObjectError,
    GraphClosedError,
    InvalidArgumentError,
    PolicyDeniedError,
    SnapshotGoneError,
    StorageError,
)
from omnigraph.execution.admission import AdmissionSlot
from omnigraph.policy.acts import Act, Action
from omnigraph.policy.requirements import Requirement
from omnigraph.query.row_limits import RowLimits
from omnigraph.rows.view import View, open_view
from omnigraph.storage.objects import layout
from omnigraph.versioning import Record, Snapshot, Stream, Transaction


class Session:
    """What branches and snapshots need of the graph they belong to."""

    def __init__(
        self,
        storage: Storage,
        *,
        actor: str | None,
        environment: Environment | None = None,
        gate: Gate | None = None,
        embed: EmbedMode = EmbedMode.NEVER,
    ) -> None:
        self.uri = storage.objects.uri
        self.actor = _require_actor(actor)
        self._gate = gate
        # When writes get vectors of their texts, unless a write says it.
        self.embed = embed
        # The stored query on whose behalf this session reads and changes.
        self._stored_query: str | None = None
        # The session that opened the graph, if this one only acts for another actor.
        self._opener: Session | None = None
        self._resources = Resources(storage, environment)
        self._is_open = True
        self._process = os.getpid()

    @property
    def resources(self) -> Resources:
        """What all handles on this graph share; refused after closing."""
        self.require_open()
        return self._resources

    @property
    def is_open(self) -> bool:
        """Whether neither this session nor the one that opened the graph was closed."""
        return self._is_open and (self._opener is None or self._opener.is_open)

    def require_open(self) -> None:
        """Refuse every use after closing, and in a process that did not open the graph."""
        if not self.is_open:
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
            if self._opener is None:
                self._resources.leave(self)

    def act_as(self, actor: str | None, *, stored_query: str | None = None) -> Session:
        """The same graph for another actor, without opening it again."""
        made = object.__new__(Session)
        own = {"actor": _require_actor(actor), "_opener": self._opener or self}
        made.__dict__.update(self.__dict__, **own, _stored_query=stored_query)
        return made

    def guard_by(self, gate: Gate | None) -> Session:
        """The same graph under another policy, without opening it again."""
        made = self.act_as(self.actor)
        made.__dict__["_gate"] = gate
        return made

    def invoke_query(self, name: str) -> Session:
        """The session of a stored query, which may do what the rules of the query carry."""
        self.authorize(Act(Action.INVOKE_QUERY, query=name))
        return self.act_as(self.actor, stored_query=name)

    def choose_embed_mode(self, mode: str | None) -> EmbedMode:
        """When a write gets the vectors of its texts: as it says, or as the graph was opened."""
        return self.embed if mode is None else parse_choice(EmbedMode, "embed", mode)

    def authorize(self, act: Act, types: Collection[str] | None = ()) -> None:
        """Ask the gate about an act, before anything is read or written for it.

        With None for types, it must be allowed for the whole graph; otherwise for each of them,
        and for at least one type where these are not known yet. An act on types of which the actor
        sees some rows only is refused: who leaves rows out calls `authorize_rows`.
        """
        limits = self.authorize_rows(act, types)
        if limits is not None and types:
            raise build_refusal(limits, act, tuple(name for name, _ in limits.conditions))

    def authorize_rows(self, act: Act, types: Collection[str] | None = ()) -> RowLimits | None:
        """Ask the gate about an act that leaves out the rows that the actor does not see."""
        if self._gate is None:
            return None
        if self._stored_query is not None:
            act = act._replace(query=self._stored_query)
        check_types(self._gate, self.actor, act, types)
        return None if types is None else self.find_row_limits(act)

    def find_row_limits(self, act: Act) -> RowLimits | None:
        """What the actor sees of types whose rows are limited, also where he asks for no read."""
        if self._gate is None or not self._gate.limits_types:
            return None
        if self._stored_query is not None:
            act = act._replace(query=self._stored_query)
        return self._gate.find_row_limits(self.actor, act)

    def may_read(self, branch: str) -> bool:
        """Whether the actor may read all of a branch."""
        return self.is_allowed(Act(Action.READ, branch))

    def is_allowed(self, act: Act, types: Collection[str] | None = None) -> bool:
        """Whether an act is allowed to the actor, for the whole graph or for some types."""
        try:
            self.authorize_rows(act, types)
        except PolicyDeniedError:
            return False
        return True

    def list_requirements(self, target: str) -> tuple[Requirement, ...]:
        """What rules require of a proposal before its branch is merged into a target."""
        return () if self._gate is None else self._gate.list_requirements(target)

    def authorize_write(self, acts: Iterable[Act], written: Transaction | None) -> None:
        """Ask the gate about the types that a prepared write touches."""
        if written is None or self._gate is None or not self._gate.limits_types:
            return
        keys = {*written.changes, *(effect.type_key for effect in written.effects)}
        types = {key.partition(":")[2] for key in keys}
        for act in acts:
            self.authorize(act, types)

    @property
    def limits_types(self) -> bool:
        """Whether the gate may allow a read of some types only."""
        return self._gate is not None and self._gate.limits_types

    @property
    def has_query_limits(self) -> bool:
        """Whether rules name the stored queries that the actor may invoke."""
        return self._gate is not None and self._gate.has_query_limits(self.actor)

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

    def admit_read(self, text: str, name: str | None) -> AdmissionSlot:
        """The context of one run of a read: short ones run one after the other."""
        return self.resources.reads.turns.admit(text, name)

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


def _require_actor(actor: str | None) -> str | None:
    if actor is not None and not require_text("actor", actor).strip():
        raise InvalidArgumentError("actor", "it is empty", hint="name an actor, or pass None")
    return actor

"""Branches: names that stand for streams, by append-only events that they share with tags."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Final

from omnigraph.errors import (
    BranchExistsError,
    BranchNotFoundError,
    BranchRefusedError,
    CorruptObjectError,
)
from omnigraph.ids import generate_ulid
from omnigraph.lru_cache import LruCache
from omnigraph.storage.objects import layout
from omnigraph.versioning import ref_events
from omnigraph.versioning.committer import Committer
from omnigraph.versioning.json_fields import Fields
from omnigraph.versioning.log_snapshot import Head, Snapshot, encode_checkpoint
from omnigraph.versioning.record import MAIN, MAIN_BRANCH, CommitRef, Stream
from omnigraph.versioning.record_codec import decode_ref, encode_ref
from omnigraph.versioning.ref_events import Chain, RefEvents, is_live
from omnigraph.versioning.retention_floors import Floors
from omnigraph.versioning.retention_roots import Leases, RetentionRoots, list_origins
from omnigraph.versioning.tags import CREATIONS_MAX, NewName, Tags, build_refused_error
from omnigraph.versioning.transaction import BranchAt

# A remembered name saves a listing; a graph with more branches than this is rare.
_KNOWN_MAX: Final = 4096


class Branches:
    """The branches of one graph."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._log = committer.log
        settings = committer.settings
        self._events = RefEvents(committer.log.objects)
        self.leases = Leases(
            committer.log.objects, self._events, settings.now_us, self.require_retained
        )
        self.tags = Tags(
            committer.log.objects,
            self._events,
            settings.now_us,
            require_retained=self.require_retained,
            begin_creation=self.leases.begin_creation,
        )
        self._roots = RetentionRoots(
            committer.log, self, self.tags, now_us=settings.now_us, grace_s=settings.grace_s
        )
        # Streams never change; whether a name still stands for one is asked each time.
        self._known: LruCache[str, tuple[int, Stream]] = LruCache(_KNOWN_MAX)

    def list(self) -> list[str]:
        """The names of all live branches: main first, the others in byte order."""
        return [MAIN_BRANCH, *self._events.list_live_branches()]

    def resolve(self, name: str) -> Stream:
        """The stream that a name stands for now."""
        if name == MAIN_BRANCH:
            return MAIN
        known = self._known.get(name)
        if known is not None and not self._events.has_event(name, known[0] + 1):
            return known[1]
        return self._read_created(name, self._require_live(name).generation)

    def read_head(self, name: str) -> Head:
        """The newest snapshot of a branch."""
        return self._log.read_head(self.resolve(name))

    def stream_of(self, name: str, stream_id: str) -> Stream | None:
        """A stream that a name stands for or once stood for; None if there was no such one."""
        if stream_id == MAIN.id:
            return MAIN
        for generation in range(self._read_chain(name).generation, 0, -1):
            if is_live(generation):
                # The event of a tag has no stream.
                with suppress(CorruptObjectError):
                    stream = _stream_of(name, self._events.read_creation(name, generation))
                    if stream.id == stream_id:
                        return stream
        return None

    def create(self, name: str, *, at: Snapshot, actor: str | None = None) -> Stream:
        """Start a branch at any commit. No table is touched and no commit is made."""
        _require_name(name, ref_events.find_new_name_problem(name))
        for _ in range(CREATIONS_MAX):
            generation = self._require_free(name).generation + 1
            if (created := self._try_create(name, generation, at=at, actor=actor)) is not None:
                return created
        raise build_refused_error(f"branch '{name}'")

    def _try_create(
        self, name: str, generation: int, *, at: Snapshot, actor: str | None
    ) -> Stream | None:
        """Create a branch as an event of its name; None if others came first."""
        oldest = self.require_retained(at)
        stream_id = layout.build_stream_name(name, generate_ulid().lower())
        stream = Stream(stream_id, name, list_origins(at))
        base = replace(at, stream=stream)
        # Before the lease: collectors that see it keep what the floor says. A crash leaves it.
        self._put_floor(stream, oldest)
        with self.leases.begin_creation(at, NewName(name, generation, stream.id)):
            # As durable as a record, because the branch may outlive the record it started from.
            path = layout.build_checkpoint_path(stream.id, base.seq)
            self._log.objects.put_new(path, encode_checkpoint(base))
            # A collector that did not see the lease has stated by now what it releases. The others
            # keep the commits as if the branch were there, or refuse the event before they end
            # the lease: what the event makes visible needs no second look.
            if self.require_retained(at) != oldest:
                return None
            if not self._put_event(name, generation, self._build_creation(stream, actor)):
                return None
            self._log.confirm(Head(base))
        return stream

    def _build_creation(self, stream: Stream, actor: str | None) -> dict[str, object]:
        return {
            "op": "create",
            "stream": stream.id,
            "fork": encode_ref(stream.origins[0]),
            "ancestors": [encode_ref(origin) for origin in stream.origins[1:]],
            "created_at": self._committer.settings.now_us(),
            "actor": actor,
        }

    def require_retained(self, at: Snapshot) -> int:
        """Refuse a commit that no branch and no tag retains.

        Returns the seq of the oldest commit that is retained with it.
        """
        return self._roots.require_retained(at)

    def _put_floor(self, stream: Stream, oldest: int) -> None:
        """Say what a new branch does not reach, where those it starts from do not say it."""
        floors = Floors(self._log.objects)
        if floors.read_floor(stream) < oldest:
            floors.put(stream.id, oldest)

    def list_streams(self, *, deleted_since: int) -> tuple[tuple[Stream, bool], ...]:
        """The streams of all branches that are live, or were deleted since a time (µs).

        Each with whether its branch is live.
        """
        found = self._events.list_creations(deleted_since=deleted_since)
        branches = [each for each in found if not each.is_tag]
        return (MAIN, True), *((_stream_of(at.name, at.fields), at.is_live) for at in branches)

    def delete(
        self, name: str, *, actor: str | None = None, requires: tuple[BranchAt, ...] = ()
    ) -> None:
        """End a branch and free its name. Its commits stay where other branches hold them.

        A branch that does not fulfil the requirements stays.
        """
        if name == MAIN_BRANCH:
            raise BranchRefusedError(f"branch '{name}' cannot be deleted", branch=name)
        generation = self._require_live(name).generation
        # Closed first: a write that comes later fails, so no acknowledged commit is lost. A crash
        # before the event leaves a branch that can be read and deleted again, but not written.
        stream = self._read_created(name, generation)
        self._committer.close(stream, actor=actor, requires=requires)
        if not self._put_event(name, generation + 1, self._build_deletion(actor)):
            raise BranchNotFoundError(name, hint="another process has just deleted it")

    def _build_deletion(self, actor: str | None) -> dict[str, object]:
        return ref_events.build_deletion(now_us=self._committer.settings.now_us(), actor=actor)

    def _require_free(self, name: str) -> Chain:
        """Refuse a name that a branch or a tag has; the events of one that is free."""
        _require_name(name, ref_events.find_name_problem(name))
        found = self._events.complete_chain(name, now_us=self._committer.settings.now_us())
        if self.tags.is_tag(name, found):
            _require_name(name, "it is the name of a tag")
        if found.is_live:
            raise BranchExistsError(name)
        return found

    def _require_live(self, name: str) -> Chain:
        """The events of a name that stands for a branch."""
        found = self._read_chain(name)
        if not found.is_live or self._events.is_tag(name, found):
            raise BranchNotFoundError(name)
        return found

    def _read_chain(self, name: str) -> Chain:
        _require_name(name, ref_events.find_name_problem(name))
        return self._events.read_chain(name)

    def _read_created(self, name: str, generation: int) -> Stream:
        stream = _stream_of(name, self._events.read_creation(name, generation))
        self._known.put(name, (generation, stream))
        return stream

    def _put_event(self, name: str, generation: int, event: dict[str, object]) -> bool:
        return self._events.put(name, generation, event, what=f"branch '{name}'")


def _stream_of(name: str, creation: Fields) -> Stream:
    """The stream of a branch, from the event that created it."""
    return Stream(creation.get_text("stream"), name, _decode_origins(creation))


def _decode_origins(fields: Fields) -> tuple[CommitRef, ...]:
    ancestors = (decode_ref(ancestor) for ancestor in fields.get_children("ancestors"))
    return (decode_ref(fields.get_child("fork")), *ancestors)


def _require_name(name: str, reason: str | None) -> None:
    if reason is not None:
        raise BranchRefusedError(f"'{name}' is not a branch name: {reason}", branch=name)

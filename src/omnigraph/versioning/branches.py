"""Branches: names that stand for streams, by append-only events.

The events of a name alternate: an odd generation creates it, an even one deletes it. So one listing
tells which names are live, and one put-if-absent decides between two creators or two deleters.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Final

from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    BranchRefused,
    CommitNotFound,
    CorruptObject,
)
from omnigraph.ids import new_ulid
from omnigraph.storage import layout
from omnigraph.versioning import names
from omnigraph.versioning.codec import read_ref, ref_json
from omnigraph.versioning.events import is_live, newest, put_event, read_event
from omnigraph.versioning.fields import Fields
from omnigraph.versioning.floors import Floors
from omnigraph.versioning.holders import Holders
from omnigraph.versioning.holds import Holds
from omnigraph.versioning.log import Head
from omnigraph.versioning.record import MAIN, MAIN_BRANCH, CommitRef, Stream
from omnigraph.versioning.snapshot import Snapshot, encode_checkpoint
from omnigraph.versioning.tags import Tags
from omnigraph.versioning.transaction import BranchAt, Committer

# A remembered name saves a listing; a graph with more branches than this is rare.
_KNOWN_MAX: Final = 4096
_READERS: Final = 8


class Branches:
    """The branches of one graph."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._log = committer.log
        settings = committer.settings
        self.tags = Tags(
            committer.log.objects, settings.now_us, self.require_held, is_branch=self._is_live
        )
        self.holds = Holds(committer.log.objects, settings.now_us, self.require_held)
        self._holders = Holders(
            committer.log, self, self.tags, now_us=settings.now_us, grace_s=settings.grace_s
        )
        # Streams never change; whether a name still stands for one is asked each time.
        self._known: dict[str, tuple[int, Stream]] = {}

    def list(self) -> list[str]:
        """The names of all live branches: main first, the others in byte order."""
        generations = newest(self._log.objects, layout.BRANCHES, layout.branch_of_ref_event)
        live = (name for name, generation in generations.items() if is_live(generation))
        return [MAIN_BRANCH, *sorted(live)]

    def resolve(self, name: str) -> Stream:
        """The stream that a name stands for now."""
        if name == MAIN_BRANCH:
            return MAIN
        known = self._known.get(name)
        if known is not None and not self._has_event(name, known[0] + 1):
            return known[1]
        generation = self._generation(name)
        if not is_live(generation):
            raise BranchNotFound(name)
        return self._created(name, generation)

    def head(self, name: str) -> Head:
        """The newest snapshot of a branch."""
        return self._log.head(self.resolve(name))

    def stream_of(self, name: str, stream_id: str) -> Stream | None:
        """A stream that a name stands for or once stood for; None if there was no such one."""
        if stream_id == MAIN.id:
            return MAIN
        for generation in range(self._generation(name), 0, -1):
            if is_live(generation):
                with suppress(CorruptObject):
                    stream = self._read_creation(name, generation)
                    if stream.id == stream_id:
                        return stream
        return None

    def create(self, name: str, *, at: Snapshot, actor: str | None = None) -> Stream:
        """Start a branch at any commit. No table is touched and no commit is made."""
        _require_name(name, names.reason_against_new(name))
        generation = self._generation(name)
        if is_live(generation):
            raise BranchExists(name)
        if self.tags.has(name):
            _require_name(name, "it is the name of a tag")
        oldest = self.require_held(at)
        stream = Stream(layout.stream_name(name, new_ulid().lower()), name, _origins(at))
        base = replace(at, stream=stream)
        # A crash between the two puts leaves a stream that no name stands for: one stray object.
        # Put as durably as a record, because the branch may outlive the record it started from.
        path = layout.checkpoint(stream.id, base.seq)
        self._log.objects.put_new(path, encode_checkpoint(base))
        self._reach(stream, oldest)
        event = {
            "op": "create",
            "stream": stream.id,
            "fork": ref_json(stream.origins[0]),
            "ancestors": [ref_json(origin) for origin in stream.origins[1:]],
            "created_at": self._committer.settings.now_us(),
            "actor": actor,
        }
        if not self._put_event(name, generation + 1, event):
            raise BranchExists(name)
        try:
            # A collector says what it lets go before it looks for branches. One that did not see
            # this branch is seen by it here.
            self._reach(stream, self._holders.require(at, stream=stream.id))
        except CommitNotFound:
            self._put_event(name, generation + 2, self._deletion(actor))
            raise
        self._log.confirm(Head(base), time.monotonic())
        return stream

    def require_held(self, at: Snapshot, *, tag: str | None = None) -> int:
        """Refuse a commit that no branch and no tag, besides one, holds.

        Returns the seq of the oldest commit that is held with it.
        """
        return self._holders.require(at, tag=tag)

    def _reach(self, stream: Stream, oldest: int) -> None:
        """Say what a new branch does not reach, where those it starts from do not say it."""
        floors = Floors(self._log.objects)
        if floors.of(stream) < oldest:
            floors.put(stream.id, oldest)

    def streams(self, *, deleted_since: int) -> tuple[tuple[Stream, bool], ...]:
        """The streams of all branches that are live, or were deleted since a time (µs).

        Each with whether its branch is live.
        """
        generations = newest(self._log.objects, layout.BRANCHES, layout.branch_of_ref_event)

        def found(event: tuple[str, int]) -> list[tuple[Stream, bool]]:
            name, generation = event
            streams = []
            if is_live(generation):
                streams.append((self._read_creation(name, generation), True))
                generation -= 1
            # A name that was given anew has several streams.
            while generation > 0 and self._deleted_at(name, generation) >= deleted_since:
                streams.append((self._read_creation(name, generation - 1), False))
                generation -= 2
            return streams

        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            streams = [*readers.map(found, sorted(generations.items()))]
        return (MAIN, True), *chain.from_iterable(streams)

    def _deleted_at(self, name: str, generation: int) -> int:
        path = layout.ref_event(name, generation)
        return read_event(self._log.objects, path).integer("created_at")

    def delete(
        self, name: str, *, actor: str | None = None, requires: tuple[BranchAt, ...] = ()
    ) -> None:
        """End a branch and free its name. Its commits stay where other branches hold them.

        A branch that does not fulfil the requirements goes on.
        """
        if name == MAIN_BRANCH:
            raise BranchRefused(f"branch '{name}' cannot be deleted", branch=name)
        generation = self._generation(name)
        if not is_live(generation):
            raise BranchNotFound(name)
        # Closed first: a write that comes later fails, so no acknowledged commit is lost. A crash
        # before the event leaves a branch that can be read and deleted again, but not written.
        stream = self._created(name, generation)
        self._committer.close(stream, actor=actor, requires=requires)
        if not self._put_event(name, generation + 1, self._deletion(actor)):
            raise BranchNotFound(name, hint="it was deleted by somebody else just now")

    def _deletion(self, actor: str | None) -> dict[str, object]:
        return names.deletion(now_us=self._committer.settings.now_us(), actor=actor)

    def _is_live(self, name: str) -> bool:
        return name == MAIN_BRANCH or is_live(self._generation(name))

    def _generation(self, name: str) -> int:
        """The number of the newest event of a name; 0 when there is none."""
        _require_name(name, names.reason_against(name))
        folder = layout.branch_folder(name)
        return newest(self._log.objects, folder, layout.branch_of_ref_event).get(name, 0)

    def _has_event(self, name: str, generation: int) -> bool:
        return self._log.objects.get(layout.ref_event(name, generation)) is not None

    def _created(self, name: str, generation: int) -> Stream:
        stream = self._read_creation(name, generation)
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[name] = (generation, stream)
        return stream

    def _read_creation(self, name: str, generation: int) -> Stream:
        fields = read_event(self._log.objects, layout.ref_event(name, generation))
        fields.require("op", "create")
        return Stream(fields.text("stream"), name, _read_origins(fields))

    def _put_event(self, name: str, generation: int, event: dict[str, object]) -> bool:
        """Put an event of a name; True if it is there, False if another one is."""
        path = layout.ref_event(name, generation)
        return put_event(self._log.objects, path, event, what=f"branch '{name}'")


def _origins(at: Snapshot) -> tuple[CommitRef, ...]:
    """The commit a branch starts from, and those that its stream started from in turn."""
    owner = at.stream.owner(at.seq)
    return (at.ref, *owner.origins)


def _read_origins(fields: Fields) -> tuple[CommitRef, ...]:
    ancestors = (read_ref(ancestor) for ancestor in fields.children("ancestors"))
    return (read_ref(fields.child("fork")), *ancestors)


def _require_name(name: str, reason: str | None) -> None:
    if reason is not None:
        raise BranchRefused(f"'{name}' is not a branch name: {reason}", branch=name)

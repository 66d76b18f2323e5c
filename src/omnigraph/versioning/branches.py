"""Branches: names that stand for streams, by append-only events.

The events of a name alternate: an odd generation creates it, an even one deletes it. So one listing
tells which names are live, and one put-if-absent decides between two creators or two deleters.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import Final

from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    BranchRefused,
    CommitNotFound,
    CorruptObject,
    InDoubt,
    StorageError,
    StorageUnknown,
)
from omnigraph.ids import new_ulid
from omnigraph.storage import layout
from omnigraph.versioning.codec import read_ref, ref_json
from omnigraph.versioning.fields import Fields, read_fields, write_fields
from omnigraph.versioning.log import Head
from omnigraph.versioning.record import MAIN, MAIN_BRANCH, CommitRef, Record, Stream
from omnigraph.versioning.snapshot import Snapshot, encode_checkpoint
from omnigraph.versioning.transaction import Committer

NAME_LENGTH_MAX: Final = 200
# A remembered name saves a listing; a graph with more branches than this is rare.
_KNOWN_MAX: Final = 4096
# An event whose acknowledgement was lost is put again this often before it is in doubt.
_PUTS_MAX: Final = 4
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\\]|^\s|\s$")


class Branches:
    """The branches of one graph."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._log = committer.log
        # Streams never change; whether a name still stands for one is asked each time.
        self._known: dict[str, tuple[int, Stream]] = {}

    def list(self) -> list[str]:
        """The names of all live branches: main first, the others in byte order."""
        generations: dict[str, int] = {}
        for entry in self._log.objects.list(layout.BRANCHES):
            found = layout.branch_of_ref_event(entry.path)
            if found is not None:
                generations[found[0]] = max(found[1], generations.get(found[0], 0))
        live = (name for name, generation in generations.items() if _is_live(generation))
        return [MAIN_BRANCH, *sorted(live)]

    def resolve(self, name: str) -> Stream:
        """The stream that a name stands for now."""
        if name == MAIN_BRANCH:
            return MAIN
        known = self._known.get(name)
        if known is not None and not self._has_event(name, known[0] + 1):
            return known[1]
        generation = self._generation(name)
        if not _is_live(generation):
            raise BranchNotFound(name)
        return self._created(name, generation)

    def head(self, name: str) -> Head:
        """The newest snapshot of a branch."""
        return self._log.head(self.resolve(name))

    def create(self, name: str, *, at: Snapshot, actor: str | None = None) -> Stream:
        """Start a branch at any commit. No table is touched and no commit is made."""
        _check_name(name)
        generation = self._generation(name)
        if _is_live(generation):
            raise BranchExists(name)
        self._require_commit(at)
        stream = Stream(layout.stream_name(name, new_ulid().lower()), name, _origins(at))
        base = replace(at, stream=stream)
        # A crash between the two puts leaves a stream that no name stands for: one stray object.
        # Put as durably as a record, because the branch may outlive the record it started from.
        path = layout.checkpoint(stream.id, base.seq)
        self._log.objects.put_new(path, encode_checkpoint(base))
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
        self._log.remember(Head(base))
        return stream

    def _require_commit(self, at: Snapshot) -> None:
        """Refuse to start from a commit that this graph does not have: nobody could read it."""
        found = self._log.read(at.ref.stream, at.seq)
        # The record may be collected where the checkpoint of a branch keeps what it said.
        commit = (
            found.commit if isinstance(found, Record) else self._log.at(at.stream, at.seq).commit
        )
        if commit != at.commit:
            raise CommitNotFound(f"this graph has no commit '{at.commit}'")

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """End a branch and free its name. Its commits stay where other branches hold them."""
        if name == MAIN_BRANCH:
            raise BranchRefused(f"branch '{name}' cannot be deleted", branch=name)
        generation = self._generation(name)
        if not _is_live(generation):
            raise BranchNotFound(name)
        # Closed first: a write that comes later fails, so no acknowledged commit is lost. A crash
        # before the event leaves a branch that can be read and deleted again, but not written.
        self._committer.close(self._created(name, generation), actor=actor)
        event = {
            "op": "delete",
            "id": new_ulid(),
            "created_at": self._committer.settings.now_us(),
            "actor": actor,
        }
        if not self._put_event(name, generation + 1, event):
            raise BranchNotFound(name, hint="it was deleted by somebody else just now")

    def _generation(self, name: str) -> int:
        """The number of the newest event of a name; 0 when there is none."""
        _check_name(name)
        last = 0
        for entry in self._log.objects.list(layout.branch_folder(name)):
            found = layout.branch_of_ref_event(entry.path)
            last = max(last, found[1]) if found is not None else last
        return last

    def _has_event(self, name: str, generation: int) -> bool:
        return self._log.objects.get(layout.ref_event(name, generation)) is not None

    def _created(self, name: str, generation: int) -> Stream:
        path = layout.ref_event(name, generation)
        data = self._log.objects.get(path)
        if data is None:
            raise CorruptObject(path, "it was listed, and it is absent")
        fields = read_fields(path, data)
        fields.require("op", "create")
        stream = Stream(fields.text("stream"), name, _read_origins(fields))
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[name] = (generation, stream)
        return stream

    def _put_event(self, name: str, generation: int, event: dict[str, object]) -> bool:
        """Put an event of a name; True if it is there, False if another one is."""
        path, data = layout.ref_event(name, generation), write_fields(event)
        objects = self._log.objects
        may_be_there = False
        for _ in range(_PUTS_MAX):
            try:
                if objects.put_new(path, data):
                    return True
                may_be_there = True
            except StorageUnknown:
                may_be_there = True
            except StorageError:
                # This put did nothing; one before it may still have created the event.
                if not may_be_there:
                    raise
            # "Exists" may be our own put: stores repeat a request whose first answer was lost.
            with suppress(StorageError):
                if (found := objects.get(path)) is not None:
                    return found == data
        raise InDoubt(f"branch '{name}': no answer whether it was changed ({path})")


def _is_live(generation: int) -> bool:
    return generation % 2 == 1


def _origins(at: Snapshot) -> tuple[CommitRef, ...]:
    """The commit a branch starts from, and those that its stream started from in turn."""
    owner = at.stream.owner(at.seq)
    return (at.ref, *owner.origins)


def _read_origins(fields: Fields) -> tuple[CommitRef, ...]:
    ancestors = (read_ref(ancestor) for ancestor in fields.children("ancestors"))
    return (read_ref(fields.child("fork")), *ancestors)


def _check_name(name: str) -> None:
    reason = _reason_against(name)
    if reason is not None:
        raise BranchRefused(f"'{name}' is not a branch name: {reason}", branch=name)


def _reason_against(name: str) -> str | None:
    if not name:
        return "it is empty"
    if name == MAIN_BRANCH:
        return "it is the name of the first branch"
    if len(name) > NAME_LENGTH_MAX:
        return f"it has more than {NAME_LENGTH_MAX} characters"
    if _FORBIDDEN.search(name):
        return "it has control characters, a backslash, or space at an end"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "a part between slashes is empty or only dots"
    return None

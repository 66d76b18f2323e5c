"""Events of names: one append-only chain per name, which branches and tags share.

The events of a name alternate: an odd generation creates it, as a branch or as a tag, and an even
one deletes it. Each is one object, so that one put-if-absent decides between two creators, of
whichever kind, and between two deleters.

The event says what it created. A listing must not read all of them to find the branches, so a tag
is announced by an empty object beside its event, which is put first: what is live and was never
announced is a branch. An announcement alone means nothing.

A creation is begun by a lease, which keeps its commit (`retention_roots`). A collector that ends
the lease first puts an event at the place of the creation, which refuses it: so a name that exists
was given while its commit was kept, whatever its creator was stopped for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Final

from omnigraph.errors import (
    CorruptObjectError,
    FormatTooNewError,
    InDoubtError,
    StorageError,
    StorageUnknownError,
)
from omnigraph.ids import decode_ulid_ms, generate_ulid
from omnigraph.lru_cache import LruCache
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.json_fields import Fields, decode_fields, encode_fields
from omnigraph.versioning.record import MAIN_BRANCH

TAG: Final = "tag"
# Takes the place of a creation that a clean-up gave up waiting for.
REFUSED: Final = "refused"

# An event whose acknowledgement was lost is put again this often before it is in doubt.
_PUTS_MAX: Final = 4

# What an event created never changes; a graph with more tags than this reads some of them again.
_KINDS_MAX: Final = 4096
_READERS: Final = 8
LENGTH_MAX: Final = 200

# Controls, formats, halves of surrogate pairs, unassigned and private characters, separators.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\\]|^\s|\s$")


@dataclass(frozen=True, slots=True)
class Chain:
    """The events of a name: the number of the newest one, and which may not be of a branch."""

    generation: int = 0
    announced: frozenset[int] = frozenset()

    @property
    def is_live(self) -> bool:
        """Whether the name stands for something."""
        return is_live(self.generation)

    def end(self) -> Chain:
        """The chain with the next event, which ends the name."""
        return replace(self, generation=self.generation + 1)


@dataclass(frozen=True, slots=True)
class Creation:
    """An event that created a name, and whether the name still stands for what it created."""

    name: str
    is_live: bool
    fields: Fields

    @property
    def is_tag(self) -> bool:
        """Whether it created a tag."""
        return is_of_tag(self.fields)


_NO_EVENTS: Final = Chain()


class RefEvents:
    """The events of all names of branches and tags of one graph."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        # What the events created that were announced; None for a branch.
        self._kinds: LruCache[tuple[str, int], str] = LruCache(_KINDS_MAX)

    def read_chain(self, name: str) -> Chain:
        """The events of a name. A creation that was refused counts as ended."""
        found = self._read_listed_chain(name)
        return found.end() if self._is_refused(name, found) else found

    def complete_chain(self, name: str, *, now_us: int) -> Chain:
        """The events of a name that is to be created, none of them missing."""
        found = self._read_listed_chain(name)
        if not self._is_refused(name, found):
            return found
        # The collector that refused it may have stopped before it put this.
        self._end_refused(name, found.generation, now_us=now_us)
        return found.end()

    def refuse_creation(self, name: str, generation: int, *, lease: str, now_us: int) -> None:
        """Make sure that an event of a name exists, or never will: the store admits one of both."""
        refusal: dict[str, object] = {"op": "create", "kind": REFUSED, "lease": lease}
        if self._put_announced(name, generation, refusal, what=f"the name '{name}'"):
            self._end_refused(name, generation, now_us=now_us)

    def _end_refused(self, name: str, generation: int, *, now_us: int) -> None:
        deletion = build_deletion(now_us=now_us, actor=None)
        # Another process may have ended it.
        self.put(name, generation + 1, deletion, what=f"the name '{name}'")

    def _read_listed_chain(self, name: str) -> Chain:
        return self._list_chains(layout.build_branch_folder(name)).get(name, _NO_EVENTS)

    def _is_refused(self, name: str, at: Chain) -> bool:
        return at.is_live and self._read_kind(name, at) == REFUSED

    def list_live_branches(self) -> list[str]:
        """The names that stand for branches; only what was announced is read."""
        live = {name: at for name, at in self._list_chains(layout.BRANCHES).items() if at.is_live}
        doubtful = [name for name, at in live.items() if at.generation in at.announced]
        if not doubtful:
            return sorted(live)

        def is_branch(name: str) -> bool:
            # Damage to one name must not hide the others; asking for this one raises an error.
            with suppress(CorruptObjectError, FormatTooNewError):
                return not self._read_kind(name, live[name])
            return False

        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            are_branches = zip(doubtful, readers.map(is_branch, doubtful), strict=True)
            return sorted(live.keys() - {name for name, is_one in are_branches if not is_one})

    def is_tag(self, name: str, at: Chain) -> bool:
        """Whether a live name stands for a tag."""
        return self._read_kind(name, at) == TAG

    def _read_kind(self, name: str, at: Chain) -> str:
        """What the newest event of a name created; empty for a branch."""
        event = (name, at.generation)
        if at.generation not in at.announced:
            return ""
        if (known := self._kinds.get(event)) is not None:
            return known
        return self._kinds.put(event, self.read(*event).get_optional_text("kind") or "")

    def list_creations(
        self, *, deleted_since: int | None, only_announced: bool = False
    ) -> list[Creation]:
        """What created the names that are live, or were deleted since a time (µs) if one is given.

        Those of one name the newest first, without refused ones; with `only_announced`, those that
        may be tags.
        """
        chains = sorted(self._list_chains(layout.BRANCHES).items())
        if only_announced:
            chains = [(name, at) for name, at in chains if at.announced]

        def found(named: tuple[str, Chain]) -> list[Creation]:
            name, at = named
            return [
                Creation(name, is_live(at.generation) and number == at.generation, event)
                for number in self._list_created(name, at, deleted_since)
                if not only_announced or number in at.announced
                for event in [self.read(name, number)]
                if event.get_optional_text("kind") != REFUSED
            ]

        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            return [*chain.from_iterable(readers.map(found, chains))]

    def _list_created(self, name: str, at: Chain, deleted_since: int | None) -> Iterator[int]:
        """The numbers of the creations of a name, as far back as its deletions are young enough."""
        generation = at.generation
        if is_live(generation):
            yield generation
            generation -= 1
        while deleted_since is not None and generation > 0:
            if self.read(name, generation).get_integer("created_at") < deleted_since:
                return
            yield generation - 1
            generation -= 2

    def read(self, name: str, generation: int) -> Fields:
        """An event of a name."""
        return read_event(self._objects, layout.build_ref_event_path(name, generation))

    def read_creation(self, name: str, generation: int) -> Fields:
        """An event that has to create a name."""
        fields = self.read(name, generation)
        fields.require("op", "create")
        return fields

    def has_event(self, name: str, generation: int) -> bool:
        """Whether there is an event."""
        return self._objects.get(layout.build_ref_event_path(name, generation)) is not None

    def put(self, name: str, generation: int, event: dict[str, object], *, what: str) -> bool:
        """Put an event of a name; True if it is there, False if another one is."""
        return put_event(
            self._objects, layout.build_ref_event_path(name, generation), event, what=what
        )

    def put_tag(self, name: str, generation: int, event: dict[str, object]) -> bool:
        """Put the event that creates a tag; True if it is there, False if another one is."""
        # The id makes the creations of two processes at one instant different objects.
        creation = {"kind": TAG, "id": generate_ulid(), **event}
        return self._put_announced(name, generation, creation, what=f"tag '{name}'")

    def _put_announced(
        self, name: str, generation: int, event: dict[str, object], *, what: str
    ) -> bool:
        """Put the event that creates something else than a branch."""
        # A crash after the announcement costs later listings one read, and the name stays free.
        announcement = layout.build_tag_announcement_path(name, generation)
        put_event(self._objects, announcement, {}, what=what)
        return self.put(name, generation, event, what=what)

    def _list_chains(self, folder: str) -> dict[str, Chain]:
        listed = [entry.path for entry in self._objects.list(folder)]
        announced: dict[str, set[int]] = {}
        for path in listed:
            if (found := layout.parse_tag_announcement_path(path)) is not None:
                announced.setdefault(found[0], set()).add(found[1])
        newest = find_newest_generations(listed, layout.parse_ref_event_path)
        return {name: Chain(at, frozenset(announced.get(name, ()))) for name, at in newest.items()}


def is_live(generation: int) -> bool:
    """Whether a name stands for something after so many events: an odd one creates it."""
    return generation % 2 == 1


def is_of_tag(creation: Fields) -> bool:
    """Whether the event that creates a name creates a tag."""
    return creation.get_optional_text("kind") == TAG


def find_newest_generations(
    paths: Iterable[str], parse: Callable[[str], tuple[str, int] | None]
) -> dict[str, int]:
    """The number of the newest event of each name among some paths."""
    generations: dict[str, int] = {}
    for path in paths:
        found = parse(path)
        if found is not None:
            generations[found[0]] = max(found[1], generations.get(found[0], 0))
    return generations


def read_event(objects: Objects, path: str) -> Fields:
    """The fields of an event that was listed."""
    data = objects.get(path)
    if data is None:
        raise CorruptObjectError(path, "it was listed, and it is absent")
    return decode_fields(path, data)


def put_event(objects: Objects, path: str, event: dict[str, object], *, what: str) -> bool:
    """Put an event; True if it is there, False if another one is. `what` is it about, in words."""
    data = encode_fields(path, event)
    may_be_there = False
    for _ in range(_PUTS_MAX):
        try:
            if objects.put_new(path, data):
                return True
            may_be_there = True
        except StorageUnknownError:
            may_be_there = True
        except StorageError:
            # This put did nothing; one before it may still have created the event.
            if not may_be_there:
                raise
        # "Exists" may be our own put: stores repeat a request whose first answer was lost.
        with suppress(StorageError):
            if (found := objects.get(path)) is not None:
                return found == data
    raise InDoubtError(f"{what}: no answer whether it was changed ({path})")


def find_name_problem(name: str) -> str | None:
    """Why a text cannot be a name; None if it can be."""
    if not name:
        return "it is empty"
    if len(name) > LENGTH_MAX:
        return f"it has more than {LENGTH_MAX} characters"
    if _FORBIDDEN.search(name):
        return "it has control characters, a backslash, or space at an end"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "a part between slashes is empty or only dots"
    return None


def find_new_name_problem(name: str) -> str | None:
    """Why nothing may be given a name from now on: it means something else wherever it is read."""
    if name == MAIN_BRANCH:
        return "it is the name of the first branch"
    if decode_ulid_ms(name) is not None:
        return "it looks like the id of a commit"
    if parse_time(name) is not None:
        return "it looks like a time"
    if any(part.startswith("-") for part in name.split("/")):
        return "it looks like an option of a command"
    if any(unicodedata.category(each) in _UNSEEN for each in name):
        return "it has characters that are not seen, such as marks of direction"
    return find_name_problem(name)


def parse_time(text: str) -> datetime | None:
    """The time that a text with a zone is; None for any other text."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found


def build_deletion(*, now_us: int, actor: str | None) -> dict[str, object]:
    """The event that ends a name."""
    # The id makes two deletions different objects, of which one fails as late.
    return {"op": "delete", "id": generate_ulid(), "created_at": now_us, "actor": actor}

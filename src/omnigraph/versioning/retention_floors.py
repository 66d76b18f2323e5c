"""Floors: how far back the commits of a branch can still be read.

A collector releases old commits from the oldest on. Before it removes anything of them, it states
so, in an object of the branch's stream. So a record that is missing below the floor was released,
and one that is missing above it is damage. The highest floor counts; records that are still there
below it show how branches descend from each other, and nothing more. A deleted branch that is
collected gets a floor above all of its commits, for processes that still have a snapshot of it.

A floor names the commits of its stream that were released with it, and their idempotency keys. So a
writer that was stopped right after its put finds out whether its commit was made and released
since, or landed where the commit that had its place was removed.

Floors are never removed, because a writer may be stopped for any time. Every commit asks for the
highest one, so a collector moves the others to a folder of their own: what a commit costs does not
grow with the number of clean-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from omnigraph.errors import CorruptObjectError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.json_fields import Fields, decode_fields, encode_fields
from omnigraph.versioning.record import GENESIS_SEQ, Record, Stream

# How often others may raise the floor of a stream while its records are read.
RAISES_MAX: Final = 16


class Floors:
    """The floors of all branches of one graph."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def read_stream_floor(self, stream_id: str) -> int:
        """The highest floor that a stream has itself; the first seq of all if it has none."""
        return max(self._list(layout.build_floor_folder(stream_id)), default=GENESIS_SEQ)

    def read_floor(self, stream: Stream) -> int:
        """The seq of the oldest commit of a branch that was not released."""
        last: int | None = None
        while True:
            found = self._find_highest(stream.id, last)
            if found is not None or not stream.origins:
                return GENESIS_SEQ if found is None else found
            # A branch that was not collected yet has lost what was gone before it was created; what
            # the branch it started from lost above the commit it started from is none of its own.
            last = stream.first_seq - 1
            stream = stream.owner_of(last)

    def is_above(self, stream_id: str, seq: int) -> bool:
        """Whether a stream has a floor above a seq."""
        listed = self._objects.list(
            layout.build_floor_folder(stream_id), after=layout.build_floor_path(stream_id, seq)
        )
        return next(iter(listed), None) is not None

    def raise_to(self, stream_id: str, seq: int, read: Callable[[range], Iterable[Record]]) -> None:
        """State that the commits of a stream below a seq are released, if no floor says so yet.

        `read` gives the stored records of a range. The floor names all commits since the floor
        before it, and nothing else: no higher floor was there when they had been read, so none of
        them was removed before, and no late put can have taken the place of one.

        Two collectors may both find that, and state their floors in either order. Both name the
        same commits as far as both reach, so a writer may believe the one that it finds.
        """
        for _ in range(RAISES_MAX):
            was = self.read_stream_floor(stream_id)
            if was >= seq:
                return
            records = list(read(range(was, seq)))
            if self.read_stream_floor(stream_id) == was:
                self.put(stream_id, seq, records)
                return
        folder = layout.build_floor_folder(stream_id)
        raise CorruptObjectError(folder, f"it rose {RAISES_MAX} times while records were read")

    def put(self, stream_id: str, seq: int, records: Iterable[Record] = ()) -> None:
        """State that the commits of a stream below a seq are released; again is not an error.

        `records` are those that the floor before it did not cover.
        """
        path = layout.build_floor_path(stream_id, seq)
        let_go = list(records)
        keys = {each.signature.key: each.commit for each in let_go if each.signature.key}
        fields = {"commits": [each.commit for each in let_go], "keys": keys}
        self._objects.put_new(path, encode_fields(path, fields))

    def move_past(self, stream_id: str) -> None:
        """Move all floors of a stream but the highest to the folder of past ones."""
        past = sorted(self._list(layout.build_floor_folder(stream_id)))[:-1]
        for seq in past:
            # Another collector may have moved it.
            if (data := self._objects.get(layout.build_floor_path(stream_id, seq))) is not None:
                self._objects.put_new(layout.build_past_floor_path(stream_id, seq), data)
        # Last: at any moment each floor is in one of the folders at least.
        if past:
            self._objects.delete([layout.build_floor_path(stream_id, seq) for seq in past])

    def has_released(self, stream_id: str, seq: int, commit: str) -> bool | None:
        """Whether it was this commit that was released at a seq; None if no floor says."""
        lowest = next(iter(self._list_seqs_above(stream_id, seq)), None)
        floor = None if lowest is None else self._read(stream_id, lowest)
        return None if floor is None else commit in floor.get_texts("commits")

    def find_key(self, stream_id: str, seq: int, key: str) -> str | None:
        """The id of a commit above a seq that had an idempotency key and was released."""
        for floor in self._read_floors_above(stream_id, seq):
            made = floor.get_child_or_empty("keys").get_texts_by_name().get(key)
            if made is not None:
                return made
        return None

    def _read_floors_above(self, stream_id: str, seq: int) -> Iterator[Fields]:
        """The floors of a stream above a seq that name commits, the lowest first."""
        for at in self._list_seqs_above(stream_id, seq):
            if (floor := self._read(stream_id, at)) is not None:
                yield floor

    def _list_seqs_above(self, stream_id: str, seq: int) -> list[int]:
        # In this order: a floor that is moved meanwhile is found in the second folder.
        highest = self._list(
            layout.build_floor_folder(stream_id), layout.build_floor_path(stream_id, seq)
        )
        past = self._list(
            layout.build_past_floor_folder(stream_id), layout.build_past_floor_path(stream_id, seq)
        )
        return sorted({*highest, *past})

    def _read(self, stream_id: str, seq: int) -> Fields | None:
        """What a floor names; None for one of an older program, which is empty."""
        path = layout.build_floor_path(stream_id, seq)
        # A floor keeps its bytes when it is moved, and so the digest that has its first path.
        data = self._objects.get(path) or self._objects.get(
            layout.build_past_floor_path(stream_id, seq)
        )
        return decode_fields(path, data) if data else None

    def _find_highest(self, stream_id: str, last: int | None) -> int | None:
        """The highest floor of a stream, or the highest up to a seq."""
        seqs = self._list(layout.build_floor_folder(stream_id))
        if last is not None and max(seqs, default=last) > last:
            seqs += self._list(layout.build_past_floor_folder(stream_id))
        return max((seq for seq in seqs if last is None or seq <= last), default=None)

    def _list(self, folder: str, after: str | None = None) -> list[int]:
        listed = self._objects.list(folder, after=after)
        seqs = (layout.parse_floor_path(entry.path) for entry in listed)
        return [seq for seq in seqs if seq is not None]

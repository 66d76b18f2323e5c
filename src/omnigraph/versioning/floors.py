"""Floors: how far back the commits of a branch can still be read.

A collector lets go of old commits from the oldest on. Before it removes anything of them, it states
so, in an object of the branch's stream. So a record that is missing below the floor was let go, and
one that is missing above it is damage. Floors only rise; records that are still there below one
tell how branches descend from each other, and nothing more. A deleted branch that is collected gets
a floor above all of its commits, for processes that still have a snapshot of it.

A floor names the commits of its stream that were let go with it, and their idempotency keys. So a
writer that was stopped right after its put finds out whether its commit was made and let go since,
or landed where the commit that had its place was removed. Floors are never removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.versioning.fields import Fields, read_fields, write_fields
from omnigraph.versioning.record import GENESIS_SEQ, Record, Stream


class Floors:
    """The floors of all branches of one graph."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def of_stream(self, stream_id: str) -> int:
        """The highest floor that a stream has itself; the first seq of all if it has none."""
        listed = self._objects.list(layout.floor_folder(stream_id))
        seqs = (layout.seq_of_floor(entry.path) for entry in listed)
        return max((seq for seq in seqs if seq is not None), default=GENESIS_SEQ)

    def of(self, stream: Stream) -> int:
        """The seq of the oldest commit of a branch that was not let go."""
        last: int | None = None
        while True:
            found = self._highest(stream, last)
            if found is not None or not stream.origins:
                return GENESIS_SEQ if found is None else found
            # A branch nobody collected yet has lost what was gone before it was created; what
            # the branch it started from lost above the commit it started from is none of its own.
            last = stream.first_seq - 1
            stream = stream.owner(last)

    def is_above(self, stream_id: str, seq: int) -> bool:
        """Whether a stream has a floor above a seq."""
        listed = self._objects.list(
            layout.floor_folder(stream_id), after=layout.floor(stream_id, seq)
        )
        return next(iter(listed), None) is not None

    def put(self, stream_id: str, seq: int, records: Iterable[Record] = ()) -> None:
        """State that the commits of a stream below a seq are let go; again is not an error.

        `records` are those that the floor before it did not cover.
        """
        path = layout.floor(stream_id, seq)
        let_go = list(records)
        keys = {each.signature.key: each.commit for each in let_go if each.signature.key}
        fields = {"commits": [each.commit for each in let_go], "keys": keys}
        self._objects.put_new(path, write_fields(path, fields))

    def has_let_go(self, stream_id: str, seq: int, commit: str) -> bool | None:
        """Whether it was this commit that was let go at a seq; None if no floor says."""
        floor = next(self._above(stream_id, seq), None)
        return None if floor is None else commit in floor.texts("commits")

    def find_key(self, stream_id: str, seq: int, key: str) -> str | None:
        """The id of a commit above a seq that had an idempotency key and was let go."""
        for floor in self._above(stream_id, seq):
            made = floor.child_or_empty("keys").text_by_name().get(key)
            if made is not None:
                return made
        return None

    def _above(self, stream_id: str, seq: int) -> Iterator[Fields]:
        """The floors of a stream above a seq, the lowest first."""
        after = layout.floor(stream_id, seq)
        for entry in self._objects.list(layout.floor_folder(stream_id), after=after):
            if data := self._objects.get(entry.path):
                yield read_fields(entry.path, data)

    def _highest(self, stream: Stream, last: int | None) -> int | None:
        listed = self._objects.list(layout.floor_folder(stream.id))
        seqs = (layout.seq_of_floor(entry.path) for entry in listed)
        return max(
            (seq for seq in seqs if seq is not None and (last is None or seq <= last)),
            default=None,
        )

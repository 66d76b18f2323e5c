"""The commits that merges between live branches need.

A merge needs the records from both heads down to where their lines part and to their merge base,
and the tables of that base. So the records that are not ancestors of all heads are kept, and what
is a nearest common ancestor of some heads is kept with its tables.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from omnigraph.versioning.branches import Branches
from omnigraph.versioning.first_parents import (
    RecordLocation,
    find_last_shared_location,
    iter_origin_streams,
    location_of,
    tops_of,
)
from omnigraph.versioning.log import Log
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import Record, Stream

_PAGE: Final = 64


@dataclass(frozen=True, slots=True)
class Ancestry:
    """Records that merges walk along, commits that may be merge bases, and all their streams."""

    records: frozenset[RecordLocation]
    bases: tuple[tuple[Stream, int], ...]
    streams: tuple[Stream, ...] = ()


NO_ANCESTRY: Final = Ancestry(frozenset(), ())


def compute_ancestry(heads: Sequence[Snapshot], log: Log, branches: Branches) -> Ancestry:
    """What merges between heads need, as far as it is stored."""
    if len({location_of(head) for head in heads}) < 2:
        return NO_ANCESTRY
    walk = _AncestryWalk(heads, log, branches)
    walk.run()
    bases = [
        (stream, seq)
        for stream_id, seq in sorted(walk.find_bases())
        if (stream := walk.find_stream(stream_id)) is not None
    ]
    records = frozenset(walk.collect_records() | _collect_lines(heads))
    return Ancestry(records, tuple(bases), tuple(walk.list_streams()))


def _collect_lines(heads: Sequence[Snapshot]) -> set[RecordLocation]:
    """The first parents of every head, down to where its line parts from the others."""
    lowest = {at: head.seq for at, head in enumerate(heads)}
    tops = [tops_of(head) for head in heads]
    for a, b in combinations(range(len(heads)), 2):
        _, shared = find_last_shared_location(tops[a], tops[b])
        lowest[a], lowest[b] = min(lowest[a], shared), min(lowest[b], shared)
    return {
        (heads[at].stream.owner_of(seq).id, seq)
        for at, low in lowest.items()
        for seq in range(low, heads[at].seq + 1)
    }


class _AncestryWalk:
    """From all heads over both parents, the newest first, until everything is common to all.

    A commit carries the set of heads that descend from it, as bits of a number.
    """

    def __init__(self, heads: Sequence[Snapshot], log: Log, branches: Branches) -> None:
        self._log = log
        self._branches = branches
        self._streams: dict[str, Stream | None] = {}
        self._records: dict[RecordLocation, Record | None] = {}
        self._masks: dict[RecordLocation, int] = {}
        self._parents: dict[RecordLocation, tuple[RecordLocation, ...]] = {}
        self._queue: list[tuple[int, RecordLocation]] = []
        self._everyone = (1 << len(heads)) - 1
        for at, head in enumerate(heads):
            self._add_stream(head.stream)
            self._mark(location_of(head), 1 << at)

    def run(self) -> None:
        """Walk."""
        while self._queue:
            place = heapq.heappop(self._queue)[1]
            record = self._read_record(place)
            if record is None or self._masks[place] == self._everyone:
                continue
            self._parents[place] = tuple(self._parents_of(place, record))
            for parent in self._parents[place]:
                self._mark(parent, self._masks[place])

    def collect_records(self) -> set[RecordLocation]:
        """The stored records that are not ancestors of all heads, and the bases."""
        own = {place for place, mask in self._masks.items() if mask != self._everyone}
        return {place for place in own | self.find_bases() if self._read_record(place) is not None}

    def find_bases(self) -> set[RecordLocation]:
        """Common ancestors of several heads of which no child is an ancestor of as many."""
        common = {place for place, mask in self._masks.items() if mask & (mask - 1)}
        covered = {
            parent
            for place, parents in self._parents.items()
            for parent in parents
            if self._masks[place] == self._masks[parent]
        }
        return common - covered

    def find_stream(self, stream_id: str) -> Stream | None:
        """A stream that was met, with its origins; None if no name ever stood for it."""
        return self._streams.get(stream_id)

    def list_streams(self) -> Iterator[Stream]:
        """Every stream that was met, as far as a name ever stood for it."""
        return (stream for stream in self._streams.values() if stream is not None)

    def _mark(self, place: RecordLocation, mask: int) -> None:
        known = self._masks.get(place, 0)
        if known | mask == known:
            return
        self._masks[place] = known | mask
        record = self._read_record(place)
        heapq.heappush(self._queue, (0 if record is None else -record.created_at, place))

    def _parents_of(self, place: RecordLocation, record: Record) -> Iterator[RecordLocation]:
        stream_id, seq = place
        if record.parent is not None:
            stream = self._resolve_stream(stream_id, record.branch)
            yield (stream_id if stream is None else stream.owner_of(seq - 1).id), seq - 1
        if record.merged is not None:
            self._resolve_stream(record.merged.stream, record.merged.branch)
            yield record.merged.stream, record.merged.seq

    def _resolve_stream(self, stream_id: str, branch: str) -> Stream | None:
        if stream_id not in self._streams:
            self._streams[stream_id] = None
            found = self._branches.stream_of(branch, stream_id)
            if found is not None:
                self._add_stream(found)
        return self._streams[stream_id]

    def _add_stream(self, stream: Stream) -> None:
        self._streams |= {each.id: each for each in iter_origin_streams(stream)}

    def _read_record(self, place: RecordLocation) -> Record | None:
        if place not in self._records:
            stream_id, seq = place
            # Most often the ones below are asked for next.
            page = [(stream_id, at) for at in range(seq, max(seq - _PAGE, -1), -1)]
            wanted = [each for each in page if each not in self._records]
            for each, entry in zip(wanted, self._log.read_many(wanted), strict=True):
                self._records[each] = entry if isinstance(entry, Record) else None
        return self._records[place]

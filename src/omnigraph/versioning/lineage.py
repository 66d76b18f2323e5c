"""The ancestry of commits: common ancestors, and the records between two commits.

Where two lines part is known without reading a record. Merges make more of it than lines; for
those, records are walked from the newest on, no further than needed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from omnigraph.errors import CommitNotFoundError, HistoryGoneError
from omnigraph.ids import decode_ulid_ms
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.first_parents import (
    RecordLocation,
    find_last_gap,
    find_last_shared_location,
    iter_origin_streams,
    location_of,
    tops_of,
)
from omnigraph.versioning.log import Log
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import GENESIS_SEQ, Record, Stream
from omnigraph.versioning.schema_store import Schemas, StoredSchema

# How many records of a line are read at the same time, once a walk has followed it for a while.
PAGE: Final = 32

# From which of two commits a walk reached a commit. Stale ones are ancestors of a common ancestor.
_OURS: Final = 1
_THEIRS: Final = 2
_COMMON: Final = _OURS | _THEIRS
_STALE: Final = 4
_FAR: Final = 1 << 60


class Lineage:
    """Where commits come from. Old records may have been collected, which ends a line."""

    def __init__(self, log: Log, branches: Branches, schemas: Schemas) -> None:
        self.log = log
        self._branches = branches
        self._schemas = schemas

    def read_schema(self, snapshot: Snapshot) -> StoredSchema:
        """The schema of a snapshot."""
        return self._schemas.get(snapshot.schema)

    def find_last_shared(self, a: Snapshot, b: Snapshot) -> Snapshot:
        """The newest commit that the lines of two commits share."""
        found = find_last_shared_location(tops_of(a), tops_of(b))
        if found == location_of(a):
            return a
        if found == location_of(b):
            return b
        return self._read_snapshot(
            found, [*iter_origin_streams(a.stream), *iter_origin_streams(b.stream)]
        )

    def find_merge_base(self, a: Snapshot, b: Snapshot) -> Snapshot:
        """The common ancestor to merge two commits by.

        It is not an ancestor of another common ancestor. Of several, which only merges
        crosswise make, it is the one at the smallest distance from both, then the newest.
        """
        return next(self._iter_merge_bases(a, b))

    def list_merge_bases(self, a: Snapshot, b: Snapshot) -> list[Snapshot]:
        """All common ancestors that are not ancestors of another one, the one to merge by first."""
        return list(self._iter_merge_bases(a, b))

    def _iter_merge_bases(self, a: Snapshot, b: Snapshot) -> Iterator[Snapshot]:
        shared = find_last_shared_location(tops_of(a), tops_of(b))
        if shared in (location_of(a), location_of(b)):
            yield a if shared == location_of(a) else b
            return
        walk = _LineageWalk(self.log, self._branches, shared=shared)
        for each in (a, b):
            walk.add_stream(each.stream)
        for found in walk.list_best_common(a, b):
            stream, commit = walk.find_stream(*found), walk.commit_id_of(found)
            if stream is None:
                raise HistoryGoneError(f"the branch that commit {commit} was made on is gone")
            yield self._read_snapshot(found, [stream, *walk.streams], commit=commit)

    def read_between(self, snapshot: Snapshot, seq: int) -> list[Record]:
        """The records of a snapshot's line above a seq and up to it, oldest first."""
        seqs = range(seq + 1, snapshot.seq + 1)
        found = self.log.read_many((snapshot.stream.owner_of(at).id, at) for at in seqs)
        gap = find_last_gap(found, up_to=snapshot.commit)
        if gap is not None:
            missing = seqs[gap]
            raise HistoryGoneError(
                f"version {missing} of branch '{snapshot.stream.owner_of(missing).branch}'"
                " is not stored any more"
            )
        return [entry for entry in found if isinstance(entry, Record)]

    def is_retained(self, snapshot: Snapshot) -> bool:
        """Whether any branch or tag retains a commit, so that its entities can be read."""
        try:
            self._branches.require_retained(snapshot)
        except CommitNotFoundError:
            return False
        return True

    def has_merges(self, snapshot: Snapshot, seq: int) -> bool:
        """Whether a merge is among the records of a snapshot's line above a seq."""
        return any(record.merged is not None for record in self.read_between(snapshot, seq))

    def _read_snapshot(
        self, place: RecordLocation, streams: Iterable[Stream], *, commit: str = ""
    ) -> Snapshot:
        """The snapshot at a place; a branch that starts there keeps it, if its record is gone."""
        stream_id, seq = place
        known = list(streams)
        origins = [origin for stream in known for origin in stream.origins]
        expected = {each.commit for each in origins if (each.stream, each.seq) == place}
        expected |= {commit} - {""}
        owners = [stream for stream in known if stream.id == stream_id]
        starting = [stream for stream in known if stream.origins and stream.first_seq == seq + 1]
        for stream in (*owners, *starting):
            with suppress(CommitNotFoundError):
                found = self.log.read_snapshot(stream, seq)
                if not expected or found.commit in expected:
                    return found
        raise HistoryGoneError(
            f"version {seq} of branch '{owners[0].branch}' is not stored any more"
        )


@dataclass(slots=True)
class _VisitedCommit:
    """A commit that a walk has met; without a record, what is known of it from its child."""

    place: RecordLocation
    commit: str
    created_at: int
    record: Record | None
    colors: int = 0
    distances: dict[int, int] = field(default_factory=dict)

    @property
    def distance(self) -> int:
        return sum(self.distances.get(side, _FAR) for side in (_OURS, _THEIRS))


class _LineageWalk:
    """A walk over both parents from the newest commit on; it reads a record once."""

    def __init__(self, log: Log, branches: Branches, *, shared: RecordLocation | None) -> None:
        self._log = log
        self._branches = branches
        self._shared = shared
        self._known: dict[str, Stream | None] = {}
        self._met: dict[RecordLocation, _VisitedCommit] = {}
        self._queue: list[tuple[int, RecordLocation]] = []
        # How many records of a stream were read one after the other.
        self._runs: dict[str, int] = {}

    @property
    def streams(self) -> list[Stream]:
        """The streams that the walk knows the origins of."""
        return [stream for stream in self._known.values() if stream is not None]

    def add_stream(self, stream: Stream) -> None:
        """Take a stream and those it started from as known."""
        self._known |= {each.id: each for each in iter_origin_streams(stream)}

    def commit_id_of(self, place: RecordLocation) -> str:
        """The id of a commit that was met."""
        return self._met[place].commit

    def find_stream(self, stream_id: str, seq: int) -> Stream | None:
        """The stream of a commit that was met; None if its branch left no trace."""
        if stream_id not in self._known:
            record = self._met[stream_id, seq].record
            branch = None if record is None else record.branch
            self._find(stream_id, branch)
        return self._known[stream_id]

    def list_best_common(self, a: Snapshot, b: Snapshot) -> list[RecordLocation]:
        """All common ancestors that are not ancestors of others, the best one first."""
        for snapshot, side in ((a, _OURS), (b, _THEIRS)):
            self._paint(self._start(snapshot), side, {side: 0})
        fresh = {place for _, place in self._queue}
        bases: set[RecordLocation] = set()
        while fresh:
            place = heapq.heappop(self._queue)[1]
            fresh.discard(place)
            met = self._met[place]
            colors = met.colors
            if colors & _COMMON == _COMMON and not colors & _STALE:
                bases.add(place)
                colors |= _STALE
            distances = {side: far + 1 for side, far in met.distances.items()}
            for parent in self._iter_parents(met):
                if self._paint(parent, colors, distances) and not parent.colors & _STALE:
                    fresh.add(parent.place)
                elif parent.colors & _STALE:
                    fresh.discard(parent.place)
        found = [self._met[place] for place in bases if not self._met[place].colors & _STALE]
        if not found:
            raise HistoryGoneError(
                f"no common ancestor of {a.commit} and {b.commit} is stored any more"
            )
        found.sort(
            key=lambda met: (-met.distance, met.place[1], met.created_at, met.commit), reverse=True
        )
        return [met.place for met in found]

    def _start(self, snapshot: Snapshot) -> _VisitedCommit:
        return self._visit(location_of(snapshot), snapshot.commit)

    def _paint(self, met: _VisitedCommit, colors: int, distances: dict[int, int]) -> bool:
        """Colour a commit, and queue it if that says anything new of it."""
        nearer = {
            side: far for side, far in distances.items() if far < met.distances.get(side, _FAR)
        }
        if met.colors | colors == met.colors and not nearer:
            return False
        met.colors |= colors
        met.distances |= nearer
        heapq.heappush(self._queue, (-met.created_at, met.place))
        return True

    def _visit(self, place: RecordLocation, commit: str) -> _VisitedCommit:
        met = self._met.get(place)
        if met is None:
            record = self._read(place)
            # Another commit there is one that a stopped writer left where this one was collected.
            if record is not None and commit and record.commit != commit:
                record = None
            # An id contains the time of its commit, to the millisecond.
            time = (decode_ulid_ms(commit) or 0) * 1000
            created_at = time if record is None else record.created_at
            met = self._met[place] = _VisitedCommit(place, commit, created_at, record)
        return met

    def _iter_parents(self, met: _VisitedCommit) -> Iterator[_VisitedCommit]:
        stream_id, seq = met.place
        record = met.record
        if record is None:
            yield from self._skip_gap(met)
            return
        if record.parent is not None:
            yield self._visit(self._find_first_parent(stream_id, seq, record.branch), record.parent)
        if record.merged is not None:
            yield self._visit((record.merged.stream, record.merged.seq), record.merged.commit)

    def _find_first_parent(self, stream_id: str, seq: int, branch: str) -> RecordLocation:
        below = stream_id, seq - 1
        # Within a stream the record below is its own proof; its origins are asked for at the end.
        if stream_id not in self._known and self._read(below) is None:
            self._find(stream_id, branch)
        stream = self._known.get(stream_id)
        return below if stream is None else (stream.owner_of(seq - 1).id, seq - 1)

    def _skip_gap(self, met: _VisitedCommit) -> Iterator[_VisitedCommit]:
        """Where two lines part is known even if the records above it were collected."""
        stream = self._known.get(met.place[0])
        if self._shared is None or stream is None or self._shared[1] >= met.place[1]:
            return
        if stream.owner_of(self._shared[1]).id == self._shared[0]:
            yield self._visit(self._shared, "")

    def _find(self, stream_id: str, branch: str | None) -> None:
        found = None if branch is None else self._branches.stream_of(branch, stream_id)
        if found is None:
            self._known[stream_id] = None
        else:
            self.add_stream(found)

    def _read(self, place: RecordLocation) -> Record | None:
        stream_id, seq = place
        run = self._runs[stream_id] = self._runs.get(stream_id, 0) + 1
        page = range(seq, max(seq - min(run, PAGE), GENESIS_SEQ - 1), -1)
        is_turn = run & (run - 1) == 0 or run % PAGE == 0
        if is_turn and len(page) > 1:
            self._log.read_many((stream_id, at) for at in page)
        entry = self._log.read(stream_id, seq)
        return entry if isinstance(entry, Record) else None

"""The line of a commit: its first parents back to the first commit of the graph.

Streams know from which commits they started, so most of this is known without reading a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import CommitRef, LogEntry, Record, Stream

# The stream that owns a record, and its seq.
RecordLocation: TypeAlias = tuple[str, int]


def location_of(snapshot: Snapshot) -> RecordLocation:
    """Where the record of a snapshot is."""
    return snapshot.stream.owner_of(snapshot.seq).id, snapshot.seq


def iter_origin_streams(stream: Stream) -> Iterator[Stream]:
    """A stream, the one it started from, and so on to main."""
    while stream.origins:
        yield stream
        stream = stream.owner_of(stream.first_seq - 1)
    yield stream


def tops_of(snapshot: Snapshot) -> dict[str, int]:
    """The newest seq of each stream on the line of a commit."""
    owner = snapshot.stream.owner_of(snapshot.seq)
    return {owner.id: snapshot.seq} | {origin.stream: origin.seq for origin in owner.origins}


def find_last_shared_location(ours: Mapping[str, int], theirs: Mapping[str, int]) -> RecordLocation:
    """The newest place on two lines, by the tops of both."""
    shared = [
        (stream, min(seq, theirs[stream])) for stream, seq in ours.items() if stream in theirs
    ]
    assert shared, "every line begins with the first commit of the graph"
    return max(shared, key=lambda place: place[1])


def is_on_line(of: Snapshot, ref: CommitRef) -> bool:
    """Whether a commit is a snapshot's own, or one of its first parents."""
    return ref.seq <= of.seq and of.stream.owner_of(ref.seq).id == ref.stream


def find_last_gap(entries: Sequence[LogEntry | None], *, up_to: str | None = None) -> int | None:
    """The place of the last entry that is not the commit that the next one follows, or None.

    It may be missing. Or a writer that was stopped put it where a collector had removed another,
    and ended before it withdrew it. `up_to` is the id of the last commit, if it is known.
    """
    expected = up_to
    for at in reversed(range(len(entries))):
        entry = entries[at]
        if entry is None:
            return at
        if isinstance(entry, Record):
            if expected not in (None, entry.commit):
                return at
            expected = entry.parent
    return None

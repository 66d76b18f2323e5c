"""History: the commits of a branch, and the snapshot of a branch, commit, version or time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from omnigraph.errors import BranchNotFound, CommitNotFound, CorruptObject
from omnigraph.ids import ulid_milliseconds
from omnigraph.storage import layout
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.log import Log
from omnigraph.versioning.record import GENESIS_SEQ, Record, Stream
from omnigraph.versioning.snapshot import Snapshot

# How many records of a listing are read at the same time.
PAGE: Final = 32
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# How far back a client's repeated request is recognised by its key.
KEY_RECORDS_MAX: Final = 1_000


class History:
    """Finds commits; old records may have been collected, which ends a line. A gap is damage."""

    def __init__(self, log: Log, branches: Branches) -> None:
        self._log = log
        self._branches = branches

    def by_seq(self, stream: Stream, seq: int) -> Snapshot:
        """The snapshot at a version of a branch."""
        if GENESIS_SEQ <= seq <= self._log.head(stream).snapshot.seq:
            return self._log.at(stream, seq)
        raise CommitNotFound(f"branch '{stream.branch}' has no version {seq}")

    def by_time(self, stream: Stream, time_us: int) -> Snapshot:
        """The snapshot that was the newest of a branch at a time."""
        last = self._log.head(stream).snapshot.seq
        seq = self._first(stream, last, lambda record: record.created_at > time_us) - 1
        if seq < GENESIS_SEQ or self._record(stream, seq) is None:
            raise CommitNotFound(
                f"branch '{stream.branch}' has no commit as old as {_iso(time_us)}",
                hint="ask for a later time",
            )
        return self._log.at(stream, seq)

    def by_commit(self, commit: str) -> Snapshot:
        """The snapshot of a commit that any live branch holds."""
        return self._log.at(*self._place(commit))

    def commit(self, commit: str) -> Record:
        """The record of a commit that any live branch holds."""
        record = self._record(*self._place(commit))
        assert record is not None, "a commit is found by its record"
        return record

    def commits(
        self, stream: Stream, *, below: int | None = None, first: int = GENESIS_SEQ
    ) -> Iterator[Record]:
        """The commits of a branch from `first` on, newest first, with those it started from."""
        last = self._log.head(stream).snapshot.seq if below is None else below - 1
        while last >= first:
            page = range(last, max(last - PAGE, first - 1), -1)
            found = self._log.read_many((stream.owner(seq).id, seq) for seq in page)
            for seq, entry in zip(page, found, strict=True):
                if not isinstance(entry, Record):
                    self._require_collected(stream, seq)
                    return
                yield entry
            last -= PAGE

    def by_key(self, stream: Stream, key: str) -> Record | None:
        """The recent commit that a client's request with this key made on this very branch."""
        newest = self._log.head(stream).snapshot.seq
        first = max(stream.first_seq, newest - KEY_RECORDS_MAX + 1)
        records = self.commits(stream, below=newest + 1, first=first)
        return next((found for found in records if found.signature.key == key), None)

    def find(self, commit: str) -> tuple[Stream, int] | None:
        """The stream and the seq of a commit, or None.

        Ids carry the time of their commit, and times rise along a branch, so each live branch is
        searched in a logarithmic number of reads.
        """
        time_ms = ulid_milliseconds(commit)
        if time_ms is None:
            return None
        for name in self._branches.list():
            with suppress(BranchNotFound):  # deleted since it was listed
                stream = self._branches.resolve(name)
                seq = self._seq_of(stream, commit, time_ms)
                if seq is not None:
                    return stream.owner(seq), seq
        return None

    def _place(self, commit: str) -> tuple[Stream, int]:
        found = self.find(commit)
        if found is None:
            raise CommitNotFound(f"no live branch holds commit '{commit}'")
        return found

    def _seq_of(self, stream: Stream, commit: str, time_ms: int) -> int | None:
        last = self._log.head(stream).snapshot.seq
        first = self._first(stream, last, lambda record: record.created_at // 1000 >= time_ms)
        for seq in range(first, last + 1):
            record = self._record(stream, seq)
            if record is None or record.created_at // 1000 > time_ms:
                return None
            if record.commit == commit:
                return seq
        return None

    def _first(self, stream: Stream, last: int, holds: Callable[[Record], bool]) -> int:
        """The lowest seq up to `last` whose record fulfils a condition that stays true above it."""
        low, high = GENESIS_SEQ, last + 1
        while low < high:
            middle = (low + high) // 2
            record = self._record(stream, middle)
            if record is not None and holds(record):
                high = middle
            else:
                low = middle + 1
        return low

    def _require_collected(self, stream: Stream, seq: int) -> None:
        """Refuse a gap in a line: what a collector removes, it removes with all that is older."""
        missing = layout.record(stream.owner(seq).id, seq)
        while seq >= GENESIS_SEQ:
            owner = stream.owner(seq)
            oldest = self._log.first_seq(owner)
            if oldest is not None and oldest < seq:
                raise CorruptObject(
                    missing, "it is missing above older ones", hint="restore it from a copy"
                )
            seq = owner.first_seq - 1

    def _record(self, stream: Stream, seq: int) -> Record | None:
        entry = self._log.read(stream.owner(seq).id, seq)
        return entry if isinstance(entry, Record) else None


def _iso(time_us: int) -> str:
    """A time for people; beyond the years of the calendar, the number it is."""
    try:
        return (_EPOCH + timedelta(microseconds=time_us)).isoformat()
    except OverflowError:
        return f"{time_us} µs since 1970"

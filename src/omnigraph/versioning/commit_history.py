"""History: the commits of a branch, and the snapshot of a branch, commit, version or time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    CorruptObjectError,
    InvalidArgumentError,
    SnapshotGoneError,
    TagNotFoundError,
)
from omnigraph.ids import decode_ulid_ms
from omnigraph.storage.objects import layout
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.commit_clock import find_newest_at
from omnigraph.versioning.log import MAINTENANCE_MAX, Log
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import GENESIS_SEQ, CommitRef, Record, Stream
from omnigraph.versioning.retention_floors import Floors

# How many records of a listing are read at the same time.
PAGE: Final = 32
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# How far back a client's repeated request is recognised by its key.
KEY_RECORDS_MAX: Final = 1_000
_COLLECTED: Final = "its branch was deleted, or it was collected; tags keep commits"


class History:
    """Finds commits. Old ones may have been collected, which ends a line; a gap is damage."""

    def __init__(self, log: Log, branches: Branches) -> None:
        self._log = log
        self._branches = branches
        self._floors = Floors(log.objects)

    def find_oldest(self, stream: Stream) -> int:
        """The version of the oldest commit of a branch that was not collected."""
        return self._floors.read_floor(stream)

    def read_by_seq(self, stream: Stream, seq: int) -> Snapshot:
        """The snapshot at a version of a branch."""
        if GENESIS_SEQ <= seq <= self._log.read_head(stream).snapshot.seq:
            self._require_kept(stream, seq, f"version {seq} of branch '{stream.branch}'")
            return self._log.read_snapshot(stream, seq)
        raise CommitNotFoundError(f"branch '{stream.branch}' has no version {seq}")

    def read_by_time(self, stream: Stream, time_us: int) -> Snapshot:
        """The snapshot that was the newest of a branch at a time."""
        last = self._log.read_head(stream).snapshot.seq
        oldest = self._floors.read_floor(stream)
        seq = find_newest_at(range(oldest, last + 1), time_us, partial(self._read_record, stream))
        if GENESIS_SEQ <= seq < oldest:
            what = f"what branch '{stream.branch}' was at {_format_time(time_us)}"
            raise SnapshotGoneError(f"{what} was collected", oldest=oldest)
        if seq < GENESIS_SEQ or self._read_record(stream, seq) is None:
            raise CommitNotFoundError(
                f"branch '{stream.branch}' has no commit as old as {_format_time(time_us)}",
                hint="ask for a later time",
            )
        return self._log.read_snapshot(stream, seq)

    def read_by_commit(self, commit: str) -> Snapshot:
        """The snapshot of a commit that a live branch or a tag holds."""
        found = self.find(commit)
        if found is not None:
            return self._log.read_snapshot(*found)
        for tag in self._branches.tags.find_by_commit(commit):
            return tag.snapshot
        raise CommitNotFoundError(f"no live branch holds commit '{commit}'", hint=_COLLECTED)

    def read_by_name(self, name: str) -> Snapshot:
        """The snapshot of a commit, by its id or by a tag."""
        if decode_ulid_ms(name) is not None:
            return self.read_by_commit(name)
        try:
            return self._branches.tags.get(name).snapshot
        except (TagNotFoundError, InvalidArgumentError) as error:
            message = f"'{name}' is neither a tag nor the id of a commit"
            raise CommitNotFoundError(message) from error

    def read_commit(self, commit: str) -> Record:
        """The record of a commit that a live branch or a tag holds."""
        snapshot = self.read_by_commit(commit)
        record = self._read_record(snapshot.stream, snapshot.seq)
        if record is None:
            raise CommitNotFoundError(f"the record of commit '{commit}' is gone", hint=_COLLECTED)
        return record

    def find_written(self, snapshot: Snapshot) -> CommitRef:
        """The newest commit of a line that wrote something, as far as records are stored.

        Maintenance changes nothing, and what a fill brings was made of texts that were there.
        """
        ref = snapshot.ref
        for _ in range(MAINTENANCE_MAX):
            entry = self._log.read(ref.stream, ref.seq)
            if not (isinstance(entry, Record) and entry.parent):
                break
            if not (entry.is_maintenance or entry.is_fill):
                break
            owner = snapshot.stream.owner_of(ref.seq - 1)
            ref = CommitRef(owner.branch, owner.id, ref.seq - 1, entry.parent)
        return ref

    def iter_commits(
        self, stream: Stream, *, below: int | None = None, first: int = GENESIS_SEQ
    ) -> Iterator[Record]:
        """The commits of a branch from `first` on, newest first, with those it started from."""
        yield from self._iter_line(
            stream, below=below, first=max(first, self._floors.read_floor(stream))
        )

    def _iter_line(self, stream: Stream, *, below: int | None, first: int) -> Iterator[Record]:
        last = self._log.read_head(stream).snapshot.seq if below is None else below - 1
        parent: str | None = None
        while last >= first:
            page = range(last, max(last - PAGE, first - 1), -1)
            found = self._log.read_many((stream.owner_of(seq).id, seq) for seq in page)
            for seq, entry in zip(page, found, strict=True):
                # Another commit was put where the one that was there had been collected.
                if not isinstance(entry, Record) or parent not in (None, entry.commit):
                    self._require_collected(stream, seq)
                    return
                yield entry
                parent = entry.parent
            last -= PAGE

    def find_by_key(self, stream: Stream, key: str, *, after: int | None = None) -> Record | None:
        """The recent commit that a client's request with this key made on this very branch.

        With `after`, all commits above that version are examined, however many they are; it is
        refused where some of them were collected.
        """
        newest = self._log.read_head(stream).snapshot.seq
        first = newest - KEY_RECORDS_MAX + 1
        if after is not None:
            first = min(first, after + 1)
            wanted = max(stream.first_seq, after + 1)
            oldest = self._floors.read_floor(stream)
            if wanted < min(oldest, newest + 1):
                what = f"commits of branch '{stream.branch}' above version {after} were collected"
                raise SnapshotGoneError(f"{what}; one may have had the key '{key}'", oldest=oldest)
        records = self._iter_line(stream, below=newest + 1, first=max(stream.first_seq, first))
        return next((found for found in records if found.signature.key == key), None)

    def find_above(self, stream: Stream, key: str, after: int) -> Record | None:
        """The commit of a branch above a version that has a key; no older one is examined.

        It is refused where commits above the version were collected.
        """
        newest = self._log.read_head(stream).snapshot.seq
        oldest = self._floors.read_floor(stream)
        first = max(stream.first_seq, after + 1)
        if first < min(oldest, newest + 1):
            what = f"commits of branch '{stream.branch}' above version {after} were collected"
            raise SnapshotGoneError(f"{what}; one may have had the key '{key}'", oldest=oldest)
        records = self._iter_line(stream, below=newest + 1, first=first)
        return next((found for found in records if found.signature.key == key), None)

    def iter_since(
        self, stream: Stream, after: int | None = None
    ) -> Iterator[tuple[Record, Record]]:
        """The commits that came to a branch above a version, newest first.

        Beside each is the commit of the branch that brought it: itself, or the merge. Without
        `after` they are the newest 1,000 of the branch; of a branch that was merged they are its
        own newest 1,000, as far as they are stored. It is refused where commits of the branch
        above the version were collected.
        """
        newest = self._log.read_head(stream).snapshot.seq
        oldest = self._floors.read_floor(stream)
        first = max(newest - KEY_RECORDS_MAX + 1, oldest) if after is None else after + 1
        first = max(first, stream.first_seq)
        if first < min(oldest, newest + 1):
            what = f"commits of branch '{stream.branch}' above version {first - 1} were collected"
            raise SnapshotGoneError(what, oldest=oldest)
        seen: set[tuple[str, int]] = set()
        for record in self._iter_line(stream, below=newest + 1, first=first):
            yield record, record
            merged = [] if record.merged is None else [record.merged]
            while merged:
                for brought in self._iter_merged(stream, merged.pop(), seen):
                    yield brought, record
                    merged += [] if brought.merged is None else [brought.merged]

    def _iter_merged(
        self, stream: Stream, ref: CommitRef, seen: set[tuple[str, int]]
    ) -> Iterator[Record]:
        """The commits of another branch, down to where it left the line of this one."""
        last, lowest = ref.seq, max(ref.seq - KEY_RECORDS_MAX, GENESIS_SEQ - 1)
        while last > lowest:
            page = range(last, max(last - PAGE, lowest), -1)
            found = self._log.read_many((ref.stream, seq) for seq in page)
            for seq, entry in zip(page, found, strict=True):
                is_own = stream.owner_of(seq).id == ref.stream
                # A branch has no records below the commit that it started from.
                if is_own or not isinstance(entry, Record) or (ref.stream, seq) in seen:
                    return
                seen.add((ref.stream, seq))
                yield entry
            last -= PAGE

    def find(self, commit: str) -> tuple[Stream, int] | None:
        """The stream and the seq of a commit, or None.

        Ids carry the time of their commit, and times rise along a branch, so each live branch is
        searched in a logarithmic number of reads.
        """
        time_ms = decode_ulid_ms(commit)
        if time_ms is None:
            return None
        for name in self._branches.list():
            with suppress(BranchNotFoundError):  # deleted since it was listed
                stream = self._branches.resolve(name)
                seq = self._seq_of(stream, commit, time_ms)
                if seq is not None:
                    return stream.owner_of(seq), seq
        return None

    def _seq_of(self, stream: Stream, commit: str, time_ms: int) -> int | None:
        kept = range(self._floors.read_floor(stream), self._log.read_head(stream).snapshot.seq + 1)
        first = self._search_first(
            stream, kept, lambda record: record.created_at // 1000 >= time_ms
        )
        for seq in range(first, kept.stop):
            record = self._read_record(stream, seq)
            if record is None or record.created_at // 1000 > time_ms:
                return None
            if record.commit == commit:
                return seq
        return None

    def _search_first(self, stream: Stream, seqs: range, holds: Callable[[Record], bool]) -> int:
        """The lowest seq of a range whose record fulfils a condition that stays true above it."""
        low, high = seqs.start, seqs.stop
        while low < high:
            middle = (low + high) // 2
            record = self._read_record(stream, middle)
            if record is not None and holds(record):
                high = middle
            else:
                low = middle + 1
        return low

    def _require_kept(self, stream: Stream, seq: int, what: str) -> None:
        oldest = self._floors.read_floor(stream)
        if seq < oldest:
            raise SnapshotGoneError(f"{what} was collected", oldest=oldest)

    def _require_collected(self, stream: Stream, seq: int) -> None:
        """Refuse a gap in a line: what a collector removes, it says before."""
        if seq >= self._floors.read_floor(stream):
            raise CorruptObjectError(
                layout.build_record_path(stream.owner_of(seq).id, seq),
                "it is missing, and it was not collected",
                hint="restore it from a copy",
            )

    def _read_record(self, stream: Stream, seq: int) -> Record | None:
        entry = self._log.read(stream.owner_of(seq).id, seq)
        return entry if isinstance(entry, Record) else None


def _format_time(time_us: int) -> str:
    """A time for people; beyond the years of the calendar, the number it is."""
    try:
        return (_EPOCH + timedelta(microseconds=time_us)).isoformat()
    except OverflowError:
        return f"{time_us} µs since 1970"

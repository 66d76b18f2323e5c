"""The log: the records of a stream, found, read and folded.

A record is the only truth. The hint and the checkpoints make it quick to find; they are written
after the fact, may be absent, stale or torn, and are never believed over a record.

A collector removes old records, so an absent record proves that a stream ends there only if the
floor of the stream lies at or below the end (`retention_floors`). Floors are stated before anything
below them is removed, and are read here after the fact: after the absent record that makes an end,
and after the put that makes a commit. So no pause and no clock leads a branch back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Final

from omnigraph.durations import read_clock_s
from omnigraph.errors import (
    BranchGoneError,
    CommitNotFoundError,
    CorruptObjectError,
    FormatTooNewError,
    GraphNotFoundError,
    InDoubtError,
    StorageError,
    StorageUnknownError,
)
from omnigraph.lru_cache import LruCache
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.first_parents import find_last_gap
from omnigraph.versioning.graph_format import DIGESTS, read_format
from omnigraph.versioning.json_fields import decode_fields, encode_fields, require_digest
from omnigraph.versioning.log_snapshot import (
    Head,
    Snapshot,
    build_lost_error,
    decode_checkpoint,
    encode_checkpoint,
    fold_events,
    snapshot_of,
)
from omnigraph.versioning.record import (
    GENESIS_SEQ,
    MAIN,
    Close,
    LogEntry,
    PutOutcome,
    Record,
    Stream,
)
from omnigraph.versioning.record_codec import EntryCache, decode_entry, encode_entry
from omnigraph.versioning.ref_events import RefEvents
from omnigraph.versioning.retention_floors import Floors

# Records of graphs with at most this many types hold all pins (75 bytes each): one read each.
WHOLE_PINS_MAX: Final = 64
# How far a fold may have to go back; records that hold all pins need checkpoints only as roots
# for a collector.
CHECKPOINT_EVERY: Final = 32
CHECKPOINT_EVERY_WHOLE: Final = 256
# On object stores a hint costs as much as a probe, so it may lag by this many records.
REMOTE_HINT_EVERY: Final = 8
# Above this many probes one listing is cheaper.
PROBES_MAX: Final = 16
# How long a collector leaves alone what was just superseded, deleted, or never referred to.
GRACE_S: Final = 24 * 3600.0
# A reader that slept through a clean-up may answer from the old end of a branch for so much of its
# own running time: how often the floor of a stream that does not move is read again.
STALE_S_MAX: Final = 1.0
# How often a floor may rise while the end of a stream is looked for; each takes a clean-up.
FLOORS_MAX: Final = 16
CACHED_HEADS_MAX: Final = 1024
# How many commits of maintenance in a row are skipped; each follows a commit of a writer.
MAINTENANCE_MAX: Final = 1024
_READERS: Final = 8
# Fewer than this are not worth a thread each.
_READERS_LEAST: Final = 4
_REPLACED: Final = "close the graph and open it again: it was replaced while it was open"


class Log:
    """Every stream of one graph; safe to share between threads."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.floors = Floors(objects)
        # Whether to look for a newer entry asks a server.
        self.is_remote = objects.uri.startswith("s3://")
        self._hint_every = REMOTE_HINT_EVERY if self.is_remote else 1
        self.must_have_digests = False  # known of a graph that was opened
        self._lock = threading.Lock()
        self._entries = EntryCache()
        self._heads: LruCache[str, Head] = LruCache(CACHED_HEADS_MAX)
        # When the floor of each stream was last read.
        self._verified_at: LruCache[str, float] = LruCache(CACHED_HEADS_MAX)

    def require_graph(self) -> None:
        """Refuse an address without a graph, and a graph of a newer format.

        No record is read: a damaged one must not make the other branches unreadable.
        """
        self.require_format()
        genesis = layout.build_record_path(MAIN.id, GENESIS_SEQ)
        if self.objects.get(genesis) is None and self.find_first_seq(MAIN) is None:
            raise GraphNotFoundError(self.objects.uri)

    def require_format(self) -> None:
        """Refuse an address that was never used, and a format or a feature that is not known."""
        found = read_format(self.objects)
        if found is None:
            raise GraphNotFoundError(self.objects.uri)
        self.must_have_digests = DIGESTS in found.features

    def append(self, entry: LogEntry) -> PutOutcome:
        """Put an entry at its place. For `transaction` alone."""
        if entry.seq > GENESIS_SEQ and not self._has_predecessor(entry):
            return self._find_earlier_put(entry)
        data = encode_entry(entry)
        path = layout.build_record_path(entry.stream, entry.seq)
        if not self.objects.put_new(path, data):
            return PutOutcome.TAKEN
        try:
            placed = self.verify_put(entry)
        except StorageError as error:
            # It is there, and whether it counts cannot be read.
            raise StorageUnknownError("put_new", path, error.reason) from error
        if placed is PutOutcome.CREATED:
            self._entries.keep_end(entry, data)
        return placed

    def verify_put(self, entry: LogEntry) -> PutOutcome:
        """Whether an entry that was created at its place became part of the stream.

        If the floor has risen above it, it did only if it is what was released there.
        """
        if not self.is_collected(entry.stream, entry.seq):
            return PutOutcome.CREATED
        return self._find_released(entry)

    def _find_earlier_put(self, entry: LogEntry) -> PutOutcome:
        """What became of an entry whose predecessor was collected: it may have been put before."""
        if self.is_collected(entry.stream, entry.seq):
            return self._find_released(entry)
        stored = self.objects.get(layout.build_record_path(entry.stream, entry.seq))
        if stored is None:
            return PutOutcome.COLLECTED
        return PutOutcome.CREATED if stored == encode_entry(entry) else PutOutcome.TAKEN

    def _find_released(self, entry: LogEntry) -> PutOutcome:
        """Whether it was this entry that was released at its place."""
        if isinstance(entry, Close):
            return PutOutcome.COLLECTED
        message = f"commit {entry.commit} may have been made"
        try:
            is_ours = self.floors.has_released(entry.stream, entry.seq, entry.commit)
        except (CorruptObjectError, FormatTooNewError) as error:
            raise InDoubtError(f"{message}: {error.message}", commit=entry.commit) from error
        if is_ours is None:
            raise InDoubtError(f"{message}, and collected since", commit=entry.commit)
        return PutOutcome.CREATED if is_ours else PutOutcome.COLLECTED

    def is_collected(self, stream: str, seq: int) -> bool:
        """Whether the commits of a stream up to a seq were released, as of now."""
        return self.floors.is_above(stream, seq)

    def withdraw(self, entry: LogEntry) -> None:
        """Remove an entry that was put among collected ones: it never was part of the stream."""
        path = layout.build_record_path(entry.stream, entry.seq)
        # A crash or a failure before leaves it to the next collector: nothing reads below a floor.
        with suppress(StorageError):
            # What another process stored there may be a commit.
            if self.objects.get(path) == encode_entry(entry):
                self.objects.delete([path])

    def _has_predecessor(self, entry: LogEntry) -> bool:
        """Refuse to write on top of what is not stored; False where that was collected.

        A directory may be put back from a copy while the graph is open. A record above a gap
        would be acknowledged and never be seen.
        """
        seq = entry.seq - 1
        path = layout.build_record_path(entry.stream, seq)
        data = self.objects.get(path)
        if data is None:
            # A branch without commits of its own begins above its first checkpoint.
            checkpoint = layout.build_checkpoint_path(entry.stream, seq)
            if self.objects.get(checkpoint) is not None or self._begins_branch(entry):
                return True
            if self.is_collected(entry.stream, seq):
                return False
            raise CorruptObjectError(
                path, "it is gone, and a commit was to follow it", hint=_REPLACED
            )
        found = self._entries.decode(entry.stream, seq, data)
        if isinstance(found, Record) and isinstance(entry, Record) and found.commit != entry.parent:
            reason = f"it is commit {found.commit}, and {entry.parent} was there before"
            raise CorruptObjectError(path, reason, hint=_REPLACED)
        return True

    def _begins_branch(self, entry: LogEntry) -> bool:
        """Whether an entry follows the commit that its branch started from, and that is stored."""
        known = self._heads.get(entry.stream)
        stream = None if known is None else known.snapshot.stream
        if stream is None or entry.seq != stream.first_seq:
            return False
        # A copy of the graph that was put back may not have the branch.
        if not RefEvents(self.objects).read_chain(stream.branch).is_live:
            return False
        with suppress(CommitNotFoundError, CorruptObjectError):
            return isinstance(entry, Close) or self._read_base(stream).commit == entry.parent
        return False

    def read(self, stream: str, seq: int) -> LogEntry | None:
        """The entry at a place of a stream, or None."""
        if (known := self._entries.get(stream, seq)) is not None:
            return known
        data = self.objects.get(layout.build_record_path(stream, seq))
        if data is None:
            return None
        entry = decode_entry(stream, seq, data)
        if self.must_have_digests:
            require_digest(layout.build_record_path(stream, seq), data)
        self._entries.keep_end(entry, data)
        return self._entries.keep(entry, len(data))

    def is_stored(self, stream: str, seq: int) -> bool:
        """Whether an entry is there now, whatever this process remembers."""
        return self.objects.get(layout.build_record_path(stream, seq)) is not None

    def read_many(self, places: Iterable[tuple[str, int]]) -> list[LogEntry | None]:
        """Several entries; those that this process does not know are read at the same time."""
        entries = {place: self._entries.get(*place) for place in places}
        unknown = [place for place, entry in entries.items() if entry is None]
        if len(unknown) < _READERS_LEAST:
            return [entry or self.read(*place) for place, entry in entries.items()]
        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            found = readers.map(lambda place: self.read(*place), unknown)
            return list((entries | dict(zip(unknown, found, strict=True))).values())

    def read_after(self, stream: Stream, seq: int) -> list[LogEntry]:
        """Every entry of a stream above a seq, in order."""
        found: list[LogEntry] = []
        while len(found) < PROBES_MAX:
            entry = self.read(stream.id, seq + 1 + len(found))
            if entry is None:
                return found
            found.append(entry)
        last = self._find_last_seq(stream, above=seq + len(found))
        return found + self._read_all(stream, range(seq + len(found) + 1, last + 1))

    def get_known_head(self, stream: Stream) -> Head | None:
        """The newest head of a stream that this process knows of: no read."""
        return self._heads.get(stream.id)

    def read_between(self, stream: Stream, seq: int, head: Head) -> list[LogEntry]:
        """Every entry of a stream above a seq and up to a head."""
        return self._read_all(stream, range(seq + 1, head.next_seq), up_to=head.snapshot.commit)

    def _read_all(self, stream: Stream, seqs: range, up_to: str | None = None) -> list[LogEntry]:
        """The entries of a range that must be complete: a conflict check may not miss one."""
        entries = self.read_many((stream.id, at) for at in seqs)
        if (gap := find_last_gap(entries, up_to=up_to)) is not None:
            path = layout.build_record_path(stream.id, seqs[gap])
            raise CorruptObjectError(path, "it is missing below newer ones")
        return [entry for entry in entries if entry is not None]

    def read_head(self, stream: Stream) -> Head:
        """The end of a stream: one absent probe when nothing happened since the last look.

        It is the end now, or, for a process that slept through a clean-up, was it at most
        `STALE_S_MAX` of running time ago.
        """
        known = self.get_known_head(stream)
        if known is None:
            return self.read_newest_head(stream)
        head = self._probe(known)
        verified_at = self._verified_at.get(stream.id)
        is_certain = verified_at is not None and read_clock_s() - verified_at < STALE_S_MAX
        return head if head is known and is_certain else self._verify(stream, head)

    def read_newest_head(self, stream: Stream) -> Head:
        """The end of a stream now, whatever this process remembers of its floor."""
        return self._verify(
            stream, self._probe(self.get_known_head(stream) or self._locate(stream))
        )

    def _probe(self, head: Head) -> Head:
        """The last of the entries that follow a head without a gap."""
        stream = head.snapshot.stream
        for _ in range(PROBES_MAX):
            entry = self.read(stream.id, head.next_seq)
            if entry is None:
                return head
            try:
                head = head.advance(entry)
            except CorruptObjectError:
                if self.is_collected(stream.id, head.snapshot.seq):
                    return head
                raise
        return self._build_head_at(stream, self._find_last_seq(stream, above=head.next_seq - 1))

    def _verify(self, stream: Stream, head: Head) -> Head:
        """A head that no collected record hides newer ones from."""
        for _ in range(FLOORS_MAX):
            read_at = read_clock_s()
            floor = self.floors.read_stream_floor(stream.id)
            if floor <= head.snapshot.seq:
                self._verified_at.put(stream.id, read_at)
                return self.remember(head)
            last = self._find_last_seq(stream, above=floor - 1)
            if last < floor:
                raise BranchGoneError(stream.branch)
            head = self._probe(self._build_head_at(stream, last))
        raise CorruptObjectError(
            layout.build_floor_folder(stream.id),
            f"it rose {FLOORS_MAX} times while the end was read",
        )

    def invalidate_floor(self, stream: Stream) -> None:
        """Read the floor of a stream before its head is given out again."""
        self._verified_at.discard(stream.id)

    def confirm(self, head: Head) -> Head:
        """Keep a head that this process has just made, and whose floor it has just read."""
        self._verified_at.put(head.snapshot.stream.id, read_clock_s())
        return self.remember(head)

    def read_snapshot(self, stream: Stream, seq: int) -> Snapshot:
        """The snapshot at any seq of a stream or of the commits it started from."""
        owner = stream.owner_of(seq)
        entry = self.read(owner.id, seq)
        if isinstance(entry, Record):
            return snapshot_of(entry, owner) if entry.is_whole else self._fold_records(owner, seq)
        if entry is None and stream.origins and seq == stream.first_seq - 1:
            # The record a branch started from may be collected; its own first checkpoint is not.
            return self._read_base(stream)
        raise CommitNotFoundError(f"branch '{stream.branch}' has no version {seq}")

    def is_at(self, snapshot: Snapshot, commit: str) -> bool:
        """Whether a snapshot is at a commit, or at maintenance of it.

        Maintenance changes nothing that the caller could have read.
        """
        seq, current = snapshot.seq, snapshot.commit
        for _ in range(MAINTENANCE_MAX):
            if current == commit:
                return True
            entry = self.read(snapshot.stream.owner_of(seq).id, seq)
            if not (isinstance(entry, Record) and entry.is_maintenance and entry.parent):
                return False
            seq, current = seq - 1, entry.parent
        return False

    def list_stored_seqs(self, stream_id: str, *, below: int) -> list[int]:
        """The seqs of the stored entries of a stream below one, by listing."""
        seqs: list[int] = []
        for entry in self.objects.list(layout.build_stream_folder(stream_id)):
            seq = layout.parse_record_path(entry.path)
            if seq is None or seq >= below:
                break  # Records sort below every other object of the folder.
            seqs.append(seq)
        return seqs

    def find_first_seq(self, stream: Stream) -> int | None:
        """The seq of the oldest stored entry of a stream, by listing; None if there is none."""
        oldest = next(iter(self.objects.list(layout.build_stream_folder(stream.id))), None)
        # Records sort below every other object of the folder.
        return None if oldest is None else layout.parse_record_path(oldest.path)

    def remember(self, head: Head) -> Head:
        """Keep the newest known head of a stream."""
        stream_id = head.snapshot.stream.id
        with self._lock:
            known = self._heads.get(stream_id)
            if known is not None and known.next_seq > head.next_seq:
                return known
            return self._heads.put(stream_id, head)

    def settle(self, entry: LogEntry, head: Head) -> None:
        """Remember a published entry, and write what makes it quick to find.

        Nothing here matters for correctness: a failure or a crash leaves an older hint.
        """
        self._entries.keep(entry)
        self.confirm(head)
        snapshot = head.snapshot
        interval = CHECKPOINT_EVERY if _is_wide(snapshot) else CHECKPOINT_EVERY_WHOLE
        with suppress(StorageError):
            if entry.seq % self._hint_every == 0:
                self._write_hint(entry.stream, entry.seq)
            if entry.seq and entry.seq % interval == 0 and isinstance(entry, Record):
                self.write_checkpoint(snapshot)

    def _write_hint(self, stream: str, seq: int) -> None:
        path = layout.build_hint_path(stream)
        self.objects.put(path, encode_fields(path, {"seq": seq}))

    def write_checkpoint(self, snapshot: Snapshot) -> None:
        """Write the fold of a stream at a seq."""
        path = layout.build_checkpoint_path(snapshot.stream.id, snapshot.seq)
        self.objects.put(path, encode_checkpoint(snapshot))

    def rebuild(self, stream: Stream) -> None:
        """Write the derived objects of a stream again, from its records."""
        head = self.read_head(stream)
        self._write_hint(stream.id, head.next_seq - 1)
        if stream.origins:
            self.write_checkpoint(self._read_base(stream))
        interval = CHECKPOINT_EVERY if _is_wide(head.snapshot) else CHECKPOINT_EVERY_WHOLE
        newest = head.snapshot.seq - head.snapshot.seq % interval
        if newest >= max(stream.first_seq, 1):
            self.write_checkpoint(self.read_snapshot(stream, newest))

    def _locate(self, stream: Stream) -> Head:
        """Some head of a stream, from its hint, or from a listing when the hint is useless."""
        seq = hinted = self._read_hinted_seq(stream)
        if seq is None or self.read(stream.id, seq) is None:
            seq = self._find_last_seq(stream, above=stream.first_seq - 1)
            if hinted is not None and seq < hinted:
                # A hint follows its record: what it names was acknowledged, and must not be undone.
                raise build_lost_error(stream, hinted)
        return self._build_head_at(stream, seq)

    def _build_head_at(self, stream: Stream, seq: int) -> Head:
        if seq < stream.first_seq:
            return Head(self._read_base(stream))
        if isinstance(self.read(stream.id, seq), Close):
            return Head(self._build_head_at(stream, seq - 1).snapshot, is_closed=True)
        return Head(self.read_snapshot(stream, seq))

    def _read_hinted_seq(self, stream: Stream) -> int | None:
        path = layout.build_hint_path(stream.id)
        if (data := self.objects.get(path)) is not None:
            with suppress(CorruptObjectError, FormatTooNewError):
                return decode_fields(path, data).get_integer("seq")
        return None

    def _find_last_seq(self, stream: Stream, *, above: int) -> int:
        """The seq of the last entry of a stream, by listing; `above` itself if there is none."""
        last = above
        after = layout.build_record_path(stream.id, above) if above >= 0 else None
        for entry in self.objects.list(layout.build_stream_folder(stream.id), after=after):
            seq = layout.parse_record_path(entry.path)
            if seq is None:
                break  # Records sort below every other object of the folder.
            last = seq
        return last

    def _read_base(self, stream: Stream) -> Snapshot:
        """The snapshot a branch started from: its first checkpoint, or the commit itself."""
        if not stream.origins:
            raise GraphNotFoundError(self.objects.uri)
        seq = stream.first_seq - 1
        if (kept := self._read_checkpoint(stream, seq)) is not None:
            return kept
        return replace(self.read_snapshot(stream.owner_of(seq), seq), stream=stream)

    def _fold_records(self, stream: Stream, seq: int) -> Snapshot:
        """The fold of records that hold only the pins they touched, from the nearest whole one."""
        newer: list[Record] = []
        while seq >= stream.first_seq:
            window = self._read_records(
                stream, max(seq - seq % CHECKPOINT_EVERY, stream.first_seq), seq
            )
            start = window[0].seq
            at = max((at for at, record in enumerate(window) if record.is_whole), default=None)
            if at is not None:
                return fold_events(snapshot_of(window[at], stream), window[at + 1 :] + newer)
            if (kept := self._read_checkpoint(stream, start)) is not None:
                return fold_events(kept, window[1:] + newer)
            newer = window + newer
            seq = start - 1
        return fold_events(self._read_base(stream), newer)

    def _read_records(self, stream: Stream, first: int, last: int) -> list[Record]:
        """The records up to the last one; a collector leaves a checkpoint where they begin."""
        entries = self.read_many((stream.id, at) for at in range(first, last + 1))
        gap = find_last_gap(entries)
        below = 0 if gap is None else gap + 1
        records = [entry for entry in entries[below:] if isinstance(entry, Record)]
        if below and (not records or self._read_checkpoint(stream, records[0].seq) is None):
            raise CorruptObjectError(
                layout.build_record_path(stream.id, first + below - 1), "it is missing"
            )
        return records

    def _read_checkpoint(self, stream: Stream, seq: int) -> Snapshot | None:
        if (data := self.objects.get(layout.build_checkpoint_path(stream.id, seq))) is not None:
            with suppress(CorruptObjectError, FormatTooNewError):
                return decode_checkpoint(stream, seq, data)
        return None


def _is_wide(snapshot: Snapshot) -> bool:
    return len(snapshot.pins) > WHOLE_PINS_MAX

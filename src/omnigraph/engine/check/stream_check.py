"""The records of a stream: contiguous, chained, and folded into what readers see."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final

from omnigraph.engine.check.check_problems import Problems, is_interrupt
from omnigraph.engine.check.ref_check import was_named
from omnigraph.engine.check.schema_check import SchemaCheck
from omnigraph.errors import CorruptObjectError, FormatTooNewError, OmnigraphError
from omnigraph.ids import decode_ulid_ms
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.commit_clock import AHEAD_S_MAX
from omnigraph.versioning.json_fields import decode_fields, require_digest
from omnigraph.versioning.log_snapshot import Snapshot, decode_checkpoint, snapshot_of
from omnigraph.versioning.record import (
    GENESIS_SEQ,
    Close,
    CommitRef,
    LogEntry,
    Record,
    Stream,
)
from omnigraph.versioning.record_codec import decode_entry

_READERS: Final = 8
_ABSENT: Final = "it was listed, and it is absent"


@dataclass(frozen=True, slots=True)
class CheckedStream:
    """A stream to be checked; `needed` is the highest seq that a live branch started from.

    Of the stream of a deleted branch, only what is needed is examined. `kept` are the commits
    that no clean-up released: from where each live branch begins to where it started another
    stream, or without end.
    """

    stream: Stream
    is_live: bool
    needed: int = -1
    kept: tuple[tuple[int, int | None], ...] = ()

    def is_kept(self, seq: int) -> bool:
        """Whether a live branch reaches back to a commit."""
        return any(low <= seq and (high is None or seq <= high) for low, high in self.kept)

    def list_seqs(self, last: int) -> set[int]:
        """The commits that must be there, if the stream ends at one."""
        parts = (
            range(max(low, self.stream.first_seq), (last if high is None else high) + 1)
            for low, high in self.kept
        )
        return {seq for part in parts for seq in part}


@dataclass(slots=True)
class WalkedStream:
    """What was found along a stream: its records, and the snapshot of each by its seq."""

    stream: Stream
    base: Snapshot | None
    records: dict[int, Record] = field(default_factory=dict)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)

    @property
    def head(self) -> Snapshot | None:
        """The newest snapshot of the stream that could be made out."""
        return self.snapshots[max(self.snapshots)] if self.snapshots else self.base

    def find_snapshot_before(self, seq: int) -> Snapshot | None:
        """The snapshot that a record was made on."""
        return self.base if seq == self.stream.first_seq else self.snapshots.get(seq - 1)


def list_needed_streams(
    streams: Collection[Stream], floors: Mapping[str, int]
) -> list[CheckedStream]:
    """Every stream that live branches need, those they started from first.

    `floors` say how far back each of the branches reaches, by its stream.
    """
    lines = {
        stream.id: CheckedStream(stream, is_live=True, kept=((floors[stream.id], None),))
        for stream in streams
    }
    for stream in streams:
        for origin in stream.origins:
            dead = CheckedStream(stream.owner_of(origin.seq), is_live=False)
            known = lines.get(origin.stream, dead)
            kept = (*known.kept, (floors[stream.id], origin.seq))
            needed = max(known.needed, origin.seq)
            lines[origin.stream] = replace(known, needed=needed, kept=kept)
    return sorted(lines.values(), key=lambda line: len(line.stream.origins))


class StreamCheck:
    """Walks along streams, in the order of `lines_of`."""

    def __init__(
        self,
        objects: Objects,
        schemas: SchemaCheck,
        problems: Problems,
        lines: Iterable[CheckedStream],
        *,
        must_have_digests: bool,
    ) -> None:
        self._objects = objects
        self._must_have_digests = must_have_digests
        self._schemas = schemas
        self._problems = problems
        self._lines = {line.stream.id: line for line in lines}
        self._walked: dict[str, WalkedStream] = {}

    def walk(self, line: CheckedStream) -> WalkedStream:
        """Read and fold all records of a stream, and report what does not fit."""
        stream = line.stream
        # First of all: a writer at work may move the end of the stream, but never below its hint.
        hinted = self._read_hint(stream)
        stored = self._list_records(line)
        seqs = list(stored)
        walked = self._walked[stream.id] = WalkedStream(stream, self._find_base(stream))
        self._check_extent(line, seqs, hinted)
        is_closed, folded, last = False, walked.base, stream.first_seq - 1
        for seq, entry in zip(seqs, self._read_all(stream, seqs), strict=True):
            if is_closed:
                self._report(stream, seq, "it follows the end of the stream")
            is_closed = is_closed or isinstance(entry, Close)
            if isinstance(entry, Record):
                is_kept, is_first = line.is_kept(seq), seq != last + 1
                before, folded = (
                    folded,
                    self._find_first_snapshot(stream, entry) if is_first else None,
                )
                # Below what is kept, records only say how branches descend from each other.
                if is_kept:
                    walked.records[seq] = entry
                    self._check_record(stream, entry)
                if not is_first:
                    folded = self._apply_record(stream, entry, before, is_checked=is_kept)
                if is_kept and folded is not None:
                    walked.snapshots[seq] = folded
            elif entry is None:
                folded = None
            last = seq
        self._check_schemas(walked)
        self._check_checkpoints(walked)
        report_future_stamps(stream.id, walked.records, stored, self._problems)
        return walked

    def _find_base(self, stream: Stream) -> Snapshot | None:
        """The snapshot that a stream started from, from the records of its parent."""
        if not stream.origins:
            return None
        origin = stream.origins[0]
        parent = self._walked.get(origin.stream)
        found = parent.snapshots.get(origin.seq) if parent else None
        if found is None and not self._is_kept(origin):
            # Its own first checkpoint keeps what the record said.
            return self._read_checkpoint(stream, origin.seq)
        if found is None:
            where = layout.build_record_path(origin.stream, origin.seq)
            message = f"branch '{stream.branch}' starts from this record, and it cannot be read"
            self._problems.add("branch", where, message)
            return None
        if found.commit != origin.commit:
            where = layout.build_record_path(origin.stream, origin.seq)
            message = f"branch '{stream.branch}' starts from commit {origin.commit}, not from it"
            self._problems.add("branch", where, message)
        return replace(found, stream=stream)

    def _is_kept(self, ref: CommitRef) -> bool:
        line = self._lines.get(ref.stream)
        return line is not None and line.is_kept(ref.seq)

    def _read_checkpoint(self, stream: Stream, seq: int) -> Snapshot | None:
        """The snapshot in a checkpoint of a stream, where the records before it were released."""
        path = layout.build_checkpoint_path(stream.id, seq)
        data = self._problems.attempt("checkpoint", path, lambda: self._objects.get(path))
        kept = None if data is None else self._decode_checkpoint(stream, seq, data)
        if kept is None:
            message = "it is missing, and the records before it were collected"
            self._problems.add("checkpoint", path, message)
        return kept

    # ---- what is there ----

    def _list_records(self, line: CheckedStream) -> dict[int, float]:
        """The records of a stream, with the time of the store at which each was written."""
        return {
            seq: entry.modified
            for entry in self._objects.list(layout.build_stream_folder(line.stream.id))
            if (seq := layout.parse_record_path(entry.path)) is not None
            and (line.is_live or seq <= line.needed)
        }

    def _check_extent(self, line: CheckedStream, seqs: list[int], hinted: int | None) -> None:
        stream = line.stream
        first = stream.first_seq
        # A graph has a first record; a branch may have no record of its own.
        last = max(seqs, default=first - 1 if stream.origins else first)
        for seq in sorted(line.list_seqs(last) - set(seqs)):
            self._report(stream, seq, "it is missing")
        for seq in seqs:
            if seq < first:
                self._report(stream, seq, f"the stream starts at {first}")
        if hinted is not None and hinted > last and line.is_live:
            message = f"it names version {hinted}, and the newest record is {last}"
            self._problems.add("hint", layout.build_hint_path(stream.id), message)

    def _read_hint(self, stream: Stream) -> int | None:
        """Where the hint says the stream ends; None for a torn one, which is harmless."""
        path = layout.build_hint_path(stream.id)
        data = self._problems.attempt("hint", path, lambda: self._objects.get(path))
        try:
            return None if data is None else decode_fields(path, data).get_integer("seq")
        except (CorruptObjectError, FormatTooNewError) as error:
            self._add_notice("hint", path, error)
            return None

    def _read_all(self, stream: Stream, seqs: list[int]) -> Iterator[LogEntry | None]:
        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            found = list(readers.map(lambda seq: self._read(stream, seq), seqs))
        for seq, entry in zip(seqs, found, strict=True):
            if isinstance(entry, OmnigraphError):
                reason = entry.reason if isinstance(entry, CorruptObjectError) else entry.message
                self._report(stream, seq, reason)
                yield None
            else:
                yield entry

    def _read(self, stream: Stream, seq: int) -> LogEntry | OmnigraphError:
        path = layout.build_record_path(stream.id, seq)
        try:
            data = self._objects.get(path)
            if data is None:
                return CorruptObjectError(path, _ABSENT)
            entry = decode_entry(stream.id, seq, data)
            if self._must_have_digests:
                require_digest(path, data)
            return entry
        except OmnigraphError as error:
            if is_interrupt(error):
                raise
            return error

    # ---- how it fits ----

    def _find_first_snapshot(self, stream: Stream, record: Record) -> Snapshot | None:
        """The snapshot of the first record after those that were cleaned up."""
        return (
            snapshot_of(record, stream)
            if record.is_whole
            else self._read_checkpoint(stream, record.seq)
        )

    def _check_record(self, stream: Stream, record: Record) -> None:
        seq = record.seq
        if record.branch != stream.branch:
            self._report(stream, seq, f"it is of branch '{record.branch}', not '{stream.branch}'")
        if decode_ulid_ms(record.commit) != record.created_at // 1000:
            self._report(stream, seq, f"commit {record.commit} does not carry its time")
        if record.merged is not None:
            self._check_merged(stream, seq, record.merged)
        if seq == GENESIS_SEQ and record.parent is not None:
            self._report(stream, seq, "the first record of a graph has no parent")

    def _apply_record(
        self, stream: Stream, record: Record, before: Snapshot | None, *, is_checked: bool
    ) -> Snapshot | None:
        """The snapshot of a record, after comparing it with the one before."""
        if before is None:
            return snapshot_of(record, stream) if record.is_whole else None
        after = before.advance(record)
        if is_checked:
            self._check_chain(before, record)
            self._check_types(before, record, after)
        return after

    def _check_chain(self, before: Snapshot, record: Record) -> None:
        stream, seq = before.stream, record.seq
        if record.parent != before.commit:
            self._report(stream, seq, f"its parent is {record.parent}, not {before.commit}")
        if record.created_at <= before.created_at:
            self._report(stream, seq, "it is not younger than its parent")

    def _check_merged(self, stream: Stream, seq: int, merged: CommitRef) -> None:
        found = self._read(Stream(merged.stream, merged.branch), merged.seq)
        is_gone = isinstance(found, CorruptObjectError) and found.reason == _ABSENT
        if is_gone and self._may_be_collected(merged):
            return
        if not (isinstance(found, Record) and found.commit == merged.commit):
            where = layout.build_record_path(merged.stream, merged.seq)
            self._report(stream, seq, f"it merges commit {merged.commit}, which is not at {where}")

    def _may_be_collected(self, ref: CommitRef) -> bool:
        if ref.stream in self._lines:
            return not self._is_kept(ref)
        named = partial(was_named, self._objects, ref.branch, ref.stream)
        return bool(self._problems.attempt("branch", ref.branch, named))

    def _check_types(self, before: Snapshot, record: Record, after: Snapshot) -> None:
        """The types a record pins are those of the record before it, but for what it says."""
        stream, seq = before.stream, record.seq
        gone = {*record.dropped, *record.renamed}
        expected = (set(before.pins) - gone) | {*record.registered, *record.renamed.values()}
        for type_key in sorted(expected ^ set(after.pins)):
            verb = "pins" if type_key in after.pins else "does not pin"
            self._report(stream, seq, f"it {verb} {type_key}, against what it says")
        for type_key in sorted(set(record.changes) - set(after.pins)):
            self._report(stream, seq, f"it changes {type_key}, which does not exist")
        if record.schema == before.schema:
            for type_key in _find_moved_types(before.pins, after.pins) - set(record.changes):
                message = f"it moves the table of {type_key} without a change set"
                self._report(stream, seq, message)
        for type_key in _find_lowered_types(before.pins, after.pins):
            self._report(stream, seq, f"the highest fragment id of {type_key} is below that before")

    def _check_schemas(self, walked: WalkedStream) -> None:
        """Every snapshot pins a table for each type of its schema, and no other."""
        for seq, snapshot in sorted(walked.snapshots.items()):
            types = self._schemas.list_type_keys(snapshot.schema)
            for type_key in sorted(() if types is None else types ^ set(snapshot.pins)):
                verb = "has no table" if type_key not in snapshot.pins else "is not in the schema"
                self._report(walked.stream, seq, f"{type_key} {verb}")

    def _check_checkpoints(self, walked: WalkedStream) -> None:
        stream = walked.stream
        for entry in self._objects.list(layout.build_checkpoint_folder(stream.id)):
            seq = layout.parse_checkpoint_path(entry.path)
            data = self._objects.get(entry.path)
            if seq is None or data is None:
                continue
            kept = self._decode_checkpoint(stream, seq, data)
            folded = walked.base if seq == stream.first_seq - 1 else walked.snapshots.get(seq)
            if kept is not None and folded is not None and kept != folded:
                message = "it is not what the records give; it is derived and can be rebuilt"
                self._problems.add("checkpoint", entry.path, message)

    def _decode_checkpoint(self, stream: Stream, seq: int, data: bytes) -> Snapshot | None:
        """The snapshot in a checkpoint; None for a torn one, which is harmless."""
        try:
            return decode_checkpoint(stream, seq, data)
        except (CorruptObjectError, FormatTooNewError) as error:
            self._add_notice("checkpoint", layout.build_checkpoint_path(stream.id, seq), error)
            return None

    def _add_notice(
        self, kind: str, path: str, error: CorruptObjectError | FormatTooNewError
    ) -> None:
        if isinstance(error, CorruptObjectError):
            message = f"is damaged; it is derived and ignored ({error.reason})"
        else:
            message = "is of a newer program; it is derived and ignored"
        self._problems.add_notice(kind, path, message)

    def _report(self, stream: Stream, seq: int, message: str) -> None:
        self._problems.add("record", layout.build_record_path(stream.id, seq), message)


def _find_lowered_types(before: Mapping[str, Pin], after: Mapping[str, Pin]) -> list[str]:
    """The types whose next version might use a fragment id again."""
    highest = {pin.path: pin.high_water for pin in before.values()}
    return sorted(
        key for key, pin in after.items() if pin.high_water < highest.get(pin.path, pin.high_water)
    )


def _find_moved_types(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    return {key for key, pin in after.items() if key in before and before[key] != pin}


def report_future_stamps(
    stream_id: str, records: Mapping[int, Record], stored: Mapping[int, float], problems: Problems
) -> None:
    """Name the first commit of a stream that is stamped later than it was stored.

    Times of the store are s since 1970, and 0 where it does not say them.
    """
    now = time.time()
    ahead = {
        seq: lead
        for seq, record in sorted(records.items())
        if record.made_at is None
        and (lead := record.created_at / 1_000_000 - min(stored.get(seq) or now, now)) > AHEAD_S_MAX
    }
    if not ahead:
        return
    first, lead = next(iter(ahead.items()))
    others = f", and so are {len(ahead) - 1} after it" if len(ahead) > 1 else ""
    message = (
        f"is commit {records[first].commit}, stamped {_format_span(lead)}"
        f" after it was stored{others}:"
        " a clock was wrong; commits made from now on say their own time and are found by it"
    )
    problems.add_notice("clock", layout.build_record_path(stream_id, first), message)


def _format_span(seconds: float) -> str:
    days = timedelta(seconds=seconds).days
    return f"{days} days" if days else f"{seconds / 3600:.1f} hours"

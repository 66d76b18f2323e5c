"""The records of a stream: contiguous, chained, and folded into what readers see."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from omnigraph.engine.checks.problems import Problems, is_interrupt
from omnigraph.engine.checks.schemas import SchemaCheck
from omnigraph.errors import CorruptObject, FormatTooNew, OmnigraphError
from omnigraph.ids import ulid_milliseconds
from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.versioning.codec import decode_entry
from omnigraph.versioning.fields import read_fields
from omnigraph.versioning.record import (
    GENESIS_SEQ,
    Close,
    CommitRef,
    LogEntry,
    Record,
    Stream,
)
from omnigraph.versioning.snapshot import Snapshot, decode_checkpoint, snapshot_of

_READERS: Final = 8


@dataclass(frozen=True, slots=True)
class Line:
    """A stream to be checked; `needed` is the highest seq that a live branch started from.

    Of the stream of a deleted branch, only what is needed is looked at.
    """

    stream: Stream
    is_live: bool
    needed: int = -1


@dataclass(slots=True)
class Walked:
    """What was found along a stream: its records, and the snapshot behind each by its seq."""

    stream: Stream
    base: Snapshot | None
    records: dict[int, Record] = field(default_factory=dict)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)

    @property
    def head(self) -> Snapshot | None:
        """The newest snapshot of the stream that could be made out."""
        return self.snapshots[max(self.snapshots)] if self.snapshots else self.base

    def before(self, seq: int) -> Snapshot | None:
        """The snapshot that a record was made on."""
        return self.base if seq == self.stream.first_seq else self.snapshots.get(seq - 1)


def lines_of(streams: Collection[Stream]) -> list[Line]:
    """Every stream that live branches need, those they started from first."""
    lines = {stream.id: Line(stream, is_live=True) for stream in streams}
    for stream in streams:
        for origin in stream.origins:
            dead = Line(stream.owner(origin.seq), is_live=False)
            known = lines.get(origin.stream, dead)
            lines[origin.stream] = replace(known, needed=max(known.needed, origin.seq))
    return sorted(lines.values(), key=lambda line: len(line.stream.origins))


class StreamCheck:
    """Walks along streams, in the order of `lines_of`."""

    def __init__(self, objects: Objects, schemas: SchemaCheck, problems: Problems) -> None:
        self._objects = objects
        self._schemas = schemas
        self._problems = problems
        self._walked: dict[str, Walked] = {}

    def walk(self, line: Line) -> Walked:
        """Read and fold all records of a stream, and report what does not fit."""
        stream = line.stream
        # First of all: a writer at work may move the end of the stream, but never below its hint.
        hinted = self._hinted(stream)
        seqs = self._listed(line)
        walked = self._walked[stream.id] = Walked(stream, self._base(stream))
        self._check_extent(line, seqs, hinted)
        is_closed = False
        for seq, entry in zip(seqs, self._read_all(stream, seqs), strict=True):
            if is_closed:
                self._report(stream, seq, "it follows the end of the stream")
            is_closed = is_closed or isinstance(entry, Close)
            if isinstance(entry, Record):
                walked.records[seq] = entry
                if (after := self._after(walked, entry)) is not None:
                    walked.snapshots[seq] = after
        self._check_schemas(walked)
        self._check_checkpoints(walked)
        return walked

    def _base(self, stream: Stream) -> Snapshot | None:
        """The snapshot that a stream started from, as its parent's records tell it."""
        if not stream.origins:
            return None
        origin = stream.origins[0]
        parent = self._walked.get(origin.stream)
        found = parent.snapshots.get(origin.seq) if parent else None
        if found is None:
            where = layout.record(origin.stream, origin.seq)
            message = f"branch '{stream.branch}' starts from this record, and it cannot be read"
            self._problems.add("branch", where, message)
            return None
        if found.commit != origin.commit:
            where = layout.record(origin.stream, origin.seq)
            message = f"branch '{stream.branch}' starts from commit {origin.commit}, not from it"
            self._problems.add("branch", where, message)
        return replace(found, stream=stream)

    # ---- what is there ----

    def _listed(self, line: Line) -> list[int]:
        paths = self._objects.list(layout.stream_folder(line.stream.id))
        seqs = (layout.seq_of_record(entry.path) for entry in paths)
        return [seq for seq in seqs if seq is not None and (line.is_live or seq <= line.needed)]

    def _check_extent(self, line: Line, seqs: list[int], hinted: int | None) -> None:
        stream = line.stream
        first = stream.first_seq
        # A graph has a first record; a branch may have no record of its own.
        last = max(seqs, default=first - 1 if stream.origins else first)
        for seq in sorted(set(range(first, max(last, line.needed) + 1)) - set(seqs)):
            self._report(stream, seq, "it is missing")
        for seq in seqs:
            if seq < first:
                self._report(stream, seq, f"the stream starts at {first}")
        if hinted is not None and hinted > last and line.is_live:
            message = f"it names version {hinted}, and the newest record is {last}"
            self._problems.add("hint", layout.hint(stream.id), message)

    def _hinted(self, stream: Stream) -> int | None:
        """Where the hint says the stream ends; a torn one says nothing, which is no problem."""
        path = layout.hint(stream.id)
        data = self._problems.attempt("hint", path, lambda: self._objects.get(path))
        try:
            return None if data is None else read_fields(path, data).integer("seq")
        except (CorruptObject, FormatTooNew) as error:
            self._notice("hint", path, error)
            return None

    def _read_all(self, stream: Stream, seqs: list[int]) -> Iterator[LogEntry | None]:
        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            found = list(readers.map(lambda seq: self._read(stream, seq), seqs))
        for seq, entry in zip(seqs, found, strict=True):
            if isinstance(entry, OmnigraphError):
                reason = entry.reason if isinstance(entry, CorruptObject) else entry.message
                self._report(stream, seq, reason)
                yield None
            else:
                yield entry

    def _read(self, stream: Stream, seq: int) -> LogEntry | OmnigraphError:
        path = layout.record(stream.id, seq)
        try:
            data = self._objects.get(path)
            if data is None:
                return CorruptObject(path, "it was listed, and it is absent")
            return decode_entry(stream.id, seq, data)
        except OmnigraphError as error:
            if is_interrupt(error):
                raise
            return error

    # ---- how it fits ----

    def _after(self, walked: Walked, record: Record) -> Snapshot | None:
        """The snapshot behind a record, after comparing it with the one before."""
        stream, seq, before = walked.stream, record.seq, walked.before(record.seq)
        if record.branch != stream.branch:
            self._report(stream, seq, f"it is of branch '{record.branch}', not '{stream.branch}'")
        if ulid_milliseconds(record.commit) != record.created_at // 1000:
            self._report(stream, seq, f"commit {record.commit} does not carry its time")
        if record.merged is not None:
            self._check_merged(stream, seq, record.merged)
        if before is None:
            if seq == GENESIS_SEQ and record.parent is not None:
                self._report(stream, seq, "the first record of a graph has no parent")
            return snapshot_of(record, stream) if record.is_whole else None
        self._check_chain(before, record)
        after = before.after(record)
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
        if not (isinstance(found, Record) and found.commit == merged.commit):
            where = layout.record(merged.stream, merged.seq)
            self._report(stream, seq, f"it merges commit {merged.commit}, which is not at {where}")

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
            for type_key in _moved(before.pins, after.pins) - set(record.changes):
                message = f"it moves the table of {type_key} without a change set"
                self._report(stream, seq, message)

    def _check_schemas(self, walked: Walked) -> None:
        """Every snapshot pins a table for each type of its schema, and no other."""
        for seq, snapshot in sorted(walked.snapshots.items()):
            types = self._schemas.types(snapshot.schema)
            for type_key in sorted(() if types is None else types ^ set(snapshot.pins)):
                verb = "has no table" if type_key not in snapshot.pins else "is not in the schema"
                self._report(walked.stream, seq, f"{type_key} {verb}")

    def _check_checkpoints(self, walked: Walked) -> None:
        stream = walked.stream
        for entry in self._objects.list(layout.checkpoint_folder(stream.id)):
            seq = layout.seq_of_checkpoint(entry.path)
            data = self._objects.get(entry.path)
            if seq is None or data is None:
                continue
            kept = self._decoded(stream, seq, data)
            folded = walked.base if seq == stream.first_seq - 1 else walked.snapshots.get(seq)
            if kept is not None and folded is not None and kept != folded:
                message = "it is not what the records give; it is derived and can be rebuilt"
                self._problems.add("checkpoint", entry.path, message)

    def _decoded(self, stream: Stream, seq: int, data: bytes) -> Snapshot | None:
        """The snapshot in a checkpoint; a torn one is as good as none, which is no problem."""
        try:
            return decode_checkpoint(stream, seq, data)
        except (CorruptObject, FormatTooNew) as error:
            self._notice("checkpoint", layout.checkpoint(stream.id, seq), error)
            return None

    def _notice(self, kind: str, path: str, error: CorruptObject | FormatTooNew) -> None:
        if isinstance(error, CorruptObject):
            message = f"is damaged; it is derived and ignored ({error.reason})"
        else:
            message = "is of a newer program; it is derived and ignored"
        self._problems.notice(kind, path, message)

    def _report(self, stream: Stream, seq: int, message: str) -> None:
        self._problems.add("record", layout.record(stream.id, seq), message)


def _moved(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    return {key for key, pin in after.items() if key in before and before[key] != pin}

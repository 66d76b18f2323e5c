"""The plan of a collection: every commit that is kept, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Protocol

from omnigraph.errors import CommitNotFoundError, CorruptObjectError, StorageError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.table_manifests import build_manifest_path
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.first_parents import RecordLocation
from omnigraph.versioning.gc.gc_roots import BranchLine, RootReader, Roots
from omnigraph.versioning.gc.merge_ancestry import compute_ancestry
from omnigraph.versioning.log import Log
from omnigraph.versioning.log_snapshot import Snapshot, encode_checkpoint
from omnigraph.versioning.record import GENESIS_SEQ, MAIN, Bulk, Record, Spilled, Stream

_PAGE: Final = 1024

# Reading a version waits for the store most of the time.
_READERS: Final = 8
_TRACE_PAGE: Final = 4096


@dataclass(slots=True)
class Plan:
    """What is kept: objects by path, and table versions by pin.

    `pins` must be readable; `bases` may be gone already, and are kept where they are not.
    """

    roots: Roots
    paths: set[str] = field(default_factory=set)
    pins: dict[Pin, str] = field(default_factory=dict)
    bases: dict[Pin, str] = field(default_factory=dict)
    # The streams of kept records, by id.
    streams: dict[str, Stream] = field(default_factory=dict)
    # What the fold of later records starts from, where the older records go.
    checkpoints: list[Snapshot] = field(default_factory=list)


class Planner:
    """Makes plans for one graph."""

    def __init__(self, log: Log, branches: Branches, lines: RootReader) -> None:
        self.log = log
        self._branches = branches
        self.lines = lines

    def plan(self, roots: Roots) -> Plan:
        """What is kept, given what holds commits."""
        plan = Plan(roots)
        records: set[RecordLocation] = {(MAIN.id, GENESIS_SEQ)}
        for line in roots.lines:
            records.update(self._keep_line(plan, line))
        plan.paths.update(lease.path for lease in roots.leases)
        # What a lease needs is gone where it was released before: then its work will be refused.
        for kept, pins in ((roots.tags, plan.pins), (roots.leases, plan.bases)):
            for snapshot in (each.snapshot for each in kept):
                records.add((snapshot.ref.stream, snapshot.seq))
                pins.update(_list_pins(snapshot))
                _add_stream(plan, snapshot.stream)
        records.update(self._keep_ancestry(plan))
        self._keep_records(plan, records)
        self._keep_streams(plan, {stream_id for stream_id, _ in records})
        self._plan_checkpoints(plan, records)
        return plan

    def _keep_line(self, plan: Plan, line: BranchLine) -> Iterator[RecordLocation]:
        stream = line.stream
        _add_stream(plan, stream)
        pins = plan.pins if line.is_live else plan.bases
        for snapshot in self.lines.read_snapshots(line):
            pins.update(_list_pins(snapshot))
        for seq in line.seqs:
            yield stream.owner_of(seq).id, seq
        if line.head.is_closed:
            yield stream.id, line.head.snapshot.seq + 1
        if stream.origins:
            base = self._find_snapshot(stream, stream.first_seq - 1)
            plan.bases.update(() if base is None else _list_pins(base))
            yield stream.origins[0].stream, stream.origins[0].seq

    def _keep_ancestry(self, plan: Plan) -> frozenset[RecordLocation]:
        heads = [line.head.snapshot for line in plan.roots.lines if line.is_mergeable]
        found = compute_ancestry(heads, self.log, self._branches)
        for stream in found.streams:
            _add_stream(plan, stream)
        for stream, seq in found.bases:
            base = self._find_snapshot(stream, seq)
            plan.bases.update(() if base is None else _list_pins(base))
        return found.records

    def _find_snapshot(self, stream: Stream, seq: int) -> Snapshot | None:
        """A snapshot that may have been released."""
        try:
            return self.log.read_snapshot(stream, seq)
        except (CommitNotFoundError, CorruptObjectError):
            return None

    def _keep_records(self, plan: Plan, places: set[RecordLocation]) -> None:
        """The records, the checkpoints beside them, and the change sets that they name."""
        ordered = sorted(places)
        for start in range(0, len(ordered), _PAGE):
            page = ordered[start : start + _PAGE]
            for entry in self.log.read_many(page):
                if isinstance(entry, Record):
                    plan.paths.update(_list_change_set_files(entry))
        plan.paths.update(layout.build_record_path(*place) for place in ordered)
        plan.paths.update(layout.build_checkpoint_path(*place) for place in ordered)

    def _keep_streams(self, plan: Plan, stream_ids: set[str]) -> None:
        """What a branch has beside records: where it started, and where it ends."""
        lines = {line.stream.id: line.stream for line in plan.roots.lines}
        plan.paths.update(map(layout.build_hint_path, lines))
        for stream_id in stream_ids | lines.keys():
            stream = plan.streams.get(stream_id)
            if stream is not None:
                plan.paths.add(
                    layout.build_checkpoint_path(stream_id, max(stream.first_seq - 1, 0))
                )

    def _plan_checkpoints(self, plan: Plan, places: set[RecordLocation]) -> None:
        """Records that later ones are folded from go: a checkpoint has to take their place."""
        for stream_id, seq in sorted(places):
            stream = plan.streams.get(stream_id)
            if stream is None or seq <= stream.first_seq or (stream_id, seq - 1) in places:
                continue
            record = self.log.read(stream_id, seq)
            if isinstance(record, Record) and not record.is_whole:
                snapshot = self._find_snapshot(stream, seq)
                plan.checkpoints.extend([] if snapshot is None else [snapshot])


def put_checkpoint(log: Log, snapshot: Snapshot) -> None:
    """Store the fold that later records start from, as durably as a record."""
    path = layout.build_checkpoint_path(snapshot.stream.id, snapshot.seq)
    data = encode_checkpoint(snapshot)
    if not log.objects.put_new(path, data) and log.objects.get(path) != data:
        log.objects.delete([path])
        log.objects.put_new(path, data)


def _add_stream(plan: Plan, stream: Stream) -> None:
    """Remember a stream and those it started from."""
    plan.streams[stream.id] = stream
    for origin in stream.origins:
        plan.streams.setdefault(origin.stream, stream.owner_of(origin.seq))


def _list_pins(snapshot: Snapshot) -> Iterable[tuple[Pin, str]]:
    return ((pin, type_key) for type_key, pin in snapshot.pins.items())


def _list_change_set_files(record: Record) -> Iterator[str]:
    """What the change sets of a record are read from."""
    for type_key, change in record.changes.items():
        pin = record.pins.get(type_key)
        if isinstance(change, Spilled):
            yield change.file
        elif isinstance(change, Bulk) and not change.replaces and pin is not None:
            # Its rows are read from its files, by the version that it made.
            yield build_manifest_path(pin)
            yield from change.files


class TracedTables(Protocol):
    """What a trace asks of tables."""

    def list_references(self, pin: Pin) -> set[str]:
        """Every object a version needs; a path with a closing slash means all below it."""


class Trace:
    """The objects that are kept; a path may also be kept by the folder it is in."""

    def __init__(self, tables: TracedTables, objects: Objects) -> None:
        self._tables = tables
        self._objects = objects
        self._paths: set[str] = set()
        self._read: set[Pin] = set()

    def is_kept(self, path: str) -> bool:
        """Whether an object is kept."""
        return path in self._paths or _folder_of(path) in self._paths

    def add(self, plan: Plan) -> None:
        """Keep what a plan keeps; a version that should stay and cannot be read is an error."""
        self._paths |= plan.paths
        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            for pin, found in self._read_references(plan.pins, readers):
                if isinstance(found, StorageError):
                    raise CorruptObjectError(
                        pin.path,
                        f"version {pin.version} is kept and cannot be read: {found.reason}",
                        hint="run `omnigraph check`; nothing was removed",
                    ) from found
                self._paths |= found
            for pin, found in self._read_references(plan.bases, readers):
                if not isinstance(found, StorageError):
                    self._paths |= found
                elif self._objects.get(build_manifest_path(pin)) is not None:
                    raise found

    def _read_references(
        self, pins: Iterable[Pin], readers: ThreadPoolExecutor
    ) -> Iterator[tuple[Pin, set[str] | StorageError]]:
        def references(pin: Pin) -> set[str] | StorageError:
            try:
                return self._tables.list_references(pin)
            except StorageError as error:
                return error

        wanted = [pin for pin in pins if pin not in self._read]
        self._read.update(wanted)
        # A page at a time: all answers at once would be most of the memory that is needed.
        for start in range(0, len(wanted), _TRACE_PAGE):
            page = wanted[start : start + _TRACE_PAGE]
            yield from zip(page, readers.map(references, page), strict=True)


def _folder_of(path: str) -> str:
    """The folder of an index or of the large blobs of a data file, as references name it."""
    parts = path.split("/", 4)
    return "/".join(parts[:4]) + "/" if len(parts) == 5 and parts[0] == layout.TABLES else ""

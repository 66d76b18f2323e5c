"""The collector: lists stored objects, plans what stays, traces references and removes the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import count
from typing import Final

from omnigraph.errors import CommitNotFoundError, CorruptObjectError, StorageError, StorageFullError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.disk_reserve import (
    compute_reserve_bytes,
    keep_reserve,
    release_reserve,
)
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.local_store import list_temporaries, remove_temporaries
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.committer import Committer
from omnigraph.versioning.effects import TableStore
from omnigraph.versioning.gc.gc_plan import Plan, Planner, Trace, TracedTables, put_checkpoint
from omnigraph.versioning.gc.gc_roots import KEEP_ALL, Policy, RootReader, Roots, count_released
from omnigraph.versioning.log import Log
from omnigraph.versioning.record import Record
from omnigraph.versioning.retention_floors import Floors
from omnigraph.versioning.sweeps import is_before
from omnigraph.versioning.transaction import Settings

# Collections that others finish during this one; each of them releases more.
ATTEMPTS_MAX: Final = 16
_SECOND: Final = 1_000_000


class _ObjectKind(StrEnum):
    """What can be collected."""

    RECORD = "records"
    CHECKPOINT = "checkpoints"
    STREAM = "streams"
    CHANGE_SET = "change sets"
    PROBE = "probes"
    STAGED = "staged files"
    TEMPORARY = "temporary files"
    HOLD = "holds"
    DATA = "data files"
    VERSION = "versions"
    DELETION = "deletion files"
    INDEX = "index files"
    TRANSACTION = "transactions"


# What a write that is still under way may have written, and may yet refer to in its record.
_PUBLISHABLE: Final = frozenset(
    {
        _ObjectKind.CHANGE_SET,
        _ObjectKind.DATA,
        _ObjectKind.VERSION,
        _ObjectKind.DELETION,
        _ObjectKind.INDEX,
    }
)
# What no record can ever refer to.
_UNREFERENCED: Final = frozenset({_ObjectKind.PROBE, _ObjectKind.STAGED, _ObjectKind.TEMPORARY})
# What Lance keeps in a table, by folder. Anything else it may come to keep is left alone.
_OF_TABLES: Final = {
    "data": _ObjectKind.DATA,
    "_versions": _ObjectKind.VERSION,
    "_deletions": _ObjectKind.DELETION,
    "_indices": _ObjectKind.INDEX,
    "_transactions": _ObjectKind.TRANSACTION,
}


@dataclass(frozen=True, slots=True)
class _StoredObject:
    """An object that could be collected; `table` is the path of the table it belongs to."""

    path: str
    size: int
    kind: _ObjectKind
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Swept:
    """What went of one table, or of everything beside the tables if `table` is None.

    `type_key` is None for a table that no kept commit has. `objects` counts them by kind, and
    `error` is why they, or some of them, are still there.
    """

    table: str | None
    type_key: str | None
    objects: Mapping[str, int]
    bytes: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection removed, or would remove.

    `oldest` is the version of the oldest commit that is kept of each live branch, and `let_go`
    counts the commits of live branches that can no longer be read, but could before; one that
    several branches had counts once.
    """

    swept: tuple[Swept, ...]
    oldest: Mapping[str, int] = field(default_factory=dict)
    released_commits: int = 0


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What was stored before a cutoff, and then, what held commits."""

    cutoff: int
    stored: list[_StoredObject]
    committer: Committer
    planner: Planner
    before: Roots

    def is_overtaken(self) -> bool:
        """Whether others have released commits since."""
        return _summarize_roots(self.planner.lines.read_roots(KEEP_ALL)) != _summarize_roots(
            self.before
        )


@dataclass(frozen=True, slots=True)
class _FreedSpace:
    """What an attempt on a full disk removed, and what held commits before it."""

    removed: list[_StoredObject]
    before: Roots


class Collector:
    """Collects one graph."""

    def __init__(
        self,
        objects: Objects,
        tables: TableStore,
        *,
        tracer: Callable[[], TracedTables],
        settings: Settings,
    ) -> None:
        self._objects = objects
        self._tables = tables
        # Made for one collection: what it opens must not push out what queries have open.
        self._tracer = tracer
        self._settings = settings

    def collect(
        self, policy: Policy = KEEP_ALL, *, is_dry: bool = True, grace_s: float | None = None
    ) -> Collected:
        """Remove what the policy releases and what is unreferenced; a dry run only reports."""
        grace_s = self._settings.grace_s if grace_s is None else grace_s
        room: _FreedSpace | None = None
        for number in count(1):
            attempt = self._begin(policy, is_dry=is_dry, grace_s=grace_s)
            try:
                plan, kept = self._decide(attempt, is_dry=is_dry)
            except (CorruptObjectError, CommitNotFoundError):
                # Another collector may have released what was about to be kept here.
                if number == ATTEMPTS_MAX or not attempt.is_overtaken():
                    raise
            except StorageFullError as error:
                if room is not None:
                    raise _build_no_space_error(error, attempt) from error
                room = self._make_room(attempt)
            else:
                return self._finish(attempt, room, plan, kept, is_dry=is_dry)
        raise AssertionError("the last attempt raises or returns")

    def _begin(self, policy: Policy, *, is_dry: bool, grace_s: float) -> _Attempt:
        """What there is, and what holds commits."""
        started = self._settings.now_us()
        cutoff = max(0, started - int(grace_s * _SECOND))
        # Listed before any root is read: what is published from here on is not in this list,
        # or is referred to by a root.
        stored = _list_before(self._objects, cutoff)
        # Nothing remembered: the roots are those that are stored.
        log = Log(self._objects)
        committer = Committer(log, self._tables, self._settings)
        branches = Branches(committer)
        lines = RootReader(log, branches, started_us=started, grace_s=grace_s)
        expired = [lease for lease in branches.leases.list() if lease.created_at < cutoff]
        if not is_dry:
            # Ended before anything is released: a write that finds its lease can rely on it.
            branches.leases.end(expired)
        before = lines.read_roots(policy, ended={lease.path for lease in expired})
        return _Attempt(cutoff, stored, committer, Planner(log, branches, lines), before)

    def _decide(self, attempt: _Attempt, *, is_dry: bool) -> tuple[Plan, Trace]:
        """What is kept. Unless the run is dry, what is not kept is released."""
        plan, kept = self._plan_kept(attempt.before, attempt.planner)
        if not is_dry and self._release_commits(plan, kept, attempt):
            # Branches, tags and commits that came meanwhile; from now on nothing can
            # refer to what is removed.
            plan = attempt.planner.plan(attempt.planner.lines.read_roots(KEEP_ALL))
            kept.add(plan)
        return plan, kept

    def _make_room(self, attempt: _Attempt) -> _FreedSpace:
        """Give up the reserve, and what no commit can ever refer to: that needs no statement."""
        release_reserve(self._objects)
        removed = [each for each in attempt.stored if each.kind in _UNREFERENCED]
        self._remove(removed)
        return _FreedSpace(removed, attempt.before)

    def _finish(
        self, attempt: _Attempt, room: _FreedSpace | None, plan: Plan, kept: Trace, *, is_dry: bool
    ) -> Collected:
        garbage = [each for each in attempt.stored if not kept.is_kept(each.path)]
        before = attempt.before
        if room is not None:
            # What the attempt on the full disk removed and released belongs to the report.
            garbage, before = room.removed + garbage, room.before
        swept = tuple(self._sweep(garbage, plan, is_dry=is_dry))
        collected = _build_report(swept, before, plan.roots)
        if not is_dry:
            self._move_past_floors(plan.roots)
            keep_reserve(self._objects, branches=len(collected.oldest))
        return collected

    def _move_past_floors(self, roots: Roots) -> None:
        """Leave each branch one floor to list. Last, because it takes room on a full disk."""
        floors = Floors(self._objects)
        # Where it fails, the next clean-up does it.
        with suppress(StorageError):
            for line in roots.lines:
                floors.move_past(line.stream.id)

    def _plan_kept(self, roots: Roots, planner: Planner) -> tuple[Plan, Trace]:
        """What is kept. Damage is found here, before anything is released."""
        plan = planner.plan(roots)
        kept = Trace(self._tracer(), self._objects)
        kept.add(plan)
        return plan, kept

    def _release_commits(self, plan: Plan, kept: Trace, attempt: _Attempt) -> bool:
        """State what is released, and fence off the writes that may need what is to be removed.

        Whether there is any. A crash leaves commits that cannot be read, and empty commits.
        """
        stored, committer = attempt.stored, attempt.committer
        is_raised = _raise_floors(plan, committer.log, stored)
        is_fenced = any(
            each.kind in _PUBLISHABLE and not kept.is_kept(each.path) for each in stored
        )
        if is_fenced:
            committer.sweeps.declare(attempt.cutoff)
            for line in plan.roots.lines:
                if line.is_live:
                    committer.fence(line.stream)
        return is_raised or is_fenced

    def _sweep(self, garbage: Sequence[_StoredObject], plan: Plan, *, is_dry: bool) -> list[Swept]:
        by_table: dict[str | None, list[_StoredObject]] = {}
        for each in garbage:
            by_table.setdefault(each.table, []).append(each)
        names = {pin.path: type_key for pin, type_key in [*plan.bases.items(), *plan.pins.items()]}
        return [
            _build_swept(table, None if table is None else names.get(table), found, error)
            for table, found in sorted(by_table.items(), key=lambda item: item[0] or "")
            for error in [None if is_dry else self._remove(found)]
        ]

    def _remove(self, found: Sequence[_StoredObject]) -> str | None:
        """Remove objects in any order, since nothing refers to them; why it failed, if it did."""
        try:
            self._objects.delete(
                [each.path for each in found if each.kind is not _ObjectKind.TEMPORARY]
            )
            temporary = [each.path for each in found if each.kind is _ObjectKind.TEMPORARY]
            remove_temporaries(self._objects.uri, temporary)
        except StorageError as error:
            return error.message
        return None


def _build_no_space_error(error: StorageFullError, attempt: _Attempt) -> StorageFullError:
    live = sum(line.is_live for line in attempt.before.lines)
    hint = (
        f"free {compute_reserve_bytes(live) // 1024} KiB elsewhere on this disk, and run it again:"
        " a clean-up states what it removes before it does"
    )
    return StorageFullError(error.operation, error.path, error.reason, hint=hint)


def _summarize_roots(roots: Roots) -> tuple[dict[str, int], set[str]]:
    """How far back each branch reached, and the tags."""
    floors = {line.stream.id: line.previous_floor for line in roots.lines if line.is_mergeable}
    return floors, {tag.name for tag in roots.tags}


def _build_report(swept: tuple[Swept, ...], before: Roots, after: Roots) -> Collected:
    return Collected(
        swept=swept,
        oldest={line.stream.branch: line.floor for line in after.lines if line.is_live},
        released_commits=count_released(before.lines, after.lines),
    )


def _raise_floors(plan: Plan, log: Log, stored: Sequence[_StoredObject]) -> bool:
    """State which commits are released; whether there are any."""
    for snapshot in plan.checkpoints:
        put_checkpoint(log, snapshot)
    raised = {
        line.stream.id: line.floor for line in plan.roots.lines if line.floor > line.previous_floor
    }
    raised |= _find_deleted_floors(plan.roots, stored)
    for stream_id, seq in raised.items():
        log.floors.raise_to(stream_id, seq, partial(_read_stored, log, stream_id))
    return bool(raised)


def _read_stored(log: Log, stream_id: str, seqs: range) -> list[Record]:
    stored = log.list_stored_seqs(stream_id, below=seqs.stop)
    entries = log.read_many((stream_id, at) for at in stored if at in seqs)
    return [entry for entry in entries if isinstance(entry, Record)]


def _find_deleted_floors(roots: Roots, stored: Iterable[_StoredObject]) -> dict[str, int]:
    """Floors above everything, for the streams of branches that were deleted before the grace.

    A reader may still have a snapshot of them, and must get an error before files go.
    """
    held = {line.stream.id for line in roots.lines}
    ends: dict[str, int] = {}
    for each in stored:
        seq, stream_id = layout.parse_record_path(each.path), layout.stream_of(each.path)
        if seq is not None and stream_id is not None and stream_id not in held:
            ends[stream_id] = max(seq + 1, ends.get(stream_id, 0))
    return ends


def _build_swept(
    table: str | None, type_key: str | None, found: Sequence[_StoredObject], error: str | None
) -> Swept:
    kinds = Counter(each.kind for each in found)
    return Swept(
        table=table,
        type_key=type_key,
        objects={str(kind): kinds[kind] for kind in _ObjectKind if kinds[kind]},
        bytes=sum(each.size for each in found),
        error=error,
    )


def _list_before(objects: Objects, cutoff_us: int) -> list[_StoredObject]:
    """Every object of a kind that is collected, and that was written before a time (µs)."""
    found = [
        stored
        for folder in _list_folders(objects)
        for entry in objects.list(folder)
        if is_before(entry.modified, cutoff_us) and (stored := _classify_entry(entry)) is not None
    ]
    return found + [
        _StoredObject(entry.path, entry.size, _ObjectKind.TEMPORARY)
        for entry in list_temporaries(objects.uri)
        if is_before(entry.modified, cutoff_us)
    ]


def _list_folders(objects: Objects) -> Iterable[str]:
    # Tables in memory are Lance's own and cannot be listed.
    is_memory = objects.uri.startswith("memory://")
    return (layout.MANIFEST,) if is_memory else (layout.MANIFEST, layout.TABLES)


def _classify_entry(entry: Entry) -> _StoredObject | None:
    path = entry.path
    if path.startswith(f"{layout.TABLES}/"):
        parts = path.split("/", 3)
        kind = _OF_TABLES.get(parts[2]) if len(parts) == 4 else None
        return None if kind is None else _StoredObject(path, entry.size, kind, "/".join(parts[:2]))
    own = _classify_manifest_object(path)
    return None if own is None else _StoredObject(path, entry.size, own)


def _classify_manifest_object(path: str) -> _ObjectKind | None:
    """The kind of an object beside the tables; None for one that stays for good."""
    if path.startswith(f"{layout.CHANGES}/"):
        return _ObjectKind.CHANGE_SET
    if path.startswith(f"{layout.PROBES}/"):
        return _ObjectKind.PROBE
    if path.startswith(f"{layout.STAGING}/"):
        return _ObjectKind.STAGED
    if path.startswith(f"{layout.LEASES}/"):
        return _ObjectKind.HOLD
    stream = layout.stream_of(path)
    if stream is None:
        return None
    if layout.parse_record_path(path) is not None:
        return _ObjectKind.RECORD
    if layout.parse_checkpoint_path(path) is not None:
        return _ObjectKind.CHECKPOINT
    # Floors stay for good: they are how a process that slept for long finds out.
    return _ObjectKind.STREAM if path == layout.build_hint_path(stream) else None

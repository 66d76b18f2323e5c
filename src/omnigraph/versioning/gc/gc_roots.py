"""The roots of a collection: branches and tags, and how far back each of them retains commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final

from omnigraph.errors import (
    BranchGoneError,
    BranchNotFoundError,
    CommitNotFoundError,
    CorruptObjectError,
)
from omnigraph.storage.objects import layout
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.commit_clock import Stamped, find_newest_at
from omnigraph.versioning.log import FLOORS_MAX, Log
from omnigraph.versioning.log_snapshot import Head, Snapshot
from omnigraph.versioning.record import GENESIS_SEQ, Record, Stream
from omnigraph.versioning.retention_floors import Floors
from omnigraph.versioning.retention_roots import Lease
from omnigraph.versioning.tag_events import Tag

_PAGE: Final = 256
_SECOND: Final = 1_000_000


class LineState(Enum):
    """Whether a branch is being created, exists, or was deleted less than the grace ago."""

    BEGUN = auto()
    LIVE = auto()
    DELETED = auto()


@dataclass(frozen=True, slots=True)
class BranchLine:
    """A branch, its newest commit, the oldest one that is kept, and the oldest that was."""

    stream: Stream
    head: Head
    floor: int
    previous_floor: int
    state: LineState

    @property
    def is_live(self) -> bool:
        """Whether the branch has its name."""
        return self.state is LineState.LIVE

    @property
    def is_mergeable(self) -> bool:
        """Whether the branch may be merged: it has its name, or is about to get it."""
        return self.state is not LineState.DELETED

    @property
    def seqs(self) -> range:
        """The kept commits."""
        return range(self.floor, self.head.snapshot.seq + 1)


@dataclass(frozen=True, slots=True)
class Roots:
    """Everything that retains commits."""

    lines: tuple[BranchLine, ...]
    tags: tuple[Tag, ...]
    leases: tuple[Lease, ...] = ()


class RootReader:
    """Reads the roots of a graph, as of now."""

    def __init__(self, log: Log, branches: Branches, *, started_us: int, grace_s: float) -> None:
        self._log = log
        self._branches = branches
        self._floors = Floors(log.objects)
        self._started = started_us
        self._grace = int(grace_s * _SECOND)

    def read_roots(self, policy: Policy, *, ended: Collection[str] = ()) -> Roots:
        """The lines of all branches under a policy, all tags, and all leases but for ended ones."""
        since = self._started - self._grace
        # Before names and heads are read: a lease goes when what was made under it is visible.
        leases = [each for each in self._branches.leases.list() if each.path not in ended]
        lines: list[BranchLine] = []
        named: set[str] = set()
        for stream, is_live in self._branches.list_streams(deleted_since=since):
            named.add(stream.id)
            lines.extend(
                self._list_live_lines(stream, policy)
                if is_live
                else self._find_deleted_line(stream)
            )
        for begun in (lease.stream for lease in leases):
            if begun is not None and begun.id not in named:
                lines.extend(self._find_begun_line(begun, policy))
        tags = self._branches.tags.list(deleted_since=since)
        return Roots(tuple(lines), tuple(tags), tuple(leases))

    def read_snapshots(self, line: BranchLine) -> Iterator[Snapshot]:
        """The snapshots of the kept commits, the oldest first."""
        snapshot = self._log.read_snapshot(line.stream, line.floor)
        yield snapshot
        rest = line.seqs[1:]
        for start in range(0, len(rest), _PAGE):
            page = rest[start : start + _PAGE]
            for seq, record in zip(page, self._read_records(line.stream, page), strict=True):
                if record is None:
                    # Raises what is wrong with it.
                    snapshot = self._log.read_snapshot(line.stream, seq)
                else:
                    snapshot = snapshot.advance(record)
                yield snapshot

    def _read_records(self, stream: Stream, seqs: range) -> list[Record | None]:
        found = self._log.read_many((stream.owner_of(seq).id, seq) for seq in seqs)
        return [entry if isinstance(entry, Record) else None for entry in found]

    def _list_live_lines(self, stream: Stream, policy: Policy) -> list[BranchLine]:
        """The line of a live branch, unless it was deleted and collected since its name was read.

        Another collector may release what is read here: then its floor is a higher one.
        """
        for _ in range(FLOORS_MAX):
            floor = self._floors.read_floor(stream)
            try:
                return [self._build_line(stream, policy, LineState.LIVE)]
            except BranchGoneError:
                # The records of a branch that still has its name are not gone, but damaged.
                if self._is_named(stream):
                    raise
                return []
            except (CommitNotFoundError, CorruptObjectError):
                if self._floors.read_floor(stream) == floor:
                    raise
        raise _build_risen_error(stream)

    def _find_begun_line(self, stream: Stream, policy: Policy) -> list[BranchLine]:
        """The line of a branch that is being created, unless its creation will be refused.

        What cannot be read was released before its lease was put, so its creator finds a floor.
        """
        for _ in range(FLOORS_MAX):
            floor = self._floors.read_floor(stream)
            try:
                line = self._build_line(stream, policy, LineState.BEGUN)
                for _ in self.read_snapshots(line):
                    pass
            except (BranchGoneError, CommitNotFoundError, CorruptObjectError):
                if self._floors.read_floor(stream) == floor:
                    return []
            else:
                return [line]
        raise _build_risen_error(stream)

    def _is_named(self, stream: Stream) -> bool:
        try:
            return self._branches.resolve(stream.branch) == stream
        except BranchNotFoundError:
            return False

    def _build_line(self, stream: Stream, policy: Policy, state: LineState) -> BranchLine:
        head = self._log.read_newest_head(stream)
        kept = self._find_kept_range(stream, head)
        floor = self._compute_floor(stream, kept, policy)
        return BranchLine(stream, head, floor, kept.start, state)

    def _find_deleted_line(self, stream: Stream) -> Iterator[BranchLine]:
        """The line of a deleted branch, unless a run with a shorter grace collected it."""
        try:
            head = self._log.read_newest_head(stream)
            kept = self._find_kept_range(stream, head)
            floor = self._find_current_at(stream, kept, 0.0)
            line = BranchLine(stream, head, floor, kept.start, LineState.DELETED)
            for _ in self.read_snapshots(line):
                pass
        except (BranchGoneError, CommitNotFoundError, CorruptObjectError):
            return
        yield line

    def _find_kept_range(self, stream: Stream, head: Head) -> range:
        last = head.snapshot.seq
        return range(min(self._floors.read_floor(stream), last), last + 1)

    def _compute_floor(self, stream: Stream, kept: range, policy: Policy) -> int:
        if policy.keeps_all:
            return kept.start
        # What was the newest within the grace is what writers build on and readers have open.
        floors = [self._find_current_at(stream, kept, 0.0)]
        if policy.keep is not None:
            floors.append(self._find_nth_newest(stream, kept, max(policy.keep, 1)))
        if policy.older_than_s is not None:
            floors.append(self._find_current_at(stream, kept, policy.older_than_s))
        return max(kept.start, min(floors), GENESIS_SEQ)

    def _find_nth_newest(self, stream: Stream, kept: range, count: int) -> int:
        """The seq of the oldest of so many commits; fences of collectors do not count."""
        for start in range(kept.stop, kept.start, -_PAGE):
            page = range(start - 1, max(start - 1 - _PAGE, kept.start - 1), -1)
            for seq, record in zip(page, self._read_records(stream, page), strict=True):
                count -= record is None or not record.is_fence
                if not count:
                    return seq
        return kept.start

    def _find_current_at(self, stream: Stream, kept: range, age_s: float) -> int:
        """The commit that was the newest before the grace, or so long ago if that is longer."""
        time_us = self._started - max(self._grace, int(age_s * _SECOND))
        return max(find_newest_at(kept, time_us, partial(self._read, stream)), kept.start)

    def _read(self, stream: Stream, seq: int) -> Stamped:
        entry = self._log.read(stream.owner_of(seq).id, seq)
        return entry if isinstance(entry, Record) else self._log.read_snapshot(stream, seq)


def _build_risen_error(stream: Stream) -> CorruptObjectError:
    folder = layout.build_floor_folder(stream.id)
    return CorruptObjectError(folder, f"it rose {FLOORS_MAX} times while the line was read")


def count_released(before: Iterable[BranchLine], after: Iterable[BranchLine]) -> int:
    """How many commits of live branches were kept before and are not any more.

    Branches share the commits they started from: each counts once, and only if no branch keeps it.
    """
    was = {line.stream.id: line.previous_floor for line in before if line.is_live}
    live = [line for line in after if line.is_live]
    kept = [(line.stream, line.seqs) for line in live]
    lost = [(line.stream, range(was.get(line.stream.id, line.floor), line.floor)) for line in live]
    return _count_records([*kept, *lost]) - _count_records(kept)


def _count_records(lines: Iterable[tuple[Stream, range]]) -> int:
    """How many different records some spans of lines are made of."""
    spans: dict[str, list[range]] = {}
    for stream, seqs in lines:
        stop = seqs.stop
        while stop > seqs.start:
            owner = stream.owner_of(stop - 1)
            start = max(owner.first_seq, seqs.start)
            spans.setdefault(owner.id, []).append(range(start, stop))
            stop = start
    return sum(map(_count_distinct, spans.values()))


def _count_distinct(spans: Iterable[range]) -> int:
    found, end = 0, 0
    for span in sorted(spans, key=lambda span: span.start):
        found += max(0, span.stop - max(span.start, end))
        end = max(end, span.stop)
    return found


@dataclass(frozen=True, slots=True)
class Policy:
    """A commit goes when it is not among the newest `keep` and was superseded before `older_than`.

    One bound alone decides alone. Without any, all commits of live branches are kept.
    """

    keep: int | None = None
    older_than_s: float | None = None

    @property
    def keeps_all(self) -> bool:
        """Whether no commit of a live branch goes."""
        return self.keep is None and self.older_than_s is None


KEEP_ALL: Final = Policy()

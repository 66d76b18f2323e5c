"""A transaction: a write as data, with what it depends on and what it requires."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

from omnigraph.storage.objects.object_store import Objects, read_store_time
from omnigraph.versioning.effects import (
    Append,
    Effect,
    Maintain,
    Replace,
)
from omnigraph.versioning.footprint import (
    NOTHING,
    WHOLE,
    Footprint,
    ReadSet,
    unite_footprints,
)
from omnigraph.versioning.log import GRACE_S
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import (
    NO_SIGNATURE,
    Bulk,
    Changed,
    ChangeSet,
    CommitRef,
    Maintenance,
    MergeDecision,
    Signature,
    Spilled,
)

# A large write loses more races than small ones beside it: it goes on losing for so long.
RETRY_S_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class BranchAt:
    """A requirement: the newest commit of the branch, maintenance aside, is this one."""

    commit: str


@dataclass(frozen=True, slots=True)
class Retained:
    """A requirement: commits of other branches, of which the write takes tables, are still kept.

    `check` raises if they are not. A collector states what it releases before it fences the branch.
    """

    check: Callable[[], object]


Requirement: TypeAlias = BranchAt | Retained


@dataclass(frozen=True, slots=True)
class Transaction:
    """A write as data: what it was prepared on, what it does, and what it depends on.

    The ids in `changes` belong to the footprint without being repeated there; `schema` is set by
    a write that changes the schema, and `is_fence` by a collector, which changes nothing.
    """

    snapshot: Snapshot
    effects: tuple[Effect, ...]
    changes: Mapping[str, ChangeSet]
    footprint: Footprint = field(default_factory=dict)
    requires: tuple[Requirement, ...] = ()
    schema: str | None = None
    merged: CommitRef | None = None
    preferred: Mapping[str, str] = field(default_factory=dict)
    decisions: tuple[MergeDecision, ...] = ()
    signature: Signature = NO_SIGNATURE
    members: int = 1
    is_fence: bool = False
    # Prepares the write again where only commits that filled vectors met it.
    after_fills: Callable[[Snapshot], Transaction | None] | None = None

    @property
    def full_footprint(self) -> dict[str, ReadSet]:
        """Everything the write depends on: what it read, what it writes, what it replaces."""
        written = {key: _reads_of(change) for key, change in self.changes.items()}
        # A bulk write that lists the ids it looked up is as precise as a small one.
        precise = {key for key, reads in self.footprint.items() if len(reads.ids)}
        if precise:
            written = {k: r for k, r in written.items() if not (r.is_whole and k in precise)}
        whole = {effect.type_key: WHOLE for effect in self.effects if is_exclusive(effect)}
        return unite_footprints([self.footprint, written, whole])


# Prepares a write again on a newer snapshot; None when nothing is left to write.
PrepareAgain: TypeAlias = Callable[[Snapshot], Transaction | None]


@dataclass(frozen=True, slots=True)
class Settings:
    """What tests replace: clocks in microseconds, pauses, and the grace of the collector."""

    now_us: Callable[[], int] = lambda: time.time_ns() // 1000
    read_store_time: Callable[[Objects], int | None] = read_store_time
    pause: Callable[[float], None] = time.sleep
    grace_s: float = GRACE_S
    retry_s_max: float = RETRY_S_MAX
    executor: Executor | None = None


def is_exclusive(effect: Effect) -> bool:
    """Whether an effect excludes every other change of its type."""
    return not isinstance(effect, Append | Replace | Maintain)


def _reads_of(change: ChangeSet) -> ReadSet:
    """What writing a change set depends on: no other write may touch the same entities."""
    match change:
        case Changed():
            return ReadSet(ids=change.ids, existing=change.updated.union(change.deleted))
        case Spilled() | Bulk():
            return WHOLE
        case Maintenance():
            return NOTHING
        case _:
            assert_never(change)

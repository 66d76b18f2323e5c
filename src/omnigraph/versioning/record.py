"""A record: the one immutable object that makes a commit visible, on all tables at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, TypeAlias

from omnigraph.ids import generate_ulid
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.id_sets import EMPTY, IdSet
from omnigraph.versioning.json_fields import require_storable_text

MAIN_BRANCH: Final = "main"
# The first record of a graph; it has no parent.
GENESIS_SEQ: Final = 0


@dataclass(frozen=True, slots=True)
class CommitRef:
    """Where a commit is: the stream that owns its record, the branch it was made on, its seq."""

    branch: str
    stream: str
    seq: int
    commit: str


@dataclass(frozen=True, slots=True)
class Stream:
    """The life of one branch: its records, which follow those of the commits it started from.

    `origins` are the commit it started from, the commit that one's stream started from, and so on
    to main. Seqs continue across them, so that a seq names one commit of a branch.
    """

    id: str
    branch: str
    origins: tuple[CommitRef, ...] = ()

    @property
    def first_seq(self) -> int:
        """The seq of the first record that this stream may hold itself."""
        return self.origins[0].seq + 1 if self.origins else GENESIS_SEQ

    def owner_of(self, seq: int) -> Stream:
        """The stream that holds the record of a seq: this one, or one it started from."""
        stream = self
        while stream.origins and seq < stream.first_seq:
            origin, *older = stream.origins
            stream = Stream(origin.stream, origin.branch, tuple(older))
        return stream


MAIN: Final = Stream("main.0", MAIN_BRANCH)


@dataclass(frozen=True, slots=True)
class Changed:
    """The ids of a type that a commit inserted, updated and deleted.

    `marks` are what else the changed entities hold or held that another write may have read: the
    ends of edges and unique values (`footprint.mark`). None means that they were not kept.
    """

    inserted: IdSet = EMPTY
    updated: IdSet = EMPTY
    deleted: IdSet = EMPTY
    marks: IdSet | None = None

    @property
    def ids(self) -> IdSet:
        """Every id the commit wrote."""
        return self.inserted.union(self.updated, self.deleted)


@dataclass(frozen=True, slots=True)
class Spilled:
    """A change set that is too large for its record: an Arrow file, its counts and its digest.

    Older records have no digest.
    """

    file: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Bulk:
    """Rows of a bulk load by the data files that hold them; `replaces` says all others are gone.

    Then the rows are all rows of the table, and files may be left out.
    """

    files: tuple[str, ...]
    rows: int
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The table was rewritten; no entity changed."""


ChangeSet: TypeAlias = Changed | Spilled | Bulk | Maintenance


@dataclass(frozen=True, slots=True)
class Signature:
    """Who makes a commit and why; `key` is a client's idempotency key.

    `reverts` is the id of the commit that a revert undoes.
    """

    actor: str | None = None
    message: str | None = None
    key: str | None = None
    operations: tuple[str, ...] = ()
    reverts: str | None = None

    def __post_init__(self) -> None:
        # A record that was put stays: one that cannot be read again would end its branch.
        for name in ("actor", "message", "key"):
            if (value := getattr(self, name)) is not None:
                require_storable_text(name, value)


NO_SIGNATURE: Final = Signature()
# The operations of commits that fill vectors and change nothing else.
FILL_OPERATIONS: Final = "fill-"


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """What a merge was given to decide on one conflict: an entity, or a property of it.

    `states` is a hash of the three states that were in conflict.
    """

    type_key: str
    entity_id: str
    property: str | None
    kind: str
    take: str
    states: str


@dataclass(frozen=True, slots=True)
class Record:
    """One commit of a branch. `is_whole` says that `pins` are all pins, not the touched ones.

    `preferred` says of a merge whose side was taken in conflicts, by their kind, and `decisions`
    what became of conflicts that were decided one by one. `created_at`
    orders commits; `made_at` is when it was made, where that differs (`commit_clock`).
    `is_fence` says that a collector made it, to take the seq that writes prepared before would
    have taken.
    """

    stream: str
    branch: str
    seq: int
    commit: str
    parent: str | None
    created_at: int
    schema: str
    pins: Mapping[str, Pin]
    is_whole: bool = True
    changes: Mapping[str, ChangeSet] = field(default_factory=dict)
    signature: Signature = NO_SIGNATURE
    members: int = 1
    merged: CommitRef | None = None
    registered: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    preferred: Mapping[str, str] = field(default_factory=dict)
    decisions: tuple[MergeDecision, ...] = ()
    made_at: int | None = None
    is_fence: bool = False

    @property
    def ref(self) -> CommitRef:
        """Where this commit is."""
        return CommitRef(self.branch, self.stream, self.seq, self.commit)

    @property
    def is_fill(self) -> bool:
        """Whether it does nothing but give texts the vectors that are made of them."""
        operations = self.signature.operations
        return bool(operations) and all(each.startswith(FILL_OPERATIONS) for each in operations)

    @property
    def is_maintenance(self) -> bool:
        """Whether the commit rewrote tables and changed nothing a reader could see."""
        return self.is_fence or (
            bool(self.changes)
            and all(isinstance(change, Maintenance) for change in self.changes.values())
            and self.merged is None
        )


@dataclass(frozen=True, slots=True)
class Close:
    """The end of a stream: its branch is being deleted, and no commit may follow."""

    stream: str
    branch: str
    seq: int
    created_at: int
    actor: str | None = None


LogEntry: TypeAlias = Record | Close


def generate_commit_id(created_at: int) -> str:
    """A ULID of the given time, so that commits can be found by id as they are found by time."""
    return generate_ulid(created_at // 1000)


class PutOutcome(Enum):
    """What became of the put of an entry."""

    CREATED = auto()
    TAKEN = auto()
    # The commits around its seq were collected: its writer knew an end that is long gone.
    COLLECTED = auto()

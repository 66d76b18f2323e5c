"""The history of one entity: every commit that changed it, and who gave each property its value.

In: a branch, a type and an id. Out: versions of the entity, the newest first, or the commit behind
each property. Guarantee: which commits wrote the entity is told by their change sets, and only for
those is anything read of a table. What a merge brought is followed to the commits that made it, as
far as these were not cleaned up: a line ends where nothing can be read of it any more.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

import pyarrow as pa

from omnigraph.engine.commit import Commit, commit_of
from omnigraph.engine.entity_change.states import States, states_of
from omnigraph.engine.session import Session
from omnigraph.errors import CommitNotFound, EntityNotFound
from omnigraph.execution.changes import (
    Op,
    TypeDifference,
    TypePair,
    compare,
    difference,
    images,
    pair_types,
    rows_at,
)
from omnigraph.execution.changes.texts import decoded
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET
from omnigraph.versioning import changes as change_sets
from omnigraph.versioning.idset import IdSet
from omnigraph.versioning.record import (
    GENESIS_SEQ,
    Bulk,
    Changed,
    ChangeSet,
    CommitRef,
    Maintenance,
    Record,
    Stream,
)

if TYPE_CHECKING:
    from omnigraph.schema.shape import JsonObject

# How many records of a line are read at the same time.
PAGE: Final = 32
_ENDS: Final = {SOURCE_COLUMN: SOURCE, TARGET_COLUMN: TARGET}


@dataclass(frozen=True, slots=True)
class EntityVersion:
    """What one commit made of an entity; images are those of the change feed.

    `changed` are the properties that got or lost a value; the ends of an edge are
    `@src` and `@dst`.
    """

    commit: Commit
    op: str
    before: JsonObject | None
    after: JsonObject | None
    changed: tuple[str, ...]

    def to_json(self) -> JsonObject:
        """The document of a version; an image that does not exist has no member."""
        document: JsonObject = {
            "commit": self.commit.to_json(),
            "op": self.op,
            "changed": list(self.changed),
        }
        if self.before is not None:
            document["before"] = self.before
        if self.after is not None:
            document["after"] = self.after
        return document


@dataclass(frozen=True, slots=True)
class Entity:
    """Whom a history is about: an id, and the table that holds its type on some line."""

    type_key: TypeKey
    path: str
    id: str

    @property
    def ids(self) -> pa.Array:
        """The id alone, to look for it."""
        return pa.array([self.id], pa.large_string())


def entity_of(view: View, type_key: TypeKey, entity_id: str) -> Entity:
    """An entity of a type as a view has it; it need not exist there."""
    return Entity(type_key, view.snapshot.pins[str(type_key)].path, entity_id)


def history_of(session: Session, stream: Stream, entity: Entity) -> Iterator[EntityVersion]:
    """The versions of an entity on a branch and on what was merged into it, newest first.

    A merge that brought a version is told too, before the commits that made it. History ends where
    it was cleaned up.
    """
    lines = _Lines(_Commits(session))
    lines.push(stream, session.head(stream).seq, entity)
    while (step := lines.pop()) is not None:
        try:
            version = _version_by(session, step)
        except CommitNotFound:
            continue
        if version is not None:
            yield version
            if step.record.merged is not None:
                lines.push_merged(step.record.merged, step.entity)
        lines.push(step.stream, step.record.seq - 1, step.entity)


def blame_of(session: Session, stream: Stream, entity: Entity) -> dict[str, Commit | None]:
    """The commit that gave each property its value of today; None for one that was cleaned up."""
    head = session.view(session.head(stream))
    open_ = _columns(head.shape(entity.type_key))
    if not rows_at(head, entity.type_key, entity.ids, columns=[]).num_rows:
        raise EntityNotFound(
            entity.type_key.name, entity.id, hint="`history` tells what became of it"
        )
    blamed: dict[str, Commit | None] = dict.fromkeys(open_.values())
    commits = _Commits(session)
    step = commits.step(stream, head.snapshot.seq, entity)
    while step is not None and open_:
        try:
            given = _given_by(commits, step)
        except CommitNotFound:
            break
        if given.jump is not None:
            there = given.jump.renamed(open_)
            # What the merged line does not know came to be with the merge.
            unknown = set(open_.values()) - set(there.values())
            blamed |= dict.fromkeys(unknown, commit_of(step.record))
            step, open_ = given.jump.step, there
            continue
        # What was inserted got all its values then, the nulls too.
        for column in open_ if given.is_insert else open_.keys() & given.columns:
            blamed[open_[column]] = commit_of(step.record)
        open_ = {column: name for column, name in open_.items() if blamed[name] is None}
        step = commits.step(step.stream, step.record.seq - 1, step.entity)
    return blamed


# ---- walking along lines of commits ----


@dataclass(frozen=True, slots=True)
class _Step:
    """A commit on a line, and the entity as that line knows it."""

    stream: Stream
    record: Record
    entity: Entity


class _Lines:
    """Several lines of commits, walked together: always the newest commit first, each once."""

    def __init__(self, commits: _Commits) -> None:
        self._commits = commits
        self._seen: set[tuple[str, int]] = set()
        self._queue: list[tuple[int, int, str, _Step]] = []

    def pop(self) -> _Step | None:
        """The newest commit that was not walked along yet; None at the end of all lines."""
        return heapq.heappop(self._queue)[-1] if self._queue else None

    def push(self, stream: Stream, seq: int, entity: Entity) -> None:
        """Walk along a line from a version on; what was walked along already is not again."""
        place = stream.owner(seq).id, seq
        if place in self._seen:
            return
        self._seen.add(place)
        step = self._commits.step(stream, seq, entity)
        if step is not None:
            at = step.record
            heapq.heappush(self._queue, (-at.created_at, -at.seq, place[0], step))

    def push_merged(self, ref: CommitRef, entity: Entity) -> None:
        """Walk along the line of a commit that was merged, too."""
        step = self._commits.merged(ref, entity)
        if step is not None:
            self.push(step.stream, ref.seq, step.entity)


class _Commits:
    """Where the commits of lines are, as far as they can still be compared with their parents."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._log = session.resources.log
        # The oldest version of each line that was not cleaned up: a listing each.
        self._oldest: dict[str, int] = {}

    def step(self, stream: Stream, seq: int, entity: Entity) -> _Step | None:
        """The commit at a version of a line; None at its end, and where it was cleaned up."""
        # The first commit has no parent, and the state before the oldest one that is left is gone.
        if seq <= self._floor(stream):
            return None
        owner = stream.owner(seq)
        if seq % PAGE == PAGE - 1:
            first = max(owner.first_seq, seq - PAGE + 1)
            self._log.read_many((owner.id, at) for at in range(first, seq + 1))
        record = self._log.read(owner.id, seq)
        return _Step(stream, record, entity) if isinstance(record, Record) else None

    def merged(self, ref: CommitRef, entity: Entity) -> _Step | None:
        """A merged commit, and the entity as its line knows it: in another table, it may be."""
        stream = self.session.resources.branches.stream_of(ref.branch, ref.stream)
        if stream is None or ref.seq <= self._floor(stream):
            return None
        try:
            pins = self._log.at(stream, ref.seq).pins
        except CommitNotFound:
            return None
        keys = {pin.path: key for key, pin in pins.items()}
        key = keys.get(entity.path, str(entity.type_key))
        if key not in pins:
            return None
        kind, _, name = key.partition(":")
        there = Entity(TypeKey(TypeKind(kind), name), pins[key].path, entity.id)
        return self.step(stream, ref.seq, there)

    def _floor(self, stream: Stream) -> int:
        if stream.id not in self._oldest:
            oldest = self.session.resources.history.oldest(stream)
            self._oldest[stream.id] = max(oldest, GENESIS_SEQ)
        return self._oldest[stream.id]


# ---- what a commit did to the entity ----


@contextmanager
def _comparing(session: Session, states: States) -> Iterator[None]:
    """Around reads of two states: what was cleaned up is told as not found."""
    before, after = states.before.snapshot, states.after.snapshot
    with session.reading(after), session.reading(before):
        yield


def _version_by(session: Session, step: _Step) -> EntityVersion | None:
    """What a commit made of the entity; None if it did not change it."""
    states = _states(session, step)
    if states is None:
        return None
    with _comparing(session, states):
        found = _changed(session, states, step.entity)
        return None if found is None else _version(step.record, found)


def _states(session: Session, step: _Step) -> States | None:
    """The states around a commit; None if it did not write the entity."""
    change = _change(step.record, step.entity.path)
    if change is None or not _may_name(session, change, step.entity.id):
        return None
    return states_of(session, step.stream, step.record)


def _changed(session: Session, states: States, entity: Entity) -> TypeDifference | None:
    """What a commit made of the entity, if it is not the same as before."""
    pair = _pair(session, states, entity)
    if pair is None:
        return None
    found = difference(states.before, states.after, pair, entity.ids)
    return found if len(found) else None


def _change(record: Record, path: str) -> ChangeSet | None:
    for type_key, change in record.changes.items():
        pin = record.pins.get(type_key)
        if pin is not None and pin.path == path:
            return change
    return None


def _may_name(session: Session, change: ChangeSet, entity_id: str) -> bool:
    """Whether a change set names an id; of a bulk load, only the tables tell."""
    match change_sets.load(session.resources.log.objects, change):
        case Changed(inserted, updated, deleted):
            wanted = IdSet([entity_id])
            return any(wanted.is_within(ids) for ids in (inserted, updated, deleted))
        case Bulk():
            return True
        case Maintenance():
            return False
        case other:
            assert_never(other)


def _pair(session: Session, states: States, entity: Entity) -> TypePair | None:
    pins = states.after.snapshot.pins
    for pair in pair_types(states.before, states.after, session.resources.lineage):
        if pair.new is not None and pins[str(pair.new)].path == entity.path:
            return pair
    return None


def _version(record: Record, found: TypeDifference) -> EntityVersion:
    before, after = (decoded(texts)[0] for texts in images(found))
    is_gone = found.ops[0] == Op.DELETE
    view, type_key = (found.old, found.pair.old) if is_gone else (found.new, found.pair.new)
    assert type_key is not None, "an image has a type"
    names = _columns(view.shape(type_key))
    changed = sorted(names[column] for column in _changed_columns(found) if column in names)
    op = Op(found.ops[0]).word
    return EntityVersion(commit_of(record), op, before, after, tuple(changed))


def _columns(shape: TableShape) -> dict[str, str]:
    """What the columns of a type hold, by the names that people know."""
    ends = _ENDS if shape.type_key.kind is TypeKind.EDGE else {}
    return {**ends, **{column: name for name, column in shape.columns.items()}}


def _changed_columns(found: TypeDifference) -> set[str]:
    """The columns whose value is not what it was; of somebody new or gone, those with a value."""
    if found.ops[0] == Op.UPDATE:
        pairs = found.pair.columns
        return {pair.new for pair in pairs if compare(found.before, found.after, [pair])[0]}
    rows = found.after if found.ops[0] == Op.INSERT else found.before
    return {name for name in rows.column_names if not rows[name].null_count}


# ---- who gave the values ----


@dataclass(frozen=True, slots=True)
class _Given:
    """What a commit gave the entity: values of columns, or all it has; or whence a merge had it."""

    columns: frozenset[str] = frozenset()
    is_insert: bool = False
    jump: _Jump | None = None


def _given_by(commits: _Commits, step: _Step) -> _Given:
    session = commits.session
    states = _states(session, step)
    if states is None:
        return _Given()
    with _comparing(session, states):
        found = _changed(session, states, step.entity)
        if found is None:
            return _Given()
        jump = _source(commits, step, found)
        if jump is not None:
            return _Given(jump=jump)
        return _Given(frozenset(_changed_columns(found)), found.ops[0] == Op.INSERT)


@dataclass(frozen=True, slots=True)
class _Jump:
    """From a merge to the commit it took the entity from."""

    step: _Step
    pair: TypePair

    def renamed(self, open_: Mapping[str, str]) -> dict[str, str]:
        """Columns of the merge as the merged line has them; what it does not have is left out."""
        there = {pair.new: pair.old for pair in self.pair.columns if pair.old is not None}
        return {there[column]: name for column, name in open_.items() if column in there}


def _source(commits: _Commits, step: _Step, found: TypeDifference) -> _Jump | None:
    """Where a merge has the entity from, if it is what the merged commit had."""
    ref, session = step.record.merged, commits.session
    source = None if ref is None else commits.merged(ref, step.entity)
    if source is None or found.ops[0] == Op.DELETE:
        return None
    view = session.view(session.resources.log.at(source.stream, source.record.seq))
    pairs = pair_types(view, found.new, session.resources.lineage)
    pair = next((each for each in pairs if each.new == found.pair.new), None)
    if pair is None or pair.old is None:
        return None
    try:
        with session.reading(view.snapshot):
            rows = rows_at(view, pair.old, source.entity.ids)
    except CommitNotFound:
        # The merged branch was deleted and cleaned up: the merge is all that is known.
        return None
    # By column: the merge may have given a property another name.
    is_same = rows.num_rows == 1 and not compare(rows, found.after, pair.columns)[0]
    return _Jump(source, pair) if is_same else None

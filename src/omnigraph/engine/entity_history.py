"""The history of one entity: every commit that changed it, and the source of each value.

In: a branch, a type and an id. Out: versions of the entity, the newest first, or the commit of
each property. Guarantee: change sets show which commits wrote the entity, and only for
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

from omnigraph.changes.row_comparison import compare_rows
from omnigraph.changes.rows_by_id import fetch_rows
from omnigraph.changes.type_difference import (
    Op,
    TypeDifference,
    compute_difference,
    decode_images,
    encode_difference_images,
)
from omnigraph.changes.type_pairs import TypePair, pair_types
from omnigraph.engine.commit import Commit, commit_about
from omnigraph.engine.entity_changes import CommitStates, load_commit_states
from omnigraph.engine.graph_session import Session
from omnigraph.errors import CommitNotFoundError, EntityNotFoundError
from omnigraph.execution.query_budget import Budget
from omnigraph.html_views import HtmlDocument
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET
from omnigraph.versioning import change_sets
from omnigraph.versioning.id_sets import IdSet
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
    from omnigraph.schema.schema_shape import JsonObject

# How many records of a line are read at the same time.
PAGE: Final = 32
_ENDS: Final = {SOURCE_COLUMN: SOURCE, TARGET_COLUMN: TARGET}


@dataclass(frozen=True, slots=True)
class EntityVersion(HtmlDocument):
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
    """The subject of a history: an id, and the table that holds its type on some line."""

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


def iter_history(
    session: Session, stream: Stream, entity: Entity, budget: Budget
) -> Iterator[EntityVersion]:
    """The versions of an entity on a branch and on what was merged into it, newest first.

    A merge that brought a version is listed too, before the commits that made it. History ends
    where it was cleaned up.
    """
    lines = _LineWalk(_CommitReader(session, budget))
    lines.push(stream, session.read_head(stream).seq, entity)
    while (step := lines.pop()) is not None:
        try:
            version = _find_version(session, step)
        except CommitNotFoundError:
            continue
        if version is not None:
            yield version
            if step.record.merged is not None:
                lines.push_merged(step.record.merged, step.entity)
        lines.push(step.stream, step.record.seq - 1, step.entity)


def compute_blame(
    session: Session, stream: Stream, entity: Entity, budget: Budget
) -> dict[str, Commit | None]:
    """The commit that gave each property its value of today; None for one that was cleaned up."""
    head = session.open_view(session.read_head(stream))
    open_ = _map_columns(head.get_shape(entity.type_key))
    if not fetch_rows(head, entity.type_key, entity.ids, columns=[]).num_rows:
        raise EntityNotFoundError(
            entity.type_key.name, entity.id, hint="`history` shows what became of it"
        )
    blamed: dict[str, Commit | None] = dict.fromkeys(open_.values())
    commits = _CommitReader(session, budget)
    step = commits.find_step(stream, head.snapshot.seq, entity)
    while step is not None and open_:
        try:
            given = _find_contribution(commits, step)
        except CommitNotFoundError:
            break
        if given.merge_source is not None:
            there = given.merge_source.rename_columns(open_)
            # What the merged line does not know came to be with the merge.
            unknown = set(open_.values()) - set(there.values())
            blamed |= dict.fromkeys(unknown, step.commit)
            step, open_ = given.merge_source.step, there
            continue
        # What was inserted got all its values then, the nulls too.
        for column in open_ if given.is_insert else open_.keys() & given.columns:
            blamed[open_[column]] = step.commit
        open_ = {column: name for column, name in open_.items() if blamed[name] is None}
        step = commits.find_step(step.stream, step.record.seq - 1, step.entity)
    return blamed


# ---- walking along lines of commits ----


@dataclass(frozen=True, slots=True)
class _CommitStep:
    """A commit on a line, and the entity as that line knows it."""

    stream: Stream
    record: Record
    entity: Entity

    @property
    def commit(self) -> Commit:
        """The commit, with what a merge decided on the entity."""
        return commit_about(self.record, self.entity.type_key, self.entity.id)


class _LineWalk:
    """Several lines of commits, walked together: always the newest commit first, each once."""

    def __init__(self, commits: _CommitReader) -> None:
        self._commits = commits
        self._seen: set[tuple[str, int]] = set()
        self._queue: list[tuple[int, int, str, _CommitStep]] = []

    def pop(self) -> _CommitStep | None:
        """The newest commit that was not walked along yet; None at the end of all lines."""
        return heapq.heappop(self._queue)[-1] if self._queue else None

    def push(self, stream: Stream, seq: int, entity: Entity) -> None:
        """Walk along a line from a version on; what was walked along already is not again."""
        place = stream.owner_of(seq).id, seq
        if place in self._seen:
            return
        self._seen.add(place)
        step = self._commits.find_step(stream, seq, entity)
        if step is not None:
            at = step.record
            heapq.heappush(self._queue, (-at.created_at, -at.seq, place[0], step))

    def push_merged(self, ref: CommitRef, entity: Entity) -> None:
        """Walk along the line of a commit that was merged, too."""
        step = self._commits.find_merged(ref, entity)
        if step is not None:
            self.push(step.stream, ref.seq, step.entity)


class _CommitReader:
    """Where the commits of lines are, as far as they can still be compared with their parents."""

    def __init__(self, session: Session, budget: Budget) -> None:
        self.session = session
        self._budget = budget
        self._log = session.resources.log
        # The oldest version of each line that was not cleaned up: a listing each.
        self._oldest: dict[str, int] = {}

    def find_step(self, stream: Stream, seq: int, entity: Entity) -> _CommitStep | None:
        """The commit at a version of a line; None at its end, and where it was cleaned up."""
        self._budget.check_interrupts()
        # The first commit has no parent, and the state before the oldest one that is left is gone.
        if seq <= self._read_floor(stream):
            return None
        owner = stream.owner_of(seq)
        if seq % PAGE == PAGE - 1:
            first = max(owner.first_seq, seq - PAGE + 1)
            self._log.read_many((owner.id, at) for at in range(first, seq + 1))
        record = self._log.read(owner.id, seq)
        return _CommitStep(stream, record, entity) if isinstance(record, Record) else None

    def find_merged(self, ref: CommitRef, entity: Entity) -> _CommitStep | None:
        """A merged commit, and the entity as its line knows it: in another table, it may be."""
        stream = self.session.resources.branches.stream_of(ref.branch, ref.stream)
        if stream is None or ref.seq <= self._read_floor(stream):
            return None
        try:
            pins = self._log.read_snapshot(stream, ref.seq).pins
        except CommitNotFoundError:
            return None
        keys = {pin.path: key for key, pin in pins.items()}
        key = keys.get(entity.path, str(entity.type_key))
        if key not in pins:
            return None
        kind, _, name = key.partition(":")
        there = Entity(TypeKey(TypeKind(kind), name), pins[key].path, entity.id)
        return self.find_step(stream, ref.seq, there)

    def _read_floor(self, stream: Stream) -> int:
        if stream.id not in self._oldest:
            oldest = self.session.resources.history.find_oldest(stream)
            self._oldest[stream.id] = max(oldest, GENESIS_SEQ)
        return self._oldest[stream.id]


# ---- what a commit did to the entity ----


@contextmanager
def _translate_missing_states(session: Session, states: CommitStates) -> Iterator[None]:
    """Around reads of two states: raises "not found" for a state that was cleaned up."""
    before, after = states.before.snapshot, states.after.snapshot
    with session.guard_reads(after), session.guard_reads(before):
        yield


def _find_version(session: Session, step: _CommitStep) -> EntityVersion | None:
    """What a commit made of the entity; None if it did not change it."""
    states = _find_states(session, step)
    if states is None:
        return None
    with _translate_missing_states(session, states):
        found = _find_difference(session, states, step.entity)
        return None if found is None else _build_version(step, found)


def _find_states(session: Session, step: _CommitStep) -> CommitStates | None:
    """The states around a commit; None if it did not write the entity."""
    change = _get_change_set(step.record, step.entity.path)
    if change is None or not _may_name(session, change, step.entity.id):
        return None
    return load_commit_states(session, step.stream, step.record)


def _find_difference(
    session: Session, states: CommitStates, entity: Entity
) -> TypeDifference | None:
    """What a commit made of the entity, if it is not the same as before."""
    pair = _find_type_pair(session, states, entity)
    if pair is None:
        return None
    found = compute_difference(states.before, states.after, pair, entity.ids)
    return found if len(found) else None


def _get_change_set(record: Record, path: str) -> ChangeSet | None:
    for type_key, change in record.changes.items():
        pin = record.pins.get(type_key)
        if pin is not None and pin.path == path:
            return change
    return None


def _may_name(session: Session, change: ChangeSet, entity_id: str) -> bool:
    """Whether a change set names an id; a bulk load may name any id."""
    match change_sets.load_change_set(session.resources.log.objects, change):
        case Changed(inserted, updated, deleted):
            wanted = IdSet([entity_id])
            return any(wanted.is_within(ids) for ids in (inserted, updated, deleted))
        case Bulk():
            return True
        case Maintenance():
            return False
        case other:
            assert_never(other)


def _find_type_pair(session: Session, states: CommitStates, entity: Entity) -> TypePair | None:
    pins = states.after.snapshot.pins
    for pair in pair_types(states.before, states.after, session.resources.lineage):
        if pair.new is not None and pins[str(pair.new)].path == entity.path:
            return pair
    return None


def _build_version(step: _CommitStep, found: TypeDifference) -> EntityVersion:
    before, after = (decode_images(texts)[0] for texts in encode_difference_images(found))
    is_gone = found.ops[0] == Op.DELETE
    view, type_key = (found.old, found.pair.old) if is_gone else (found.new, found.pair.new)
    assert type_key is not None, "an image has a type"
    names = _map_columns(view.get_shape(type_key))
    changed = sorted(names[column] for column in _find_changed_columns(found) if column in names)
    op = Op(found.ops[0]).word
    return EntityVersion(step.commit, op, before, after, tuple(changed))


def _map_columns(shape: TableShape) -> dict[str, str]:
    """What the columns of a type hold, by the names that people know."""
    ends = _ENDS if shape.type_key.kind is TypeKind.EDGE else {}
    return {**ends, **{column: name for name, column in shape.columns.items()}}


def _find_changed_columns(found: TypeDifference) -> set[str]:
    """The columns whose value differs; of an inserted or deleted entity, those with a value."""
    if found.ops[0] == Op.UPDATE:
        pairs = found.pair.columns
        return {pair.new for pair in pairs if compare_rows(found.before, found.after, [pair])[0]}
    rows = found.after if found.ops[0] == Op.INSERT else found.before
    return {name for name in rows.column_names if not rows[name].null_count}


# ---- blame ----


@dataclass(frozen=True, slots=True)
class _Contribution:
    """What a commit gave the entity: values of columns, or all it has; or whence a merge had it."""

    columns: frozenset[str] = frozenset()
    is_insert: bool = False
    merge_source: _MergeSource | None = None


def _find_contribution(commits: _CommitReader, step: _CommitStep) -> _Contribution:
    session = commits.session
    states = _find_states(session, step)
    if states is None:
        return _Contribution()
    with _translate_missing_states(session, states):
        found = _find_difference(session, states, step.entity)
        if found is None:
            return _Contribution()
        jump = _find_merge_source(commits, step, found)
        if jump is not None:
            return _Contribution(merge_source=jump)
        return _Contribution(frozenset(_find_changed_columns(found)), found.ops[0] == Op.INSERT)


@dataclass(frozen=True, slots=True)
class _MergeSource:
    """From a merge to the commit it took the entity from."""

    step: _CommitStep
    pair: TypePair

    def rename_columns(self, open_: Mapping[str, str]) -> dict[str, str]:
        """Columns of the merge as the merged line has them; what it does not have is left out."""
        there = {pair.new: pair.old for pair in self.pair.columns if pair.old is not None}
        return {there[column]: name for column, name in open_.items() if column in there}


def _find_merge_source(
    commits: _CommitReader, step: _CommitStep, found: TypeDifference
) -> _MergeSource | None:
    """Where a merge has the entity from, if it is what the merged commit had."""
    ref, session = step.record.merged, commits.session
    source = None if ref is None else commits.find_merged(ref, step.entity)
    if source is None or found.ops[0] == Op.DELETE:
        return None
    view = session.open_view(session.resources.log.read_snapshot(source.stream, source.record.seq))
    pairs = pair_types(view, found.new, session.resources.lineage)
    pair = next((each for each in pairs if each.new == found.pair.new), None)
    if pair is None or pair.old is None:
        return None
    try:
        with session.guard_reads(view.snapshot):
            rows = fetch_rows(view, pair.old, source.entity.ids)
    except CommitNotFoundError:
        # The merged branch was deleted and cleaned up: the merge is all that is known.
        return None
    # By column: the merge may have given a property another name.
    is_same = rows.num_rows == 1 and not compare_rows(rows, found.after, pair.columns)[0]
    return _MergeSource(source, pair) if is_same else None

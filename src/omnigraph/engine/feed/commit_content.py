"""What one commit changed, relative to its first parent: which types, which ids, in their order.

Nothing of a table is read here but the ids of a bulk load: candidates come from the change sets of
the record. A candidate is an entity that the commit wrote; whether it is another one than before,
its images decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.change_candidates import collect_writes
from omnigraph.changes.rows_by_id import read_all_ids
from omnigraph.changes.type_difference import Op
from omnigraph.changes.type_pairs import TypePair, pair_types
from omnigraph.engine.entity_changes import BoundFilters, CommitStates, load_commit_states
from omnigraph.engine.feed.feed_tokens import EntityPosition, IdMark
from omnigraph.engine.graph_session import Session
from omnigraph.errors import (
    ChangeCursorRejectedError,
    ChangeFeedGapError,
    ChangeSchemaBoundaryError,
    CommitNotFoundError,
    HistoryGoneError,
    StorageError,
)
from omnigraph.versioning import change_sets
from omnigraph.versioning.record import (
    Bulk,
    Changed,
    ChangeSet,
    Maintenance,
    Record,
    Spilled,
    Stream,
)

_UNKNOWN_ENTITY: Final = "it names an entity that the commit did not change"
_LISTS: Final = {Op.INSERT: "inserted", Op.UPDATE: "updated", Op.DELETE: "deleted"}


@dataclass(frozen=True, slots=True)
class TypeContent:
    """What a commit wrote of one type."""

    states: CommitStates
    pair: TypePair
    change: ChangeSet


@dataclass(frozen=True, slots=True)
class CommitContent:
    """The types that a commit wrote, in their order: nodes before edges, then by opaque id."""

    states: CommitStates
    types: tuple[TypeContent, ...]
    ops: tuple[Op, ...]

    def list_types_from(self, place: EntityPosition | None) -> tuple[TypeContent, ...]:
        """The types from the one of a place on."""
        if place is None:
            return self.types
        for at, each in enumerate(self.types):
            if (each.pair.kind, each.pair.type_id) == (place.kind, place.type_id):
                return self.types[at:]
        raise ChangeCursorRejectedError(_UNKNOWN_ENTITY)


def require_commit_states(session: Session, stream: Stream, record: Record) -> CommitStates:
    """The two states that a commit of a stream is between; a collected one is a gap."""
    with translate_missing_state(session, stream, record):
        return load_commit_states(session, stream, record)


def build_commit_content(
    session: Session, states: CommitStates, wanted: BoundFilters
) -> CommitContent:
    """What a commit changed. A type that was dropped with its entities is refused."""
    record, ops = states.record, wanted.filters.ops
    is_same_schema = states.before.schema.digest == states.after.schema.digest
    types = []
    if not (record.is_maintenance and is_same_schema):
        for pair in pair_types(states.before, states.after, session.resources.lineage):
            if not wanted.accepts_type(pair, _list_paths(states, pair)):
                continue
            _require_continued(states, pair)
            change = record.changes.get(str(pair.new))
            if change is not None and _count_at_most(change, ops):
                types.append(TypeContent(states, pair, change))
    return CommitContent(states, tuple(types), ops)


def list_candidate_ids(session: Session, content: TypeContent, ops: tuple[Op, ...]) -> pa.Array:
    """The ids of a type that a commit may have changed, sorted; the next page asks for them too."""
    key = content.states.record.ref, content.pair.type_id, ops
    return session.resources.candidate_ids.get(
        key, lambda: _collect_sorted_ids(session, content, ops)
    )


def _collect_sorted_ids(session: Session, content: TypeContent, ops: tuple[Op, ...]) -> pa.Array:
    resources, states = session.resources, content.states
    objects, tables = resources.log.objects, resources.storage.tables
    loaded = change_sets.load_change_set(objects, content.change)
    match loaded:
        case Changed():
            lists = [getattr(loaded, _LISTS[op]).to_array() for op in ops]
            ids = pa.chunked_array(lists, pa.large_string()).unique()
        case Bulk(replaces=False):
            path = states.record.pins[str(content.pair.new)].path
            ids = collect_writes([states.record], objects, tables, paths=[path])[
                path
            ].ids.to_array()
        case Bulk():
            ids = _read_all_ids(content)
        case Maintenance():
            raise AssertionError("maintenance changes no entity")
        case _:
            assert_never(loaded)
    return ids.take(pc.sort_indices(ids))


def find_resume_index(ids: pa.Array, mark: IdMark) -> int:
    """The number of sorted ids up to the one of a token, which were returned before."""
    if mark.hash is None:
        found = ids.filter(pc.equal(ids, pa.scalar(mark.text, ids.type))).to_pylist()
    else:
        alike = ids.filter(pc.starts_with(ids, mark.text)).to_pylist()
        found = [each for each in alike if mark.matches(each)]
    if len(found) != 1:
        raise ChangeCursorRejectedError(_UNKNOWN_ENTITY)
    return int(pc.less_equal(ids, pa.scalar(found[0], ids.type)).true_count)


@contextmanager
def translate_missing_state(session: Session, stream: Stream, record: Record) -> Iterator[None]:
    """Around reads of the state before a commit: what was cleaned up is a gap in the feed."""
    try:
        yield
    except (CommitNotFoundError, HistoryGoneError) as error:
        raise ChangeFeedGapError(record.commit) from error
    except StorageError as error:
        # A collector may have come by since the floor was examined.
        if record.seq - 1 < session.resources.history.find_oldest(stream):
            raise ChangeFeedGapError(record.commit) from error
        raise


def _count_at_most(change: ChangeSet, ops: tuple[Op, ...]) -> int:
    """An upper bound of the entities that are returned; 0 only if there are none."""
    match change:
        case Changed():
            return sum(len(getattr(change, _LISTS[op])) for op in ops)
        case Spilled():
            return sum(getattr(change, _LISTS[op]) for op in ops)
        case Bulk():
            return max(change.rows, int(change.replaces))
        case Maintenance():
            return 0
        case _:
            assert_never(change)


def _read_all_ids(content: TypeContent) -> pa.Array:
    states, pair = content.states, content.pair
    sides = (states.before, pair.old), (states.after, pair.new)
    parts = [read_all_ids(view, type_key) for view, type_key in sides if type_key is not None]
    return pa.chunked_array(parts, pa.large_string()).unique()


def _require_continued(states: CommitStates, pair: TypePair) -> None:
    """Refuse a type that was dropped with its entities: their images have no schema."""
    if pair.new is None and states.before.snapshot.pins[str(pair.old)].rows:
        reason = "was dropped with its entities"
        raise ChangeSchemaBoundaryError(states.record.commit, pair.type_key.name, reason)


def _list_paths(states: CommitStates, pair: TypePair) -> set[str]:
    sides = (states.before, pair.old), (states.after, pair.new)
    return {view.snapshot.pins[str(key)].path for view, key in sides if key is not None}


def estimate_rows(record: Record) -> int:
    """How many entities a commit wrote, about."""
    total = 0
    for change in record.changes.values():
        match change:
            case Bulk():
                total += change.rows
            case Changed():
                total += len(change.inserted) + len(change.updated) + len(change.deleted)
            case Spilled():
                total += change.inserted + change.updated + change.deleted
            case _:
                pass
    return total

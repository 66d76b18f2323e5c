"""What commits changed as Arrow batches, for readers that take all of it: a window of ids each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.changes.type_difference import (
    Op,
    TypeDifference,
    compute_difference,
    encode_difference_images,
)
from omnigraph.engine.arguments import datetime_of
from omnigraph.engine.entity_changes import BoundFilters
from omnigraph.engine.feed.commit_content import (
    TypeContent,
    build_commit_content,
    estimate_rows,
    list_candidate_ids,
    require_commit_states,
    translate_missing_state,
)
from omnigraph.engine.graph_session import Session
from omnigraph.errors import CommitNotFoundError, InvalidArgumentError
from omnigraph.schema.property_types import VectorType
from omnigraph.versioning.commit_clock import time_of
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.record import Record, Stream

# Ids that are looked up at once: a look-up costs much the same for any number of them.
WINDOW_ROWS: Final = 65_536
# As many values are read at once: the texts of long vectors are large.
WINDOW_VALUES: Final = 2**20
# A commit that wrote more is read by several readers, each with its share of the windows.
SPLIT_ROWS: Final = 2 * WINDOW_ROWS
SCHEMA: Final = pa.schema(
    [
        ("commit", pa.utf8()),
        ("version", pa.int64()),
        ("committed_at", pa.timestamp("us", "UTC")),
        ("kind", pa.utf8()),
        ("type", pa.utf8()),
        # Survives renames, and differs between two types that had one name in turn.
        ("type_id", pa.utf8()),
        ("id", pa.utf8()),
        ("op", pa.utf8()),
        ("before", pa.utf8()),
        ("after", pa.utf8()),
    ]
)
_WORDS: Final = pa.array([op.word for op in sorted(Op)])


@dataclass(frozen=True, slots=True)
class FeedSplit:
    """A part of what one commit changed: each `shares`-th window of its ids, from `number` on."""

    commit: str
    number: int
    split_count: int


def plan_feed_splits(session: Session, start: Snapshot, end: Snapshot) -> list[FeedSplit]:
    """The commits after one state up to another one of the same line, in order."""
    log, stream = session.resources.log, end.stream
    if start.seq > end.seq or log.read_snapshot(stream, start.seq).commit != start.commit:
        raise InvalidArgumentError(
            "start",
            f"commit {start.commit} is not on the way to {end.commit}",
            hint="the two must be on one branch; `diff` compares any two commits",
        )
    found = []
    for seq in range(start.seq + 1, end.seq + 1):
        record = log.read(stream.owner_of(seq).id, seq)
        if not isinstance(record, Record):
            raise CommitNotFoundError(f"version {seq} of branch '{stream.branch}' is gone")
        if not record.is_maintenance:
            count = max(1, -(-estimate_rows(record) // SPLIT_ROWS))
            found += [FeedSplit(record.commit, number, count) for number in range(count)]
    return found


def read_change_batches(
    session: Session, share: FeedSplit, wanted: BoundFilters
) -> Iterator[pa.RecordBatch]:
    """The changes of a share, nodes before edges, in the order of ids."""
    stream, record = _require_commit(session, share.commit)
    states = require_commit_states(session, stream, record)
    content = build_commit_content(session, states, wanted)
    window = 0
    for each in content.types:
        ids = list_candidate_ids(session, each, content.ops)
        step = _compute_window_rows(each)
        for start in range(0, len(ids), step):
            window += 1
            if window % share.split_count != share.number:
                continue
            with translate_missing_state(session, stream, record):
                found = compute_difference(
                    states.before,
                    states.after,
                    each.pair,
                    ids.slice(start, step),
                    shares_copies=record.merged is None,
                ).filter_ops(frozenset(content.ops))
                if len(found):
                    yield _build_batch(record, found)


def _compute_window_rows(content: TypeContent) -> int:
    """How many entities of a type are read at once."""
    view = content.states.before if content.pair.new is None else content.states.after
    properties = view.types[content.pair.type_key].properties.values()
    values = (each.type.value for each in properties)
    row = sum(value.dimension if isinstance(value, VectorType) else 1 for value in values)
    return min(WINDOW_ROWS, max(1, WINDOW_VALUES // max(1, row)))


def _require_commit(session: Session, commit_id: str) -> tuple[Stream, Record]:
    place = session.resources.history.find(commit_id)
    record = None if place is None else session.resources.log.read(place[0].id, place[1])
    if place is None or not isinstance(record, Record):
        raise CommitNotFoundError(f"no live branch holds commit '{commit_id}'")
    return place[0], record


def _build_batch(record: Record, found: TypeDifference) -> pa.RecordBatch:
    before, after = encode_difference_images(found)
    count = len(found)

    def same(value: object, field: str) -> pa.Array:
        return pa.repeat(pa.scalar(value, SCHEMA.field(field).type), count)

    columns = [
        same(record.commit, "commit"),
        same(record.seq, "version"),
        same(datetime_of(time_of(record)), "committed_at"),
        same(str(found.kind), "kind"),
        same(found.type_key.name, "type"),
        same(found.pair.type_id, "type_id"),
        found.ids.cast(pa.utf8()),
        _WORDS.take(pa.array(found.ops.astype(np.int64))),
        before.cast(pa.utf8()),
        after.cast(pa.utf8()),
    ]
    return pa.record_batch(columns, schema=SCHEMA)

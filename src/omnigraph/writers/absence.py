"""Strict inserts: a written id that is committed is a conflict, told with its place."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, KeyConflictError
from omnigraph.schema.accepted import TypeKey
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.change import GraphChange, TypeChange, WriteMode
from omnigraph.writers.committed import CommittedState


def require_absent(change: GraphChange, committed: CommittedState) -> None:
    """Refuse a change that inserts entities which exist, of whatever types they are."""
    told: list[tuple[str, str, str | None]] = []
    count = 0
    for type_key, type_change in change.items():
        # What the writer has looked up itself, as for ids it has just drawn, needs no second look.
        if type_change.mode is not WriteMode.INSERT or type_change.known_copies is not None:
            continue
        is_there = committed.find_existing(type_key, type_change.written)
        if is_there.true_count:
            count += is_there.true_count
            room = VIOLATIONS_SHOWN_MAX - len(told)
            rows = pc.indices_nonzero(is_there).slice(0, room).to_pylist()
            told += _iter_insert_conflicts(type_key, type_change, rows)
    if told:
        (name, entity_id, place), *rest = told
        others = [KeyConflictError.build_violation(*each) for each in rest]
        raise KeyConflictError(name, entity_id, place=place, others=others, count=count)


def _iter_insert_conflicts(
    type_key: TypeKey, change: TypeChange, rows: list[int]
) -> Iterator[tuple[str, str, str | None]]:
    for row in rows:
        place = None if change.origins is None else change.origins.location_of(row)
        yield type_key.name, change.rows[ID_COLUMN][row].as_py(), place

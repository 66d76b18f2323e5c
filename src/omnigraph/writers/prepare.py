"""Turns a change of entities into a transaction: checked on a view, with its dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, KeyConflictError
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType
from omnigraph.storage.tables.pins import Pin, Staged
from omnigraph.storage.tables.row_ids import ROW_ADDRESS, ROW_ID
from omnigraph.versioning.effects import (
    ID_COLUMN,
    Adopt,
    Append,
    Effect,
    LocatedRows,
    Overwrite,
    Part,
    Replace,
)
from omnigraph.versioning.footprint import Footprint, ReadSet, unite_footprints
from omnigraph.versioning.id_sets import EMPTY, IdSet
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Signature
from omnigraph.versioning.transaction import Requirement, Transaction
from omnigraph.writers.committed_values import fill_absent
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import GraphChange, TypeChange, WriteMode
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.row_staging import RowStaging
from omnigraph.writers.validate import marks_of, validate_change
from omnigraph.writers.vector_fill import VectorFill

# From here on a change set names the data files of new rows instead of listing their ids.
BULK_ROWS_MIN: Final = 100_000


@dataclass(frozen=True, slots=True)
class Request:
    """What a write says besides its changes: what it read, who signs it, what it requires.

    `vectors` is what it does about the vectors of its texts, if it does anything.

    What `poll` raises, between the checks of its changes, ends the write.
    """

    signature: Signature
    reads: Footprint = field(default_factory=dict)
    requires: tuple[Requirement, ...] = ()
    poll: Callable[[], None] = lambda: None
    vectors: VectorFill | None = None


def prepare_transaction(
    change: GraphChange, view: View, keys: KeyCache, *, staging: RowStaging, request: Request
) -> Transaction:
    """A transaction that makes a change on a view, or the error that refuses it.

    Rows of any size are written ahead, many of them while they are checked: they are invisible
    before the transaction is published, and what is refused is removed.
    """
    change = fill_absent(change, view, keys)
    if request.vectors is not None:
        change = request.vectors.fill(change, view, keys)
    committed = CommittedState(view, keys, change)
    rows = {str(type_key): type_change.rows for type_key, type_change in change.items()}
    with staging.discard_on_failure(rows.values()):
        with staging.write_ahead(rows, view.snapshot.pins):
            for type_change in change.values():
                if type_change.require_distinct is not None:
                    type_change.require_distinct()
            require_absent(change, committed)
            found = validate_change(change, committed, poll=request.poll)
            reads = unite_footprints([request.reads, found])
        return build_transaction(change, committed, staging, request=request, reads=reads)


def build_transaction(
    change: GraphChange,
    committed: CommittedState,
    staging: RowStaging,
    *,
    request: Request,
    reads: Footprint,
) -> Transaction:
    """The transaction of a change that was found valid, with all that was read for it."""
    effects: list[Effect] = []
    changes: dict[str, ChangeSet] = {}
    ids: dict[str, ReadSet] = {}
    for type_key, type_change in change.items():
        part = _build_type_effect(type_key, type_change, committed, staging)
        effects.append(part.effect)
        changes[str(type_key)] = part.changes
        if len(part.ids):
            ids[str(type_key)] = ReadSet(ids=part.ids)
    return Transaction(
        snapshot=committed.view.snapshot,
        effects=tuple(effects),
        changes=changes,
        footprint=unite_footprints([reads, ids]),
        requires=request.requires,
        signature=request.signature,
    )


@dataclass(frozen=True, slots=True)
class _TypeEffect:
    """What one type contributes to a transaction; `ids` are those its change set leaves out."""

    effect: Effect
    changes: ChangeSet
    ids: IdSet


def _build_type_effect(
    type_key: TypeKey, change: TypeChange, committed: CommittedState, staging: RowStaging
) -> _TypeEffect:
    pin = committed.view.snapshot.pins[str(type_key)]
    if change.adopted is not None:
        return _build_adoption(type_key, change, committed, change.adopted)
    part = staging.build_part(pin, change.rows) if change.rows.num_rows else None
    parts = () if part is None else (part,)
    written = change.written
    bulk = Bulk(part.list_files, part.rows) if _is_bulk(part) else None
    if bulk is not None and change.mode is WriteMode.OVERWRITE:
        # All entities end: their ids are not needed.
        effect: Effect = Overwrite(str(type_key), parts)
        return _TypeEffect(effect, replace(bulk, replaces=True), IdSet.from_distinct(written))
    ending = committed.get_ending(type_key)
    effect = _choose_effect(str(type_key), change, parts, pin=pin, ending=ending)
    if bulk is not None and ending.num_rows == 0:
        return _TypeEffect(effect, bulk, IdSet.from_distinct(written))
    changes = _build_changed(change, written, ending, _build_marks(type_key, change, committed))
    return _TypeEffect(effect, changes, EMPTY)


def _build_adoption(
    type_key: TypeKey, change: TypeChange, committed: CommittedState, to: Pin
) -> _TypeEffect:
    ending, marks = committed.get_ending(type_key), _build_marks(type_key, change, committed)
    over = committed.view.snapshot.pins[str(type_key)]
    changes = _build_changed(change, change.written, ending, marks)
    return _TypeEffect(Adopt(str(type_key), over, to), changes, EMPTY)


def _is_bulk(part: Part | None) -> TypeGuard[Staged]:
    return isinstance(part, Staged) and part.rows >= BULK_ROWS_MIN


def _choose_effect(
    type_key: str, change: TypeChange, parts: tuple[Part, ...], *, pin: Pin, ending: pa.Table
) -> Effect:
    if change.mode is WriteMode.OVERWRITE:
        return Overwrite(type_key, parts)
    if ending.num_rows == 0:
        return Append(type_key, parts)
    row_ids = ending[ROW_ID].combine_chunks().cast(pa.uint64())
    known = ROW_ADDRESS in ending.column_names
    addresses = ending[ROW_ADDRESS].combine_chunks() if known else None
    found = LocatedRows(pin.version, row_ids, addresses)
    return Replace(type_key, IdSet.from_distinct(ending[ID_COLUMN].combine_chunks()), parts, found)


def _build_marks(type_key: TypeKey, change: TypeChange, committed: CommittedState) -> IdSet | None:
    """What the written rows hold and the ended edges held that another write may have read."""
    type_ = committed.view.types[type_key]
    held = marks_of(change.shape, type_, change.rows)
    ending = committed.get_ending(type_key)
    if held is None or not isinstance(type_, EdgeType) or ending.num_rows == 0:
        return held
    if SOURCE_COLUMN not in ending.column_names:
        # They are too many to be listed.
        return None
    ends = marks_of(change.shape, type_, ending.select([SOURCE_COLUMN, TARGET_COLUMN]))
    return None if ends is None else held.union(ends)


def _build_changed(
    change: TypeChange, written: pa.Array, ending: pa.Table, marks: IdSet | None
) -> Changed:
    """The inserted, updated and deleted ids of a change."""
    if ending.num_rows == 0:
        return Changed(inserted=IdSet.from_distinct(written), marks=marks)
    ended = ending[ID_COLUMN].combine_chunks()
    is_known = pc.is_in(written, value_set=ended)
    # Without deletions only written entities are replaced.
    is_replaced_only = change.mode is WriteMode.UPSERT and len(change.deleted) == 0
    return Changed(
        inserted=IdSet.from_distinct(written.filter(pc.invert(is_known))),
        updated=IdSet.from_distinct(written.filter(is_known)),
        deleted=EMPTY if is_replaced_only else _subtract_ids(ended, written),
        marks=marks,
    )


def _subtract_ids(ids: pa.Array, others: pa.Array) -> IdSet:
    if len(others) == 0:
        return IdSet.from_distinct(ids)
    return IdSet.from_distinct(ids.filter(pc.invert(pc.is_in(ids, value_set=others))))


def require_absent(change: GraphChange, committed: CommittedState) -> None:
    """Refuse a change that inserts entities which exist, of whatever types they are."""
    conflicts: list[tuple[str, str, str | None]] = []
    kind, count = TypeKind.NODE, 0
    for type_key, type_change in change.items():
        # What the writer has looked up itself, as for ids it has just drawn, needs no second look.
        if type_change.mode is not WriteMode.INSERT or type_change.known_copies is not None:
            continue
        is_there = committed.find_existing(type_key, type_change.written)
        if is_there.true_count:
            count += is_there.true_count
            kind = kind if conflicts else type_key.kind
            room = VIOLATIONS_SHOWN_MAX - len(conflicts)
            rows = pc.indices_nonzero(is_there).slice(0, room).to_pylist()
            conflicts += _iter_insert_conflicts(type_key, type_change, rows)
    if conflicts:
        (name, entity_id, place), *rest = conflicts
        others = [KeyConflictError.build_violation(*each) for each in rest]
        raise KeyConflictError(
            name, entity_id, place=place, others=others, count=count, entity_kind=str(kind)
        )


def _iter_insert_conflicts(
    type_key: TypeKey, change: TypeChange, rows: list[int]
) -> Iterator[tuple[str, str, str | None]]:
    for row in rows:
        place = None if change.origins is None else change.origins.location_of(row)
        yield type_key.name, change.rows[ID_COLUMN][row].as_py(), place

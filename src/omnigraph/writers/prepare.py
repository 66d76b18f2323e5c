"""From a change of entities to a transaction: checked against a view, with all it depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import KeyConflict
from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.view import View, tabled_types
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.storage.pins import Pin, Staged
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.versioning.effects import (
    ID_COLUMN,
    Append,
    Effect,
    Found,
    Overwrite,
    Part,
    Replace,
)
from omnigraph.versioning.footprint import Footprint, Reads, union
from omnigraph.versioning.idset import EMPTY, IdSet
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Signature
from omnigraph.versioning.transaction import BranchAt, Transaction
from omnigraph.writers.change import GraphChange, TypeChange, WriteMode
from omnigraph.writers.committed import Committed
from omnigraph.writers.keys import Keys
from omnigraph.writers.staging import Staging
from omnigraph.writers.validate import marks_of, validate

# From here on a change set names the data files of new rows instead of listing their ids.
BULK_ROWS_MIN: Final = 100_000


@dataclass(frozen=True, slots=True)
class Request:
    """What a write says besides its changes: what it read, who signs it, what it requires."""

    signature: Signature
    reads: Footprint = field(default_factory=dict)
    requires: tuple[BranchAt, ...] = ()


def prepare(
    change: GraphChange, view: View, keys: Keys, *, staging: Staging, request: Request
) -> Transaction:
    """A transaction that makes a change on a view, or the error that refuses it.

    Rows of any size are written ahead, many of them while they are checked: nobody sees them
    before the transaction is published, and what is refused is removed.
    """
    committed = Committed(view, keys, change)
    rows = {str(type_key): type_change.rows for type_key, type_change in change.items()}
    with staging.ahead(rows, view.snapshot.pins):
        reads = _validated(change, committed)
    effects: list[Effect] = []
    changes: dict[str, ChangeSet] = {}
    ids: dict[str, Reads] = {}
    for type_key, type_change in change.items():
        composed = _composed(type_key, type_change, committed, staging)
        effects.append(composed.effect)
        changes[str(type_key)] = composed.changes
        if isinstance(composed.changes, Bulk):
            ids[str(type_key)] = Reads(ids=composed.ids)
    return Transaction(
        snapshot=view.snapshot,
        effects=tuple(effects),
        changes=changes,
        footprint=union([request.reads, reads, ids]),
        requires=request.requires,
        signature=request.signature,
    )


def _validated(change: GraphChange, committed: Committed) -> Footprint:
    for type_key, type_change in change.items():
        # What the writer has looked up itself, as for ids it has just drawn, needs no second look.
        if type_change.mode is WriteMode.INSERT and type_change.known is None:
            _require_absent(type_key, type_change, committed)
    return validate(change, committed)


@dataclass(frozen=True, slots=True)
class _Composed:
    """What one type contributes to a transaction; `ids` are those it writes."""

    effect: Effect
    changes: ChangeSet
    ids: IdSet


def _require_absent(type_key: TypeKey, change: TypeChange, committed: Committed) -> None:
    ids = change.rows[ID_COLUMN].combine_chunks()
    is_there = committed.existing(type_key, ids)
    count = pc.sum(is_there).as_py() or 0
    if count:
        row = pc.index(is_there, value=True).as_py()
        place = None if change.origins is None else change.origins.place(row)
        raise KeyConflict(type_key.name, ids[row].as_py(), place=place, count=count)


def _composed(
    type_key: TypeKey, change: TypeChange, committed: Committed, staging: Staging
) -> _Composed:
    pin = committed.view.snapshot.pins[str(type_key)]
    ending = committed.ending(type_key)
    part = staging.part(pin, change.rows) if change.rows.num_rows else None
    parts = () if part is None else (part,)
    written = change.rows[ID_COLUMN].combine_chunks()
    effect = _effect(str(type_key), change, parts, pin=pin, ending=ending)
    if (bulk := _bulk(change, part, ending)) is not None:
        return _Composed(effect, bulk, IdSet.of_distinct(written))
    ended = ending[ID_COLUMN].combine_chunks()
    changes = Changed(
        inserted=_without(written, ended),
        updated=_common(written, ended),
        deleted=_without(ended, written),
        marks=_marks(type_key, change, committed),
    )
    return _Composed(effect, changes, IdSet.of_distinct(written))


def _effect(
    type_key: str, change: TypeChange, parts: tuple[Part, ...], *, pin: Pin, ending: pa.Table
) -> Effect:
    if change.mode is WriteMode.OVERWRITE:
        return Overwrite(type_key, parts)
    if ending.num_rows == 0:
        return Append(type_key, parts)
    row_ids = ending[ROW_ID].combine_chunks().cast(pa.uint64())
    found = Found(pin.version, row_ids)
    return Replace(type_key, IdSet.of_distinct(ending[ID_COLUMN].combine_chunks()), parts, found)


def _bulk(change: TypeChange, part: Part | None, ending: pa.Table) -> Bulk | None:
    """The change set of many rows that are all new; None when ids have to be told apart."""
    if not isinstance(part, Staged) or part.rows < BULK_ROWS_MIN:
        return None
    if change.mode is WriteMode.OVERWRITE:
        return Bulk(part.files, part.rows, replaces=True)
    return Bulk(part.files, part.rows) if ending.num_rows == 0 else None


def _marks(type_key: TypeKey, change: TypeChange, committed: Committed) -> IdSet | None:
    """What the written rows hold and the ended edges held that another write may have read."""
    type_ = tabled_types(committed.view.catalog)[type_key]
    held = marks_of(change.shape, type_, change.rows)
    ending = committed.ending(type_key)
    if type_key.kind is not TypeKind.EDGE or ending.num_rows == 0:
        return held
    ends = marks_of(change.shape, type_, ending.select([SOURCE_COLUMN, TARGET_COLUMN]))
    return None if held is None or ends is None else held.union(ends)


def _without(ids: pa.Array, others: pa.Array) -> IdSet:
    if len(ids) == 0:
        return EMPTY
    if len(others) == 0:
        return IdSet.of_distinct(ids)
    return IdSet.of_distinct(ids.filter(pc.invert(pc.is_in(ids, value_set=others))))


def _common(ids: pa.Array, others: pa.Array) -> IdSet:
    if len(ids) == 0 or len(others) == 0:
        return EMPTY
    return IdSet.of_distinct(ids.filter(pc.is_in(ids, value_set=others)))

"""A load that was found valid, as one transaction on the view it was compared with."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.constraint_checks import ConstraintCheckResult
from omnigraph.bulk.staged_load import StagedLoad, join_texts
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import EdgeType
from omnigraph.storage.tables.row_ids import ROW_ADDRESS, ROW_ID
from omnigraph.versioning.effects import ID_COLUMN, Append, Effect, LocatedRows, Overwrite, Replace
from omnigraph.versioning.footprint import NOTHING, WHOLE, ReadSet, unite_footprints
from omnigraph.versioning.id_sets import EMPTY, DeferredIds, IdSet
from omnigraph.versioning.record import Bulk, Changed, ChangeSet
from omnigraph.versioning.transaction import Transaction
from omnigraph.writers.graph_change import MARKS_MAX
from omnigraph.writers.load_records import LoadMode
from omnigraph.writers.prepare import BULK_ROWS_MIN, Request
from omnigraph.writers.validate.unique_groups import groups_of, marks_of


def build_load_transaction(
    load: StagedLoad, examined: ConstraintCheckResult, view: View, request: Request
) -> Transaction:
    """The transaction of a load; what it depends on is listed, or read when another commit asks."""
    effects: list[Effect] = []
    changes: dict[str, ChangeSet] = {}
    reads: dict[str, ReadSet] = {}
    for type_key in load.list_types(view):
        if load.count_rows(type_key) or load.job.mode is LoadMode.OVERWRITE:
            part = _build_type_commit(_TypeLoad(load, examined, view, type_key))
            effects.append(part.effect)
            changes[str(type_key)] = part.changes
            reads[str(type_key)] = part.reads
    present = {
        str(type_key): _build_present_reads(ids) for type_key, ids in examined.present_nodes.items()
    }
    looked = {str(type_key): WHOLE for type_key in examined.scanned_types}
    return Transaction(
        snapshot=view.snapshot,
        effects=tuple(effects),
        changes=changes,
        footprint=unite_footprints([request.reads, reads, present, looked]),
        requires=request.requires,
        signature=request.signature,
    )


@dataclass(frozen=True, slots=True)
class _TypeLoad:
    """One type of a load."""

    load: StagedLoad
    checks: ConstraintCheckResult
    view: View
    type_key: TypeKey


@dataclass(frozen=True, slots=True)
class _TypeCommit:
    """What one type contributes to the transaction."""

    effect: Effect
    changes: ChangeSet
    reads: ReadSet = NOTHING


def _build_type_commit(found: _TypeLoad) -> _TypeCommit:
    load, name = found.load, str(found.type_key)
    pin, rows = found.view.snapshot.pins[name], load.count_rows(found.type_key)
    staged = load.list_staged(found.type_key)
    bulk = Bulk(tuple(file for part in staged for file in part.list_files), rows)
    if load.job.mode is LoadMode.OVERWRITE:
        effect: Effect = Overwrite(name, staged)
        if rows and max(rows, pin.rows) >= BULK_ROWS_MIN:
            return _TypeCommit(effect, Bulk(bulk.files, rows, replaces=True))
        ended = join_texts(
            found.view.open_table(found.type_key).scan(columns=[ID_COLUMN])[ID_COLUMN]
        )
        return _TypeCommit(effect, _build_changed(found, ended, marks=None))
    copies = found.checks.copies.get(found.type_key)
    if copies is None:
        effect = Append(name, staged)
        if rows >= BULK_ROWS_MIN:
            ids = DeferredIds(rows, lambda: IdSet.from_distinct(load.read_ids(found.type_key)))
            return _TypeCommit(effect, bulk, ReadSet(ids=ids))
        inserted = IdSet.from_distinct(load.read_ids(found.type_key))
        return _TypeCommit(effect, Changed(inserted=inserted, marks=_build_marks(found, None)))
    ended = join_texts(copies[ID_COLUMN])
    row_ids = copies[ROW_ID].combine_chunks().cast(pa.uint64())
    known = ROW_ADDRESS in copies.column_names
    addresses = copies[ROW_ADDRESS].combine_chunks() if known else None
    places = LocatedRows(pin.version, row_ids, addresses)
    effect = Replace(name, IdSet.from_distinct(ended), staged, places)
    return _TypeCommit(effect, _build_changed(found, ended, marks=_build_marks(found, copies)))


def _build_changed(found: _TypeLoad, ended: pa.Array, *, marks: IdSet | None) -> Changed:
    """The ids of a type, by what happens to them."""
    rows = found.load.count_rows(found.type_key)
    written = found.load.read_ids(found.type_key) if rows else ended.slice(0, 0)
    is_known = pc.is_in(written, value_set=ended)
    gone = ended.filter(pc.invert(pc.is_in(ended, value_set=written)))
    return Changed(
        inserted=IdSet.from_distinct(written.filter(pc.invert(is_known))),
        updated=IdSet.from_distinct(written.filter(is_known)),
        deleted=IdSet.from_distinct(gone) if len(gone) else EMPTY,
        marks=marks,
    )


def _build_marks(found: _TypeLoad, copies: pa.Table | None) -> IdSet | None:
    """What the rows hold and the ended edges held that another write may have read."""
    type_, shape = found.view.types[found.type_key], found.view.get_shape(found.type_key)
    most = max(found.load.count_rows(found.type_key), 0 if copies is None else copies.num_rows)
    if most > MARKS_MAX:
        return None
    ends = [SOURCE_COLUMN, TARGET_COLUMN] if isinstance(type_, EdgeType) else []
    grouped = [column for group in groups_of(shape, type_) for column in group.columns]
    columns = list(dict.fromkeys([ID_COLUMN, *ends, *grouped]))
    held = marks_of(shape, type_, found.load.read_columns(found.type_key, columns))
    if copies is None or not ends or held is None:
        return held
    former = marks_of(shape, type_, copies.select(ends))
    return None if former is None else held.union(former)


def _build_present_reads(ids: pa.ChunkedArray | None) -> ReadSet:
    return ReadSet(keeps_all=True) if ids is None else ReadSet(present=IdSet(ids))

"""The three-way comparison: one function for merges, cherry-picks and reverts."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.change_candidates import find_candidates, read_bulk_ids
from omnigraph.changes.type_difference import Counts
from omnigraph.changes.type_pairs import TypePair, pair_types
from omnigraph.errors import HistoryGoneError
from omnigraph.rows.view import table_types_of
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.footprint import ReadSet, unite_footprints
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.record import (
    Bulk,
    Changed,
    ChangeSet,
    Maintenance,
    MergeDecision,
    Record,
    Spilled,
)
from omnigraph.writers import prepare
from omnigraph.writers.filled_columns import find_filled_columns, find_time_ms
from omnigraph.writers.graph_change import GraphChange, TypeChange
from omnigraph.writers.merge.conflict_decisions import Decision
from omnigraph.writers.merge.conflict_kinds import MergeAction
from omnigraph.writers.merge.counted_bases import list_counters
from omnigraph.writers.merge.decided_rows import EDITS, edit_type_change
from omnigraph.writers.merge.merge_choices import MergeChoices
from omnigraph.writers.merge.merge_conflicts import (
    MergeConflicts,
    join_conflicts,
    list_row_conflicts,
    list_schema_conflicts,
)
from omnigraph.writers.merge.merge_sides import MergeSides
from omnigraph.writers.merge.merged_schema import (
    MergedSchema,
    MergedType,
    merge_view_schemas,
)
from omnigraph.writers.merge.property_rules import MixedEntity, list_mixed_entities
from omnigraph.writers.merge.row_rules import (
    RowOutcomes,
    build_type_change,
    find_adoptable,
    resolve_rows,
)

# A screen of entities that are merged from both sides; all of them are counted.
MIXED_LISTED_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class MixedEntities:
    """How many entities get values of both sides, and the first of them."""

    count: int = 0
    listed: tuple[MixedEntity, ...] = ()


@dataclass(frozen=True)
class MergedChange:
    """What a merge does, under the names of the merged schema.

    Where there are conflicts, ours stays as it is in `change`. `adopted` are the tables that become
    what theirs made of them, and `forwarded` those of them whose change set is known without a look
    at rows. `reads` are what the verdicts depend on in ours, by the names there; `preferred` are
    the preferences that decided a conflict.
    """

    sides: MergeSides
    schema: MergedSchema
    change: GraphChange
    adopted: Mapping[TypeKey, Pin]
    forwarded: Mapping[TypeKey, ChangeSet]
    counts: Mapping[TypeKey, Counts]
    reads: Mapping[str, ReadSet]
    preferred: Mapping[str, str]
    mixed: MixedEntities
    conflicts: MergeConflicts
    decisions: tuple[MergeDecision, ...] = ()


def merge_three_way(
    sides: MergeSides, choices: MergeChoices, *, is_forward: bool = False
) -> MergedChange:
    """Bring what theirs changed since the base into ours; `is_forward` says ours is as the base."""
    by_name = sides.is_matched_by_name
    schema = merge_view_schemas(sides.base, sides.ours, sides.theirs, by_name=by_name)
    forwarded = find_fast_forwards(sides, schema) if is_forward else {}
    verdicts = list(_iter_outcomes(sides, schema, choices, known=forwarded))
    edits = _list_edits(choices)
    pins = {
        key: None if key in edits else find_adoptable(type_, schema, sides)
        for key, type_ in schema.types.items()
    }
    changes = {
        each.type_.key: build_type_change(each, adopted=pins[each.type_.key]) for each in verdicts
    }
    for key, decisions in edits.items():
        declared = table_types_of(schema.accepted.catalog)[key]
        own = changes.get(key)
        changes[key] = edit_type_change(own, declared, schema.types[key], sides, decisions)
    change = {
        key: _fill_taken_rows(each, schema.types[key], schema, sides)
        for key, each in changes.items()
        if each is not None
    }
    new = (key for key, type_ in schema.types.items() if type_.ours is None)
    used = set().union(*(each.list_preferred(choices.prefer) for each in verdicts))
    return MergedChange(
        sides=sides,
        schema=schema,
        change=change,
        adopted={key: pin for key in (*forwarded, *change, *new) if (pin := pins[key]) is not None},
        forwarded=forwarded,
        counts=_count_types(sides, schema, verdicts, forwarded)
        | {key: _count_edited(changes[key]) for key in edits},
        reads=unite_footprints([dict(_iter_reads(verdicts)), _read_edited(schema, edits)]),
        preferred={kind: choices.prefer[kind] for kind in sorted(used)},
        mixed=_list_mixed(verdicts),
        decisions=choices.recorded,
        conflicts=join_conflicts(
            [list_schema_conflicts(schema.conflicts), list_row_conflicts(verdicts, sides.action)]
        ),
    )


def _list_edits(choices: MergeChoices) -> dict[TypeKey, list[Decision]]:
    """The decisions that no side has, by type."""
    found: dict[TypeKey, list[Decision]] = {}
    for each in choices.decisions:
        if each.take in EDITS:
            found.setdefault(each.type_key, []).append(each)
    return found


def _count_edited(change: TypeChange | None) -> Counts:
    """What happens to a type after decisions."""
    if change is None or change.known_copies is None:
        return Counts()
    is_there = pc.is_in(change.written, value_set=change.known_copies[ID_COLUMN])
    updated = pc.sum(is_there).as_py() or 0
    return Counts(len(change.rows) - updated, updated, len(change.deleted))


def _read_edited(
    schema: MergedSchema, edits: Mapping[TypeKey, Sequence[Decision]]
) -> dict[str, ReadSet]:
    """What decisions depend on in ours: the entities that they are about."""
    found = {}
    for key, decisions in edits.items():
        ours = schema.types[key].ours
        if ours is not None:
            ids = pa.array(sorted({each.entity_id for each in decisions}), pa.utf8())
            found[str(ours.key)] = ReadSet(ids=IdSet(ids))
    return found


def _fill_taken_rows(
    change: TypeChange, type_: MergedType, schema: MergedSchema, sides: MergeSides
) -> TypeChange:
    """A change whose rows have the defaults of required properties that theirs does not have."""
    theirs, accepted = type_.theirs, sides.theirs.accepted
    if change.adopted is not None or theirs is None:
        return change
    now = find_time_ms(sides.ours.snapshot)
    filled = find_filled_columns(accepted, theirs.key, schema.accepted, type_.key, now=now)
    return change if filled is None else replace(change, rows=filled.fill_rows(change.rows))


def _iter_outcomes(
    sides: MergeSides,
    schema: MergedSchema,
    choices: MergeChoices,
    *,
    known: Collection[TypeKey],
) -> Iterator[RowOutcomes]:
    asked = [type_ for key, type_ in schema.types.items() if key not in known]
    by_theirs = {each.theirs.key: each for each in asked if each.theirs is not None}
    for pair, ids in _list_candidates(sides, by_theirs):
        type_ = None if pair.new is None else by_theirs.get(pair.new)
        # A type that either side has dropped is about the schema.
        if type_ is not None and not _is_fast_forward(type_, sides):
            yield resolve_rows(type_, schema, sides, ids, choices)


def _list_candidates(
    sides: MergeSides, wanted: Container[TypeKey]
) -> list[tuple[TypePair, pa.Array]]:
    """The ids that theirs may have changed since the base, by type; some types, by their names."""
    pairs = pair_types(sides.base, sides.theirs, sides.lineage)
    pairs = [pair for pair in pairs if pair.new is not None and pair.new in wanted]
    return list(find_candidates(sides.base, sides.theirs, sides.lineage, pairs=pairs))


def _is_fast_forward(type_: MergedType, sides: MergeSides) -> bool:
    if type_.ours is None or type_.theirs is None:
        return False
    if list_counters(type_) and sides.action is MergeAction.MERGE:
        # Equal counts of both sides add up, also where a pick took the table of theirs.
        return False
    mine = sides.ours.snapshot.pins[str(type_.ours.key)]
    return mine == sides.theirs.snapshot.pins[str(type_.theirs.key)]


def _count_types(
    sides: MergeSides,
    schema: MergedSchema,
    verdicts: Iterable[RowOutcomes],
    forwarded: Mapping[TypeKey, ChangeSet],
) -> dict[TypeKey, Counts]:
    """What happens to each type, in the order of types."""
    found = {each.type_.key: _count_outcomes(each) for each in verdicts}
    for key, change in forwarded.items():
        ours = schema.types[key].ours
        rows = 0 if ours is None else sides.ours.snapshot.pins[str(ours.key)].rows
        found[key] = count_change(change, rows_before=rows)
    return {key: found[key] for key in schema.types if key in found and found[key].total}


def _list_mixed(verdicts: list[RowOutcomes]) -> MixedEntities:
    listed: list[MixedEntity] = []
    for each in verdicts:
        room = MIXED_LISTED_MAX - len(listed)
        listed += list_mixed_entities(each.mixed, each.type_, each.ids, listed_max=room)
    count = sum(int(np.count_nonzero(each.mixed.is_of_both)) for each in verdicts)
    return MixedEntities(count, tuple(listed))


def _count_outcomes(verdicts: RowOutcomes) -> Counts:
    is_new = verdicts.is_written & ~verdicts.ours.is_there
    inserted = int(np.count_nonzero(is_new))
    written = int(np.count_nonzero(verdicts.is_written))
    return Counts(inserted, written - inserted, int(np.count_nonzero(verdicts.is_deleted)))


def _iter_reads(verdicts: list[RowOutcomes]) -> Iterator[tuple[str, ReadSet]]:
    for each in verdicts:
        if each.type_.ours is not None and len(each.ids):
            yield str(each.type_.ours.key), ReadSet(ids=IdSet(each.ids))


@dataclass(frozen=True, slots=True)
class _TypeCommit:
    """What a commit changed of a type, and the version that it made."""

    change: ChangeSet
    pin: Pin | None


def find_fast_forwards(sides: MergeSides, schema: MergedSchema) -> dict[TypeKey, ChangeSet]:
    """The types that become theirs and are large and new, or that only one commit changed.

    Each has its change set. No rows are read, however many there are, and ids only of a bulk load
    that was compacted. Ours must be as the base is.
    """
    changes = _group_changes(_list_source_records(sides))
    found: dict[TypeKey, ChangeSet] = {}
    for key, type_ in schema.types.items():
        made = _find_single_change(type_, sides, changes)
        pin = None if made is None else find_adoptable(type_, schema, sides)
        if made is not None and pin is not None:
            found[key] = _build_change_at(pin, made, sides.theirs.tables)
    return found


def count_change(change: ChangeSet, *, rows_before: int) -> Counts:
    """How many entities a change set inserted, updated and deleted."""
    match change:
        case Changed():
            return Counts(len(change.inserted), len(change.updated), len(change.deleted))
        case Spilled():
            return Counts(change.inserted, change.updated, change.deleted)
        case Bulk():
            return Counts(change.rows, 0, rows_before if change.replaces else 0)
        case Maintenance():
            return Counts()
        case _:
            assert_never(change)


def _list_source_records(sides: MergeSides) -> list[Record]:
    """The commits of theirs since the base, if types have one name in all of them."""
    if not sides.do_theirs_descend:
        return []
    try:
        records = sides.lineage.read_between(sides.theirs.snapshot, sides.base.snapshot.seq)
    except HistoryGoneError:
        return []
    is_named_anew = any(each.registered or each.dropped or each.renamed for each in records)
    return [] if is_named_anew else records


def _group_changes(records: list[Record]) -> Mapping[str, list[_TypeCommit]]:
    found: dict[str, list[_TypeCommit]] = {}
    for record in records:
        for type_key, change in record.changes.items():
            if not isinstance(change, Maintenance):
                found.setdefault(type_key, []).append(
                    _TypeCommit(change, record.pins.get(type_key))
                )
    return found


def _find_single_change(
    type_: MergedType, sides: MergeSides, changes: Mapping[str, list[_TypeCommit]]
) -> _TypeCommit | None:
    """The one change of a type, if there is one."""
    if type_.theirs is None:
        return None
    name = str(type_.theirs.key)
    if type_.ours is not None:
        found = changes.get(name, [])
        return found[0] if len(found) == 1 else None
    pin = sides.theirs.snapshot.pins[name]
    # A change of all entities does not list their ids.
    is_large = pin.rows >= prepare.BULK_ROWS_MIN
    return _TypeCommit(Bulk((), pin.rows, replaces=True), pin) if is_large else None


def _build_change_at(pin: Pin, made: _TypeCommit, tables: Tables) -> ChangeSet:
    """A change set for a later version, which after a compaction has not its files any more."""
    change = made.change
    if not isinstance(change, Bulk) or made.pin is None or made.pin == pin:
        return change
    if tables.list_references(pin).issuperset(change.files):
        return change
    if change.replaces:
        return replace(change, files=())
    return Changed(inserted=read_bulk_ids(change, made.pin, tables))

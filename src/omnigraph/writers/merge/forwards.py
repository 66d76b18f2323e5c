"""Fast-forwards of types whose change set is known: one commit made it, or all rows are new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from omnigraph.errors import HistoryGoneError
from omnigraph.execution.changes import Counts, read_bulk_ids
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.pins import Pin
from omnigraph.storage.tables import Tables
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Maintenance, Record, Spilled
from omnigraph.writers import prepare
from omnigraph.writers.merge.changes import find_adoptable
from omnigraph.writers.merge.schemas import MergedSchema, MergedType
from omnigraph.writers.merge.sides import MergeSides


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
    # Where everybody is meant, nobody needs to be named.
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

"""Fast-forwards of types that one commit changed: its change set is that of the merge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from omnigraph.errors import HistoryGone
from omnigraph.execution.changes import Counts
from omnigraph.schema.accepted import TypeKey
from omnigraph.versioning.record import Bulk, Changed, ChangeSet, Maintenance, Record, Spilled
from omnigraph.writers.merge.changes import adoptable
from omnigraph.writers.merge.schemas import MergedSchema
from omnigraph.writers.merge.sides import Sides


def forwards(sides: Sides, schema: MergedSchema) -> dict[TypeKey, ChangeSet]:
    """The types that become theirs and that only one commit changed, with what it changed.

    Neither ids nor rows are read, however many there are. Ours must be as the base is.
    """
    changes = _changes(_records(sides))
    return {
        key: found[0]
        for key, type_ in schema.types.items()
        if type_.ours is not None and type_.theirs is not None
        if len(found := changes.get(str(type_.theirs.key), [])) == 1
        if adoptable(type_, schema, sides) is not None
    }


def counts_of(change: ChangeSet, *, rows_before: int) -> Counts:
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


def _records(sides: Sides) -> list[Record]:
    """The commits of theirs since the base, if types have one name in all of them."""
    if not sides.do_theirs_descend:
        return []
    try:
        records = sides.lineage.between(sides.theirs.snapshot, sides.base.snapshot.seq)
    except HistoryGone:
        return []
    is_named_anew = any(each.registered or each.dropped or each.renamed for each in records)
    return [] if is_named_anew else records


def _changes(records: list[Record]) -> Mapping[str, list[ChangeSet]]:
    found: dict[str, list[ChangeSet]] = {}
    for record in records:
        for type_key, change in record.changes.items():
            if not isinstance(change, Maintenance):
                found.setdefault(type_key, []).append(change)
    return found

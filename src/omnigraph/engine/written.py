"""How many entities a commit changed, by its change sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from omnigraph.execution.changes import Counts
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.versioning import Bulk, Changed, ChangeSet, Maintenance, Record, Spilled


def counts_of(record: Record) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """How many entities of which node and edge types a commit wrote."""
    written: dict[TypeKind, dict[str, int]] = {TypeKind.NODE: {}, TypeKind.EDGE: {}}
    for type_key, counts in changes_of(record).items():
        if count := counts.inserted + counts.updated:
            written[type_key.kind][type_key.name] = count
    return written[TypeKind.NODE], written[TypeKind.EDGE]


def changes_of(record: Record) -> dict[TypeKey, Counts]:
    """How many entities of which types a commit changed; a bulk load does not say what it ended."""
    found: dict[TypeKey, Counts] = {}
    for name, change in sorted(record.changes.items(), key=lambda each: each[0], reverse=True):
        if (counts := _count_changes(change)).total:
            kind, _, type_name = name.partition(":")
            found[TypeKey(TypeKind(kind), type_name)] = counts
    return found


def _count_changes(change: ChangeSet) -> Counts:
    match change:
        case Changed():
            return Counts(len(change.inserted), len(change.updated), len(change.deleted))
        case Spilled():
            return Counts(change.inserted, change.updated, change.deleted)
        case Bulk():
            return Counts(inserted=change.rows)
        case Maintenance():
            return Counts()
        case _:
            assert_never(change)

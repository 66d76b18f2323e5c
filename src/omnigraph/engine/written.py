"""How many entities a commit wrote, by its change sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from omnigraph.schema.accepted import TypeKind
from omnigraph.versioning import Bulk, Changed, ChangeSet, Maintenance, Record, Spilled


def counts_of(record: Record) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """How many entities of which node and edge types a commit wrote."""
    counts: dict[TypeKind, dict[str, int]] = {TypeKind.NODE: {}, TypeKind.EDGE: {}}
    for type_key, change in record.changes.items():
        kind, _, name = type_key.partition(":")
        if count := _count(change):
            counts[TypeKind(kind)][name] = count
    return counts[TypeKind.NODE], counts[TypeKind.EDGE]


def _count(change: ChangeSet) -> int:
    match change:
        case Changed():
            return len(change.inserted) + len(change.updated)
        case Spilled():
            return change.inserted + change.updated
        case Bulk():
            return change.rows
        case Maintenance():
            return 0
        case _:
            assert_never(change)

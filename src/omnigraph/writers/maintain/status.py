"""What the tables of a view have of the indexes that its schema asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.shape import JsonObject
from omnigraph.storage.table import Table
from omnigraph.writers.maintain.declared import INDEX_KIND, DeclaredIndex, list_declared_indexes


class IndexState(StrEnum):
    """How far an index is."""

    # It covers every row.
    FRESH = "fresh"
    # Rows were written since; they are found without it.
    STALE = "stale"
    # It is not built yet.
    ABSENT = "absent"
    # It cannot be built yet.
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """An index that cannot be built yet, and why."""

    type_key: TypeKey
    property: str
    reason: str

    def to_json(self) -> JsonObject:
        """The entry of a pending index in a document."""
        return {"type_key": str(self.type_key), "property": self.property, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One declared index at one version of its table; a reason is given for a pending one."""

    type_key: TypeKey
    property: str
    covered_rows: int
    total_rows: int
    state: IndexState
    reason: str | None = None

    def to_json(self) -> JsonObject:
        """The entry of an index in the document of all."""
        return {
            "type_key": str(self.type_key),
            "property": self.property,
            "kind": INDEX_KIND,
            "covered_rows": self.covered_rows,
            "total_rows": self.total_rows,
            "state": self.state.value,
            "reason": self.reason,
        }


def list_index_status(view: View) -> list[IndexStatus]:
    """Every declared index: node types by name, then edge types, each in the order of its own."""
    return [
        status
        for key, declared in list_declared_indexes(view).items()
        for status in _iter_table_status(view.open_table(key), declared)
    ]


def find_pending_reason(table: Table) -> str | None:
    """Why no index can be built on a version; None when they can."""
    return None if table.count() else "the type has no rows yet"


def _iter_table_status(table: Table, declared: tuple[DeclaredIndex, ...]) -> Iterator[IndexStatus]:
    known = {index.name: index for index in table.indexes}
    for each in declared:
        index = known.get(each.spec.name)
        covered, reason = 0, None
        if index is not None:
            covered = table.count_covered_rows(index)
            state = IndexState.STALE if index.uncovered else IndexState.FRESH
        else:
            reason = find_pending_reason(table)
            state = IndexState.ABSENT if reason is None else IndexState.PENDING
        yield IndexStatus(each.type_key, each.property, covered, table.count(), state, reason)

"""Ours under the merged schema, as the rules are held against it before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey
from omnigraph.storage.pins import Pin
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.schemas import StoredSchema
from omnigraph.writers.change import NO_EDGE_COPIES, GraphChange
from omnigraph.writers.committed import CommittedState
from omnigraph.writers.keys import KeyCache
from omnigraph.writers.merge.schemas import MergedSchema

# A table that nobody has made: it has no rows, and is never opened.
_NO_TABLE: Final = Pin(path="", version="0" * 16, rows=0, fragments=0, high_water=0)


class MergedSchemaState(CommittedState):
    """What is committed on ours, by the names and with the types of a merged schema.

    Types that are new on ours have nobody, and properties that are new there no values.
    """

    def __init__(
        self, merged: MergedSchema, ours: View, keys: KeyCache, change: GraphChange
    ) -> None:
        super().__init__(_build_merged_view(merged, ours), keys, change)
        self._merged = merged

    def find_edges_at(self, type_key: TypeKey, end: str, ids: pa.Array) -> pa.Table:
        """The committed edges that have one of the nodes at an end."""
        if self._merged.types[type_key].ours is None:
            return NO_EDGE_COPIES
        return super().find_edges_at(type_key, end, ids)

    def find_value_rows(
        self, type_key: TypeKey, columns: Sequence[str], values: pa.Array
    ) -> pa.Table:
        """The committed rows that hold one of the values in the first column: `__id`, columns."""
        # Whoever lacks a member of a unique group holds no tuple of it.
        if not self._list_stored_columns(type_key).issuperset(columns):
            shape = self._merged.types[type_key].shape.schema
            names = dict.fromkeys([ID_COLUMN, *columns])
            return pa.schema([shape.field(name) for name in names]).empty_table()
        return super().find_value_rows(type_key, columns, values)

    def _list_stored_columns(self, type_key: TypeKey) -> frozenset[str]:
        """The columns of a table; one of a property that was dropped and is back is among them."""
        if self._merged.types[type_key].ours is None:
            return frozenset()
        return frozenset(self.view.open_table(type_key).schema.names)


def _build_merged_view(merged: MergedSchema, ours: View) -> View:
    if merged.is_ours:
        return ours
    before = ours.snapshot.pins
    pins = {
        str(key): _NO_TABLE if type_.ours is None else before[str(type_.ours.key)]
        for key, type_ in merged.types.items()
    }
    # Nobody asks for it by its digest: it is not stored.
    schema = StoredSchema("", merged.source, merged.accepted)
    return View(replace(ours.snapshot, pins=pins), schema, ours.tables)

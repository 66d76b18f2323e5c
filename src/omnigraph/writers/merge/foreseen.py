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
from omnigraph.writers.committed import Committed
from omnigraph.writers.keys import Keys
from omnigraph.writers.merge.schemas import MergedSchema

# A table that nobody has made: it has no rows, and is never opened.
_NO_TABLE: Final = Pin(path="", version="0" * 16, rows=0, fragments=0, high_water=0)


class Foreseen(Committed):
    """What is committed on ours, by the names and with the types of a merged schema.

    Types that are new on ours have nobody, and properties that are new there no values.
    """

    def __init__(self, merged: MergedSchema, ours: View, keys: Keys, change: GraphChange) -> None:
        super().__init__(_foreseen(merged, ours), keys, change)
        self._merged = merged

    def edges_at(self, type_key: TypeKey, end: str, ids: pa.Array) -> pa.Table:
        """The committed edges that have one of the nodes at an end."""
        if self._merged.types[type_key].ours is None:
            return NO_EDGE_COPIES
        return super().edges_at(type_key, end, ids)

    def holders(self, type_key: TypeKey, columns: Sequence[str], values: pa.Array) -> pa.Table:
        """The committed rows that hold one of the values in the first column: `__id`, columns."""
        # Whoever lacks a member of a unique group holds no tuple of it.
        if not self._stored(type_key).issuperset(columns):
            shape = self._merged.types[type_key].shape.schema
            names = dict.fromkeys([ID_COLUMN, *columns])
            return pa.schema([shape.field(name) for name in names]).empty_table()
        return super().holders(type_key, columns, values)

    def _stored(self, type_key: TypeKey) -> frozenset[str]:
        """The columns of a table; one of a property that was dropped and is back is among them."""
        if self._merged.types[type_key].ours is None:
            return frozenset()
        return frozenset(self.view.table(type_key).schema.names)


def _foreseen(merged: MergedSchema, ours: View) -> View:
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

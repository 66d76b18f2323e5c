"""What is committed, as far as a write needs to know: who exists, who ends, what is at whom."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.storage.row_ids import ROW_ID
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.change import GraphChange, TypeChange, WriteMode
from omnigraph.writers.keys import Keys

_COPY = pa.schema([pa.field(ID_COLUMN, pa.utf8()), pa.field(ROW_ID, pa.uint64())])
_NOBODY = _COPY.empty_table()


class Committed:
    """A view seen by one write; every look-up is made once."""

    def __init__(self, view: View, keys: Keys, change: GraphChange) -> None:
        self.view = view
        self._keys = keys
        self._change = change
        self._ending: dict[TypeKey, pa.Table] = {}

    def existing(self, type_key: TypeKey, ids: pa.Array) -> pa.Array:
        """Which of the ids are committed, as a mask."""
        return self._keys.existing(self.view, type_key, ids)

    def copies(self, type_key: TypeKey, ids: pa.Array) -> pa.Table:
        """The `__id` and `_rowid` of the committed ones among the ids."""
        if len(ids) == 0 or self.view.snapshot.pins[str(type_key)].rows == 0:
            return _NOBODY
        # The set in memory rules most new ids out; who exists has to be found for its row id.
        known = ids
        if len(ids) <= _FEW_IDS:
            is_there = self.existing(type_key, ids)
            if not is_there.true_count:
                return _NOBODY
            known = ids.filter(is_there)
        return self.view.table(type_key).find(ID_COLUMN, known)

    def ending(self, type_key: TypeKey) -> pa.Table:
        """The committed copies that the write replaces or deletes: `__id`, `_rowid`, edge ends."""
        if type_key not in self._ending:
            self._ending[type_key] = self._with_ends(type_key, self._found_ending(type_key))
        return self._ending[type_key]

    def edges_at(self, type_key: TypeKey, end: str, ids: pa.Array) -> pa.Table:
        """The committed edges that have one of the nodes at an end."""
        names = [ID_COLUMN, SOURCE_COLUMN, TARGET_COLUMN, ROW_ID]
        return self.view.table(type_key).find(end, ids, columns=names)

    def holders(self, type_key: TypeKey, columns: Sequence[str], values: pa.Table) -> pa.Table:
        """The committed rows that hold one of the values of the first column: `__id`, columns."""
        first = columns[0]
        wanted = values[first].combine_chunks()
        names = list(dict.fromkeys([ID_COLUMN, *columns]))
        return self.view.table(type_key).find(first, wanted, columns=names)

    def _found_ending(self, type_key: TypeKey) -> pa.Table:
        change = self._change.get(type_key)
        if change is None:
            return _NOBODY
        if change.mode is WriteMode.OVERWRITE:
            return self.view.table(type_key).scan(columns=[ID_COLUMN, ROW_ID])
        if change.known is not None:
            return change.known.select([ID_COLUMN, ROW_ID])
        return self.copies(type_key, _ids_that_may_end(change))

    def _with_ends(self, type_key: TypeKey, found: pa.Table) -> pa.Table:
        if type_key.kind is not TypeKind.EDGE:
            return found
        ends = [SOURCE_COLUMN, TARGET_COLUMN]
        if found.num_rows:
            rows = self.view.table(type_key).take(found[ROW_ID].combine_chunks(), columns=ends)
        else:
            rows = pa.schema([(name, pa.utf8()) for name in ends]).empty_table()
        return found.append_column(ends[0], rows[ends[0]]).append_column(ends[1], rows[ends[1]])


# More ids than this are looked for by one scan, which needs no set of known ids.
_FEW_IDS = 10_000


def _ids_that_may_end(change: TypeChange) -> pa.Array:
    """Every id whose committed copy the write takes away; a strict insert takes none."""
    if change.mode is WriteMode.INSERT:
        return change.deleted
    written = change.rows[ID_COLUMN].combine_chunks()
    if not len(change.deleted):
        return written
    return pc.unique(pa.concat_arrays([written, change.deleted.cast(written.type)]))

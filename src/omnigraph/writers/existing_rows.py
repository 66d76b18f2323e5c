"""The committed state that a write needs: existing ids, replaced rows and edges of a node."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, KeyConflictError
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import Cardinality, EdgeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import (
    EDGE_COPIES,
    MARKS_MAX,
    NO_COPIES,
    NO_EDGE_COPIES,
    GraphChange,
    TypeChange,
    WriteMode,
)
from omnigraph.writers.key_cache import KeyCache


class CommittedState:
    """A view seen by one write; what the write ends is looked up once."""

    def __init__(
        self, view: View, keys: KeyCache, change: GraphChange, *, fills_vectors: bool = False
    ) -> None:
        self.view = view
        self.keys = keys
        # Whether the write gets the vectors of its texts before it is checked.
        self.fills_vectors = fills_vectors
        self._change = change
        self._ending: dict[TypeKey, pa.Table] = {}

    def find_existing(self, type_key: TypeKey, ids: pa.Array) -> pa.Array:
        """Which of the ids are committed, as a mask."""
        return self.keys.find_existing(self.view, type_key, ids)

    def find_copies(self, type_key: TypeKey, ids: pa.Array, none: pa.Table = NO_COPIES) -> pa.Table:
        """The committed ones among the ids, with the columns of a table that holds none of them."""
        if len(ids) == 0 or self.view.snapshot.pins[str(type_key)].rows == 0:
            return none
        # The set in memory rules most new ids out; an existing one is looked up for its row id.
        known = ids
        is_there = self.keys.find_cached(self.view, type_key, ids)
        if is_there is not None:
            if not is_there.true_count:
                return none
            known = ids.filter(is_there)
        names = none.column_names
        return self.view.open_table(type_key).find(ID_COLUMN, known, columns=names)

    def get_ending(self, type_key: TypeKey) -> pa.Table:
        """The committed copies that the write replaces or deletes: `__id`, `_rowid`, `_rowaddr`.

        Edges come with both ends if a cardinality or the marks of the write need them. `_rowaddr`
        is missing where the write says the copies without it.
        """
        if type_key not in self._ending:
            self._ending[type_key] = self._find_ending(type_key)
        return self._ending[type_key]

    def find_edges_at(self, type_key: TypeKey, end: str, ids: pa.Array) -> pa.Table:
        """The committed edges that have one of the nodes at an end."""
        return self.view.open_table(type_key).find(end, ids, columns=EDGE_COPIES.names)

    def find_value_rows(
        self, type_key: TypeKey, columns: Sequence[str], values: pa.Array
    ) -> pa.Table:
        """The committed rows that hold one of the values in the first column: `__id`, columns."""
        names = list(dict.fromkeys([ID_COLUMN, *columns]))
        return self.view.open_table(type_key).find(columns[0], values, columns=names)

    def _find_ending(self, type_key: TypeKey) -> pa.Table:
        change = self._change.get(type_key)
        if change is None:
            return NO_COPIES
        none = NO_EDGE_COPIES if self._needs_ends(type_key, change) else NO_COPIES
        if change.mode is WriteMode.OVERWRITE:
            return self.view.open_table(type_key).scan(columns=none.column_names)
        if change.known_copies is None:
            return self.find_copies(type_key, _list_ending_ids(change), none)
        if not len(change.known_copies):
            return none
        known = change.known_copies
        return known.select([name for name in none.column_names if name in known.column_names])

    def _needs_ends(self, type_key: TypeKey, change: TypeChange) -> bool:
        type_ = self.view.types[type_key]
        if not isinstance(type_, EdgeType):
            return False
        if type_.cardinality != Cardinality():
            return True
        is_overwrite = change.mode is WriteMode.OVERWRITE
        pin = self.view.snapshot.pins[str(type_key)]
        written: int = change.rows.num_rows
        most = pin.rows if is_overwrite else written + len(change.deleted)
        return max(most, written) <= MARKS_MAX


def _list_ending_ids(change: TypeChange) -> pa.Array:
    """Every id whose committed copy the write takes away; a strict insert takes none."""
    if change.mode is WriteMode.INSERT:
        return change.deleted
    written = change.written
    if not len(change.deleted):
        return written
    return pc.unique(pa.concat_arrays([written, change.deleted.cast(written.type)]))


def build_key_conflict(type_key: TypeKey, ids: Sequence[str]) -> KeyConflictError:
    """The error of a `create` whose entities exist, or are created twice."""
    others = [
        KeyConflictError.build_violation(type_key.name, each, None)
        for each in ids[1:VIOLATIONS_SHOWN_MAX]
    ]
    return KeyConflictError(
        type_key.name,
        ids[0],
        others=others,
        count=len(ids),
        entity_kind=str(type_key.kind),
        hint="write 'upsert' to change what exists, or 'replace' to write it anew",
    )

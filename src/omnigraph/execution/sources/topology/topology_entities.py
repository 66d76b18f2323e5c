"""The nodes or the edges of one type: numbered rows with ids and properties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology.text_arrays import (
    TAIL_MIN,
    ChainedIndex,
    Ranks,
    TextArray,
    build_index,
    build_ranks,
    decode_index,
    decode_ranks,
    decode_text_array,
    grow_index,
    text_array_of,
)
from omnigraph.execution.sources.topology.topology_columns import (
    DenseColumn,
    Mask,
    build_column,
    decode_column,
)
from omnigraph.execution.sources.topology.topology_rows import DenseRows, InheritedEntry
from omnigraph.query.typed_tree import TextMatch
from omnigraph.rows.columns import TableShape
from omnigraph.rows.comparison import flatten_chunks
from omnigraph.rows.evaluator import Params
from omnigraph.versioning.effects import ID_COLUMN

_T = TypeVar("_T")


@dataclass(frozen=True)
class DenseEntities:
    """Entities by number, for one query: some may be gone, where `is_alive` is false."""

    rows: DenseRows
    shape: TableShape
    # What was asked for by name: Any, a piece of any kind.
    _used: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def count(self) -> int:
        """How many there are."""
        return self.rows.count

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.rows.size

    @property
    def is_alive(self) -> Mask | None:
        """Which numbers have an entity; None if all have."""
        return self.rows.is_alive

    def list_all(self) -> DenseIds:
        """Every entity, ascending."""
        return self.rows.all

    @property
    def all_ids(self) -> TextArray:
        """The id of every number; where the entity is gone it may be null."""
        return self.rows.get_or_make(
            "ids",
            self._read_ids,
            extend=self._extend_ids,
            restore=lambda piece, _: decode_text_array(piece),
        )

    def fetch_ids(self, at: DenseIds) -> pa.Array:
        """Their ids."""
        found = self.all_ids.take(at)
        return found if pa.types.is_string(found.type) else found.cast(pa.utf8())

    def rank_ids(self, at: DenseIds) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do."""
        return self._get_cached("ranks", self._load_ranks).take(at)

    def find(self, ids: pa.Array) -> DenseIds:
        """The entities with these ids; -1 where there is none."""
        found = self.id_index.find(ids)
        if not len(found):
            return found
        is_alive = self.rows.compute_alive(np.maximum(found, 0)) if self.size else None
        if is_alive is None:
            return found
        return np.where(is_alive, found, -1).astype(np.int32)

    def find_one(self, entity_id: str) -> int:
        """The entity with an id; -1 if there is none."""
        found = self.id_index.find_one(entity_id)
        return found if found < 0 or self.rows.is_alive_one(found) else -1

    @property
    def id_index(self) -> ChainedIndex:
        """The numbers of ids, maybe of some whose entities are gone."""
        return self.rows.get_or_make(
            "index",
            lambda: build_index(self.all_ids, self.list_all()),
            extend=lambda was: self._extend_index(was.value),
            restore=lambda piece, _: decode_index(piece, self.all_ids),
        )

    def get_column(self, name: str) -> DenseColumn:
        """A property of all entities."""
        return self.get_physical_column(self.shape.columns[name])

    def get_physical_column(self, name: str) -> DenseColumn:
        """A column of the table."""
        return self._get_cached(name, lambda: self._load_column(name))

    def fetch_values(self, name: str, at: DenseIds) -> pa.Array:
        """The values of a property, of the Arrow type of the property."""
        column = self.get_column(name)
        return column.take_one(int(at[0])) if len(at) == 1 else column.take(at)

    def fetch_row_ids(self, at: DenseIds) -> npt.NDArray[np.uint64]:
        """Their rows in the table, for indexes that know rows."""
        return self.rows.rows.take(at)

    def find_by_row_ids(self, row_ids: npt.NDArray[np.uint64]) -> DenseIds:
        """The entities at rows of the table; -1 where there is none."""
        return self.rows.find_by_row_ids(row_ids)

    def search_texts(self, _match: TextMatch, _params: Params, _at: DenseIds) -> pa.Array | None:
        """Where entities satisfy a text predicate, by the index of a field; None without one."""
        return None

    # ---- pieces ----

    def _get_cached(self, name: str, find: Callable[[], _T]) -> _T:
        """A piece that stays the same for as long as these entities are used.

        Another one of the same content may have other codes or ranks, and they would meet.
        """
        found: _T | None = self._used.get(name)
        if found is None:
            found = self._used.setdefault(name, find())
        return found

    def _load_column(self, name: str) -> DenseColumn:
        parts = self.rows.parts
        kind = self.shape.schema.field(name).type

        def extended(was: InheritedEntry) -> DenseColumn:
            column: DenseColumn = was.value
            at, new = self.rows.read_since(was, [name])
            return column.extend(flatten_chunks(new[name]), at, size=self.size, parts=parts)

        return self.rows.get_or_make(
            name,
            lambda: build_column(self.rows.read([name])[name], parts=parts, name=name),
            extend=extended,
            restore=lambda piece, _: decode_column(piece, kind, parts=parts, name=name),
        )

    def _load_ranks(self) -> Ranks:
        def extended(was: InheritedEntry) -> Ranks:
            older: Ranks = was.value
            return older.extend(self.all_ids)

        return self.rows.get_or_make(
            "ranks",
            lambda: build_ranks(self.all_ids),
            extend=extended,
            restore=lambda piece, _: decode_ranks(piece, self.all_ids),
        )

    def _read_ids(self) -> TextArray:
        return text_array_of(self.rows.read([ID_COLUMN])[ID_COLUMN])

    def _extend_ids(self, was: InheritedEntry) -> TextArray | None:
        texts: TextArray = was.value
        added = self.size - was.size
        if not added:
            return texts
        at, new = self.rows.read_since(was, [ID_COLUMN])
        ids, places = flatten_chunks(new[ID_COLUMN]), np.full(added, -1, np.int64)
        is_new = at >= was.size
        places[at[is_new] - was.size] = np.flatnonzero(is_new)
        is_missing = places < 0
        return texts.extend(ids.take(pa.array(places, mask=is_missing)))

    def _extend_index(self, was: ChainedIndex) -> ChainedIndex:
        new = self.all_ids.take_after(len(was))
        if len(new) <= TAIL_MIN:
            longer = was.extend(new)
            if not longer.is_long:
                return longer
        return grow_index(self.all_ids, self.list_all(), was.base)

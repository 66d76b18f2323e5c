"""The graph after a write, as far as its checks ask: who exists, who ends, what survives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.footprint import NOTHING, Footprint, ReadSet, unite_footprints
from omnigraph.versioning.id_sets import EMPTY, DeferredIds, IdSet
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import (
    DEFERRED_MARKS_MAX,
    MARKS_MAX,
    NO_IDS,
    PRESENT_MAX,
    GraphChange,
    WriteMode,
)
from omnigraph.writers.validate.unique_groups import encode_marks


class ImageAfter:
    """What is committed, seen through a change that is not."""

    def __init__(self, change: GraphChange, committed: CommittedState) -> None:
        self.change = change
        self.committed = committed
        self.reads = ReadCollector()
        self._ended: dict[TypeKey, pa.Array] = {}

    def keeps_committed(self, type_key: TypeKey) -> bool:
        """Whether committed entities of a type may survive the write."""
        change = self.change.get(type_key)
        return change is None or change.mode is not WriteMode.OVERWRITE

    def has_cascade(self, type_key: TypeKey) -> bool:
        """Whether the edges of the entities that end are known to end with them."""
        change = self.change.get(type_key)
        return change is not None and change.is_cascade

    def are_written(self, type_key: TypeKey, ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """Which of the ids the write writes, as a mask."""
        change = self.change.get(type_key)
        own = NO_IDS if change is None else change.rows[ID_COLUMN]
        return pc.is_in(ids, value_set=own)

    def are_kept(self, type_key: TypeKey, ids: pa.Array) -> pa.Array:
        """Which of some ids the write does not write are committed and survive it, as a mask."""
        if not self.keeps_committed(type_key):
            return pc.is_in(ids, value_set=NO_IDS)
        is_there = self.committed.find_existing(type_key, ids)
        change = self.change.get(type_key)
        if change is None or not len(change.deleted):
            return is_there
        return pc.and_not(is_there, pc.is_in(ids, value_set=change.deleted))

    def get_ended(self, type_key: TypeKey) -> pa.Array:
        """The ids of committed entities that no longer exist after the write."""
        if type_key not in self._ended:
            self._ended[type_key] = self._find_ended(type_key)
        return self._ended[type_key]

    def filter_surviving(self, type_key: TypeKey, found: pa.Table) -> pa.Table:
        """The committed rows among some that the write neither replaces nor deletes."""
        change = self.change.get(type_key)
        if change is None or found.num_rows == 0:
            return found
        is_touched = pc.or_(
            self.are_written(type_key, found[ID_COLUMN]),
            pc.is_in(found[ID_COLUMN], value_set=change.deleted),
        )
        return found.filter(pc.invert(is_touched))

    def _find_ended(self, type_key: TypeKey) -> pa.Array:
        change = self.change.get(type_key)
        if change is None:
            return NO_IDS
        is_overwrite = change.mode is WriteMode.OVERWRITE
        gone = self.committed.get_ending(type_key)[ID_COLUMN] if is_overwrite else change.deleted
        if len(gone) == 0:
            return NO_IDS
        left = gone.filter(pc.invert(self.are_written(type_key, gone)))
        return left.combine_chunks() if isinstance(left, pa.ChunkedArray) else left


class ReadCollector:
    """What the answer of a validation depends on, so far."""

    def __init__(self) -> None:
        self._reads: dict[str, ReadSet] = {}

    def add_present(self, type_key: TypeKey, ids: pa.Array) -> None:
        """The write is valid because these committed entities exist."""
        if len(ids) > PRESENT_MAX:
            self._add_reads(type_key, ReadSet(keeps_all=True))
        elif len(ids):
            self._add_reads(type_key, ReadSet(present=IdSet(ids)))

    def add_lookup(
        self, type_key: TypeKey, kind: str, texts: Sequence[pa.Array | pa.ChunkedArray]
    ) -> None:
        """The write is valid because of which entities hold these marks, or because none does."""
        self.add_lookups(type_key, len(texts[0]), lambda: encode_marks(kind, texts))

    def add_lookups(
        self, type_key: TypeKey, count: int, marks: Callable[[], Iterable[str]]
    ) -> None:
        """The same for marks that are many: they are made when another commit asks for them."""
        known = self._reads.get(str(type_key), NOTHING)
        if known.is_whole or count == 0:
            return
        if len(known.marks) + count > DEFERRED_MARKS_MAX:
            self.add_whole_table(type_key)
        elif count > MARKS_MAX:
            self._add_reads(type_key, ReadSet(marks=DeferredIds(count, lambda: IdSet(marks()))))
        else:
            self._add_reads(type_key, ReadSet(marks=IdSet(marks())))

    def add_whole_table(self, type_key: TypeKey) -> None:
        """The write is valid because of more than marks can list."""
        known = self._reads.get(str(type_key), NOTHING)
        self._reads[str(type_key)] = replace(known, marks=EMPTY, is_whole=True)

    def build_footprint(self) -> Footprint:
        """Everything that was looked up, by type."""
        return dict(self._reads)

    def _add_reads(self, type_key: TypeKey, reads: ReadSet) -> None:
        self._reads = unite_footprints([self._reads, {str(type_key): reads}])

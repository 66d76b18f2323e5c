"""The look-ups of a validation, collected into the footprint of its write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph.schema.accepted import TypeKey
from omnigraph.versioning.footprint import NOTHING, Footprint, ReadSet, unite_footprints
from omnigraph.versioning.idset import EMPTY, DeferredIds, IdSet
from omnigraph.writers.limits import DEFERRED_MARKS_MAX, MARKS_MAX, PRESENT_MAX
from omnigraph.writers.validate.marks import encode_marks


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
        """The write is valid because of who holds these marks, or that nobody does."""
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

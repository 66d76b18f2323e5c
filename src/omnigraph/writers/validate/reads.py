"""The look-ups of a validation, collected into the footprint of its write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph.schema.accepted import TypeKey
from omnigraph.versioning.footprint import NOTHING, Footprint, Reads, union
from omnigraph.versioning.idset import EMPTY, DeferredIds, IdSet
from omnigraph.writers.limits import DEFERRED_MARKS_MAX, MARKS_MAX, PRESENT_MAX
from omnigraph.writers.validate.marks import marks_for


class ReadsMade:
    """What the answer of a validation depends on, so far."""

    def __init__(self) -> None:
        self._reads: dict[str, Reads] = {}

    def found_present(self, type_key: TypeKey, ids: pa.Array) -> None:
        """The write is valid because these committed entities exist."""
        if len(ids) > PRESENT_MAX:
            self._note(type_key, Reads(keeps_all=True))
        elif len(ids):
            self._note(type_key, Reads(present=IdSet(ids)))

    def looked_up(
        self, type_key: TypeKey, kind: str, texts: Sequence[pa.Array | pa.ChunkedArray]
    ) -> None:
        """The write is valid because of who holds these marks, or that nobody does."""
        self.looked_up_many(type_key, len(texts[0]), lambda: marks_for(kind, texts))

    def looked_up_many(
        self, type_key: TypeKey, count: int, marks: Callable[[], Iterable[str]]
    ) -> None:
        """The same for marks that are many: they are made when another commit asks for them."""
        known = self._reads.get(str(type_key), NOTHING)
        if known.is_whole or count == 0:
            return
        if len(known.marks) + count > DEFERRED_MARKS_MAX:
            self.read_whole(type_key)
        elif count > MARKS_MAX:
            self._note(type_key, Reads(marks=DeferredIds(count, lambda: IdSet(marks()))))
        else:
            self._note(type_key, Reads(marks=IdSet(marks())))

    def read_whole(self, type_key: TypeKey) -> None:
        """The write is valid because of more than marks can list."""
        known = self._reads.get(str(type_key), NOTHING)
        self._reads[str(type_key)] = replace(known, marks=EMPTY, is_whole=True)

    def footprint(self) -> Footprint:
        """Everything that was looked up, by type."""
        return dict(self._reads)

    def _note(self, type_key: TypeKey, reads: Reads) -> None:
        self._reads = union([self._reads, {str(type_key): reads}])

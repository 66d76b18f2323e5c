"""The look-ups of a validation, collected into the footprint of its write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from omnigraph.schema.accepted import TypeKey
from omnigraph.versioning.footprint import NOTHING, Footprint, Reads, union
from omnigraph.versioning.idset import EMPTY, IdSet
from omnigraph.writers.validate.marks import MARKS_MAX, marks_for

# Of more entities than this, the write asks that none of their type is deleted.
PRESENT_MAX: Final = 10_000


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
        known = self._reads.get(str(type_key), NOTHING)
        if known.is_whole or len(texts[0]) == 0:
            return
        if len(known.marks) + len(texts[0]) > MARKS_MAX:
            self.read_whole(type_key)
        else:
            self._note(type_key, Reads(marks=IdSet(marks_for(kind, texts))))

    def read_whole(self, type_key: TypeKey) -> None:
        """The write is valid because of more than marks can list."""
        known = self._reads.get(str(type_key), NOTHING)
        self._reads[str(type_key)] = replace(known, marks=EMPTY, is_whole=True)

    def footprint(self) -> Footprint:
        """Everything that was looked up, by type."""
        return dict(self._reads)

    def _note(self, type_key: TypeKey, reads: Reads) -> None:
        self._reads = union([self._reads, {str(type_key): reads}])

"""The fields that searches of one graph asked for: made once per version, and bounded together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic
from weakref import WeakKeyDictionary

import pyarrow as pa

from omnigraph.execution.search.asked import Asked
from omnigraph.execution.search.bm25 import TextField
from omnigraph.execution.search.field import Field, S, extended, whole
from omnigraph.execution.search.nearest import VectorField
from omnigraph.execution.search.saved_texts import SavedTexts
from omnigraph.execution.search.segment_types import Mask, RowIds
from omnigraph.execution.search.text_segment import TextSegment, merged_texts, text_segment
from omnigraph.execution.search.vector_segment import merged_vectors, vector_segment
from omnigraph.execution.topology.files import Files
from omnigraph.execution.topology.memory import Memory, Parts
from omnigraph.execution.view import View
from omnigraph.storage.tables import Tables

# Of the memory for fields, what the vectors of one of them may take.
VECTORS_SHARE: Final = 0.5
# The same for texts, of which nobody knows how long they are before they are read.
TEXTS_SHARE: Final = 0.5
# What a text of sixty words takes.
_TEXT_BYTES: Final = 512
# Versions of one field share most of what they hold, but each of them is counted as if alone.
_VERSIONS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class _Made:
    """A version of a field that was made: the commit it was asked for at, and its name."""

    stream: str
    seq: int
    name: str


@dataclass(frozen=True, slots=True)
class _Making(Generic[S]):
    """How segments of one kind are made of rows, and of each other."""

    make: Callable[[RowIds, pa.ChunkedArray], S]
    merge: Callable[[Sequence[S], Sequence[Mask | None]], S]


class Fields:
    """The fields of one graph in one process; safe to share between threads."""

    def __init__(self, memory: Memory | None = None, files: Files | None = None) -> None:
        self.memory = memory or Memory()
        self._saved = None if files is None else SavedTexts(files)
        self._parts = Parts(self.memory)
        self._made: dict[tuple[str, str], list[_Made]] = {}
        self._lock = threading.Lock()

    def text(self, asked: Asked, *, check: Callable[[], None] = lambda: None) -> TextField:
        """The texts of a property."""

        def make(row_ids: RowIds, texts: pa.ChunkedArray) -> TextSegment:
            return text_segment(row_ids, texts, check=check)

        making = _Making(make, merged_texts)
        return self._kept(asked, lambda: self._text(asked, making))

    def vectors(self, asked: Asked) -> VectorField | None:
        """The vectors of a property; None if they are too many to keep."""
        if asked.vector_bytes > VECTORS_SHARE * self.memory.bytes_max:
            return None
        making = _Making(vector_segment, merged_vectors)
        return self._kept(asked, lambda: _field(asked, self._earlier(asked), making))

    def keeps_texts(self, asked: Asked) -> bool:
        """Whether the texts of a property are not too many to keep, or are kept already."""
        expected = asked.pin.rows * _TEXT_BYTES
        return expected <= TEXTS_SHARE * self.memory.bytes_max or self.has(asked)

    def has(self, asked: Asked) -> bool:
        """Whether a field is in memory, so that it need not be read."""
        return self._parts.peek(asked.name) is not None

    def _text(self, asked: Asked, making: _Making[TextSegment]) -> TextField:
        saved = self._saved
        if saved is None:
            return _field(asked, self._earlier(asked), making)
        segment = saved.load(asked)
        if segment is not None:
            return whole(segment)
        earlier: TextField | None = self._earlier(asked)
        if earlier is None and (older := saved.earlier(asked)) is not None:
            earlier = whole(older)
        found = _field(asked, earlier, making)
        if found.is_whole:
            saved.save(asked, found.segments[0])
        return found

    def _kept(self, asked: Asked, make: Callable[[], Field[S]]) -> Field[S]:
        found = self._parts.get(asked.name, make)
        ref = asked.view.snapshot.ref
        made = _Made(ref.stream, ref.seq, asked.name)
        with self._lock:
            known = [each for each in self._made.get(asked.key, ()) if each.name != made.name]
            for oldest in known[: 1 - _VERSIONS_MAX]:
                self._parts.give_up(oldest.name)
            self._made[asked.key] = [*known[1 - _VERSIONS_MAX :], made]
        return found

    def _earlier(self, asked: Asked) -> Field[S] | None:
        """The field of the latest earlier version that is in memory."""
        for made in sorted(self._made.get(asked.key, ()), key=lambda each: each.seq, reverse=True):
            if asked.is_after(made.stream, made.seq):
                found: Field[S] | None = self._parts.peek(made.name)
                if found is not None:
                    return found
        return None


def _field(asked: Asked, earlier: Field[S] | None, making: _Making[S]) -> Field[S]:
    if earlier is None:
        return whole(making.make(*asked.rows(None)))
    return extended(
        earlier,
        asked.row_ids(),
        make=lambda new: making.make(*asked.rows(new)),
        merge=making.merge,
    )


# As long as the tables of a graph are open, and no longer.
_fields: Final[WeakKeyDictionary[Tables, Fields]] = WeakKeyDictionary()
_opening: Final = threading.Lock()


def fields_of(view: View) -> Fields:
    """The fields of the graph of a view."""
    with _opening:
        found = _fields.get(view.tables)
        if found is None:
            found = _fields[view.tables] = Fields()
        return found


def share_memory(tables: Tables, memory: Memory, files: Files | None = None) -> None:
    """Have the fields of a graph bounded with all else in a memory, and texts saved in files."""
    with _opening:
        _fields[tables] = Fields(memory, files)

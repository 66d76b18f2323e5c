"""The fields that searches of one graph asked for: made once per version, and bounded together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic
from weakref import WeakKeyDictionary

import pyarrow as pa

from omnigraph.execution.search.bm25 import TextField
from omnigraph.execution.search.field_index import (
    FieldIndex,
    Mask,
    RowIds,
    S,
    extend_index,
    make_single_segment,
)
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.search.nearest_vectors import VectorField
from omnigraph.execution.search.text_segment import (
    TextSegment,
    build_text_segment,
    merge_text_segments,
)
from omnigraph.execution.search.vector_segment import (
    VectorSegment,
    build_vector_segment,
    merge_vector_segments,
)
from omnigraph.execution.sources.topology.cache_files import (
    CacheBlock,
    CacheFiles,
    decode_texts,
    encode_texts,
)
from omnigraph.execution.sources.topology.memory_cache import CachePartition, MemoryCache
from omnigraph.rows.text_analysis import analyze_text, split_words
from omnigraph.rows.view import View
from omnigraph.rows.vocabulary import Vocabulary
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.storage.tables.pins import Pin

# Of the memory for fields, what the vectors of one of them may take.
VECTORS_SHARE: Final = 0.5

# The same for texts, whose length is unknown before they are read.
TEXTS_SHARE: Final = 0.5

# What a text of sixty words takes.
_TEXT_BYTES: Final = 512

# Versions of one field share most of what they hold, but each of them is counted as if alone.
_VERSIONS_MAX: Final = 3

# Fewer texts are analysed as fast as a file is read.
ROWS_MIN: Final = 1_000
_ARRAYS: Final = ("row_ids", "lengths", "starts", "places", "frequencies")
_TOKENS: Final = "token "

# The commit that a segment was made for.
_STREAM, _SEQ = "stream", "seq"


@dataclass(frozen=True, slots=True)
class _IndexVersion:
    """A version of a field that was made: the commit it was asked for at, and its name."""

    stream: str
    seq: int
    name: str


@dataclass(frozen=True, slots=True)
class _SegmentBuilder(Generic[S]):
    """How segments of one kind are made of rows, and of each other."""

    make: Callable[[RowIds, pa.ChunkedArray], S]
    merge: Callable[[Sequence[S], Sequence[Mask | None]], S]
    # Called between parts of the work, and may raise.
    check: Callable[[], None]


class FieldCache:
    """The fields of one graph in one process; safe to share between threads."""

    def __init__(self, memory: MemoryCache | None = None, files: CacheFiles | None = None) -> None:
        self.memory = memory or MemoryCache()
        self._saved = None if files is None else TextSegmentStore(files)
        self._parts = CachePartition(self.memory)
        self._made: dict[tuple[str, str], list[_IndexVersion]] = {}
        self._lock = threading.Lock()

    def get_texts(self, asked: FieldRef, *, check: Callable[[], None] = lambda: None) -> TextField:
        """The texts of a property."""

        def make(row_ids: RowIds, texts: pa.ChunkedArray) -> TextSegment:
            analyze = analyze_text if asked.is_stemmed else split_words
            return build_text_segment(row_ids, texts, analyze, check=check)

        making = _SegmentBuilder(make, merge_text_segments, check)
        return self._get_or_make(asked, lambda: self._load_texts(asked, making))

    def get_vectors(
        self, asked: FieldRef, *, check: Callable[[], None] = lambda: None
    ) -> VectorField | None:
        """The vectors of a property; None if they are too many to keep."""
        if asked.vector_bytes > VECTORS_SHARE * self.memory.bytes_max:
            return None

        def make(row_ids: RowIds, vectors: pa.ChunkedArray) -> VectorSegment:
            return build_vector_segment(row_ids, vectors, check=check)

        making = _SegmentBuilder(make, merge_vector_segments, check)
        return self._get_or_make(
            asked, lambda: _build_index(asked, self._find_earlier(asked), making)
        )

    def can_keep_texts(self, asked: FieldRef) -> bool:
        """Whether the texts of a property are not too many to keep, or are kept already."""
        expected = asked.pin.rows * _TEXT_BYTES
        return expected <= TEXTS_SHARE * self.memory.bytes_max or self.has_field(asked)

    def has_field(self, asked: FieldRef) -> bool:
        """Whether a field is in memory, so that it need not be read."""
        return self._parts.peek(asked.name) is not None

    def _load_texts(self, asked: FieldRef, making: _SegmentBuilder[TextSegment]) -> TextField:
        saved = self._saved
        if saved is None:
            return _build_index(asked, self._find_earlier(asked), making)
        segment = saved.load(asked)
        if segment is not None:
            return make_single_segment(segment)
        earlier: TextField | None = self._find_earlier(asked)
        if earlier is None and (older := saved.find_earlier(asked)) is not None:
            earlier = make_single_segment(older)
        found = _build_index(asked, earlier, making)
        if found.is_whole:
            saved.save(asked, found.segments[0])
        return found

    def _get_or_make(self, asked: FieldRef, make: Callable[[], FieldIndex[S]]) -> FieldIndex[S]:
        found = self._parts.get(asked.name, make)
        ref = asked.view.snapshot.ref
        made = _IndexVersion(ref.stream, ref.seq, asked.name)
        with self._lock:
            known = [each for each in self._made.get(asked.key, ()) if each.name != made.name]
            for oldest in known[: 1 - _VERSIONS_MAX]:
                self._parts.evict(oldest.name)
            self._made[asked.key] = [*known[1 - _VERSIONS_MAX :], made]
        return found

    def _find_earlier(self, asked: FieldRef) -> FieldIndex[S] | None:
        """The field of the latest earlier version that is in memory."""
        for made in sorted(self._made.get(asked.key, ()), key=lambda each: each.seq, reverse=True):
            if asked.is_after(made.stream, made.seq):
                found: FieldIndex[S] | None = self._parts.peek(made.name)
                if found is not None:
                    return found
        return None


def _build_index(
    asked: FieldRef, earlier: FieldIndex[S] | None, making: _SegmentBuilder[S]
) -> FieldIndex[S]:
    if earlier is None:
        return make_single_segment(making.make(*asked.read_rows(None, check=making.check)))
    return extend_index(
        earlier,
        asked.read_row_ids(),
        make=lambda new: making.make(*asked.read_rows(new, check=making.check)),
        merge=making.merge,
    )


# As long as the tables of a graph are open, and no longer.
_caches: Final[WeakKeyDictionary[Tables, FieldCache]] = WeakKeyDictionary()
_caches_lock: Final = threading.Lock()


def field_cache_of(view: View) -> FieldCache:
    """The fields of the graph of a view."""
    with _caches_lock:
        found = _caches.get(view.tables)
        if found is None:
            found = _caches[view.tables] = FieldCache()
        return found


def share_memory(tables: Tables, memory: MemoryCache, files: CacheFiles | None = None) -> None:
    """Have the fields of a graph bounded with all else in a memory, and texts saved in files."""
    with _caches_lock:
        _caches[tables] = FieldCache(memory, files)


@dataclass(frozen=True, slots=True)
class TextSegmentStore:
    """The files of the texts of one graph."""

    files: CacheFiles

    def load(self, asked: FieldRef) -> TextSegment | None:
        """The texts of a version, if they were saved."""
        piece = self.files.load(_file_pin_of(asked.pin), asked.cache_name)
        return None if piece is None else _decode_segment(piece)

    def find_earlier(self, asked: FieldRef) -> TextSegment | None:
        """The texts of the latest earlier version that were saved."""
        latest: CacheBlock | None = None
        for version in self.files.list_versions(_file_pin_of(asked.pin).path) - {asked.pin.version}:
            pin = replace(_file_pin_of(asked.pin), version=version)
            piece = self.files.load(pin, asked.cache_name)
            if piece is None or not asked.is_after(piece.metadata[_STREAM], piece.metadata[_SEQ]):
                continue
            if latest is None or piece.metadata[_SEQ] > latest.metadata[_SEQ]:
                latest = piece
        return None if latest is None else _decode_segment(latest)

    def save(self, asked: FieldRef, segment: TextSegment) -> None:
        """Have the texts of a version written some time."""
        if len(segment.row_ids) < ROWS_MIN:
            return
        ref = asked.view.snapshot.ref
        notes: dict[str, str | int] = {_STREAM: ref.stream, _SEQ: ref.seq}
        self.files.save(
            _file_pin_of(asked.pin), asked.cache_name, lambda: _encode_segment(segment, notes)
        )


def _file_pin_of(pin: Pin) -> Pin:
    """The pin under which files are found: not those of the topology, which has its own."""
    return replace(pin, path=f"{pin.path}/texts")


def _encode_segment(segment: TextSegment, notes: dict[str, str | int]) -> CacheBlock:
    arrays = {name: getattr(segment, name) for name in _ARRAYS}
    tokens = encode_texts(segment.vocabulary.tokens)
    return CacheBlock({**arrays, **{_TOKENS + name: each for name, each in tokens.items()}}, notes)


def _decode_segment(piece: CacheBlock) -> TextSegment:
    tokens = {
        name.removeprefix(_TOKENS): array
        for name, array in piece.arrays.items()
        if name.startswith(_TOKENS)
    }
    return TextSegment(
        vocabulary=Vocabulary(decode_texts(tokens)),
        **{name: piece.arrays[name] for name in _ARRAYS},
    )

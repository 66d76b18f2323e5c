"""Segments of texts in files that outlive the process: to analyse texts takes longest of all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from omnigraph.execution.search.asked import FieldRef
from omnigraph.execution.search.text_segment import TextSegment
from omnigraph.execution.topology.files import CacheFiles
from omnigraph.execution.topology.piece import CacheBlock, decode_texts, encode_texts
from omnigraph.execution.vocabulary import Vocabulary
from omnigraph.storage.pins import Pin

# Fewer texts are analysed as fast as a file is read.
ROWS_MIN: Final = 1_000
_ARRAYS: Final = ("row_ids", "lengths", "starts", "places", "frequencies")
_TOKENS: Final = "token "
# The commit that a segment was made for.
_STREAM, _SEQ = "stream", "seq"


@dataclass(frozen=True, slots=True)
class TextSegmentStore:
    """The files of the texts of one graph."""

    files: CacheFiles

    def load(self, asked: FieldRef) -> TextSegment | None:
        """The texts of a version, if they were saved."""
        piece = self.files.load(_file_pin_of(asked.pin), asked.column)
        return None if piece is None else _decode_segment(piece)

    def find_earlier(self, asked: FieldRef) -> TextSegment | None:
        """The texts of the latest earlier version that were saved."""
        latest: CacheBlock | None = None
        for version in self.files.list_versions(_file_pin_of(asked.pin).path) - {asked.pin.version}:
            piece = self.files.load(replace(_file_pin_of(asked.pin), version=version), asked.column)
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
            _file_pin_of(asked.pin), asked.column, lambda: _encode_segment(segment, notes)
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

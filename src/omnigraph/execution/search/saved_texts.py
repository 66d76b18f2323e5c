"""Segments of texts in files that outlive the process: to analyse texts takes longest of all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from omnigraph.execution.search.asked import Asked
from omnigraph.execution.search.text_segment import TextSegment
from omnigraph.execution.topology.files import Files
from omnigraph.execution.topology.piece import Piece, arrays_of_texts, texts_of_arrays
from omnigraph.execution.vocabulary import Vocabulary
from omnigraph.storage.pins import Pin

# Fewer texts are analysed as fast as a file is read.
ROWS_MIN: Final = 1_000
_ARRAYS: Final = ("row_ids", "lengths", "starts", "places", "frequencies")
_TOKENS: Final = "token "
# The commit that a segment was made for.
_STREAM, _SEQ = "stream", "seq"


@dataclass(frozen=True, slots=True)
class SavedTexts:
    """The files of the texts of one graph."""

    files: Files

    def load(self, asked: Asked) -> TextSegment | None:
        """The texts of a version, if they were saved."""
        piece = self.files.load(_filed(asked.pin), asked.column)
        return None if piece is None else _segment(piece)

    def earlier(self, asked: Asked) -> TextSegment | None:
        """The texts of the latest earlier version that were saved."""
        latest: Piece | None = None
        for version in self.files.versions(_filed(asked.pin).path) - {asked.pin.version}:
            piece = self.files.load(replace(_filed(asked.pin), version=version), asked.column)
            if piece is None or not asked.is_after(piece.notes[_STREAM], piece.notes[_SEQ]):
                continue
            if latest is None or piece.notes[_SEQ] > latest.notes[_SEQ]:
                latest = piece
        return None if latest is None else _segment(latest)

    def save(self, asked: Asked, segment: TextSegment) -> None:
        """Have the texts of a version written some time."""
        if len(segment.row_ids) < ROWS_MIN:
            return
        ref = asked.view.snapshot.ref
        notes: dict[str, str | int] = {_STREAM: ref.stream, _SEQ: ref.seq}
        self.files.save(_filed(asked.pin), asked.column, lambda: _piece(segment, notes))


def _filed(pin: Pin) -> Pin:
    """The pin under which files are found: not those of the topology, which has its own."""
    return replace(pin, path=f"{pin.path}/texts")


def _piece(segment: TextSegment, notes: dict[str, str | int]) -> Piece:
    arrays = {name: getattr(segment, name) for name in _ARRAYS}
    tokens = arrays_of_texts(segment.vocabulary.tokens)
    return Piece({**arrays, **{_TOKENS + name: each for name, each in tokens.items()}}, notes)


def _segment(piece: Piece) -> TextSegment:
    tokens = {
        name.removeprefix(_TOKENS): array
        for name, array in piece.arrays.items()
        if name.startswith(_TOKENS)
    }
    return TextSegment(
        vocabulary=Vocabulary(texts_of_arrays(tokens)),
        **{name: piece.arrays[name] for name in _ARRAYS},
    )

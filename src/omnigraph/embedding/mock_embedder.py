"""The mock: vectors without a model, always the same for one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from omnigraph.embedding.embedder import Task, Vectors, normalize_vectors

_FNV_OFFSET: Final = np.uint64(14695981039346656037)
_FNV_PRIME: Final = np.uint64(1099511628211)
_WORD: Final = float(2**64 - 1)
# Texts whose bytes are in memory beside each other at a time.
_TEXTS_AT_ONCE: Final = 4_096
_Words = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class MockEmbedder:
    """The mock under the name of a model; queries and documents have the same vectors."""

    model: str = ""

    @property
    def kind(self) -> str:
        """The kind of the mock."""
        return "mock"

    def __call__(self, text: str, dimension: int) -> tuple[float, ...]:
        """The unit vector of a text."""
        return compute_mock_embedding(text, dimension)

    def embed_texts(self, texts: Sequence[str], dimension: int, task: Task) -> Vectors:
        """The unit vectors of texts."""
        del task
        parts = [
            _compute_mock_embeddings(texts[start : start + _TEXTS_AT_ONCE], dimension)
            for start in range(0, len(texts), _TEXTS_AT_ONCE)
        ]
        return np.concatenate([np.empty((0, dimension), np.float32), *parts])


def compute_mock_embedding(text: str, dimension: int) -> tuple[float, ...]:
    """A unit vector that depends on the text alone."""
    return tuple(_compute_mock_embeddings([text], dimension)[0].tolist())


def _compute_mock_embeddings(texts: Sequence[str], dimension: int) -> Vectors:
    states = _hash_fnv1a([text.encode() for text in texts])
    components = np.empty((len(texts), dimension), np.float32)
    for place in range(dimension):
        states = _advance_states(states)
        shares = (states.astype(np.float64) / _WORD).astype(np.float32)
        components[:, place] = shares * np.float32(2) - np.float32(1)
    return normalize_vectors(components, dimension=dimension)


def _hash_fnv1a(texts: Sequence[bytes]) -> _Words:
    """The hash of each text: all texts advance by one byte at a time."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    data: npt.NDArray[np.uint8] = np.frombuffer(b"".join(texts), np.uint8)
    states = np.full(len(texts), _FNV_OFFSET, np.uint64)
    # Longer texts first, so that those that are done are at the end.
    order = np.argsort(-lengths, kind="stable")
    lengths, starts = lengths[order], starts[order]
    for place in range(int(lengths[0]) if len(texts) else 0):
        live = int(np.searchsorted(-lengths, -place, side="left"))
        states[:live] = (states[:live] ^ data[starts[:live] + place]) * _FNV_PRIME
    found = np.empty_like(states)
    found[order] = states
    return found


def _advance_states(states: _Words) -> _Words:
    states = states ^ (states << np.uint64(13))
    states = states ^ (states >> np.uint64(7))
    return states ^ (states << np.uint64(17))

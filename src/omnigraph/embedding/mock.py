"""An embedder that needs no model: equal texts get equal vectors, others unrelated ones."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.embedding.vectors import normalize_vector
from omnigraph.schema.values import round_to_f32

_FNV_OFFSET = 14695981039346656037
_FNV_PRIME = 1099511628211
_WORD = 2**64 - 1


@dataclass(frozen=True, slots=True)
class MockEmbedder:
    """The mock under the name of a model."""

    model: str = ""

    def __call__(self, text: str, dimension: int) -> tuple[float, ...]:
        """The unit vector of a text."""
        return compute_mock_embedding(text, dimension)


def compute_mock_embedding(text: str, dimension: int) -> tuple[float, ...]:
    """A unit vector that depends on the text alone."""
    state = _hash_fnv1a(text.encode())
    components = []
    for _ in range(dimension):
        state = _advance_state(state)
        share = round_to_f32(float(state) / float(_WORD))
        components.append(round_to_f32(round_to_f32(share * 2) - 1))
    return normalize_vector(components, dimension=dimension)


def _hash_fnv1a(data: bytes) -> int:
    state = _FNV_OFFSET
    for byte in data:
        state = (state ^ byte) * _FNV_PRIME & _WORD
    return state


def _advance_state(state: int) -> int:
    state ^= state << 13 & _WORD
    state ^= state >> 7
    return state ^ (state << 17 & _WORD)

"""The embedder that the environment describes, made when the first text is to be embedded."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from omnigraph.embedding.embedder import NamedEmbedder, TimeLimitedEmbedder, normalize_vector
from omnigraph.embedding.embedding_profile import Provider, is_mock_forced, read_profile
from omnigraph.schema.property_values import round_to_f32

_log = logging.getLogger(__name__)
_FNV_OFFSET = 14695981039346656037
_FNV_PRIME = 1099511628211
_WORD = 2**64 - 1


@dataclass(frozen=True)
class ConfiguredEmbedder:
    """An embedder that needs no provider, key or model before it is used."""

    environment: Mapping[str, str]

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._embedder.model

    def __call__(self, text: str, dimension: int) -> tuple[float, ...]:
        """The unit vector of a text."""
        return tuple(self._embedder(text, dimension))

    def with_timeout(self, seconds: float) -> NamedEmbedder:
        """The same embedder, which gives up after so many seconds if not before."""
        known = self._embedder
        return known.with_timeout(seconds) if isinstance(known, TimeLimitedEmbedder) else known

    @cached_property
    def _embedder(self) -> NamedEmbedder:
        profile = read_profile(self.environment)
        if profile.provider is not Provider.MOCK:
            # The libraries of HTTP take longer to import than most queries take.
            from omnigraph.embedding.http_embedder import HttpEmbedder  # noqa: PLC0415

            return HttpEmbedder(profile)
        if is_mock_forced(self.environment):
            _log.warning("texts are embedded without a model: OMNIGRAPH_EMBEDDINGS_MOCK is set")
        return MockEmbedder(profile.model)


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

"""The embedder that the environment describes, made when the first text is to be embedded."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from omnigraph.embedding.embedder import (
    BatchEmbedder,
    NamedEmbedder,
    Task,
    TimeLimitedEmbedder,
    Vectors,
)
from omnigraph.embedding.embedding_profile import Profile, Provider, is_mock_forced, read_profile
from omnigraph.embedding.mock_embedder import MockEmbedder

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConfiguredEmbedder:
    """An embedder that needs no provider, key or model before it is used."""

    environment: Mapping[str, str]

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._embedder.model

    @property
    def kind(self) -> str:
        """The kind of the provider, and where it is if that was chosen."""
        return self._embedder.kind

    def __call__(self, text: str, dimension: int) -> tuple[float, ...]:
        """The unit vector of the text of a query."""
        return tuple(self._embedder(text, dimension))

    def embed_texts(self, texts: Sequence[str], dimension: int, task: Task) -> Vectors:
        """The unit vectors of texts."""
        return self._embedder.embed_texts(texts, dimension, task)

    def with_timeout(self, seconds: float) -> NamedEmbedder:
        """The same embedder, which gives up after so many seconds if not before."""
        known = self._embedder
        return known.with_timeout(seconds) if isinstance(known, TimeLimitedEmbedder) else known

    @cached_property
    def _embedder(self) -> BatchEmbedder:
        profile = read_profile(self.environment)
        if profile.provider == Provider.MOCK and is_mock_forced(self.environment):
            _log.warning("texts are embedded without a model: OMNIGRAPH_EMBEDDINGS_MOCK is set")
        return create_embedder(profile)


def create_embedder(profile: Profile) -> BatchEmbedder:
    """The embedder of a profile."""
    # Each kind has libraries of its own, which take longer to import than most queries take.
    if profile.provider == Provider.MOCK:
        return MockEmbedder(profile.model)
    if profile.provider == Provider.LOCAL:
        from omnigraph.embedding.local_embedder import LocalEmbedder  # noqa: PLC0415

        return LocalEmbedder(profile.path, profile.model)
    if not profile.is_built_in:
        from omnigraph.embedding.embedder_plugins import load_plugin  # noqa: PLC0415

        return load_plugin(profile)
    from omnigraph.embedding.http_embedder import HttpEmbedder  # noqa: PLC0415

    return HttpEmbedder(profile)

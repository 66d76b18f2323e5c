"""The embedder that the environment describes, made when the first text is to be embedded."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from omnigraph.embedding.embedder import NamedEmbedder, TimeLimitedEmbedder
from omnigraph.embedding.mock import MockEmbedder
from omnigraph.embedding.profile import Provider, is_mock_forced, read_profile

_log = logging.getLogger(__name__)


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
            from omnigraph.embedding.client import HttpEmbedder  # noqa: PLC0415

            return HttpEmbedder(profile)
        if is_mock_forced(self.environment):
            _log.warning("texts are embedded without a model: OMNIGRAPH_EMBEDDINGS_MOCK is set")
        return MockEmbedder(profile.model)

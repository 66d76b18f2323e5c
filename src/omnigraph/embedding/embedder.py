"""What an embedder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class NamedEmbedder(Protocol):
    """Texts to vectors, by a model with a name."""

    @property
    def model(self) -> str:
        """The name of the model, as `@embed` records it."""

    def __call__(self, text: str, dimension: int) -> Sequence[float]:
        """The vector of a text, of so many components."""


@runtime_checkable
class TimeLimitedEmbedder(NamedEmbedder, Protocol):
    """An embedder that waits for somebody, and can be told how long."""

    def with_timeout(self, seconds: float) -> NamedEmbedder:
        """The same embedder, which gives up after so many seconds if not before."""

"""What an embedder is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from omnigraph.errors import EmbeddingError
from omnigraph.schema.property_values import round_to_f32


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
    """An embedder that waits for a service; how long can be limited."""

    def with_timeout(self, seconds: float) -> NamedEmbedder:
        """The same embedder, which gives up after so many seconds if not before."""


def normalize_vector(values: Sequence[float], *, dimension: int) -> tuple[float, ...]:
    """The vector scaled to length one; its dimension must fit and its length be a number."""
    if len(values) != dimension:
        raise EmbeddingError(
            f"the embedding has {len(values)} components, not {dimension}", reason="wrong_dimension"
        )
    norm = math.sqrt(sum(value * value for value in values))
    if not math.isfinite(norm) or norm == 0:
        raise EmbeddingError(
            "the embedding has no direction: it is zero or not finite", reason="no_direction"
        )
    return tuple(round_to_f32(value / norm) for value in values)

"""Vectors that an embedder returned."""

from __future__ import annotations

import math
from collections.abc import Sequence

from omnigraph.errors import EmbeddingError
from omnigraph.schema.values import round_to_f32


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

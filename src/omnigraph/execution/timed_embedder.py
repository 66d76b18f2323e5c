"""The embedder of one query, which may take no more time than the query has left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.embedding.embedder import TimeLimitedEmbedder
from omnigraph.errors import EmbeddingError
from omnigraph.execution.budget import Budget


@dataclass(frozen=True, slots=True)
class TimedEmbedder:
    """An embedder bounded by a query; in all else it is the one that it wraps."""

    inner: Callable[[str, int], Sequence[float]]
    budget: Budget

    def __call__(self, text: str, dimension: int) -> Sequence[float]:
        """The vector of a text; a query whose time is over meanwhile gets none."""
        self.budget.check_interrupts()
        embed, seconds = self.inner, self.budget.time_left
        if seconds is not None and isinstance(embed, TimeLimitedEmbedder):
            embed = embed.with_timeout(seconds)
        try:
            found = embed(text, dimension)
        except EmbeddingError:
            # Whoever gave up because the time of the query was over has no problem of its own.
            self.budget.check_interrupts()
            raise
        self.budget.check_interrupts()
        return found

    def __getattr__(self, name: str) -> Any:  # whatever the wrapped one has, such as its model
        return getattr(self.inner, name)

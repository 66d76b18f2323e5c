"""What an embedder is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from omnigraph.errors import EmbeddingError

# A row for each text.
Vectors: TypeAlias = npt.NDArray[np.float32]


class Task(StrEnum):
    """What the vector of a text is for: models may make different ones for both."""

    QUERY = "query"
    DOCUMENT = "document"


class EmbedMode(StrEnum):
    """When writes get the vectors of their texts."""

    # Vectors are what is written, whatever becomes of their texts.
    NEVER = "never"
    # Before the write is checked: it is refused if the provider fails.
    WRITE = "write"
    # Afterwards, in commits of their own.
    LATER = "later"


@runtime_checkable
class NamedEmbedder(Protocol):
    """Texts to vectors, by a model with a name."""

    @property
    def model(self) -> str:
        """The name of the model, as `@embed` records it."""

    def __call__(self, text: str, dimension: int) -> Sequence[float]:
        """The vector of the text of a query, of so many components."""


@runtime_checkable
class BatchEmbedder(NamedEmbedder, Protocol):
    """An embedder of many texts at once, of queries or of documents."""

    @property
    def kind(self) -> str:
        """Whose model it is: two models of one name may be of two kinds."""

    def embed_texts(self, texts: Sequence[str], dimension: int, task: Task) -> Vectors:
        """The unit vectors of texts."""


@runtime_checkable
class TimeLimitedEmbedder(NamedEmbedder, Protocol):
    """An embedder that waits for a service; how long can be limited."""

    def with_timeout(self, seconds: float) -> NamedEmbedder:
        """The same embedder, which gives up after so many seconds if not before."""


@dataclass(frozen=True, slots=True)
class _SingleEmbedder:
    """A function of one text as an embedder of many."""

    inner: Callable[[str, int], Sequence[float]]
    kind: str = "function"

    @property
    def model(self) -> str:
        """The name of the model; empty for a function that has none."""
        return str(getattr(self.inner, "model", ""))

    def __call__(self, text: str, dimension: int) -> Sequence[float]:
        """The vector of the text of a query."""
        return self.inner(text, dimension)

    def embed_texts(self, texts: Sequence[str], dimension: int, task: Task) -> Vectors:
        """The unit vectors of texts, one after the other."""
        del task
        found = [self.inner(text, dimension) for text in texts]
        return normalize_vectors(found, dimension=dimension)


def to_batch_embedder(embedder: Callable[[str, int], Sequence[float]]) -> BatchEmbedder:
    """An embedder of many texts at once."""
    return embedder if isinstance(embedder, BatchEmbedder) else _SingleEmbedder(embedder)


def normalize_vector(values: Sequence[float], *, dimension: int) -> tuple[float, ...]:
    """The vector scaled to length one; its dimension must fit and its length be a number."""
    return tuple(normalize_vectors([values], dimension=dimension)[0].tolist())


def normalize_vectors(
    rows: Sequence[Sequence[float]] | npt.NDArray[np.floating], *, dimension: int
) -> Vectors:
    """The vectors scaled to length one; the error for one of them says which it is."""
    if isinstance(rows, np.ndarray) and rows.ndim == _MATRIX:
        wrong = 0 if rows.shape[1] != dimension and len(rows) else None
    else:
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        wrong = next(iter(np.flatnonzero(lengths != dimension).tolist()), None)
    if wrong is not None:
        raise EmbeddingError(
            f"the embedding has {len(rows[wrong])} components, not {dimension}",
            reason="wrong_dimension",
            index=wrong,
        )
    values = np.asarray(rows, np.float64).reshape(len(rows), dimension)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", values, values))
    is_bad = ~np.isfinite(norms) | (norms == 0)
    if is_bad.any():
        raise EmbeddingError(
            "the embedding has no direction: it is zero or not finite",
            reason="no_direction",
            index=int(np.argmax(is_bad)),
        )
    scaled: Vectors = (values / norms[:, None]).astype(np.float32)
    return scaled


_MATRIX = 2

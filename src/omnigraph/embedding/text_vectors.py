"""The vectors of documents: from the cache, and from an embedder for the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from omnigraph.embedding.embedder import BatchEmbedder, Task, Vectors
from omnigraph.embedding.text_batches import BATCH_TEXTS_MAX, cut_batches
from omnigraph.embedding.vector_cache import Remembered, VectorCache, compute_keys, decode_vectors
from omnigraph.errors import EmbeddingError

# What is computed faster than it is found, and what may be another model under the same name.
_NOT_CACHED: Final = frozenset({"mock", "function"})
# Failures of one text, and not of the provider or its settings.
_OF_TEXTS: Final = frozenset({"refused", "no_direction", "bad_answer"})
_TEXTS_AT_ONCE: Final = 4_096
_Mask = npt.NDArray[np.bool_]
_Places = npt.NDArray[np.int64]
_NOTHING: Final = Remembered({}, {})


@dataclass(frozen=True, slots=True)
class AskedVectors:
    """What became of texts: their vectors, which of them have one, and why others have none."""

    vectors: Vectors
    is_there: _Mask
    reasons: dict[int, str]


@dataclass(frozen=True, slots=True)
class TextVectors:
    """An embedder of documents with its cache, which keeps each batch as it comes."""

    embedder: BatchEmbedder
    cache: VectorCache | None = None

    def embed(self, texts: Sequence[str], dimension: int) -> Vectors:
        """The vectors of distinct texts; a failure of one of them is one of all."""
        return self._collect(texts, dimension, may_fail=False, retries_failed=True).vectors

    def embed_each(
        self, texts: Sequence[str], dimension: int, *, retries_failed: bool = False
    ) -> AskedVectors:
        """The vectors of distinct texts, as far as the provider makes them.

        A text that it refused before is asked for again with `retries_failed` only.
        """
        return self._collect(texts, dimension, may_fail=True, retries_failed=retries_failed)

    def find_failures(self, texts: Sequence[str], dimension: int) -> dict[int, str]:
        """Why texts were refused, by their places; nothing is asked for."""
        return self._find(texts, dimension)[1].failures

    def _collect(
        self, texts: Sequence[str], dimension: int, *, may_fail: bool, retries_failed: bool
    ) -> AskedVectors:
        keys, known = self._find(texts, dimension)
        found = AskedVectors(
            np.zeros((len(texts), dimension), np.float32), np.zeros(len(texts), np.bool_), {}
        )
        _store_vectors(
            found,
            np.array(sorted(known.vectors), np.int64),
            decode_vectors(known.vectors, dimension),
        )
        is_asked = ~found.is_there
        if not retries_failed:
            found.reasons.update(known.failures)
            is_asked[list(known.failures)] = False
        places = np.flatnonzero(is_asked)
        asked = [texts[place] for place in places.tolist()]
        # What is remembered is written after each request; the rest is cut by its embedder.
        most = BATCH_TEXTS_MAX if keys else _TEXTS_AT_ONCE
        for part, outcome in self._ask_all(asked, most, dimension, (places, may_fail)):
            here = places[part]
            if isinstance(outcome, str):
                found.reasons.update(dict.fromkeys(here.tolist(), outcome))
            else:
                _store_vectors(found, here, outcome)
            self._remember([keys[place] for place in here.tolist()] if keys else [], outcome)
        return found

    def _ask_all(
        self, asked: list[str], most: int, dimension: int, terms: tuple[_Places, bool]
    ) -> Iterator[tuple[slice, Vectors | str]]:
        """What becomes of texts, batch by batch; a failure says the place of its text."""
        places, may_fail = terms
        try:
            for batch in cut_batches(asked, texts_max=most):
                yield from self._ask(asked, batch, dimension, may_fail=may_fail)
        except EmbeddingError as failure:
            if failure.index is not None:
                # Of all texts: those that the cache knows were not asked for.
                failure.index = int(places[failure.index])
            raise

    def _ask(
        self, texts: list[str], batch: slice, dimension: int, *, may_fail: bool
    ) -> Iterator[tuple[slice, Vectors | str]]:
        """The vectors of a batch, or why a text has none; a refused batch is asked in halves."""
        try:
            yield batch, self.embedder.embed_texts(texts[batch], dimension, Task.DOCUMENT)
            return
        except EmbeddingError as failure:
            count = batch.stop - batch.start
            if not may_fail or failure.reason not in _OF_TEXTS:
                if failure.index is not None:
                    failure.index += batch.start
                raise
            if count == 1:
                yield batch, failure.message
                return
        middle = batch.start + count // 2
        for half in (slice(batch.start, middle), slice(middle, batch.stop)):
            yield from self._ask(texts, half, dimension, may_fail=may_fail)

    def _find(self, texts: Sequence[str], dimension: int) -> tuple[list[bytes], Remembered]:
        if self.cache is None or self.embedder.kind in _NOT_CACHED:
            return [], _NOTHING
        keys = compute_keys(self.embedder, texts, dimension, Task.DOCUMENT)
        return keys, self.cache.find(keys)

    def _remember(self, keys: list[bytes], outcome: Vectors | str) -> None:
        if self.cache is None or not keys:
            return
        if isinstance(outcome, str):
            self.cache.put_failures(keys, [outcome] * len(keys))
        else:
            self.cache.put_vectors(keys, outcome)


def _store_vectors(found: AskedVectors, places: npt.NDArray[Any], vectors: Vectors) -> None:
    found.vectors[places] = vectors
    found.is_there[places] = True

"""Seeded documents with a text and a vector each, and what people look for in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import omnigraph
from omnigraph import Graph

Vectors = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

DIMENSION: Final = 384
SCHEMA: Final = f"""
node Doc {{
  slug: String @key
  topic: String @index
  year: I64
  body: String @index
  vec: Vector({DIMENSION}) @index
}}
"""
_WORDS: Final = 20_000
_LEAST_WORDS, _MOST_WORDS = 20, 100
_TOPICS: Final = 200
_CLUSTERS: Final = 500
_SYLLABLES: Final = tuple(a + b for a in "bdfgklmnprtv" for b in "aeiou")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody looks for: words, and a vector."""

    words: str
    vector: list[float]


@dataclass(frozen=True, slots=True)
class Documents:
    """Rows with `slug`, `topic`, `year`, `body` and `vec`, and searches in them."""

    rows: pa.Table
    vectors: Vectors
    wanted: tuple[Wanted, ...]


def generate(*, count: int = 100_000, searches: int = 50, seed: int = 5) -> Documents:
    """The documents of a seed: words as frequent as in languages, vectors around centres."""
    pick = np.random.default_rng(seed)
    vocabulary = _vocabulary(pick)
    bodies = _texts(pick, vocabulary, pick.integers(_LEAST_WORDS, _MOST_WORDS, count))
    centres = pick.normal(size=(_CLUSTERS, DIMENSION))
    home = pick.integers(0, _CLUSTERS, count)
    vectors = _unit(centres[home] + 1.2 * pick.normal(size=(count, DIMENSION)))
    numbers = pc.cast(pa.array(np.arange(count)), pa.utf8())
    rows = pa.table(
        {
            "slug": pc.binary_join_element_wise("d", numbers, ""),
            "topic": pc.binary_join_element_wise(
                "topic", pc.cast(pa.array(pick.integers(0, _TOPICS, count)), pa.utf8()), " "
            ),
            "year": pick.integers(1990, 2026, count),
            "body": bodies,
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )
    like = vectors[pick.integers(0, count, searches)]
    near = _unit(like + 0.6 * pick.normal(size=like.shape) / np.sqrt(DIMENSION))
    # People look for words that are neither the most frequent nor nearly unknown.
    words = vocabulary.take(pa.array(pick.integers(50, 3_000, searches * 3)))
    asked = np.array(words.to_pylist()).reshape(searches, 3)
    return Documents(
        rows,
        vectors,
        tuple(
            Wanted(" ".join(text), vector.tolist())
            for text, vector in zip(asked, near, strict=True)
        ),
    )


def nearest(documents: Documents, wanted: Wanted, count: int) -> list[str]:
    """The ids of the nearest documents, found by looking at all of them."""
    query = np.array(wanted.vector, np.float32)
    distances = ((documents.vectors - query) ** 2).sum(axis=1)
    places = np.argsort(distances, kind="stable")[:count]
    slugs: list[str] = documents.rows["slug"].take(pa.array(places)).to_pylist()
    return slugs


def _vocabulary(pick: np.random.Generator) -> pa.Array:
    syllables = pa.array(_SYLLABLES)
    parts = [syllables.take(pa.array(pick.integers(0, len(syllables), _WORDS))) for _ in range(4)]
    return pc.binary_join_element_wise(*parts, "")


def _texts(pick: np.random.Generator, words: pa.Array, lengths: Numbers) -> pa.Array:
    """A word's chance falls with its place in the vocabulary, as Zipf found."""
    weights = 1 / (np.arange(len(words)) + 3)
    bounds = np.cumsum(weights / weights.sum())
    places = np.searchsorted(bounds, pick.random(int(lengths.sum())))
    chosen = words.take(pa.array(np.minimum(places, len(words) - 1)))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), chosen), " ")


def _unit(vectors: npt.NDArray[np.float64]) -> Vectors:
    scaled: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def load(documents: Documents, folder: Path) -> Graph:
    """The documents as a graph."""
    graph = omnigraph.create(str(folder), schema=SCHEMA, durable=False)
    graph.branch().load(documents.rows, type="Doc", mode="append")
    return graph

"""Embedders of other packages, found by their entry points, and functions as embedders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.embedding.embedder import BatchEmbedder, Task, Vectors, normalize_vectors
from omnigraph.embedding.embedding_profile import PLUGIN_GROUP, Profile
from omnigraph.embedding.text_batches import cut_batches
from omnigraph.errors import EmbeddingError

# From texts, a dimension and a task, `query` or `document`, to a vector for each text.
EmbedFunction: TypeAlias = Callable[
    [list[str], int, str], Sequence[Sequence[float]] | npt.NDArray[np.floating]
]


@dataclass(frozen=True, slots=True)
class FunctionEmbedder:
    """A function as an embedder, under the name of its model.

    `function(texts, dimension, task)` returns a vector for each text, as lists or as an array; the
    task is `query` or `document`.
    """

    model: str
    function: EmbedFunction
    kind: str = "function"

    def __call__(self, text: str, dimension: int) -> tuple[float, ...]:
        """The unit vector of the text of a query."""
        return tuple(self.embed_texts([text], dimension, Task.QUERY)[0].tolist())

    def embed_texts(self, texts: Sequence[str], dimension: int, task: Task) -> Vectors:
        """The unit vectors of texts, asked for in batches."""
        parts = [np.empty((0, dimension), np.float32)]
        for batch in cut_batches(texts):
            asked = list(texts[batch])
            found = self.function(asked, dimension, task.value)
            if len(found) != len(asked):
                message = f"the embedder '{self.kind}' gave {len(found)} vectors for {len(asked)}"
                raise EmbeddingError(f"{message} texts", reason="bad_answer")
            try:
                parts.append(normalize_vectors(found, dimension=dimension))
            except EmbeddingError as failure:
                if failure.index is not None:
                    failure.index += batch.start
                raise
        return np.concatenate(parts)


def load_plugin(profile: Profile) -> BatchEmbedder:
    """The embedder that a plug-in makes of a profile.

    The entry point names a function of the profile; it returns a function of texts, a dimension
    and a task, or an embedder.
    """
    (found, *_) = entry_points(group=PLUGIN_GROUP, name=profile.provider)
    try:
        made: Any = found.load()(profile)  # Any: what the plug-in makes of it
    except EmbeddingError:
        raise
    except Exception as failure:
        raise EmbeddingError(
            f"the embedder plug-in '{profile.provider}' cannot be used: {failure!r}",
            reason="not_configured",
            hint=f"check the package that has {found.value}",
        ) from failure
    if isinstance(made, BatchEmbedder):
        return made
    return FunctionEmbedder(profile.model, made, kind=profile.provider)

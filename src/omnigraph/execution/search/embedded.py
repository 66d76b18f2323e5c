"""The vector that a text stands for in a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from omnigraph.embedding.embedder import NamedEmbedder
from omnigraph.embedding.vectors import normalize_vector
from omnigraph.errors import EmbeddingError
from omnigraph.execution.search.nearest import Vector
from omnigraph.schema.catalog import Property
from omnigraph.schema.types import VectorType

if TYPE_CHECKING:
    from omnigraph.execution.reading import Embedder


def embed_query(text: str, property_: Property, embed: Embedder | None) -> Vector:
    """The unit vector of a text, made by the model that made the vectors of a property."""
    embedder = require_embedder(embed)
    assert isinstance(property_.type.value, VectorType)
    require_model(property_, embedder)
    dimension = property_.type.value.dimension
    values = normalize_vector(embedder(text, dimension), dimension=dimension)
    return np.array(values, np.float32)


def require_embedder(embed: Embedder | None) -> Embedder:
    """The embedder, which a search by text cannot do without."""
    if embed is None:
        raise EmbeddingError(
            "no embedder is configured to rank by a text",
            reason="not_configured",
            hint="set OMNIGRAPH_EMBED_PROVIDER and a key, or search by a vector",
        )
    return embed


def require_model(property_: Property, embed: Embedder) -> None:
    """Refuse an embedder whose model is not the one that made the vectors of a property."""
    recorded = None if property_.embed is None else property_.embed.model
    if recorded is None or not isinstance(embed, NamedEmbedder) or embed.model == recorded:
        return
    raise EmbeddingError(
        f"the vectors of '{property_.name}' were made by the model '{recorded}', "
        f"and the embedder uses '{embed.model}'",
        reason="wrong_model",
        hint="set OMNIGRAPH_EMBED_MODEL to the recorded model",
    )

"""Embeddings: text to unit vectors of 32-bit floats.

In: a text, a dimension and the environment of the process. Out: a vector. Guarantee: a vector has
the requested dimension and length one, or an `EmbeddingError` states why there is none.

    configured_embedder   the embedder of the environment, created on first use; a mock for tests
    embedding_profile     the provider and its settings, read from the environment
    http_embedder         a provider over HTTP, with retries and a deadline
    embedder              the interfaces of an embedder, and the check of its vectors
"""

from omnigraph.embedding.configured_embedder import ConfiguredEmbedder, MockEmbedder
from omnigraph.embedding.embedder import NamedEmbedder, TimeLimitedEmbedder

__all__ = ["ConfiguredEmbedder", "MockEmbedder", "NamedEmbedder", "TimeLimitedEmbedder"]

"""Embeddings: a text in, a unit vector of 32-bit floats out.

`embedder` says what an embedder is. `configured` makes the one that the environment describes: its
`profile` names a provider, which `client` asks over HTTP, or `mock`, an embedder without a model,
for tests. `vectors` checks and normalises what an embedder returns.
"""

from omnigraph.embedding.configured_embedder import ConfiguredEmbedder, MockEmbedder
from omnigraph.embedding.embedder import NamedEmbedder, TimeLimitedEmbedder

__all__ = ["ConfiguredEmbedder", "MockEmbedder", "NamedEmbedder", "TimeLimitedEmbedder"]

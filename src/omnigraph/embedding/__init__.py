"""Embeddings: text to unit vectors of 32-bit floats.

In: texts, a dimension, what the vectors are for, and the environment of the process. Out: a vector
for each text. Guarantee: a vector has the requested dimension and length one, or an
`EmbeddingError` states why there is none.

    configured_embedder   the embedder of the environment, created on first use
    embedding_profile     the provider and its settings, read from the environment
    provider_embedder     the embedder of a provider that is configured for one graph
    http_embedder         a provider over HTTP, with retries and a deadline
    provider_protocols    what providers are asked over HTTP, and what their answers hold
    record_files          vectors in files of records, without a graph
    embed_spec            what is embedded in such files
    text_vectors          the vectors of documents, from the cache or an embedder
    vector_cache          vectors that a provider made before, in a file of the user
    model_identity        which model the vectors of a property are of
    text_batches          cuts texts into batches that fit into one request
    local_embedder        a model on this machine, in a folder or an installed package
    bert_encoder          models of the BERT family on the processor
    embedder_plugins      embedders of other packages, and functions as embedders
    mock_embedder         vectors without a model, for tests
    embedder              the interfaces of an embedder, and the check of its vectors
"""

from omnigraph.embedding.configured_embedder import ConfiguredEmbedder
from omnigraph.embedding.embedder import BatchEmbedder, NamedEmbedder, TimeLimitedEmbedder
from omnigraph.embedding.embedder_plugins import FunctionEmbedder
from omnigraph.embedding.mock_embedder import MockEmbedder

__all__ = [
    "BatchEmbedder",
    "ConfiguredEmbedder",
    "FunctionEmbedder",
    "MockEmbedder",
    "NamedEmbedder",
    "TimeLimitedEmbedder",
]

"""Embeddings: a text in, a unit vector of 32-bit floats out.

`vectors` checks and normalises what an embedder returns; `mock` is an embedder without a model,
for tests.
"""

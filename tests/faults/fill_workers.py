"""A process that fills vectors, to be killed."""

from __future__ import annotations

import sys

import omnigraph
from omnigraph.embedding.embedding_profile import Profile, Provider
from omnigraph.embedding.http_embedder import HttpEmbedder


def main() -> None:
    """Fill the graph at an address from a provider."""
    uri, url = sys.argv[1:]
    embedder = HttpEmbedder(Profile(Provider.OPENAI_COMPATIBLE, url, "m", ""))
    with omnigraph.open(uri, embedder=embedder) as graph:
        graph.branch().embed()


if __name__ == "__main__":
    main()

"""Embedders of other packages, and functions as embedders."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from omnigraph.embedding import ConfiguredEmbedder, FunctionEmbedder
from omnigraph.embedding.embedder import Task
from omnigraph.errors import EmbeddingError

MODULE = """
def make(profile):
    if profile.model == "broken":
        raise RuntimeError("no licence")
    def embed(texts, dimension, task):
        return [[len(text), task == "query"] for text in texts]
    return embed
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with an embedder."""
    (tmp_path / "acme_vectors.py").write_text(MODULE)
    info = tmp_path / "acme_vectors-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-vectors\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[omnigraph.embedders]\nacme = acme_vectors:make\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_vectors", raising=False)


@pytest.mark.usefixtures("plugin")
def test_an_entry_point_is_a_provider() -> None:
    embedder = ConfiguredEmbedder(
        {"OMNIGRAPH_EMBED_PROVIDER": "acme", "OMNIGRAPH_EMBED_MODEL": "m"}
    )
    assert (embedder.kind, embedder.model) == ("acme", "m")
    assert embedder.embed_texts(["abc"], 2, Task.DOCUMENT).tolist() == [[1.0, 0.0]]
    assert embedder("a", 2) == pytest.approx((0.7071068, 0.7071068), abs=1e-6)


@pytest.mark.usefixtures("plugin")
def test_a_plugin_that_fails_is_named() -> None:
    embedder = ConfiguredEmbedder(
        {"OMNIGRAPH_EMBED_PROVIDER": "acme", "OMNIGRAPH_EMBED_MODEL": "broken"}
    )
    with pytest.raises(EmbeddingError, match="no licence") as caught:
        embedder("a", 2)
    assert caught.value.hint == "check the package that has acme_vectors:make"


def test_a_provider_that_is_not_installed_is_refused_with_those_that_are() -> None:
    with pytest.raises(EmbeddingError) as caught:
        ConfiguredEmbedder({"OMNIGRAPH_EMBED_PROVIDER": "acme"})("a", 2)
    assert "openai-compatible, openai, gemini, local, mock" in str(caught.value.hint)


def test_a_function_is_an_embedder_and_its_vectors_are_checked() -> None:
    asked: list[int] = []

    def embed(texts: list[str], dimension: int, task: str) -> np.ndarray:
        asked.append(len(texts))
        found = np.ones((len(texts), dimension))
        found[[text == "zero" for text in texts]] = np.nan
        return found if task == "document" else found[:, :1]

    embedder = FunctionEmbedder("m", embed)
    assert embedder.embed_texts(["a"] * 130, 4, Task.DOCUMENT).shape == (130, 4)
    assert asked == [128, 2]
    with pytest.raises(EmbeddingError, match="1 components, not 4"):
        embedder("a", 4)
    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_texts(["a"] * 129 + ["zero"], 4, Task.DOCUMENT)
    assert (caught.value.reason, caught.value.index) == ("no_direction", 129)
    short = FunctionEmbedder("m", lambda *_: [])
    with pytest.raises(EmbeddingError, match="0 vectors for 1 texts"):
        short("a", 4)

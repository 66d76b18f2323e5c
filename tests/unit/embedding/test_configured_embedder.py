"""Embedders from the environment."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from omnigraph.embedding import ConfiguredEmbedder, MockEmbedder, NamedEmbedder
from omnigraph.embedding.embedding_profile import Profile, Provider, RetryPolicy, read_profile
from omnigraph.embedding.http_embedder import HttpEmbedder
from omnigraph.embedding.mock_embedder import compute_mock_embedding
from omnigraph.errors import EmbeddingError, ExecutionError
from unit.embedding.loopback import embedding, loopback


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {"OPENROUTER_API_KEY": "r", "OPENAI_API_KEY": "o"},
            (
                "openai-compatible",
                "https://openrouter.ai/api/v1",
                "openai/text-embedding-3-large",
                "r",
            ),
        ),
        (
            {"OPENAI_API_KEY": "o", "OPENROUTER_API_KEY": ""},
            (
                "openai-compatible",
                "https://openrouter.ai/api/v1",
                "openai/text-embedding-3-large",
                "o",
            ),
        ),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OPENAI_API_KEY": " o\n"},
            ("openai", "https://api.openai.com/v1", "text-embedding-3-large", "o"),
        ),
        (
            {
                "OMNIGRAPH_EMBED_PROVIDER": "gemini",
                "GEMINI_API_KEY": "g",
                "OMNIGRAPH_EMBED_MODEL": "m",
                "OMNIGRAPH_EMBED_BASE_URL": "http://127.0.0.1:1/x/",
            },
            ("gemini", "http://127.0.0.1:1/x", "m", "g"),
        ),
        ({"OMNIGRAPH_EMBED_PROVIDER": "mock"}, ("mock", "", "", "")),
        (
            {"OMNIGRAPH_EMBEDDINGS_MOCK": "1", "OMNIGRAPH_EMBED_PROVIDER": "gemini"},
            ("mock", "", "", ""),
        ),
    ],
)
def test_the_environment_names_a_provider(
    environment: dict[str, str], expected: tuple[str, ...]
) -> None:
    found = read_profile(environment)
    assert (found.provider, found.base_url, found.model, found.key) == expected
    assert found.retry_policy == RetryPolicy(60, 30, 4, 0.2)


def test_patience_is_set_in_milliseconds() -> None:
    found = read_profile(
        {
            "OPENAI_API_KEY": "o",
            "OMNIGRAPH_EMBED_DEADLINE_MS": "0",
            "OMNIGRAPH_EMBED_TIMEOUT_MS": "1500",
            "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "1",
            "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "5",
        }
    )
    assert found.retry_policy == RetryPolicy(0, 1.5, 1, 0.005)


@pytest.mark.parametrize(
    ("environment", "reason", "named"),
    [
        ({}, "missing_key", "OPENROUTER_API_KEY or OPENAI_API_KEY"),
        ({"OMNIGRAPH_EMBED_PROVIDER": "openai", "OPENROUTER_API_KEY": "r"},
         "missing_key", "OPENAI_API_KEY"),
        ({"OMNIGRAPH_EMBED_PROVIDER": "gemini", "OPENAI_API_KEY": "r"},
         "missing_key", "GEMINI_API_KEY"),
        ({"OMNIGRAPH_EMBED_PROVIDER": "cohere"}, "bad_setting", "openai-compatible"),
        ({"OPENAI_API_KEY": "o", "OMNIGRAPH_EMBED_BASE_URL": "file:///etc"}, "bad_setting", "https://"),
        ({"OPENAI_API_KEY": "o", "OMNIGRAPH_EMBED_TIMEOUT_MS": "0"}, "bad_setting", "at least 1"),
        ({"OPENAI_API_KEY": "o", "OMNIGRAPH_EMBED_DEADLINE_MS": "-1"}, "bad_setting", "at least 0"),
        ({"OPENAI_API_KEY": "o", "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "²"},
         "bad_setting", "at least 1"),
        ({"OPENAI_API_KEY": "se\ncret"}, "bad_setting", "copy it again"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_refused_when_a_text_is_embedded(
    environment: dict[str, str], reason: str, named: str
) -> None:
    embedder = ConfiguredEmbedder(environment)
    with pytest.raises(EmbeddingError) as caught:
        embedder("sea", 2)
    assert caught.value.reason == reason
    assert caught.value.hint is not None
    assert named in caught.value.hint
    assert isinstance(caught.value, ExecutionError)
    assert "se\ncret" not in str(caught.value)


def test_the_mock_can_be_forced_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    embedder = ConfiguredEmbedder(
        {"OMNIGRAPH_EMBEDDINGS_MOCK": "true", "OMNIGRAPH_EMBED_MODEL": "demo/mini"}
    )
    with caplog.at_level(logging.WARNING):
        assert embedder("sea", 4) == compute_mock_embedding("sea", 4)
        assert embedder("see", 4) == compute_mock_embedding("see", 4)
    assert embedder.model == "demo/mini"
    assert [record.message for record in caplog.records] == [
        "texts are embedded without a model: OMNIGRAPH_EMBEDDINGS_MOCK is set"
    ]


@pytest.mark.parametrize("flag", ["", "0", "false"])
def test_a_mock_flag_that_is_off_forces_nothing(flag: str) -> None:
    found = read_profile({"OMNIGRAPH_EMBEDDINGS_MOCK": flag, "OPENAI_API_KEY": "o"})
    assert found.provider is Provider.OPENAI_COMPATIBLE


def test_a_configured_provider_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with loopback(embedding(0, 5)) as server:
        embedder = ConfiguredEmbedder(
            {"OPENAI_API_KEY": "o", "OMNIGRAPH_EMBED_BASE_URL": server.url}
        )
        assert embedder("sea", 2) == (0.0, 1.0)
    assert embedder.model == "openai/text-embedding-3-large"


def test_every_embedder_has_a_model() -> None:
    assert isinstance(MockEmbedder("m"), NamedEmbedder)
    assert not isinstance(compute_mock_embedding, NamedEmbedder)
    assert "secret" not in repr(Profile(Provider.OPENAI, "https://x", "m", "secret"))


def test_http_is_imported_only_to_ask_a_provider() -> None:
    script = (
        "import sys, omnigraph.embedding; omnigraph.embedding.MockEmbedder()('x', 2);"
        "print('urllib.request' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "False"


def test_a_configured_embedder_can_be_hurried() -> None:
    environment = {"OPENAI_API_KEY": "o", "OMNIGRAPH_EMBED_BASE_URL": "http://127.0.0.1:9"}
    hurried = ConfiguredEmbedder(environment).with_timeout(5)
    assert isinstance(hurried, HttpEmbedder)
    assert hurried.profile.retry_policy.deadline_s == 5
    mock = ConfiguredEmbedder({"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}).with_timeout(5)
    assert mock("sea", 3) == compute_mock_embedding("sea", 3)

"""Many texts at once: batches, tasks, orders of answers, and what is said of one bad vector."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy as np
import pytest

from omnigraph.embedding.embedder import Task
from omnigraph.embedding.embedding_profile import Profile, Provider, read_profile
from omnigraph.embedding.http_embedder import HttpEmbedder
from omnigraph.embedding.text_batches import BATCH_CHARACTERS_MAX, cut_batches
from omnigraph.errors import EmbeddingError, EmbeddingUnavailableError
from unit.embedding.loopback import Loopback, client, loopback, says


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def _vector_of(text: str) -> list[float]:
    return [float(len(text)), 1.0]


def answers_openai(state: Loopback) -> Any:
    """A service that makes the vector of a text of its length, and answers backwards."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        given = state.asked[-1].body["input"]
        texts = [given] if isinstance(given, str) else given
        data = [{"index": at, "embedding": _vector_of(each)} for at, each in enumerate(texts)]
        says({"data": data[::-1]})(handler)

    return answer


def answers_gemini(state: Loopback) -> Any:
    """A service as Gemini, with the vector of a text of its length."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        texts = [each["content"]["parts"][0]["text"] for each in state.asked[-1].body["requests"]]
        says({"embeddings": [{"values": _vector_of(each)} for each in texts]})(handler)

    return answer


def test_texts_are_sent_in_batches_and_come_back_in_their_order() -> None:
    texts = [f"{number:0{1 + number % 7}d}" for number in range(300)]
    with loopback() as server:
        server.answers.append(answers_openai(server))
        found = client(server.url).embed_texts(texts, 2, Task.DOCUMENT)
    assert [len(each.body["input"]) for each in server.asked] == [128, 128, 44]
    expected = np.array([_vector_of(each) for each in texts])
    expected /= np.linalg.norm(expected, axis=1)[:, None]
    assert found.dtype == np.float32
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("task", "name"),
    [(Task.DOCUMENT, "RETRIEVAL_DOCUMENT"), (Task.QUERY, "RETRIEVAL_QUERY")],
)
def test_gemini_has_batches_and_a_task_for_each_text(task: Task, name: str) -> None:
    with loopback() as server:
        server.answers.append(answers_gemini(server))
        found = client(server.url, provider=Provider.GEMINI).embed_texts(["a"] * 150, 2, task)
    assert found.shape == (150, 2)
    assert [each.path for each in server.asked] == ["/v1/models/demo%2Fmini:batchEmbedContents"] * 2
    assert [len(each.body["requests"]) for each in server.asked] == [100, 50]
    assert server.asked[0].body["requests"][0] == {
        "model": "models/demo/mini",
        "content": {"parts": [{"text": "a"}]},
        "taskType": name,
        "outputDimensionality": 2,
    }


def test_long_texts_make_short_batches() -> None:
    texts = ["a" * 60_000, "b" * 40_000, "c", "d" * 200_000, "e"]
    found = [(cut.start, cut.stop) for cut in cut_batches(texts)]
    assert found == [(0, 2), (2, 3), (3, 4), (4, 5)]
    for start, stop in found:
        assert stop - start == 1 or sum(map(len, texts[start:stop])) <= BATCH_CHARACTERS_MAX
    assert list(cut_batches([])) == []


def test_a_service_without_keys_gets_none() -> None:
    profile = read_profile(
        {"OMNIGRAPH_EMBED_AUTH": "none", "OMNIGRAPH_EMBED_BASE_URL": "http://127.0.0.1:1"}
    )
    assert profile.key == ""
    with loopback() as server:
        server.answers.append(answers_openai(server))
        embedder = HttpEmbedder(Profile(Provider.OPENAI_COMPATIBLE, server.url, "m", ""))
        assert embedder("ab", 2) == pytest.approx((0.894427, 0.447214), abs=1e-6)
    assert "authorization" not in server.asked[0].headers
    with pytest.raises(EmbeddingError, match="AUTH is 'maybe'"):
        read_profile({"OMNIGRAPH_EMBED_AUTH": "maybe"})


def test_a_wait_that_the_service_asks_for_is_kept() -> None:
    waits: list[float] = []
    with loopback(says(b"", 429, **{"Retry-After": "7"})) as server:
        server.answers.append(answers_openai(server))
        embedder = HttpEmbedder(client(server.url).profile, sleep=waits.append)
        embedder.embed_texts(["a", "b"], 2, Task.DOCUMENT)
    assert waits == [7.0]
    assert len(server.asked) == 2


def test_one_bad_vector_is_named_by_the_place_of_its_text() -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        texts = server.asked[-1].body["input"]
        data = [{"embedding": [0, 0] if each == "zero" else [1, 0]} for each in texts]
        says({"data": data})(handler)

    with loopback(answer) as server, pytest.raises(EmbeddingError) as caught:
        client(server.url).embed_texts(["a"] * 200 + ["zero", "b"], 2, Task.DOCUMENT)
    assert (caught.value.reason, caught.value.index) == ("no_direction", 200)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([{"embedding": [1, 0]}], "1 embeddings for 2 texts"),
        ([{"index": 1, "embedding": [1, 0]}] * 2, "indexes"),
        ([{"embedding": [1, 0]}, {"embedding": None}], "not a list of numbers"),
    ],
)
def test_an_answer_that_does_not_fit_its_batch_is_refused(data: Any, problem: str) -> None:
    with loopback(says({"data": data})) as server, pytest.raises(EmbeddingError, match=problem):
        client(server.url).embed_texts(["a", "b"], 2, Task.DOCUMENT)


def test_a_provider_that_is_down_may_be_asked_again() -> None:
    with loopback(says(b"", 503)) as server, pytest.raises(EmbeddingUnavailableError) as caught:
        client(server.url).embed_texts(["a", "b"], 2, Task.DOCUMENT)
    assert caught.value.retryable
    assert caught.value.reason == "unavailable"
    assert json.dumps(server.asked[0].body["input"]) == '["a", "b"]'

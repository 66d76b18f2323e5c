"""The HTTP client of embedding providers, against a server that misbehaves."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from omnigraph.embedding.embedding_profile import Provider, RetryPolicy
from omnigraph.errors import EmbeddingError
from unit.embedding.loopback import (
    KEY,
    Answer,
    breaks_off,
    client,
    drips,
    embedding,
    hangs_up,
    loopback,
    says,
    stalls,
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.mark.parametrize("provider", [Provider.OPENAI_COMPATIBLE, Provider.OPENAI])
def test_openai_is_asked_with_a_bearer_key_and_answers_are_scaled(provider: Provider) -> None:
    with loopback(embedding(3, 4.0)) as server:
        found = client(server.url, provider=provider)("some täxt", 2)
    assert found == pytest.approx((0.6, 0.8), abs=1e-7)
    (asked,) = server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "demo/mini", "input": "some täxt", "dimensions": 2}


def test_gemini_is_asked_for_the_vector_of_a_query() -> None:
    with loopback(says({"embedding": {"values": [0, 2]}})) as server:
        assert client(server.url, provider=Provider.GEMINI)("sea", 2) == (0.0, 1.0)
    (asked,) = server.asked
    assert asked.path == "/v1/models/demo%2Fmini:embedContent"
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.body == {
        "content": {"parts": [{"text": "sea"}]},
        "taskType": "RETRIEVAL_QUERY",
        "outputDimensionality": 2,
    }


@pytest.mark.parametrize(
    "failure",
    [says(b"busy", 429), says(b"", 500), says(b"", 503), hangs_up, breaks_off],
    ids=["429", "500", "503", "hangs up", "breaks off"],
)
def test_a_failure_that_may_pass_is_tried_again(failure: Answer) -> None:
    with loopback(failure, failure, failure, embedding(0, 1)) as server:
        assert client(server.url)("sea", 2) == (0.0, 1.0)
    assert len(server.asked) == 4


def test_after_four_attempts_the_provider_is_unavailable() -> None:
    with loopback(says(b"", 503)) as server, pytest.raises(EmbeddingError) as caught:
        client(server.url)("sea", 2)
    assert len(server.asked) == 4
    assert caught.value.reason == "unavailable"
    assert "4 attempts" in caught.value.message
    assert "HTTP 503" in caught.value.message


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 403, 404, 413])
def test_a_refusal_is_not_tried_again_and_never_shows_the_key(status: int) -> None:
    answer = says(f"no key {KEY} here".encode(), status, Location="http://127.0.0.1:9/other")
    with loopback(answer) as server, pytest.raises(EmbeddingError) as caught:
        client(server.url)("sea", 2)
    assert len(server.asked) == 1
    assert caught.value.reason == "refused"
    assert f"HTTP {status}" in caught.value.message
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "reason", "problem"),
    [
        (says(b"<html>"), "bad_answer", "not JSON"),
        (says(b"\xff\xfe"), "bad_answer", "not JSON"),
        (says(b""), "bad_answer", "not JSON"),
        (says({}), "bad_answer", "no embedding"),
        (says([]), "bad_answer", "no embedding"),
        (says({"data": []}), "bad_answer", "no embedding"),
        (says({"data": [{"embedding": "AAAA"}]}), "bad_answer", "not a list of numbers"),
        (embedding(1, None), "bad_answer", "not a list of numbers"),
        (embedding(1, True), "bad_answer", "not a list of numbers"),
        (embedding(1, 2, 3), "wrong_dimension", "3 components, not 2"),
        (embedding(), "wrong_dimension", "0 components, not 2"),
        (embedding(0, 0.0), "no_direction", "zero or not finite"),
        (says(b'{"data":[{"embedding":[NaN,1]}]}'), "no_direction", "zero or not finite"),
        (says(b'{"data":[{"embedding":[1e999,1]}]}'), "no_direction", "zero or not finite"),
        (says(b" " * 3_000_000), "bad_answer", "longer than"),
    ],
)
def test_an_answer_that_is_no_vector_is_refused(answer: Answer, reason: str, problem: str) -> None:
    with loopback(answer) as server, pytest.raises(EmbeddingError, match=problem) as caught:
        client(server.url)("sea", 2)
    assert caught.value.reason == reason
    assert len(server.asked) == 1


@pytest.mark.parametrize("answer", [stalls(3), drips(3)], ids=["stalls", "drips"])
def test_a_request_times_out(answer: Answer) -> None:
    patience = RetryPolicy(deadline_s=0, timeout_s=0.2, attempts=2, backoff_s=0.001)
    started = time.monotonic()
    with loopback(answer, embedding(0, 1)) as server:
        assert client(server.url, patience=patience)("sea", 2) == (0.0, 1.0)
        assert time.monotonic() - started < 2.5


def test_the_deadline_ends_all_attempts() -> None:
    # Long enough for a second attempt on a busy machine; a hundred would take 20 seconds.
    patience = RetryPolicy(deadline_s=1.5, timeout_s=30, attempts=100, backoff_s=0.05)
    started = time.monotonic()
    with loopback(stalls(0.2)) as server, pytest.raises(EmbeddingError) as caught:
        client(server.url, patience=patience)("sea", 2)
    assert caught.value.reason == "unavailable"
    assert 2 <= len(server.asked) < 10
    assert time.monotonic() - started < 10


def test_waits_between_attempts_grow() -> None:
    waits: list[float] = []
    with loopback(says(b"", 500)) as server:
        profile = client(server.url, patience=RetryPolicy(backoff_s=0.2)).profile
        with pytest.raises(EmbeddingError):
            type(client(server.url))(profile, sleep=waits.append)("sea", 2)
    assert waits == [0.2, 0.4, 0.8]


def test_an_address_without_a_server_is_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(EmbeddingError) as caught:
        client(f"http://127.0.0.1:{port}/v1")("sea", 2)
    assert caught.value.reason == "unavailable"
    assert str(port) in caught.value.message


def test_neither_a_client_nor_its_profile_shows_the_key() -> None:
    found: Any = client("http://127.0.0.1:1")
    assert KEY not in repr(found)
    assert KEY not in repr(found.profile)


@pytest.mark.parametrize(
    ("own_s", "seconds", "expected_s"), [(60, 5, 5), (5, 60, 5), (0, 5, 5), (60, 0, 0.001)]
)
def test_the_smaller_of_two_deadlines_holds(
    own_s: float, seconds: float, expected_s: float
) -> None:
    hurried = client("http://127.0.0.1:9", patience=RetryPolicy(deadline_s=own_s)).with_timeout(
        seconds
    )
    assert hurried.profile.retry_policy.deadline_s == expected_s

"""What providers are asked over HTTP, and what their answers hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from omnigraph.embedding.embedder import Task
from omnigraph.embedding.embedding_profile import Profile, Provider
from omnigraph.embedding.text_batches import BATCH_TEXTS_MAX
from omnigraph.http_client import HttpRequest

# Gemini takes no more requests in a batch.
_GEMINI_TEXTS_MAX: Final = 100
_GEMINI_TASKS: Final = {Task.QUERY: "RETRIEVAL_QUERY", Task.DOCUMENT: "RETRIEVAL_DOCUMENT"}


class UnusableAnswerError(Exception):
    """An answer that does not hold the vectors of the texts."""


def count_batch_texts_max(profile: Profile) -> int:
    """How many texts a provider takes in one request."""
    return _GEMINI_TEXTS_MAX if profile.provider == Provider.GEMINI else BATCH_TEXTS_MAX


def build_request(
    profile: Profile, texts: Sequence[str], dimension: int, task: Task
) -> HttpRequest:
    """The request for the vectors of texts."""
    if profile.provider == Provider.GEMINI:
        url, body = _build_gemini_request(profile, texts, dimension, task)
        key = {"x-goog-api-key": profile.key}
    else:
        url = f"{profile.base_url}/embeddings"
        given = texts[0] if len(texts) == 1 else list(texts)
        body = {"model": profile.model, "input": given, "dimensions": dimension}
        key = {"Authorization": f"Bearer {profile.key}"}
    headers = {"Content-Type": "application/json", **(key if profile.key else {})}
    return HttpRequest(url, headers, content=json.dumps(body).encode())


def _build_gemini_request(
    profile: Profile, texts: Sequence[str], dimension: int, task: Task
) -> tuple[str, dict[str, Any]]:  # Any: JSON
    url = f"{profile.base_url}/models/{quote(profile.model, safe='')}"
    requests: list[dict[str, Any]] = [
        {
            "content": {"parts": [{"text": text}]},
            "taskType": _GEMINI_TASKS[task],
            "outputDimensionality": dimension,
        }
        for text in texts
    ]
    if len(requests) == 1:
        return f"{url}:embedContent", requests[0]
    model = f"models/{profile.model}"
    return f"{url}:batchEmbedContents", {
        "requests": [{"model": model, **request} for request in requests]
    }


def parse_vectors(profile: Profile, answer: Any, count: int) -> list[list[float]]:  # Any: JSON
    """The vectors of an answer, in the order of the texts."""
    try:
        found = _select_vectors(profile, answer, count)
    except (KeyError, IndexError, TypeError):
        raise UnusableAnswerError("it holds no embedding") from None
    if not found:
        raise UnusableAnswerError("it holds no embedding")
    if len(found) != count:
        raise UnusableAnswerError(f"it holds {len(found)} embeddings for {count} texts")
    for each in found:
        if not isinstance(each, list) or not all(type(value) in (int, float) for value in each):
            raise UnusableAnswerError("its embedding is not a list of numbers")
    return found


def _select_vectors(profile: Profile, answer: Any, count: int) -> list[Any]:  # Any: JSON
    if profile.provider == Provider.GEMINI:
        found = [answer["embedding"]] if count == 1 else answer["embeddings"]
        return [each["values"] for each in found]
    data = list(answer["data"])
    if all(type(each.get("index")) is int for each in data):
        # A service may answer in another order.
        data.sort(key=lambda each: each["index"])
        if [each["index"] for each in data] != list(range(len(data))):
            raise UnusableAnswerError("its indexes are not those of the texts")
    return [each["embedding"] for each in data]

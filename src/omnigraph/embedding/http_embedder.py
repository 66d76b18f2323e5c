"""Vectors from a provider over HTTP: one request per text, tried again while there is time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never
from urllib.parse import quote

from omnigraph.embedding.embedder import normalize_vector
from omnigraph.embedding.embedding_profile import Profile, Provider
from omnigraph.errors import EmbeddingError
from omnigraph.http_client import (
    HttpAnswer,
    HttpRequest,
    Retries,
    TooLongError,
    UnavailableError,
    open_client,
    send_request,
)

# A component takes about 25 bytes of JSON; the rest is room for what providers say about usage.
_COMPONENT_BYTES: Final = 64
_ENVELOPE_BYTES: Final = 1024 * 1024
# Of the text of a refusal, what is worth showing.
_SHOWN_CHARACTERS: Final = 200
_OK: Final = 200


@dataclass(frozen=True)
class HttpEmbedder:
    """The embedder of a profile; it holds no connection, so threads may share it."""

    profile: Profile
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.profile.model

    def with_timeout(self, seconds: float) -> HttpEmbedder:
        """The same embedder, which gives up after so many seconds if not before."""
        profile = replace(
            self.profile, retry_policy=self.profile.retry_policy.with_timeout(seconds)
        )
        return replace(self, profile=profile)

    def __call__(self, text: str, dimension: int) -> tuple[float, ...]:
        """The unit vector of a text."""
        policy = self.profile.retry_policy
        started = self.clock()
        until = started + policy.deadline_s if policy.deadline_s else None
        retries = Retries(policy.attempts, policy.backoff_s, until, self.clock, self.sleep)
        try:
            answer = retries.run(lambda: self._request_embedding(text, dimension, until))
        except UnavailableError as problem:
            raise self._build_unavailable_error(problem, self.clock() - started) from problem
        return normalize_vector(self._parse_embedding(answer), dimension=dimension)

    def _request_embedding(
        self, text: str, dimension: int, until: float | None
    ) -> Any:  # Any: JSON
        timeout = self.profile.retry_policy.timeout_s
        if until is not None:
            timeout = max(min(timeout, until - self.clock()), 0.001)
        last = self.clock() + timeout
        bytes_max = _ENVELOPE_BYTES + dimension * _COMPONENT_BYTES
        try:
            with open_client(timeout) as client:
                answer = send_request(
                    client,
                    self._build_request(text, dimension),
                    bytes_max=bytes_max,
                    is_late=lambda: self.clock() > last,
                )
        except TooLongError:
            raise self._build_answer_error(f"it is longer than {bytes_max} bytes") from None
        if answer.status != _OK:
            raise self._build_refusal(answer)
        try:
            return json.loads(answer.content)
        except ValueError as failure:
            raise self._build_answer_error("it is not JSON") from failure

    def _build_request(self, text: str, dimension: int) -> HttpRequest:
        profile = self.profile
        body: dict[str, Any]
        match profile.provider:
            case Provider.OPENAI_COMPATIBLE | Provider.OPENAI:
                url, key = (
                    f"{profile.base_url}/embeddings",
                    ("Authorization", f"Bearer {profile.key}"),
                )
                body = {"model": profile.model, "input": text, "dimensions": dimension}
            case Provider.GEMINI:
                model = quote(profile.model, safe="")
                url, key = (
                    f"{profile.base_url}/models/{model}:embedContent",
                    ("x-goog-api-key", profile.key),
                )
                body = {
                    "content": {"parts": [{"text": text}]},
                    "taskType": "RETRIEVAL_QUERY",
                    "outputDimensionality": dimension,
                }
            case Provider.MOCK:
                raise AssertionError("the mock sends no request")
            case _:
                assert_never(profile.provider)
        headers = {"Content-Type": "application/json", key[0]: key[1]}
        return HttpRequest(url, headers, content=json.dumps(body).encode())

    def _parse_embedding(self, answer: Any) -> list[float]:
        try:
            if self.profile.provider is Provider.GEMINI:
                found = answer["embedding"]["values"]
            else:
                found = answer["data"][0]["embedding"]
        except (KeyError, IndexError, TypeError):
            raise self._build_answer_error("it holds no embedding") from None
        if not isinstance(found, list) or not all(type(each) in (int, float) for each in found):
            raise self._build_answer_error("its embedding is not a list of numbers")
        return [float(each) for each in found]

    def _build_refusal(self, answer: HttpAnswer) -> EmbeddingError:
        said = f"HTTP {answer.status} {answer.reason}"
        text = answer.content.decode(errors="replace").strip()
        text = text.replace(self.profile.key, "…")[:_SHOWN_CHARACTERS]
        return EmbeddingError(
            f"{self._who} refused the text: {said}{f': {text}' if text else ''}",
            reason="refused",
            hint="check the key, the model and the address of the provider",
        )

    def _build_unavailable_error(self, problem: UnavailableError, seconds: float) -> EmbeddingError:
        return EmbeddingError(
            f"{self._who} gave no answer in {problem.attempts} attempts and {seconds:.1f} s:"
            f" {problem}",
            reason="unavailable",
            hint="try again later, or search by a vector",
        )

    def _build_answer_error(self, problem: str) -> EmbeddingError:
        return EmbeddingError(
            f"the answer of {self._who} cannot be used: {problem}", reason="bad_answer"
        )

    @property
    def _who(self) -> str:
        return f"the embedding provider at {self.profile.base_url}"

"""Vectors from a provider over HTTP: one request per text, tried again while there is time."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, assert_never
from urllib.parse import quote

from omnigraph.embedding.embedder import normalize_vector
from omnigraph.embedding.embedding_profile import Profile, Provider
from omnigraph.errors import EmbeddingError

# A component takes about 25 bytes of JSON; the rest is room for what providers say about usage.
_COMPONENT_BYTES: Final = 64
_ENVELOPE_BYTES: Final = 1024 * 1024
_READ_BYTES: Final = 64 * 1024
# Of the text of a refusal, what is worth showing.
_SHOWN_CHARACTERS: Final = 200
# Too many requests, and what a server or a gateway says when it could not do it this time.
_RETRYABLE_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_BACKOFF_GROWTH: Final = 2


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to an address that nobody configured."""

    def redirect_request(self, *_: Any) -> None:  # Any: the parameters of the base class
        return None


@dataclass(frozen=True)
class HttpEmbedder:
    """The embedder of a profile; it holds no connection, so threads may share it."""

    profile: Profile
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _opener: urllib.request.OpenerDirector = field(
        default_factory=lambda: urllib.request.build_opener(_NoRedirects), repr=False
    )

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
        patience = self.profile.retry_policy
        started = self.clock()
        until = started + patience.deadline_s if patience.deadline_s else None
        backoff = patience.backoff_s
        for attempt in range(1, patience.attempts + 1):
            try:
                answer = self._request_embedding(text, dimension, until)
                break
            except _Unavailable as problem:
                is_over = until is not None and self.clock() + backoff >= until
                if attempt == patience.attempts or is_over:
                    raise self._build_unavailable_error(
                        problem, attempt, self.clock() - started
                    ) from problem
            self.sleep(backoff)
            backoff *= _BACKOFF_GROWTH
        return normalize_vector(self._parse_embedding(answer), dimension=dimension)

    def _request_embedding(
        self, text: str, dimension: int, until: float | None
    ) -> Any:  # Any: JSON
        timeout = self.profile.retry_policy.timeout_s
        if until is not None:
            timeout = max(min(timeout, until - self.clock()), 0.001)
        last = self.clock() + timeout
        try:
            with self._opener.open(
                self._build_request(text, dimension), timeout=timeout
            ) as response:
                data = self._read(response, dimension, last)
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise self._build_refusal(refusal) from None
        except (OSError, http.client.HTTPException) as failure:
            raise _Unavailable(_format_failure(failure)) from failure
        try:
            return json.loads(data)
        except ValueError as failure:
            raise self._build_answer_error("it is not JSON") from failure

    def _read(self, response: http.client.HTTPResponse, dimension: int, last: float) -> bytes:
        """The body. A socket times out between two bytes only, so the whole is timed here."""
        most = _ENVELOPE_BYTES + dimension * _COMPONENT_BYTES
        data = bytearray()
        while part := response.read1(_READ_BYTES):
            data += part
            if len(data) > most:
                raise self._build_answer_error(f"it is longer than {most} bytes")
            if self.clock() > last:
                raise _Unavailable("timed out while it answered")
        if response.length:
            raise _Unavailable(f"broke off {response.length} bytes before the end")
        return bytes(data)

    def _build_request(self, text: str, dimension: int) -> urllib.request.Request:
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
                raise AssertionError("the mock asks nobody")
            case _:
                assert_never(profile.provider)
        headers = {"Content-Type": "application/json", key[0]: key[1]}
        # The scheme is http or https: a profile has no other.
        return urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310

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

    def _build_refusal(self, refusal: urllib.error.HTTPError) -> Exception:
        said = f"HTTP {refusal.code} {refusal.reason}"
        if refusal.code in _RETRYABLE_STATUSES:
            return _Unavailable(said)
        try:
            text = refusal.read(_READ_BYTES).decode(errors="replace").strip()
        except OSError:
            text = ""
        text = text.replace(self.profile.key, "…")[:_SHOWN_CHARACTERS]
        return EmbeddingError(
            f"{self._who} refused the text: {said}{f': {text}' if text else ''}",
            reason="refused",
            hint="check the key, the model and the address of the provider",
        )

    def _build_unavailable_error(
        self, problem: _Unavailable, attempts: int, seconds: float
    ) -> EmbeddingError:
        return EmbeddingError(
            f"{self._who} gave no answer in {attempts} attempts and {seconds:.1f} s: {problem}",
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


class _Unavailable(Exception):
    """A failure that may not happen again."""


def _format_failure(failure: Exception) -> str:
    cause = failure.reason if isinstance(failure, urllib.error.URLError) else failure
    return str(cause) or type(cause).__name__

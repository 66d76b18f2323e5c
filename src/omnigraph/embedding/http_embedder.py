"""Vectors from a provider over HTTP: texts in batches, tried again while there is time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from omnigraph.embedding.embedder import Task, Vectors, normalize_vectors
from omnigraph.embedding.embedding_profile import Profile
from omnigraph.embedding.provider_protocols import (
    UnusableAnswerError,
    build_request,
    count_batch_texts_max,
    parse_vectors,
)
from omnigraph.embedding.text_batches import cut_batches
from omnigraph.errors import EmbeddingError, EmbeddingUnavailableError
from omnigraph.http_client import (
    HttpAnswer,
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

    @property
    def kind(self) -> str:
        """The kind of the provider, and where it is if that was chosen."""
        return self.profile.kind

    def with_timeout(self, seconds: float) -> HttpEmbedder:
        """The same embedder, which gives up after so many seconds if not before."""
        profile = replace(
            self.profile, retry_policy=self.profile.retry_policy.with_timeout(seconds)
        )
        return replace(self, profile=profile)

    def __call__(self, text: str, dimension: int) -> tuple[float, ...]:
        """The unit vector of the text of a query."""
        return tuple(self._embed_batch([text], dimension, Task.QUERY)[0].tolist())

    def embed_texts(self, texts: Sequence[str], dimension: int, task: Task) -> Vectors:
        """The unit vectors of texts; the time limit holds for each request."""
        parts = [np.empty((0, dimension), np.float32)]
        for batch in cut_batches(texts, texts_max=count_batch_texts_max(self.profile)):
            try:
                parts.append(self._embed_batch(texts[batch], dimension, task))
            except EmbeddingError as failure:
                if failure.index is not None:
                    failure.index += batch.start
                raise
        return np.concatenate(parts)

    def _embed_batch(self, texts: Sequence[str], dimension: int, task: Task) -> Vectors:
        policy = self.profile.retry_policy
        started = self.clock()
        until = started + policy.deadline_s if policy.deadline_s else None
        retries = Retries(policy.attempts, policy.backoff_s, until, self.clock, self.sleep)
        try:
            answer = retries.run(lambda: self._request_vectors(texts, dimension, task, until))
        except UnavailableError as problem:
            raise self._build_unavailable_error(problem, self.clock() - started) from problem
        try:
            found = parse_vectors(self.profile, answer, len(texts))
        except UnusableAnswerError as problem:
            raise self._build_answer_error(str(problem)) from None
        return normalize_vectors(found, dimension=dimension)

    def _request_vectors(
        self, texts: Sequence[str], dimension: int, task: Task, until: float | None
    ) -> Any:  # Any: JSON
        timeout = self.profile.retry_policy.timeout_s
        if until is not None:
            timeout = max(min(timeout, until - self.clock()), 0.001)
        last = self.clock() + timeout
        bytes_max = _ENVELOPE_BYTES + len(texts) * dimension * _COMPONENT_BYTES
        try:
            with open_client(timeout) as client:
                answer = send_request(
                    client,
                    build_request(self.profile, texts, dimension, task),
                    bytes_max=bytes_max,
                    is_late=lambda: self.clock() > last,
                )
        except TooLongError:
            raise self._build_answer_error(f"it is longer than {bytes_max} bytes") from None
        if answer.status != _OK:
            raise self._build_refusal(answer, len(texts))
        try:
            return json.loads(answer.content)
        except ValueError as failure:
            raise self._build_answer_error("it is not JSON") from failure

    def _build_refusal(self, answer: HttpAnswer, count: int) -> EmbeddingError:
        said = f"HTTP {answer.status} {answer.reason}"
        text = answer.content.decode(errors="replace").strip()
        if self.profile.key:
            text = text.replace(self.profile.key, "…")
        text = text[:_SHOWN_CHARACTERS]
        what = "the text" if count == 1 else f"{count} texts"
        return EmbeddingError(
            f"{self._who} refused {what}: {said}{f': {text}' if text else ''}",
            reason="refused",
            hint="check the key, the model and the address of the provider",
        )

    def _build_unavailable_error(
        self, problem: UnavailableError, seconds: float
    ) -> EmbeddingUnavailableError:
        return EmbeddingUnavailableError(
            f"{self._who} gave no answer in {problem.attempts} attempts and {seconds:.1f} s:"
            f" {problem}",
            hint="try again later, or search by a vector",
        )

    def _build_answer_error(self, problem: str) -> EmbeddingError:
        return EmbeddingError(
            f"the answer of {self._who} cannot be used: {problem}", reason="bad_answer"
        )

    @property
    def _who(self) -> str:
        return f"the embedding provider at {self.profile.base_url}"

"""HTTP requests for embedding providers and sources: bounded answers, and retries.

A request that may succeed later raises `UnavailableError`: the service cannot be reached, breaks
off, answers too slowly, or has a status that says so. Redirects are answers like others, because a
redirect would carry keys to an address that is not configured.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, TypeVar

import certifi
import httpx

# Too many requests, and what a server or a gateway answers when it fails this time.
RETRYABLE_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_BACKOFF_GROWTH: Final = 2
# A service that asks for a longer wait is not waited for.
RETRY_AFTER_MAX_S: Final = 300.0
# Of the body of an answer that is not a success, so much is read.
_REFUSAL_BYTES: Final = 64 * 1024

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; one with content is posted."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer; of one that is not a success, the content may be cut."""

    url: str
    status: int
    reason: str
    content: bytes = field(repr=False)
    # Where the answer is instead, and the address of the next page.
    redirect_url: str | None = None
    next_url: str | None = None


class UnavailableError(Exception):
    """A failure that may not happen again; `attempts` is how often the request was sent.

    `retry_after_s` is how long the service asks to wait.
    """

    def __init__(
        self, message: str, *, status: int | None = None, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s
        self.attempts = 1


class TooLongError(Exception):
    """An answer with more bytes than it may have."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is sent, and how long the first wait is; each next one is twice as long.

    A service that asks for a longer wait gets it, up to `RETRY_AFTER_MAX_S`. No attempt starts
    after `until`, which is a time of the clock.
    """

    attempts: int
    backoff_s: float
    until: float | None = None
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep

    def run(self, send: Callable[[], _Result]) -> _Result:
        """Call a function until it does not raise `UnavailableError`."""
        backoff = self.backoff_s
        for attempt in range(1, self.attempts + 1):
            try:
                return send()
            except UnavailableError as problem:
                problem.attempts = attempt
                pause = max(backoff, problem.retry_after_s)
                is_over = self.until is not None and self.clock() + pause >= self.until
                if attempt == self.attempts or is_over or pause > RETRY_AFTER_MAX_S:
                    raise
            self.wait(pause)
            backoff *= _BACKOFF_GROWTH
        raise AssertionError("there is at least one attempt")


def open_client(timeout_s: float) -> httpx.Client:
    """A client whose connections wait so long for the other side."""
    return httpx.Client(timeout=timeout_s, follow_redirects=False, verify=_create_tls_context())


def send_request(
    client: httpx.Client,
    request: HttpRequest,
    *,
    bytes_max: int,
    is_late: Callable[[], bool] = lambda: False,
) -> HttpAnswer:
    """Send a request once.

    A connection times out between two bytes only, so that `is_late` is asked during a long answer.
    """
    try:
        with client.stream(
            "GET" if request.content is None else "POST",
            request.url,
            params=request.params or None,
            headers=request.headers,
            content=request.content,
        ) as response:
            return _read_answer(response, bytes_max, is_late)
    except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
        # The request itself is wrong, and will be.
        raise
    except httpx.RequestError as failure:
        raise UnavailableError(f"{type(failure).__name__}: {failure}") from failure


def _read_answer(
    response: httpx.Response, bytes_max: int, is_late: Callable[[], bool]
) -> HttpAnswer:
    status, reason = response.status_code, response.reason_phrase
    if status in RETRYABLE_STATUSES:
        pause = parse_retry_after(response.headers.get("retry-after", ""))
        message = f"HTTP {status} {reason}".rstrip()
        raise UnavailableError(message, status=status, retry_after_s=pause)
    content = bytearray()
    for data in response.iter_bytes():
        content += data
        if not response.is_success and len(content) >= _REFUSAL_BYTES:
            break
        if len(content) > bytes_max:
            raise TooLongError
        if is_late():
            raise UnavailableError("timed out while it answered")
    redirect = response.headers["location"] if response.has_redirect_location else None
    next_url = response.links.get("next", {}).get("url")
    return HttpAnswer(str(response.url), status, reason, bytes(content), redirect, next_url)


def parse_retry_after(text: str) -> float:
    """How long to wait by a header of seconds or of a time; 0 for anything else."""
    if text.isascii() and text.strip().isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


@lru_cache(maxsize=1)
def _create_tls_context() -> ssl.SSLContext:
    """Trust what this machine trusts, and what browsers do."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context

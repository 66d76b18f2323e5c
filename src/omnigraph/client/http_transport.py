"""Requests to one graph on a server: their addresses, their token, and when one is sent again.

A request that only reads is sent again when a connection breaks. A write is sent again only if it
never reached the server, or if it has a key, with which the server answers what it did before. A
request that a busy server refused before it began is sent again when the server says.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx

from omnigraph.client.cancellable_connections import CancellableConnections, RequestCutError
from omnigraph.client.error_decoding import decode_failure
from omnigraph.errors import (
    InDoubtError,
    OmnigraphError,
    QueryCancelledError,
    RemoteBusyError,
    RemoteUnavailableError,
)
from omnigraph.execution.query_budget import Cancellation
from omnigraph.http_client import Retries, UnavailableError, open_client, parse_retry_after
from omnigraph.wire.protocol_names import JSON, LINES

Json = Any  # Any: whatever JSON holds

# A query may run for long without a byte of an answer; a connection is there soon or never.
_READ_TIMEOUT_S: Final = 600.0
_CONNECT_TIMEOUT_S: Final = 10.0
_ATTEMPTS: Final = 4
BACKOFF_S: Final = 0.2
# Failures of a request of which no byte was sent.
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

Query = Sequence[tuple[str, str]]
_Sent = TypeVar("_Sent")


@dataclass(frozen=True, slots=True)
class Call:
    """One request: where it goes below the graph, and what it carries.

    `source` is the text that diagnostics of a failure are about. A write that `is_repeatable` has a
    key.
    """

    method: str
    segments: tuple[str, ...]
    query: Query = ()
    document: Json = None
    content: bytes | None = field(default=None, repr=False)
    content_type: str = JSON
    accept: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    is_write: bool = False
    is_repeatable: bool = False
    # Ends the request from another thread.
    cancel: Cancellation | None = None
    # It is not sent again later than this.
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is a success."""

    content: bytes = field(repr=False)
    content_type: str
    headers: Mapping[str, str]

    def read_json(self) -> Json:
        """The document of the answer."""
        return json.loads(self.content)


class _BusyAnswerError(UnavailableError):
    """A refusal of a request that did not begin."""

    def __init__(self, refusal: RemoteBusyError) -> None:
        super().__init__(refusal.message, retry_after_s=refusal.retry_after_s)
        self.refusal = refusal


class HttpTransport:
    """Sends requests to a graph; safe to share between threads."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url.rstrip("/")
        # Who wrote last, as the server says: it knows by the token.
        self.actor: str | None = None
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = open_client(_READ_TIMEOUT_S)
        self._client.timeout = httpx.Timeout(_READ_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S)
        self._cancellable = CancellableConnections(self._client.timeout)

    def close(self) -> None:
        """Give connections back."""
        self._client.close()
        self._cancellable.close()

    def get(self, *segments: str, query: Query = ()) -> Json:
        """The document of a resource."""
        return self.send(Call("GET", segments, query)).read_json()

    def send(self, call: Call) -> Reply:
        """The answer to a request; every failure is an error of the tree."""
        with self._translate_failures(call):
            return self._retry(call, lambda: self._send_once(call))

    def send_write(self, call: Call) -> dict[str, Any]:  # Any: a JSON document
        """The document that a write answers, which also says who wrote."""
        found: dict[str, Any] = self.send(call).read_json()  # Any: as above
        self.actor = found.get("actor_id", self.actor)
        return found

    @contextmanager
    def stream(self, call: Call) -> Iterator[Iterator[bytes]]:
        """The body of an answer as it comes; one that breaks off is an error."""
        with self._translate_failures(call):
            response = self._retry(call, lambda: self._open_stream(call))
            try:
                yield response.iter_bytes()
            finally:
                response.close()

    def _retry(self, call: Call, send: Callable[[], _Sent]) -> _Sent:
        is_sent = False

        def attempt() -> _Sent:
            nonlocal is_sent
            try:
                return send()
            except httpx.RequestError as failure:
                is_sent = is_sent or not isinstance(failure, _UNSENT)
                is_safe = not call.is_write or call.is_repeatable or isinstance(failure, _UNSENT)
                if is_safe and isinstance(failure, httpx.TransportError):
                    raise UnavailableError(str(failure) or type(failure).__name__) from failure
                raise
            except UnavailableError as failure:
                is_sent = is_sent or not isinstance(failure, _BusyAnswerError)
                raise

        try:
            return _plan_retries(call).run(attempt)
        except UnavailableError as failure:
            if call.is_write and is_sent:
                raise self._describe_doubt(str(failure)) from failure
            if isinstance(failure, _BusyAnswerError):
                raise failure.refusal from None
            raise

    def _send_once(self, call: Call) -> Reply:
        request = self._build_request(call)
        if call.cancel is None:
            response = self._client.send(request)
        else:
            response = self._cancellable.send(request, call.cancel)
        self._require_success(call, response)
        return _build_reply(response)

    def _open_stream(self, call: Call) -> httpx.Response:
        response = self._client.send(self._build_request(call), stream=True)
        if not response.is_success:
            response.read()
            response.close()
        self._require_success(call, response)
        return response

    def _build_request(self, call: Call) -> httpx.Request:
        path = "/".join(quote(each, safe="") for each in call.segments)
        content = call.content if call.document is None else json.dumps(call.document).encode()
        carried = {} if content is None else {"Content-Type": call.content_type}
        return self._client.build_request(
            call.method,
            f"{self.url}/{path}" if path else self.url,
            params=list(call.query) or None,
            content=content,
            headers={"Accept": call.accept, **carried, **call.headers, **self._headers},
        )

    def _require_success(self, call: Call, response: httpx.Response) -> None:
        if response.is_success:
            return
        failure = decode_failure(
            response.status_code, response.content, url=self.url, source=call.source
        )
        if isinstance(failure, RemoteUnavailableError):
            # A gateway that gave up does not know what became of a write.
            if call.is_write and not call.is_repeatable:
                raise self._describe_doubt(failure.message) from failure
            raise UnavailableError(failure.message, status=response.status_code) from failure
        if isinstance(failure, RemoteBusyError):
            failure.retry_after_s = parse_retry_after(response.headers.get("retry-after", ""))
            raise _BusyAnswerError(failure)
        raise failure

    @contextmanager
    def _translate_failures(self, call: Call) -> Iterator[None]:
        """Around a request: what became of it as an error of the tree."""
        try:
            yield
        except OmnigraphError:
            raise
        except RequestCutError:
            if call.is_write:
                raise InDoubtError(f"{self.url}: a write was cancelled while it was sent") from None
            raise QueryCancelledError from None
        except UnavailableError as failure:
            raise RemoteUnavailableError(self.url, str(failure)) from failure
        except httpx.HTTPError as failure:
            raise self._describe_broken(call, failure) from failure

    def _describe_broken(self, call: Call, failure: httpx.HTTPError) -> OmnigraphError:
        reason = str(failure) or type(failure).__name__
        if call.is_write:
            return self._describe_doubt(reason)
        return RemoteUnavailableError(self.url, reason)

    def _describe_doubt(self, reason: str) -> InDoubtError:
        return InDoubtError(f"{self.url}: the connection broke during a write: {reason}")


def _plan_retries(call: Call) -> Retries:
    """How often a request is sent, and that its caller is not kept waiting once it is cancelled."""
    until = None if call.timeout_s is None else time.monotonic() + call.timeout_s
    wait = time.sleep if call.cancel is None else call.cancel.wait
    return Retries(_ATTEMPTS, BACKOFF_S, until=until, wait=wait)


def _build_reply(response: httpx.Response) -> Reply:
    content_type = response.headers.get("content-type", "").partition(";")[0].strip()
    return Reply(response.content, content_type, response.headers)


def iter_lines(
    transport: HttpTransport, segments: tuple[str, ...], document: Json
) -> Iterator[bytes]:
    """Chunks of whole lines of an answer."""
    given = {name: value for name, value in document.items() if value is not None}
    call = Call("POST", segments, document=given, accept=LINES)
    rest = b""
    with transport.stream(call) as chunks:
        for chunk in chunks:
            whole, separator, rest_of_chunk = chunk.rpartition(b"\n")
            if separator:
                yield rest + whole + separator
                rest = rest_of_chunk
            else:
                rest += chunk
    if rest:
        yield rest + b"\n"

"""JSON from an HTTP service, page after page, staged by the driver and read by tasks.

Headers and the token are only for the service that the definition names: a link or a redirect to
any other place is followed without them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

import httpx
import pyarrow as pa

from omnigraph.diagnostics.shown import sanitize_text
from omnigraph.errors import ResourceLimitError, SourceFailedError, SourceRefusedError
from omnigraph.pipelines.definition import HttpSource
from omnigraph.pipelines.sources.json_lines import decode_numbered_lines
from omnigraph.pipelines.sources.staging import open_staging
from omnigraph.schema.shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A page is held in memory, and so are its records.
BYTES_MAX: Final = 256 * 1024**2
_ATTEMPTS: Final = 4
_BACKOFF_S: Final = 0.5
_RETRYABLE_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS_MAX: Final = 20
_HEADER: Final = "header"


def describe_position(source: HttpSource) -> JsonObject:
    """What the ledger keeps: the service alone, because the rest of an address may be a secret."""
    return {"kind": "http", "url": origin_of(source.url)}


def origin_of(url: str) -> str:
    """The scheme, host and port of an address: what may be told of it."""
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return "the service"
    return f"{found.scheme}://{found.netloc.decode('ascii')}" if found.host else "the service"


@contextmanager
def open_frame(source: HttpSource, spark: SparkSession, staging: str | None) -> Iterator[DataFrame]:
    """The records of all pages; they are staged at an address, or on this machine, meanwhile."""
    with open_staging(staging) as place:
        count = place.write(
            pa.array(map(_encode_record, page), pa.string()) for page in read_pages(source)
        )
        yield decode_numbered_lines(place.read_lines(count, spark), source.columns, spark)


def _encode_record(record: JsonObject) -> str:
    return json.dumps(record, ensure_ascii=False)


def read_pages(
    source: HttpSource, *, wait: Callable[[float], None] = time.sleep
) -> Iterator[list[JsonObject]]:
    """The records of one page after the other."""
    with httpx.Client(timeout=source.timeout_s, follow_redirects=False) as client:
        service = _HttpService(client, source, wait)
        request: _Request | None = _Request(source.url, _build_first_params(source))
        for number in range(source.paging.pages_max):
            assert request is not None, "the loop ends with the last page"
            answer = service.send_request(request)
            document = _decode_document(answer)
            found = _extract_records(document, source)
            yield found
            request = _build_next_request(source, number, found, (request, answer, document))
            if request is None:
                return
    hint = "raise 'pages_max', or ask for less"
    raise ResourceLimitError(
        "pages", limit=source.paging.pages_max, actual=source.paging.pages_max + 1, hint=hint
    )


@dataclass(frozen=True, slots=True)
class _Request:
    url: str
    params: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Response:
    """What a service said; `moved_to` is where it says that the page is, `link` the next one."""

    url: str
    content: bytes = b""
    next_url: str | None = None
    redirect_url: str | None = None


class _HttpService:
    """A service, asked with the headers of the definition wherever those belong."""

    def __init__(
        self, client: httpx.Client, source: HttpSource, wait: Callable[[float], None]
    ) -> None:
        self._client = client
        self._own = source.url
        self._wait = wait
        self._headers = dict(source.headers)
        if source.token is not None:
            self._headers["Authorization"] = f"Bearer {source.token}"

    def send_request(self, request: _Request) -> _Response:
        """The answer to a request, wherever it has moved to."""
        for _ in range(_REDIRECTS_MAX + 1):
            answer = self._send_with_retries(request)
            if answer.redirect_url is None:
                return answer
            request = _Request(_join_url(answer.url, answer.redirect_url), {})
        raise SourceRefusedError(f"{origin_of(self._own)}: more than {_REDIRECTS_MAX} redirects")

    def _send_with_retries(self, request: _Request) -> _Response:
        place, problem = origin_of(request.url), ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._wait(_BACKOFF_S * 2 ** (attempt - 1))
            try:
                answer = self._send_once(request)
            except httpx.UnsupportedProtocol as failure:
                raise SourceRefusedError(f"{place}: {failure}") from failure
            except (httpx.InvalidURL, httpx.LocalProtocolError, ValueError):
                # What these say may hold the address or a header.
                message = f"{place}: the address or a header cannot be sent"
                raise SourceRefusedError(
                    message, hint="look for stray characters in them"
                ) from None
            except httpx.RequestError as failure:
                problem = f"{type(failure).__name__}: {failure}"
                continue
            if isinstance(answer, _Response):
                return answer
            problem = f"the service answers {answer}"
        raise SourceFailedError(f"{place} cannot be read: {problem}", hint="try again later")

    def _send_once(self, request: _Request) -> _Response | int:
        """An answer, or the status of a service that may have one later."""
        headers = self._headers if _is_trusted(self._own, request.url) else {}
        asking = self._client.stream(
            "GET", request.url, params=request.params or None, headers=headers
        )
        with asking as answer:
            url = str(answer.url)
            if answer.has_redirect_location:
                return _Response(url, redirect_url=answer.headers["location"])
            if answer.status_code in _RETRYABLE_STATUSES:
                return answer.status_code
            if answer.status_code != httpx.codes.OK:
                raise SourceRefusedError(
                    f"{origin_of(url)}: the service answers {answer.status_code}"
                )
            content = bytearray()
            for data in answer.iter_bytes():
                content += data
                if len(content) > BYTES_MAX:
                    raise ResourceLimitError(
                        "bytes of an HTTP page",
                        limit=BYTES_MAX,
                        actual=len(content),
                        hint="ask for smaller pages",
                    )
            return _Response(url, bytes(content), answer.links.get("next", {}).get("url"))


def _is_trusted(own: str, url: str) -> bool:
    """Whether an address is of the same service, or of the same one behind encryption."""
    ours, other = httpx.URL(own), httpx.URL(url)
    if ours.host != other.host:
        return False
    schemes = (ours.scheme, other.scheme)
    is_same = schemes[0] == schemes[1] and ours.port == other.port
    return is_same or (schemes == ("http", "https") and ours.port is other.port is None)


def _join_url(base: str, link: str) -> str:
    try:
        return urljoin(base, link)
    except ValueError:
        raise SourceRefusedError(f"{origin_of(base)}: a link of the answer is no address") from None


def _build_first_params(source: HttpSource) -> dict[str, str]:
    params = dict(source.params)
    if source.paging.page is not None:
        params[source.paging.page] = str(source.paging.first)
    if source.paging.offset is not None:
        params[source.paging.offset] = "0"
    return params


def _decode_document(answer: _Response) -> Any:  # Any: a JSON document
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        raise SourceRefusedError(f"{origin_of(answer.url)}: the answer is no JSON") from None


def _extract_records(document: Any, source: HttpSource) -> list[JsonObject]:  # Any: a JSON document
    found = document if source.records is None else _get_path(document, source.records)
    if found is None and source.records is not None:
        raise SourceRefusedError(f"the answer has nothing at '{sanitize_text(source.records)}'")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        where = f"at '{source.records}'" if source.records else "itself"
        hint = "say with 'records' where the array is"
        raise SourceRefusedError(f"the answer {where} is no array of objects", hint=hint)
    return found


def _build_next_request(
    source: HttpSource,
    number: int,
    found: list[JsonObject],
    page: tuple[_Request, _Response, Any],  # Any: a JSON document
) -> _Request | None:
    """The request for the page behind one; None behind the last."""
    request, answer, document = page
    paging, params = source.paging, _build_first_params(source)
    if paging.link is not None:
        link = answer.next_url if paging.link == _HEADER else _get_path(document, paging.link)
        return _Request(_join_url(answer.url, str(link)), {}) if link else None
    if paging.cursor is not None:
        cursor = _get_path(document, paging.cursor)
        return _Request(source.url, params | {paging.param: str(cursor)}) if cursor else None
    if not found:
        return None
    if paging.page is not None:
        return _Request(source.url, params | {paging.page: str(paging.first + number + 1)})
    if paging.offset is not None:
        start = int(request.params[paging.offset]) + len(found)
        return _Request(source.url, params | {paging.offset: str(start)})
    return None


def _get_path(document: Any, path: str) -> Any:  # Any: a JSON document
    """What a document has at a path of names with dots between them; None for nothing."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document

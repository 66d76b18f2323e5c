"""JSON from an HTTP service, page after page, staged by the driver and read by tasks.

Headers and the token are only for the service that the definition names: a link or a redirect to
any other place is followed without them.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urljoin

import httpx
import numpy as np
import pyarrow as pa

from omnigraph.errors import ResourceLimitError, SourceFailedError, SourceRefusedError
from omnigraph.http_client import (
    HttpAnswer,
    HttpRequest,
    Retries,
    TooLongError,
    UnavailableError,
    open_client,
    send_request,
)
from omnigraph.ids import generate_ulid
from omnigraph.lang.quoting import sanitize_text
from omnigraph.pipelines.config.definition import HttpSource, OAuth
from omnigraph.pipelines.mapping.record_ids import PART, ROW
from omnigraph.pipelines.sources.json_frames import TEXT_COLUMN, decode_numbered_lines
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage import open_objects
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# A page is held in memory, and so are its records.
BYTES_MAX: Final = 256 * 1024**2
_ATTEMPTS: Final = 4
_BACKOFF_S: Final = 0.5
_REDIRECTS_MAX: Final = 20
_HEADER: Final = "header"
_AUTHORIZATION: Final = "Authorization"
PIECE_BYTES: Final = 8 * 1024**2
_SCHEMA: Final = pa.schema([(PART, pa.int64()), (ROW, pa.int64()), (TEXT_COLUMN, pa.string())])
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd")
_COLUMNS: Final = f"{PART} long, {ROW} long, {TEXT_COLUMN} string"


def describe_position(source: HttpSource) -> JsonObject:
    """What the ledger keeps: the service alone, because the rest of an address may be a secret."""
    return {"kind": "http", "url": origin_of(source.url)}


def origin_of(url: str) -> str:
    """The scheme, host and port of an address: what may be shown of it."""
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return "the service"
    return f"{found.scheme}://{found.netloc.decode('ascii')}" if found.host else "the service"


@contextmanager
def open_frame(
    source: HttpSource,
    spark: SparkSession,
    staging: str | None,
    pieces: Iterable[bytes] | None = None,
) -> Iterator[DataFrame]:
    """The records of all pages; they are staged at an address, or on this machine, meanwhile.

    `pieces` are those that were read already.
    """
    if pieces is None:
        pages = (pa.array(map(encode_record, page), pa.string()) for page in read_pages(source))
        pieces = encode_pieces(number_pages(pages))
    with open_staging(staging) as place:
        count = place.write_pieces(pieces)
        yield decode_numbered_lines(place.read_lines(count, spark), source.columns, spark)


def encode_record(record: JsonObject) -> str:
    """A record as a text of JSON."""
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a character, which only an escape can spell: such a record is rejected.
        return json.dumps(record)
    return text


def read_pages(
    source: HttpSource, *, wait: Callable[[float], None] = time.sleep
) -> Iterator[list[JsonObject]]:
    """The records of one page after the other."""
    with open_client(source.timeout_s) as client:
        service = _HttpService(client, source, wait)
        request: HttpRequest | None = _build_request(source, _build_first_params(source))
        for number in range(source.paging.pages_max):
            assert request is not None, "the loop ends with the last page"
            answer = service.send(request)
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


class _HttpService:
    """A service, asked with the headers of the definition wherever those belong."""

    def __init__(
        self, client: httpx.Client, source: HttpSource, wait: Callable[[float], None]
    ) -> None:
        self._client = client
        self._own = source.url
        self._oauth = source.oauth
        self._wait = wait
        self._pause_s = 0.0 if source.rate is None else 1.0 / source.rate
        self._next_at = time.monotonic()
        self._retries = Retries(_ATTEMPTS, _BACKOFF_S, wait=wait)
        self._headers = dict(source.headers)
        if source.body is not None:
            self._headers.setdefault("Content-Type", "application/json")
        if source.token is not None:
            self._headers[_AUTHORIZATION] = f"Bearer {source.token}"

    def send(self, request: HttpRequest) -> HttpAnswer:
        """The answer to a request, wherever it has moved to."""
        for _ in range(_REDIRECTS_MAX + 1):
            answer = self._send_with_retries(request)
            if answer.redirect_url is None:
                return answer
            request = HttpRequest(_join_url(answer.url, answer.redirect_url))
        raise SourceRefusedError(f"{origin_of(self._own)}: more than {_REDIRECTS_MAX} redirects")

    def _send_with_retries(self, request: HttpRequest) -> HttpAnswer:
        place = origin_of(request.url)
        try:
            return self._retries.run(lambda: self._send_once(request))
        except httpx.UnsupportedProtocol as failure:
            raise SourceRefusedError(f"{place}: {failure}") from failure
        except (httpx.InvalidURL, httpx.LocalProtocolError, ValueError):
            # What these say may hold the address or a header.
            message = f"{place}: the address or a header cannot be sent"
            raise SourceRefusedError(message, hint="look for stray characters in them") from None
        except UnavailableError as failure:
            status = failure.status
            problem = f"the service answers {status}" if status else str(failure)
            raise SourceFailedError(
                f"{place} cannot be read: {problem}", hint="try again later"
            ) from failure

    def _send_once(self, request: HttpRequest) -> HttpAnswer:
        is_trusted = _is_trusted(self._own, request.url)
        if is_trusted and self._oauth is not None and _AUTHORIZATION not in self._headers:
            self._headers[_AUTHORIZATION] = f"Bearer {self._fetch_token(self._oauth)}"
        request = replace(request, headers=self._headers if is_trusted else {})
        answer = self._send_paced(request)
        if answer.status == httpx.codes.UNAUTHORIZED and is_trusted and self._oauth is not None:
            # A token ends at some time: once, another one is fetched.
            self._headers[_AUTHORIZATION] = f"Bearer {self._fetch_token(self._oauth)}"
            answer = self._send_paced(replace(request, headers=self._headers))
        if answer.redirect_url is None and answer.status != httpx.codes.OK:
            raise SourceRefusedError(
                f"{origin_of(answer.url)}: the service answers {answer.status}"
            )
        return answer

    def _send_paced(self, request: HttpRequest) -> HttpAnswer:
        """Send a request as soon as the rate allows it."""
        if self._pause_s:
            self._wait(max(0.0, self._next_at - time.monotonic()))
            self._next_at = time.monotonic() + self._pause_s
        try:
            return send_request(self._client, request, bytes_max=BYTES_MAX)
        except TooLongError:
            raise ResourceLimitError(
                "bytes of an HTTP page",
                limit=BYTES_MAX,
                actual=BYTES_MAX + 1,
                hint="ask for smaller pages",
            ) from None

    def _fetch_token(self, oauth: OAuth) -> str:
        form = {"grant_type": "client_credentials", "client_id": oauth.client_id}
        form |= {"client_secret": oauth.client_secret}
        form |= {} if oauth.scope is None else {"scope": oauth.scope}
        content, kind = urlencode(form).encode(), "application/x-www-form-urlencoded"
        request = HttpRequest(oauth.token_url, {"Content-Type": kind}, content=content)
        answer, place = self._send_paced(request), origin_of(oauth.token_url)
        if answer.status != httpx.codes.OK:
            message = f"{place}: no token is issued, the service answers {answer.status}"
            raise SourceRefusedError(message, hint="look at client_id, client_secret and scope")
        token = get_path(_decode_document(answer), "access_token")
        if not isinstance(token, str):
            raise SourceRefusedError(f"{place}: the answer has no 'access_token'")
        return token


def _is_trusted(own: str, url: str) -> bool:
    """Whether an address is of the same service, or of the same one over TLS."""
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
        raise SourceRefusedError(
            f"{origin_of(base)}: a link of the answer is not an address"
        ) from None


def _build_first_params(source: HttpSource) -> dict[str, str]:
    params = dict(source.params)
    if source.paging.page is not None:
        params[source.paging.page] = str(source.paging.first)
    if source.paging.offset is not None:
        params[source.paging.offset] = "0"
    return params


def _decode_document(answer: HttpAnswer) -> Any:  # Any: a JSON document
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        raise SourceRefusedError(f"{origin_of(answer.url)}: the answer is not JSON") from None


def _extract_records(document: Any, source: HttpSource) -> list[JsonObject]:  # Any: a JSON document
    found = document if source.records is None else get_path(document, source.records)
    if found is None and source.records is not None:
        raise SourceRefusedError(f"the answer has nothing at '{sanitize_text(source.records)}'")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        where = f"at '{source.records}'" if source.records else "itself"
        hint = "say with 'records' where the array is"
        raise SourceRefusedError(f"the answer {where} is not an array of objects", hint=hint)
    return found


def _build_next_request(
    source: HttpSource,
    number: int,
    found: list[JsonObject],
    page: tuple[HttpRequest, HttpAnswer, Any],  # Any: a JSON document
) -> HttpRequest | None:
    """The request for the page after one; None after the last."""
    request, answer, document = page
    paging, params = source.paging, _build_first_params(source)
    if paging.link is not None:
        link = answer.next_url if paging.link == _HEADER else get_path(document, paging.link)
        return HttpRequest(_join_url(answer.url, str(link))) if link else None
    if paging.cursor is not None:
        cursor = get_path(document, paging.cursor)
        return _build_request(source, params | {paging.param: str(cursor)}) if cursor else None
    if not found:
        return None
    if paging.page is not None:
        return _build_request(source, params | {paging.page: str(paging.first + number + 1)})
    if paging.offset is not None:
        start = int(request.params[paging.offset]) + len(found)
        return _build_request(source, params | {paging.offset: str(start)})
    return None


def _build_request(source: HttpSource, params: dict[str, str]) -> HttpRequest:
    content = None if source.body is None else source.body.encode()
    return HttpRequest(source.url, params=params, content=content)


def get_path(document: Any, path: str) -> Any:  # Any: a JSON document
    """What a document has at a path of names with dots between them; None for nothing."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


@dataclass(frozen=True, slots=True)
class Staging:
    """A folder of a store that pieces are written to."""

    uri: str
    folder: str

    def path_of(self, number: int) -> str:
        """Where a piece is."""
        return f"{self.folder}/{number:06d}.records"

    def write(self, pages: Iterable[pa.Array]) -> int:
        """Write pages of JSON texts; answers how many pieces there are."""
        return self.write_pieces(encode_pieces(number_pages(pages)))

    def write_pieces(self, pieces: Iterable[bytes]) -> int:
        """Write pieces; answers how many there are."""
        objects, count = _open_objects_at(self.uri), 0
        for piece in pieces:
            objects.put(self.path_of(count), piece)
            count += 1
        return count

    def read_lines(self, count: int, spark: SparkSession) -> DataFrame:
        """The texts of pieces, with the numbers of their pages and in these, both from 1."""
        task = partial(read_pieces, self)
        return spark.range(0, count, 1, max(count, 1)).mapInArrow(task, _COLUMNS)


@contextmanager
def open_staging(uri: str | None) -> Iterator[Staging]:
    """A folder beside a graph, or, without one, of this machine; in the end it is empty again."""
    if uri is None:
        here = tempfile.TemporaryDirectory(prefix="omnigraph-", ignore_cleanup_errors=True)
        with here as folder, open_staging(folder) as own:
            yield own
        return
    staging = Staging(uri, layout.build_staging_folder(generate_ulid()))
    try:
        yield staging
    finally:
        # Any failure: it must not hide how the reading ended, and maintenance collects the rest.
        with suppress(Exception):
            objects = _open_objects_at(uri)
            objects.delete([entry.path for entry in objects.list(f"{staging.folder}/")])


def read_pieces(staging: Staging, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The texts of the pieces whose numbers are in a partition."""
    objects = _open_objects_at(staging.uri)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            data = objects.get(staging.path_of(number))
            if data is None:
                raise SourceFailedError(f"{staging.path_of(number)} was staged, but is gone")
            yield from pa.ipc.open_stream(data)


@lru_cache(maxsize=8)
def _open_objects_at(uri: str) -> Objects:
    # What is written here is of no use after a crash.
    return open_objects(uri, is_durable=False)


def number_pages(pages: Iterable[pa.Array]) -> Iterator[pa.RecordBatch]:
    """Pages of JSON texts with the numbers of pages and records, both from 1."""
    for number, page in enumerate(pages, 1):
        rows = np.arange(1, len(page) + 1, dtype=np.int64)
        columns = [np.full(len(page), number, np.int64), rows, page]
        yield pa.record_batch(columns, schema=_SCHEMA)


def encode_pieces(pages: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """Numbered pages in compressed pieces of about one size."""
    waiting: list[pa.RecordBatch] = []
    for page in pages:
        waiting.append(page)
        if sum(each.nbytes for each in waiting) >= PIECE_BYTES:
            yield _encode_piece(waiting)
            waiting = []
    if waiting:
        yield _encode_piece(waiting)


def _encode_piece(batches: Iterable[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=_COMPRESSED) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())

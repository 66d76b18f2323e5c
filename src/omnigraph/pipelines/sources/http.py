"""JSON from an HTTP service, page after page, held by the driver and handed to Spark as texts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

import httpx
import pyarrow as pa

from omnigraph.diagnostics.shown import shown
from omnigraph.errors import ResourceLimit, SourceFailed, SourceRefused
from omnigraph.pipelines.definition import HttpSource
from omnigraph.pipelines.sources.json_lines import frame_of_texts
from omnigraph.schema.shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Pages are held in memory until Spark has them.
BYTES_MAX: Final = 1024**3
_ATTEMPTS: Final = 4
_BACKOFF_S: Final = 0.5
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_HEADER: Final = "header"


def position(source: HttpSource) -> JsonObject:
    """What the ledger keeps: the address without its parameters, which may hold secrets."""
    return {"kind": "http", "url": source.url.partition("?")[0]}


def frame(source: HttpSource, spark: SparkSession) -> DataFrame:
    """The records of all pages."""
    texts = [json.dumps(record) for page in pages(source) for record in page]
    return frame_of_texts(pa.array(texts, pa.large_string()), source.columns, spark)


def pages(
    source: HttpSource, *, wait: Callable[[float], None] = time.sleep
) -> Iterator[list[JsonObject]]:
    """The records of one page after the other."""
    headers = dict(source.headers)
    if source.token is not None:
        headers["Authorization"] = f"Bearer {source.token}"
    size = 0
    with httpx.Client(headers=headers, timeout=source.timeout_s, follow_redirects=True) as client:
        request: tuple[str, dict[str, str]] | None = (source.url, _first_params(source))
        for number in range(source.paging.pages_max):
            assert request is not None, "the loop ends with the last page"
            answer = _asked(client, request, wait)
            size += len(answer.content)
            if size > BYTES_MAX:
                raise ResourceLimit("bytes of an HTTP source", limit=BYTES_MAX, actual=size)
            document = _document(answer)
            found = _records(document, source)
            yield found
            request = _next(source, number, found, (answer, document))
            if request is None:
                return
    hint = "raise 'pages_max', or ask for less"
    raise ResourceLimit(
        "pages", limit=source.paging.pages_max, actual=source.paging.pages_max + 1, hint=hint
    )


def _asked(
    client: httpx.Client, request: tuple[str, dict[str, str]], wait: Callable[[float], None]
) -> httpx.Response:
    url, params = request
    place = url.partition("?")[0]
    problem = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            wait(_BACKOFF_S * 2 ** (attempt - 1))
        try:
            answer = client.get(url, params=params or None)
        except httpx.TransportError as failure:
            problem = f"{type(failure).__name__}: {failure}"
            continue
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as failure:
            raise SourceRefused(f"{place}: {failure}") from failure
        if answer.status_code in _BUSY:
            problem = f"the service answers {answer.status_code}"
            continue
        if answer.status_code != httpx.codes.OK:
            raise SourceRefused(f"{place}: the service answers {answer.status_code}")
        return answer
    raise SourceFailed(f"{place} cannot be read: {problem}", hint="try again later")


def _first_params(source: HttpSource) -> dict[str, str]:
    params = dict(source.params)
    if source.paging.page is not None:
        params[source.paging.page] = str(source.paging.first)
    if source.paging.offset is not None:
        params[source.paging.offset] = "0"
    return params


def _document(answer: httpx.Response) -> Any:  # Any: a JSON document
    try:
        return answer.json()
    except ValueError as failure:
        raise SourceRefused(f"{_place(answer)}: the answer is no JSON") from failure


def _records(document: Any, source: HttpSource) -> list[JsonObject]:  # Any: a JSON document
    found = document if source.records is None else _at(document, source.records)
    if found is None and source.records is not None:
        raise SourceRefused(f"the answer has nothing at '{shown(source.records)}'")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        where = f"at '{source.records}'" if source.records else "itself"
        hint = "say with 'records' where the array is"
        raise SourceRefused(f"the answer {where} is no array of objects", hint=hint)
    return found


def _next(
    source: HttpSource,
    number: int,
    found: list[JsonObject],
    page: tuple[httpx.Response, Any],  # Any: a JSON document
) -> tuple[str, dict[str, str]] | None:
    """The request for the page behind one; None behind the last."""
    answer, document = page
    paging, params = source.paging, _first_params(source)
    if paging.link is not None:
        is_header = paging.link == _HEADER
        link = answer.links.get("next", {}).get("url") if is_header else _at(document, paging.link)
        return (urljoin(str(answer.url), str(link)), {}) if link else None
    if paging.cursor is not None:
        cursor = _at(document, paging.cursor)
        return (source.url, params | {paging.param: str(cursor)}) if cursor else None
    if not found:
        return None
    if paging.page is not None:
        return source.url, params | {paging.page: str(paging.first + number + 1)}
    if paging.offset is not None:
        sent = dict(answer.request.url.params)
        return source.url, params | {paging.offset: str(int(sent[paging.offset]) + len(found))}
    return None


def _at(document: Any, path: str) -> Any:  # Any: a JSON document
    """What a document has at a path of names with dots between them; None for nothing."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _place(answer: httpx.Response) -> str:
    return str(answer.url).partition("?")[0]

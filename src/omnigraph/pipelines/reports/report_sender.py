"""Reports over HTTP, tried again within their time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import httpx

from omnigraph.http_client import (
    HttpRequest,
    Retries,
    TooLongError,
    UnavailableError,
    open_client,
    send_request,
)
from omnigraph.pipelines.sources.http_source import origin_of

_ATTEMPTS: Final = 3
_BACKOFF_S: Final = 0.2
# Of an answer nothing but its status is of use.
_ANSWER_BYTES_MAX: Final = 64 * 1024


class ReportFailedError(Exception):
    """A report that did not arrive."""


def post_report(url: str, content: bytes, *, headers: Mapping[str, str], timeout_s: float) -> None:
    """Post a report; what goes wrong shows of the address no more than the service."""
    until, place = time.monotonic() + timeout_s, origin_of(url)
    request = HttpRequest(url, headers, content=content)
    try:
        with open_client(timeout_s) as client:
            answer = Retries(_ATTEMPTS, _BACKOFF_S, until=until).run(
                lambda: send_request(
                    client,
                    request,
                    bytes_max=_ANSWER_BYTES_MAX,
                    is_late=lambda: time.monotonic() >= until,
                )
            )
    except TooLongError:
        # Only an answer that is a success is read so far.
        return
    except UnavailableError as failure:
        problem = f"answers {failure.status}" if failure.status else "cannot be reached"
        raise ReportFailedError(f"{place} {problem}") from None
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.LocalProtocolError, ValueError):
        # What these say may hold the address or a header.
        raise ReportFailedError(f"{place}: the address or a header cannot be sent") from None
    if not httpx.codes.is_success(answer.status):
        raise ReportFailedError(f"{place} answers {answer.status}")

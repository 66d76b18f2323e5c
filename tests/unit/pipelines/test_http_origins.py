"""What an HTTP source sends to whom, and how it ends where a service leads it astray."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from omnigraph.errors import (
    OmnigraphError,
    ResourceLimitError,
    SourceFailedError,
    SourceRefusedError,
)
from omnigraph.pipelines.config.definition import HttpSource, Paging
from omnigraph.pipelines.sources.http_source import read_pages

# A server looks so often whether it should end.
POLL_S = 0.01

SECRETS = ("Authorization", "X-Api-Key")


class _Service(ThreadingHTTPServer):
    """Answers of a test by their paths, and which secrets came with each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.seen: list[tuple[str, list[str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path: str, document: Any, **headers: str) -> None:
        self.answers[path] = (200, json.dumps(document).encode(), headers)

    def redirect(self, path: str, place: str) -> None:
        self.answers[path] = (302, b"", {"Location": place})


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        service = self.server
        assert isinstance(service, _Service)
        service.seen.append((self.path, [name for name in SECRETS if self.headers.get(name)]))
        status, body, headers = service.answers[self.path]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing of it belongs into the output of a test."""


@pytest.fixture
def services() -> Iterator[tuple[_Service, _Service]]:
    with _Service() as own, _Service() as other:
        threads = [
            threading.Thread(target=each.serve_forever, args=(POLL_S,), daemon=True)
            for each in (own, other)
        ]
        for thread in threads:
            thread.start()
        yield own, other
        for each, thread in zip((own, other), threads, strict=True):
            each.shutdown()
            thread.join()


def _read(url: str, waits: list[float] | None = None, **given: Any) -> list[Any]:
    source = HttpSource(
        url,
        token="t",  # noqa: S106 — the services are here
        headers={"X-Api-Key": "k"},
        **given,
    )
    told = [] if waits is None else waits
    return [record for page in read_pages(source, wait=told.append) for record in page]


def test_a_next_link_to_another_service_is_followed_without_secrets(
    services: tuple[_Service, _Service],
) -> None:
    own, other = services
    own.answer("/a", {"items": [{"id": 1}], "next": f"{other.url}/b"})
    other.answer("/b", {"items": [{"id": 2}], "next": f"{own.url}/c"})
    own.answer("/c", {"items": [{"id": 3}]})
    found = _read(f"{own.url}/a", records="items", paging=Paging(link="next"))
    assert found == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert other.seen == [("/b", [])]
    assert own.seen == [("/a", [*SECRETS]), ("/c", [*SECRETS])]


def test_a_redirect_to_another_service_is_followed_without_secrets(
    services: tuple[_Service, _Service],
) -> None:
    own, other = services
    own.redirect("/a", "/b?x=1")
    own.redirect("/b?x=1", f"{other.url}/c")
    other.answer("/c", [{"id": 1}])
    assert _read(f"{own.url}/a") == [{"id": 1}]
    assert own.seen == [("/a", [*SECRETS]), ("/b?x=1", [*SECRETS])]
    assert other.seen == [("/c", [])]


def test_an_offset_goes_on_behind_a_redirect(services: tuple[_Service, _Service]) -> None:
    own, _ = services
    for start, found in ((0, [{"id": 1}]), (1, [])):
        own.redirect(f"/a?skip={start}", f"/b{start}")
        own.answer(f"/b{start}", found)
    assert _read(f"{own.url}/a", paging=Paging(offset="skip")) == [{"id": 1}]


def test_redirects_without_an_end_are_refused(services: tuple[_Service, _Service]) -> None:
    own, _ = services
    own.redirect("/a", "/a")
    with pytest.raises(SourceRefusedError, match="more than 20 redirects"):
        _read(f"{own.url}/a")
    assert len(own.seen) == 21


def test_a_protocol_that_is_not_spoken_is_refused_at_once() -> None:
    waits: list[float] = []
    with pytest.raises(SourceRefusedError, match="unsupported protocol"):
        _read("ftp://127.0.0.1/word", waits)
    assert waits == []


def test_an_answer_that_cannot_be_decoded_is_an_error_of_ours(
    services: tuple[_Service, _Service],
) -> None:
    own, _ = services
    own.answer("/a", [], Content_Encoding="gzip")
    with pytest.raises(SourceFailedError, match="DecodingError"):
        _read(f"{own.url}/a")


@pytest.mark.parametrize(
    "url", ["https://me:hun/ter2@127.0.0.1", "http://127.0.0.1:1/hunter2", "hunter2", "http://["]
)
def test_no_error_tells_more_of_an_address_than_its_service(url: str) -> None:
    with pytest.raises(OmnigraphError) as caught:
        _read(url)
    assert "ter2" not in caught.value.message
    assert caught.value.__cause__ is None or "ter2" not in str(caught.value.__cause__)


def test_a_token_that_cannot_be_sent_is_not_told(services: tuple[_Service, _Service]) -> None:
    own, _ = services
    for token in ("hunter2\n", "hünter2"):
        source = HttpSource(f"{own.url}/a", token=token)
        with pytest.raises(SourceRefusedError, match="a header cannot be sent") as caught:
            list(read_pages(source))
        assert caught.value.__suppress_context__
    assert own.seen == []


def test_an_answer_is_read_no_further_than_its_bound(
    services: tuple[_Service, _Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.pipelines.sources.http_source.BYTES_MAX", 100)
    own, _ = services
    own.answer("/a", [{"id": "x" * 200}])
    with pytest.raises(ResourceLimitError, match="bytes of an HTTP page"):
        _read(f"{own.url}/a")

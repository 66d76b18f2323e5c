from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from omnigraph.errors import ResourceLimitError, SourceFailedError, SourceRefusedError
from omnigraph.pipelines.config.definition import HttpSource, OAuth, Paging
from omnigraph.pipelines.sources.http_source import describe_position, encode_record, read_pages

# A server looks so often whether it should end.
POLL_S = 0.01

RECORDS = [{"id": number} for number in range(5)]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.server.posted.append(self.rfile.read(int(self.headers["Content-Length"])))  # type: ignore[attr-defined]
        self.do_GET()

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(address.query).items()}
        seen: list[tuple[str, dict[str, str], Any]] = self.server.seen  # type: ignore[attr-defined]
        seen.append((address.path, asked, self.headers.get("Authorization")))
        status, body, headers = self._answer(address.path, asked, len(seen))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def _answer(
        self, path: str, asked: dict[str, str], count: int
    ) -> tuple[int, Any, dict[str, str]]:
        start = int(asked.get("cursor") or asked.get("skip") or 2 * int(asked.get("page", 0)))
        found, more = RECORDS[start : start + 2], start + 2 < len(RECORDS)
        match path:
            case "/cursor":
                return 200, {"data": {"items": found}, "next": start + 2 if more else None}, {}
            case "/link":
                link = {"Link": f'</link?cursor={start + 2}>; rel="next"'} if more else {}
                return 200, found, link
            case "/counted":
                return 200, found, {}
            case "/busy":
                return (200, found, {}) if count > 2 else (503, "", {})
            case "/broken":
                return 200, b"{", {}
            case "/object":
                return 200, {"a": 1}, {}
            case _:
                return self._answer_with_conditions(path, found, count)

    def _answer_with_conditions(
        self, path: str, found: Any, count: int
    ) -> tuple[int, Any, dict[str, str]]:
        match path:
            case "/limited":
                return (200, found, {}) if count > 1 else (429, "", {"Retry-After": "7"})
            case "/closed":
                return 503, "", {"Retry-After": "86400"}
            case "/token":
                return 200, {"access_token": f"t{count}"}, {}
            case "/guarded":
                # The first token has expired.
                is_known = self.headers.get("Authorization") not in (None, "Bearer t1")
                return (200, found, {}) if is_known else (401, {}, {})
            case _:
                return 404, {}, {}

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing of it belongs into the output of a test."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as found:
        found.seen = []  # type: ignore[attr-defined]
        found.posted = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=found.serve_forever, args=(POLL_S,), daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def _url(server: ThreadingHTTPServer, path: str) -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


def _read(source: HttpSource) -> list[Any]:
    return [record for page in read_pages(source, wait=lambda _: None) for record in page]


@pytest.mark.parametrize(
    ("path", "records", "paging"),
    [
        ("/cursor", "data.items", Paging(cursor="next")),
        ("/link", None, Paging(link="header")),
        ("/counted", None, Paging(page="page", first=0)),
        ("/counted", None, Paging(offset="skip")),
    ],
)
def test_all_pages_are_read(
    server: ThreadingHTTPServer, path: str, records: str | None, paging: Paging
) -> None:
    source = HttpSource(
        _url(server, path),
        token="t",  # noqa: S106 — the service is here
        records=records,
        paging=paging,
    )
    assert _read(source) == RECORDS
    assert {each[2] for each in server.seen} == {"Bearer t"}  # type: ignore[attr-defined]


def test_a_busy_service_is_asked_again(server: ThreadingHTTPServer) -> None:
    assert _read(HttpSource(_url(server, "/busy"))) == RECORDS[:2]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/nothing", "the service answers 404"),
        ("/broken", "the answer is not JSON"),
        ("/object", "is not an array of objects"),
    ],
)
def test_an_answer_without_records_is_refused(
    server: ThreadingHTTPServer, path: str, message: str
) -> None:
    with pytest.raises(SourceRefusedError, match=message):
        _read(HttpSource(_url(server, path)))


def test_pages_are_bounded(server: ThreadingHTTPServer) -> None:
    source = HttpSource(_url(server, "/counted"), paging=Paging(offset="skip", pages_max=2))
    with pytest.raises(ResourceLimitError, match="pages is limited to 2"):
        _read(source)


def test_a_service_that_is_not_there_may_be_later() -> None:
    with pytest.raises(SourceFailedError, match="cannot be read") as caught:
        _read(HttpSource("http://127.0.0.1:1/x?secret=word"))
    assert caught.value.retryable
    assert "word" not in caught.value.message


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://h/x?a=word", "http://h"),
        ("https://me:word@h:8443/word", "https://h:8443"),
        ("https://me:wo/rd@h", "the service"),
        ("word", "the service"),
    ],
)
def test_the_ledger_sees_no_more_of_an_address_than_its_service(url: str, told: str) -> None:
    assert describe_position(HttpSource(url)) == {"kind": "http", "url": told}


def test_half_of_a_character_is_kept_as_its_escape() -> None:
    assert encode_record({"a": "é\ud800"}) == r'{"a": "\u00e9\ud800"}'
    assert encode_record({"a": "é"}) == '{"a": "é"}'


def test_a_service_that_says_when_to_ask_again_is_asked_then(server: ThreadingHTTPServer) -> None:
    waits: list[float] = []
    found = list(read_pages(HttpSource(_url(server, "/limited")), wait=waits.append))
    assert found == [RECORDS[:2]]
    assert waits == [7.0]
    # A day is too long: the run ends, and says so.
    with pytest.raises(SourceFailedError, match="answers 503"):
        list(read_pages(HttpSource(_url(server, "/closed")), wait=waits.append))
    assert waits == [7.0]


def test_a_body_is_posted(server: ThreadingHTTPServer) -> None:
    source = HttpSource(_url(server, "/counted"), body='{"since": 1}')
    assert list(read_pages(source)) == [RECORDS[:2]]
    assert server.posted == [b'{"since": 1}']  # type: ignore[attr-defined]


def test_a_token_is_fetched_and_again_when_it_has_expired(server: ThreadingHTTPServer) -> None:
    oauth = OAuth(_url(server, "/token"), "omnigraph", "s3cret", "read")
    source = HttpSource(_url(server, "/guarded"), oauth=oauth)
    assert list(read_pages(source)) == [RECORDS[:2]]
    form = b"grant_type=client_credentials&client_id=omnigraph&client_secret=s3cret&scope=read"
    assert server.posted == [form, form]  # type: ignore[attr-defined]
    bad = HttpSource(_url(server, "/guarded"), oauth=OAuth(_url(server, "/no"), "a", "b"))
    with pytest.raises(SourceRefusedError, match="no token is issued"):
        list(read_pages(bad))


def test_requests_keep_to_the_rate_of_a_definition(server: ThreadingHTTPServer) -> None:
    waits: list[float] = []
    paging = Paging(page="page", first=0)
    source = HttpSource(_url(server, "/counted"), paging=paging, rate=1)
    assert len(list(read_pages(source, wait=waits.append))) == 4
    # No time passes while it waits, so that each of the later requests waits for a second.
    assert waits[0] == 0.0
    assert all(0.5 < each <= 1.0 for each in waits[1:])
    assert len(waits) == 4

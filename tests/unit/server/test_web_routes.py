"""The web interface as it is served: by headers, digests and addresses."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from omnigraph.server.server_settings import build_settings
from served import serve_people


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client without a token, of a server that needs one."""
    folder = tmp_path_factory.mktemp("served")
    with serve_people(folder, actors=("ada",)) as running, running.connect() as client:
        yield client


def list_files(page: str) -> list[str]:
    return re.findall(r'(?:href|src)="([^"]+)"', page)


@pytest.mark.parametrize(
    "path", ["/ui/", "/ui/graphs/people", "/ui/graphs/x/entities/node/T/a%2Fb"]
)
def test_the_page_is_at_every_address_and_names_nothing(stranger: httpx.Client, path: str) -> None:
    answer = stranger.get(path)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "people" not in answer.text
    assert "<script>" not in answer.text
    assert stranger.get(path, headers={"if-none-match": answer.headers["etag"]}).status_code == 304


def test_a_server_leads_to_its_pages(stranger: httpx.Client) -> None:
    for path in ("/", "/ui"):
        answer = stranger.get(path)
        assert (answer.status_code, answer.headers["location"]) == (307, "/ui/")


def test_files_are_kept_for_good_and_sent_compressed(stranger: httpx.Client) -> None:
    files = list_files(stranger.get("/ui/").text)
    assert len(files) > 20
    types = set()
    for path in files:
        answer = stranger.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["cache-control"].endswith("immutable")
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["x-content-type-options"] == "nosniff"
        types.add(answer.headers["content-type"])
    assert types == {"image/svg+xml", "text/css; charset=utf-8", "text/javascript; charset=utf-8"}
    plain = stranger.get(files[-1], headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with stranger.stream("GET", files[-1]) as packed:
        assert gzip.decompress(b"".join(packed.iter_raw())) == plain.content


def test_a_file_of_another_version_is_not_served(stranger: httpx.Client) -> None:
    file = list_files(stranger.get("/ui/").text)[-1]
    digest = file.split("/")[3]
    for path in (file.replace(digest, "0" * 16), f"{file}x", f"/ui/assets/{digest}/%2e%2e/x.py"):
        assert stranger.get(path).status_code == 404, path


def test_a_server_without_pages_has_no_such_routes(tmp_path: Path) -> None:
    with serve_people(tmp_path, has_web=False) as running, running.connect() as client:
        assert [client.get(path).status_code for path in ("/", "/ui", "/ui/")] == [404, 404, 404]
    assert not build_settings("127.0.0.1:0", {"OMNIGRAPH_NO_WEB": "1"}).has_web
    assert not build_settings("127.0.0.1:0", {}, has_web=False).has_web
    assert build_settings("127.0.0.1:0", {"OMNIGRAPH_NO_WEB": "0"}).has_web

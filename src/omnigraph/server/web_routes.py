"""The web interface: its page at every address below `/ui`, and its files."""

from __future__ import annotations

from typing import Final

from omnigraph.error_codes import ErrorCode
from omnigraph.server.exchange import Answer, Call, RequestRefusedError
from omnigraph.server.route_bindings import Binding
from omnigraph.web.web_assets import ASSETS, SECURITY_HEADERS, Asset, load_assets
from omnigraph.wire.wire_routes import RouteSpec

_HOME: Final = b"/ui/"
# Addresses of files have the digest of their content; the page is compared each time.
_FOR_GOOD: Final = b"public, max-age=31536000, immutable"
_COMPARE: Final = b"no-cache"
_TEXT: Final = b"text/plain; charset=utf-8"


def open_home(call: Call) -> Answer:
    """Send a browser that knows only the server to its pages."""
    del call
    headers = ((b"location", _HOME), (b"cache-control", _COMPARE))
    return Answer(307, content_type=_TEXT, headers=headers)


def get_page(call: Call) -> Answer:
    """The page, which finds out by its address what to show."""
    return _answer_asset(call, load_assets().page, _COMPARE)


def get_file(call: Call) -> Answer:
    """One file of the version that the page is from."""
    assets = load_assets()
    found = assets.find(call.path["file"]) if call.path["digest"] == assets.digest else None
    if found is None:
        raise RequestRefusedError(404, "there is no such file", code=ErrorCode.NOT_FOUND)
    return _answer_asset(call, found, _FOR_GOOD)


def _answer_asset(call: Call, asset: Asset, keeping: bytes) -> Answer:
    headers = (
        *SECURITY_HEADERS,
        (b"cache-control", keeping),
        (b"etag", asset.etag.encode()),
        (b"vary", b"accept-encoding"),
    )
    known = (call.find_header(b"if-none-match") or "").replace("W/", "").split(",")
    if asset.etag in {each.strip() for each in known}:
        return Answer(304, content_type=None, headers=headers)
    if "gzip" not in (call.find_header(b"accept-encoding") or ""):
        return Answer(200, asset.content, asset.content_type, headers)
    packed = (*headers, (b"content-encoding", b"gzip"))
    return Answer(200, asset.compressed, asset.content_type, packed)


def _describe(operation: str, path: str, summary: str) -> RouteSpec:
    return RouteSpec(operation, "GET", path, "web", summary, is_open=True)


WEB_ROUTES: Final = (
    (_describe("web_home", "/", "The way to the web interface."), Binding(open_home)),
    (_describe("web_start", "/ui", "The web interface."), Binding(open_home)),
    (_describe("web_page", "/ui/{page*}", "A page of the web interface."), Binding(get_page)),
    (
        _describe("web_file", f"/ui/{ASSETS}/{{digest}}/{{file*}}", "A file of the pages."),
        Binding(get_file),
    ),
)

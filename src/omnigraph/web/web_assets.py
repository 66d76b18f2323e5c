"""The files of the web interface, as they are sent.

Their addresses have the digest of all of them, so that a browser may keep them for good, and never
mixes the files of two versions. Only the page itself is asked for again.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
# Where the files are, below the address of the pages.
ASSETS: Final = "assets"
_PAGE: Final = "static/index.html"
_DIGEST_CHARACTERS: Final = 16
_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_IMPORT: Final = re.compile(r"""^(?:import|export) [^;]*?from "(\.[^"]+)";""", re.MULTILINE)
# Pages may load modules, styles and workers from here, ask the routes of the server, and nothing
# else; pictures may be written in them.
_CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; worker-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
SECURITY_HEADERS: Final = (
    (b"content-security-policy", _CONTENT_POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


@dataclass(frozen=True)
class Asset:
    """One file: its bytes, and how a browser reads them."""

    content: bytes
    content_type: bytes

    @cached_property
    def etag(self) -> str:
        """The strong tag of its bytes."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'

    @cached_property
    def compressed(self) -> bytes:
        """Its bytes in gzip; the same ones every time."""
        return gzip.compress(self.content, 9, mtime=0)


class WebAssets:
    """The files of a folder by their paths, and the page that loads them."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): Asset(path.read_bytes(), _type_of(path))
            for part in ("static", "vendor")
            for path in sorted((folder / part).rglob("*"))
            if path.suffix in _TYPES
        }
        digest = hashlib.sha256()
        for path, asset in self._files.items():
            digest.update(f"{path}\0{len(asset.content)}\0".encode() + asset.content)
        self.digest = digest.hexdigest()[:_DIGEST_CHARACTERS]
        self.page = self._build_page()

    def find(self, path: str) -> Asset | None:
        """The file at a path below the folder."""
        return self._files.get(path)

    def _build_page(self) -> Asset:
        """The page with the addresses of its files; modules are fetched together, not in turn."""
        modules = self._list_imports("static/main.js")
        preloads = "\n    ".join(
            f'<link rel="modulepreload" href="{html.escape(self._locate(path))}" />'
            for path in modules
        )
        text = self._files[_PAGE].content.decode()
        text = text.replace("<!-- modules -->", preloads).replace("{assets}", self._locate(""))
        return Asset(text.encode(), _TYPES[".html"].encode())

    def _list_imports(self, first: str) -> list[str]:
        """A module and all that it imports, but for what is fetched on demand."""
        found: dict[str, None] = {}
        waiting = [first]
        while waiting:
            path = waiting.pop(0)
            if path not in found:
                found[path] = None
                text = self._files[path].content.decode()
                names = [] if path.startswith("vendor/") else _IMPORT.findall(text)
                waiting += [posixpath.normpath(posixpath.join(path, "..", each)) for each in names]
        return list(found)

    def _locate(self, path: str) -> str:
        return f"/ui/{ASSETS}/{self.digest}/{path}"


def _type_of(path: Path) -> bytes:
    return _TYPES.get(path.suffix, "application/octet-stream").encode()


@cache
def load_assets() -> WebAssets:
    """The files of the package, read once."""
    return WebAssets(FOLDER)

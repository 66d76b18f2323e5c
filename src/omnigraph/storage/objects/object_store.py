"""The object store: one contract for a local directory, process memory and S3.

An object is written once and whole. Readers see all of it or none of it, on every store. The only
condition any protocol may use is "absent": `put_new` admits exactly one creator of a path.
No object may lie below the path of another one, because a local file cannot be a directory too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol
from urllib.parse import unquote, urlsplit

from omnigraph.errors import StorageRefusedError
from omnigraph.ids import generate_ulid
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.layout import Entry, build_probe_path
from omnigraph.storage.objects.local_store import LocalObjects
from omnigraph.storage.objects.remote_store import open_memory, open_s3


class Objects(Protocol):
    """Immutable objects by path, below one root."""

    @property
    def uri(self) -> str:
        """The root, as `open_objects` takes it."""

    def get(self, path: str) -> bytes | None:
        """The whole object, or None when it is absent."""

    def get_range(self, path: str, start: int, length: int) -> bytes | None:
        """Some bytes of an object that has them, or None when it is absent."""

    def put_new(self, path: str, data: bytes) -> bool:
        """Create an absent object, durably; True if and only if this call created it."""

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object whole; for derived objects only."""

    def replace(self, path: str, data: bytes) -> None:
        """Replace an object whole, durably; for upgrades only: all others are immutable."""

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        """Every object at any depth below a folder, in byte order, above the path `after`."""

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; absent ones are fine."""


def open_objects(
    uri: str, *, is_durable: bool = True, options: Mapping[str, str] | None = None
) -> Objects:
    """The store at a directory, `file://…`, `memory://NAME` or `s3://bucket/prefix`."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return _open_local(uri, uri, is_durable=is_durable)
    match scheme:
        case "file":
            return _open_local(uri, _parse_file_uri(uri), is_durable=is_durable)
        case "memory":
            return open_memory(rest)
        case "s3":
            return open_s3(uri, options or {})
        case _:
            raise StorageRefusedError(
                "open",
                uri,
                f"there is no store for '{scheme}://'",
                hint="use a directory, file://, memory://NAME or s3://bucket/prefix",
            )


def require_exclusive_puts(objects: Objects) -> None:
    """Refuse a store whose `put_new` overwrites: two writers would each believe they committed."""
    path = build_probe_path(generate_ulid())
    try:
        if not (objects.put_new(path, b"first") and not objects.put_new(path, b"second")):
            raise StorageRefusedError(
                "put_new",
                f"{objects.uri}/{path}",
                "the store ignores the condition 'only if absent'",
                hint="use a store with conditional writes (S3: the If-None-Match header)",
            )
    finally:
        objects.delete([path])


def _open_local(uri: str, path: str, *, is_durable: bool) -> LocalObjects:
    # Absolute, so that a later change of the working directory cannot move the store.
    root = os.path.abspath(path)
    if not path or root == os.path.dirname(root):
        raise StorageRefusedError("open", uri, "the address names no directory of its own")
    if (file := _find_file(root)) is not None:
        raise StorageRefusedError(
            "open",
            uri,
            f"{file} is a file, and a graph is a directory",
            hint="give another address",
        )
    return LocalObjects(root, is_durable=is_durable)


def _find_file(root: str) -> str | None:
    """The directory itself, or the nearest one above it that exists, if it is a file instead."""
    while not os.path.lexists(root):
        root = os.path.dirname(root)
    return None if os.path.isdir(root) else root


def _parse_file_uri(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise StorageRefusedError(
            "open", uri, f"'{parts.netloc}' is another machine", hint="write file:///directory"
        )
    return unquote(parts.path)


def read_store_time(objects: Objects) -> int | None:
    """The time of a store now (µs since 1970), by an object just written: two requests.

    None for a store that does not say when its objects were written.
    """
    objects.put(layout.CLOCK, b"")
    newest = max((entry.modified for entry in objects.list(layout.CLOCK_FOLDER)), default=0.0)
    return int(newest * 1_000_000) or None

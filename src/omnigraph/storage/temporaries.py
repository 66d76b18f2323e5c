"""Temporary files that dead processes left in a local store, which no listing shows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from omnigraph.storage.empty_folders import prune
from omnigraph.storage.layout import TABLES
from omnigraph.storage.paths import TEMPORARY_PREFIX, Entry


def temporaries(uri: str) -> Iterator[Entry]:
    """The temporary files of the store at an address; only a local one has any."""
    if "://" in uri:
        return
    for directory, folders, files in os.walk(uri):
        if directory == uri and TABLES in folders:
            # Lance writes there: what it leaves is listed.
            folders.remove(TABLES)
        folders.sort()
        for name in sorted(files):
            if name.startswith(TEMPORARY_PREFIX):
                path = f"{directory}/{name}"
                # The process that writes it may be done with it.
                with suppress(FileNotFoundError):
                    found = os.stat(path)
                    yield Entry(os.path.relpath(path, uri), found.st_size, found.st_mtime)


def remove_temporaries(uri: str, paths: Iterable[str]) -> None:
    """Remove temporary files; absent ones are fine, and what cannot be removed stays."""
    for path in paths:
        with suppress(OSError):
            os.unlink(f"{uri}/{path}")
        prune(uri, os.path.dirname(f"{uri}/{path}"))

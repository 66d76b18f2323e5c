"""Temporary files that dead processes left in a local store, which no listing shows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from omnigraph.storage.empty_folders import prune_folder
from omnigraph.storage.layout import MANIFEST, PIPELINES
from omnigraph.storage.paths import TEMPORARY_PREFIX, Entry

# What the graph writes file by file. Lance writes the tables: what it leaves there is listed. All
# else below the graph is somebody else's.
_FOLDERS: Final = (MANIFEST, PIPELINES)
_NAME: Final = re.compile(rf"{re.escape(TEMPORARY_PREFIX)}\d+-[0-9a-f]{{16}}")


def list_temporaries(uri: str) -> Iterator[Entry]:
    """The temporary files of the graph at an address; only a local one has any."""
    if "://" in uri:
        return
    for own in _FOLDERS:
        for directory, folders, files in os.walk(f"{uri}/{own}"):
            folders.sort()
            for name in sorted(files):
                if _NAME.fullmatch(name):
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
        prune_folder(uri, os.path.dirname(f"{uri}/{path}"))

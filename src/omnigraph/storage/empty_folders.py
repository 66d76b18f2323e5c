"""Folders that a local store leaves empty, removed where nobody will write to them again."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Final

# Indexes, the large blobs of a data file, the notes of a load, and the streams of branches have
# names that are used once; while they are in use they are never empty. Main is never deleted.
_PRIVATE: Final = re.compile(
    r"t/[^/]+/(_indices|data)/[^/]+|__manifest/staging/[^/]+"
    r"|__manifest/(?!main\.0/)[^/]+\.[^/]+(/(checkpoints|floors))?"
)
# A table has its first version as long as it is in use.
_VERSIONS: Final = re.compile(r"(t/[^/]+)/_versions")


def prune_folder(root: str, directory: str) -> None:
    """Remove a directory whose objects were deleted, if it is empty and its name is used up."""
    name = os.path.relpath(directory, root)
    with suppress(OSError):
        if _PRIVATE.fullmatch(name):
            os.rmdir(directory)
            parent = os.path.dirname(directory)
            if _PRIVATE.fullmatch(os.path.relpath(parent, root)):
                os.rmdir(parent)
        elif found := _VERSIONS.fullmatch(name):
            os.rmdir(directory)
            _remove_empty(os.path.join(root, found[1]))


def _remove_empty(directory: str) -> None:
    for folder, _, _ in os.walk(directory, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)

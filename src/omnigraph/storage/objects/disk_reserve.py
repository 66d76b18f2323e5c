"""The reserve: space on a local disk for what a clean-up writes before it removes anything.

A clean-up states what it releases and fences every branch first. On a full disk it could do
neither, and would free nothing. So a graph keeps a spare file, which a clean-up removes for that.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from omnigraph.errors import StorageError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects

# What is stated once, and files that are replaced whole, in blocks of 4 KiB.
BYTES_MIN: Final = 64 * 1024
# A record, a floor, the folder of floors, and a checkpoint.
BYTES_PER_BRANCH: Final = 16 * 1024


def compute_reserve_bytes(branches: int) -> int:
    """How much a clean-up of so many branches may write before it removes anything."""
    return BYTES_MIN + BYTES_PER_BRANCH * branches


def keep_reserve(objects: Objects, branches: int) -> None:
    """Make the reserve large enough, on a local disk that has room."""
    if "://" in objects.uri:
        return
    size = compute_reserve_bytes(branches)
    with suppress(StorageError):
        if not objects.get_range(layout.RESERVE, size - 1, 1):
            # Random, because some file systems store zeros in no room.
            objects.put(layout.RESERVE, os.urandom(size))


def release_reserve(objects: Objects) -> None:
    """Give the room of the reserve back to the disk."""
    objects.delete([layout.RESERVE])

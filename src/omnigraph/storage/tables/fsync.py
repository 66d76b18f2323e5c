"""Durability of the files Lance writes: Lance itself never syncs a local file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from omnigraph.lru_cache import LruCache
from omnigraph.storage.tables.lance_errors import translate_lance_errors

# Concurrent syncs share one commit of the file system's journal: eight cost little more than one.
SYNCS_MAX = 8
# The directories a gateway remembers as synced; forgetting one costs a few extra syncs.
SYNCED_DIRECTORIES_MAX = 10_000


class FileSyncer:
    """Forces written files of a local graph to the disk; does nothing for other stores."""

    def __init__(self, root: str, *, is_durable: bool) -> None:
        self._root = root
        self._is_durable = is_durable and os.path.isabs(root)
        self._pool = ThreadPoolExecutor(SYNCS_MAX, thread_name_prefix="omnigraph-sync")
        self._synced: LruCache[str, Literal[True]] = LruCache(SYNCED_DIRECTORIES_MAX)

    def persist(self, table: str, names: Iterable[str]) -> None:
        """Sync files of a table (a closing slash: all files below), and what leads to them.

        The order is free: nothing refers to any of them before all are on the disk.
        """
        if not self._is_durable:
            return
        with translate_lance_errors("sync", table):
            files = [file for name in names for file in _list_files(f"{self._root}/{table}/{name}")]
            directories = {os.path.dirname(file) for file in files}
            fresh = {
                ancestor for one in directories for ancestor in self._list_unsynced_ancestors(one)
            }
            for _ in self._pool.map(_sync, [*files, *sorted(directories | fresh)]):
                pass
            for directory in directories:
                self._synced.put(directory, True)

    def _list_unsynced_ancestors(self, directory: str) -> Iterable[str]:
        # A directory may be new, made by Lance or by another process that dies before it syncs
        # the parent; once per process is enough, because directories of tables are never renamed.
        if directory not in self._synced:
            while len(directory) > len(self._root):
                directory = os.path.dirname(directory)
                yield directory


def _list_files(target: str) -> list[str]:
    if not target.endswith("/"):
        return [target]
    return [os.path.join(folder, name) for folder, _, names in os.walk(target) for name in names]


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

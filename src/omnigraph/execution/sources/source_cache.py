"""The sources of one graph: what its reads share in memory, and which of them suits a read."""

from __future__ import annotations

import sys
import threading
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from omnigraph.errors import CorruptObjectError, StorageError
from omnigraph.execution.query_budget import Access, Budget
from omnigraph.execution.sources.graph_source import Source
from omnigraph.execution.sources.topology.cache_files import CacheFiles
from omnigraph.execution.sources.topology.memory_cache import CachePartition, MemoryCache
from omnigraph.execution.sources.topology.topology_entities import DenseEntities
from omnigraph.execution.sources.topology.topology_refresh import (
    ChangeSource,
    ChangesSince,
    FindDenseIds,
    LogChangeSource,
    apply_row_changes,
    extend_rows,
)
from omnigraph.execution.sources.topology.topology_rows import (
    CacheTiers,
    DenseRows,
    number_rows,
    restore_rows,
)
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.log import Log

# A type of so few rows is loaded in less time than a few look-ups in its table take.
SMALL_ROWS: Final = 50_000
# How many bytes the topologies of one graph may take in memory.
MEMORY_VARIABLE: Final = "OMNIGRAPH_TOPOLOGY_MEMORY_BYTES"
# Where pieces are kept for the next process, or `off`.
FOLDER_VARIABLE: Final = "OMNIGRAPH_CACHE_DIR"
OFF: Final = "off"
# So many versions of a table are in memory: they share all but what is different between them.
VERSIONS_MAX: Final = 64
# How many versions are remembered that have to be read as a whole.
_UNCACHED_MAX: Final = 1_024
_AT: Final = "@"


class SourceCache:
    """The sources of one graph in one process; safe to share between threads."""

    def __init__(
        self,
        memory_bytes_max: int | None = None,
        files: CacheFiles | None = None,
        *,
        changes: ChangeSource | None = None,
    ) -> None:
        self.memory = MemoryCache(memory_bytes_max)
        self.files = files
        self._kept = CacheTiers(self.memory, files)
        self._changes = changes
        # The numbers of rows, by the version of their table.
        self._versions = CachePartition(self.memory)
        # The versions of each table that are or were in memory, in the order they were made.
        self._made_of: dict[str, list[str]] = {}
        self._lock = threading.Lock()
        # Versions for which nothing was cached at the last look-up.
        self._hopeless: set[str] = set()

    def get_source(
        self, view: View, access: Access = Access.AUTO, *, budget: Budget | None = None
    ) -> Source:
        """A source of a snapshot; without a wish, the one that suits reads of all its types.

        What only one query uses is held by its budget; what all of them share is not.
        """
        if access is Access.LOOKUPS or (
            access is Access.AUTO and not self.is_ready(view, view.types)
        ):
            # Imported when it is needed: a process that has the topology never does.
            from omnigraph.execution.sources.index.index_source import IndexSource  # noqa: PLC0415

            return IndexSource(view, budget)
        return self.get_topology(view)

    def get_topology(self, view: View) -> TopologySource:
        """The types of a snapshot, whole in memory as soon as they are asked for."""
        return TopologySource(view, self._get_rows)

    def is_ready(self, view: View, types: Iterable[TypeKey]) -> bool:
        """Whether whole types are the better choice even for a read of few entities."""
        return all(self.is_type_ready(view, type_key) for type_key in types)

    def is_type_ready(self, view: View, type_key: TypeKey) -> bool:
        """Whether one type is small, or need not be read as a whole."""
        pin = view.snapshot.pins[str(type_key)]
        if pin.rows <= SMALL_ROWS or self._versions.peek(_version_key_of(pin)) is not None:
            return True
        return self.has_cached(view, type_key)

    def has_cached(self, view: View, type_key: TypeKey) -> bool:
        """Whether a type need not be read as a whole, for it or a version before it is there."""
        pin = view.snapshot.pins[str(type_key)]
        if self._versions.peek(_version_key_of(pin)) is not None:
            return True
        if _version_key_of(pin) in self._hopeless:
            return False
        if self._has_tracked_changes(view, type_key):
            return True
        known = self._list_memory_versions(pin.path) | self._list_file_versions(pin.path)
        if pin.version in known or self._find_changes(view, type_key, known) is not None:
            return True
        if len(self._hopeless) >= _UNCACHED_MAX:
            self._hopeless.clear()
        self._hopeless.add(_version_key_of(pin))
        return False

    def _has_tracked_changes(self, view: View, type_key: TypeKey) -> bool:
        """Whether this process made the version of one that is in memory."""
        pin = view.snapshot.pins[str(type_key)]
        return view.tables.has_changes_since(pin, _MemoryVersions(self._versions, pin.path))

    def close(self) -> None:
        """Save nothing more."""
        if self.files is not None:
            self.files.close()

    def _get_rows(self, view: View, type_key: TypeKey) -> DenseRows:
        pin = view.snapshot.pins[str(type_key)]
        return self._versions.get(
            _version_key_of(pin), lambda: self._load_rows(view, type_key, pin)
        )

    def _load_rows(self, view: View, type_key: TypeKey, pin: Pin) -> DenseRows:
        table = view.open_table(type_key)
        found = self._apply_tracked_changes(view, type_key, table)
        if found is None:
            found = restore_rows(table, kept=self._kept)
        if found is None:
            found = self._extend_older_rows(view, type_key, pin) or number_rows(
                table, kept=self._kept
            )
        if not found.is_restored:
            found.save()
        self._hopeless.clear()
        self._record_version(pin)
        return found

    def _record_version(self, pin: Pin) -> None:
        """Remember a version; of too many, the half that was not used for longest is forgotten."""
        with self._lock:
            known = [*self._made_of.get(pin.path, ()), pin.version]
            if len(known) > VERSIONS_MAX:
                known.sort(
                    key=lambda each: self._versions.get_last_use(
                        _format_version_key(pin.path, each)
                    )
                )
                half = len(known) // 2
                for each in known[:half]:
                    self._versions.evict(_format_version_key(pin.path, each))
                known = known[half:]
            self._made_of[pin.path] = known

    def _apply_tracked_changes(
        self, view: View, type_key: TypeKey, table: Table
    ) -> DenseRows | None:
        """The rows of a version that this process made of one that is in memory."""
        changes = view.tables.find_changes_since(
            table, _MemoryVersions(self._versions, table.pin.path)
        )
        older = (
            None
            if changes is None
            else self._versions.peek(_format_version_key(table.pin.path, changes.since))
        )
        if changes is None or older is None:
            return None
        return apply_row_changes(
            older, table, changes, numbers_of=_id_lookup_of(older, view, type_key)
        )

    def _extend_older_rows(self, view: View, type_key: TypeKey, pin: Pin) -> DenseRows | None:
        """The rows of a version from those of an older one; None if there is none."""
        known = self._list_memory_versions(pin.path) | self._list_file_versions(pin.path)
        since = self._find_changes(view, type_key, known)
        if since is None or self._changes is None:
            return None
        # Change sets and tables that are as old as this may be gone.
        with suppress(StorageError, CorruptObjectError):
            older = self._find_older_rows(view, since.pin)
            if older is not None:
                changes = [self._changes.load(each) for each in since.changes]
                numbers_of = _id_lookup_of(older, view, type_key)
                return extend_rows(older, view.open_table(type_key), changes, numbers_of=numbers_of)
        return None

    def _find_changes(self, view: View, type_key: TypeKey, known: set[str]) -> ChangesSince | None:
        if not known or self._changes is None:
            return None
        with suppress(StorageError, CorruptObjectError):
            since = self._changes.find_changes_since(view.snapshot, str(type_key), known)
            return since if since is not None and since.is_small else None
        return None

    def _find_older_rows(self, view: View, pin: Pin) -> DenseRows | None:
        found: DenseRows | None = self._versions.peek(_version_key_of(pin))
        if found is None:
            found = restore_rows(view.tables.open(pin), kept=self._kept)
        return found

    def _list_memory_versions(self, path: str) -> set[str]:
        """The versions of a table that are in memory."""
        known = self._made_of.get(path, ())
        return {
            each
            for each in known
            if self._versions.peek(_format_version_key(path, each)) is not None
        }

    def _list_file_versions(self, path: str) -> set[str]:
        """The versions of a table that are in files."""
        return set() if self.files is None else self.files.list_versions(path)


class _MemoryVersions(Container[str]):
    """The versions of a table that are in memory, looked up one by one."""

    def __init__(self, versions: CachePartition, path: str) -> None:
        self._versions = versions
        self._path = path

    def __contains__(self, version: object) -> bool:
        return self._versions.peek(f"{self._path}{_AT}{version}") is not None


def create_source_cache(log: Log, environ: Mapping[str, str]) -> SourceCache:
    """The sources of a graph, as the environment of the process wants them."""
    said = environ.get(MEMORY_VARIABLE, "")
    memory_bytes_max = int(said) if said.isascii() and said.isdigit() else None
    uri = log.objects.uri
    folder = None if uri.startswith("memory://") else find_cache_folder(environ)
    files = None if folder is None else CacheFiles(folder, graph=uri)
    return SourceCache(memory_bytes_max, files, changes=LogChangeSource(log))


def find_cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Where pieces of graphs are kept for the next process; None if nowhere."""
    said = environ.get(FOLDER_VARIABLE)
    if said:
        return None if said == OFF else Path(said)
    home = environ.get("XDG_CACHE_HOME") or environ.get("LOCALAPPDATA")
    if home:
        return Path(home) / "omnigraph"
    user = environ.get("HOME")
    if not user:
        return None
    usual = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path(user) / usual / "omnigraph"


def _id_lookup_of(older: DenseRows, view: View, type_key: TypeKey) -> FindDenseIds:
    """How an extension finds the entities it knows: edges are known only to themselves."""
    is_node = type_key.kind is TypeKind.NODE
    return DenseEntities(older, view.get_shape(type_key)).find if is_node else None


def _version_key_of(pin: Pin) -> str:
    return _format_version_key(pin.path, pin.version)


def _format_version_key(path: str, version: str) -> str:
    return path + _AT + version

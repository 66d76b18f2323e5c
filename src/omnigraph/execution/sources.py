"""The sources of one graph: what its reads share in memory, and which of them suits a read."""

from __future__ import annotations

import sys
import threading
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from omnigraph.errors import CorruptObject, StorageError
from omnigraph.execution.budget import Budget
from omnigraph.execution.options import Access
from omnigraph.execution.source import Source
from omnigraph.execution.topology.changes import Changes, LogChanges, Since
from omnigraph.execution.topology.entities import DenseEntities
from omnigraph.execution.topology.extension import NumbersOf, extended, followed
from omnigraph.execution.topology.files import Files
from omnigraph.execution.topology.memory import Memory, Parts
from omnigraph.execution.topology.rows import DenseRows, Kept, numbered, restored
from omnigraph.execution.topology.source import TopologySource
from omnigraph.execution.view import View
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.storage.pins import Pin
from omnigraph.storage.table import Table
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
_HOPELESS_MAX: Final = 1_024
_AT: Final = "@"


class Sources:
    """The sources of one graph in one process; safe to share between threads."""

    def __init__(
        self,
        memory_bytes_max: int | None = None,
        files: Files | None = None,
        *,
        changes: Changes | None = None,
    ) -> None:
        self.memory = Memory(memory_bytes_max)
        self.files = files
        self._kept = Kept(self.memory, files)
        self._changes = changes
        # The numbers of rows, by the version of their table.
        self._versions = Parts(self.memory)
        # The versions of each table that are or were in memory, in the order they were made.
        self._made_of: dict[str, list[str]] = {}
        self._lock = threading.Lock()
        # Versions for which nothing was there when somebody asked.
        self._hopeless: set[str] = set()

    def source(
        self, view: View, access: Access = Access.AUTO, *, budget: Budget | None = None
    ) -> Source:
        """A source of a snapshot; without a wish, the one that suits reads of all its types.

        What only one query uses is held by its budget; what all of them share is not.
        """
        if access is Access.LOOKUPS or (
            access is Access.AUTO and not self.is_ready(view, view.types)
        ):
            # Imported when it is needed: a process that has the topology never does.
            from omnigraph.execution.lookups import LookupSource  # noqa: PLC0415

            return LookupSource(view, budget)
        return self.topology(view)

    def topology(self, view: View) -> TopologySource:
        """The types of a snapshot, whole in memory as soon as they are asked for."""
        return TopologySource(view, self._rows_of)

    def is_ready(self, view: View, types: Iterable[TypeKey]) -> bool:
        """Whether whole types are the better choice even for a read of few entities."""
        return all(
            view.snapshot.pins[str(type_key)].rows <= SMALL_ROWS or self.has(view, type_key)
            for type_key in types
        )

    def has(self, view: View, type_key: TypeKey) -> bool:
        """Whether a type need not be read as a whole, for it or a version before it is there."""
        pin = view.snapshot.pins[str(type_key)]
        if self._versions.peek(_name(pin)) is not None:
            return True
        if _name(pin) in self._hopeless:
            return False
        if self._is_followed(view, type_key):
            return True
        known = self._in_memory(pin.path) | self._in_files(pin.path)
        if pin.version in known or self._since(view, type_key, known) is not None:
            return True
        if len(self._hopeless) >= _HOPELESS_MAX:
            self._hopeless.clear()
        self._hopeless.add(_name(pin))
        return False

    def _is_followed(self, view: View, type_key: TypeKey) -> bool:
        """Whether this process made the version of one that is in memory."""
        pin = view.snapshot.pins[str(type_key)]
        return view.tables.has_changes_since(pin, _InMemory(self._versions, pin.path))

    def close(self) -> None:
        """Save nothing more."""
        if self.files is not None:
            self.files.close()

    def _rows_of(self, view: View, type_key: TypeKey) -> DenseRows:
        pin = view.snapshot.pins[str(type_key)]
        return self._versions.get(_name(pin), lambda: self._made(view, type_key, pin))

    def _made(self, view: View, type_key: TypeKey, pin: Pin) -> DenseRows:
        table = view.table(type_key)
        found = self._followed(view, type_key, table)
        if found is None:
            found = restored(table, kept=self._kept)
        if found is None:
            found = self._extended(view, type_key, pin) or numbered(table, kept=self._kept)
        if not found.is_restored:
            found.save()
        self._hopeless.clear()
        self._note(pin)
        return found

    def _note(self, pin: Pin) -> None:
        """Remember a version; of too many, the half that was not used for longest is forgotten."""
        with self._lock:
            known = [*self._made_of.get(pin.path, ()), pin.version]
            if len(known) > VERSIONS_MAX:
                known.sort(key=lambda each: self._versions.used(_named(pin.path, each)))
                half = len(known) // 2
                for each in known[:half]:
                    self._versions.give_up(_named(pin.path, each))
                known = known[half:]
            self._made_of[pin.path] = known

    def _followed(self, view: View, type_key: TypeKey, table: Table) -> DenseRows | None:
        """The rows of a version that this process made of one that is in memory."""
        changes = view.tables.changes_since(table, _InMemory(self._versions, table.pin.path))
        older = (
            None if changes is None else self._versions.peek(_named(table.pin.path, changes.since))
        )
        if changes is None or older is None:
            return None
        return followed(older, table, changes, numbers_of=_numbers_of(older, view, type_key))

    def _extended(self, view: View, type_key: TypeKey, pin: Pin) -> DenseRows | None:
        """The rows of a version from those of an older one; None if there is none."""
        known = self._in_memory(pin.path) | self._in_files(pin.path)
        since = self._since(view, type_key, known)
        if since is None or self._changes is None:
            return None
        # Change sets and tables that are as old as this may be gone.
        with suppress(StorageError, CorruptObject):
            older = self._older(view, since.pin)
            if older is not None:
                changes = [self._changes.load(each) for each in since.changes]
                numbers_of = _numbers_of(older, view, type_key)
                return extended(older, view.table(type_key), changes, numbers_of=numbers_of)
        return None

    def _since(self, view: View, type_key: TypeKey, known: set[str]) -> Since | None:
        if not known or self._changes is None:
            return None
        with suppress(StorageError, CorruptObject):
            since = self._changes.since(view.snapshot, str(type_key), known)
            return since if since is not None and since.is_small else None
        return None

    def _older(self, view: View, pin: Pin) -> DenseRows | None:
        found: DenseRows | None = self._versions.peek(_name(pin))
        if found is None:
            found = restored(view.tables.open(pin), kept=self._kept)
        return found

    def _in_memory(self, path: str) -> set[str]:
        """The versions of a table that are in memory."""
        known = self._made_of.get(path, ())
        return {each for each in known if self._versions.peek(_named(path, each)) is not None}

    def _in_files(self, path: str) -> set[str]:
        """The versions of a table that are in files."""
        return set() if self.files is None else self.files.versions(path)


class _InMemory(Container[str]):
    """The versions of a table that are in memory, looked up one by one."""

    def __init__(self, versions: Parts, path: str) -> None:
        self._versions = versions
        self._path = path

    def __contains__(self, version: object) -> bool:
        return self._versions.peek(f"{self._path}{_AT}{version}") is not None


def sources_of(log: Log, environ: Mapping[str, str]) -> Sources:
    """The sources of a graph, as the environment of the process wants them."""
    said = environ.get(MEMORY_VARIABLE, "")
    memory_bytes_max = int(said) if said.isascii() and said.isdigit() else None
    uri = log.objects.uri
    folder = None if uri.startswith("memory://") else cache_folder(environ)
    files = None if folder is None else Files(folder, graph=uri)
    return Sources(memory_bytes_max, files, changes=LogChanges(log))


def cache_folder(environ: Mapping[str, str]) -> Path | None:
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


def _numbers_of(older: DenseRows, view: View, type_key: TypeKey) -> NumbersOf:
    """How an extension finds the entities it knows: edges are known only to themselves."""
    is_node = type_key.kind is TypeKind.NODE
    return DenseEntities(older, view.shape(type_key)).find if is_node else None


def _name(pin: Pin) -> str:
    return _named(pin.path, pin.version)


def _named(path: str, version: str) -> str:
    return path + _AT + version

"""Every object that the kept commits need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from omnigraph.errors import CorruptObjectError, StorageError
from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.storage.pins import Pin
from omnigraph.storage.references import build_manifest_path
from omnigraph.versioning.collect.plan import Plan

# Reading a version waits for the store most of the time.
_READERS: Final = 8
_TRACE_PAGE: Final = 4096


class TracedTables(Protocol):
    """What a trace asks of tables."""

    def list_references(self, pin: Pin) -> set[str]:
        """Every object a version needs; a path with a closing slash means all below it."""


class Trace:
    """The objects that are kept; a path may also be kept by the folder it is in."""

    def __init__(self, tables: TracedTables, objects: Objects) -> None:
        self._tables = tables
        self._objects = objects
        self._paths: set[str] = set()
        self._read: set[Pin] = set()

    def is_kept(self, path: str) -> bool:
        """Whether an object is kept."""
        return path in self._paths or _folder_of(path) in self._paths

    def add(self, plan: Plan) -> None:
        """Keep what a plan keeps; a version that should stay and cannot be read is an error."""
        self._paths |= plan.paths
        with ThreadPoolExecutor(max_workers=_READERS) as readers:
            for pin, found in self._read_references(plan.pins, readers):
                if isinstance(found, StorageError):
                    raise CorruptObjectError(
                        pin.path,
                        f"version {pin.version} is kept and cannot be read: {found.reason}",
                        hint="run `omnigraph check`; nothing was removed",
                    ) from found
                self._paths |= found
            for pin, found in self._read_references(plan.bases, readers):
                if not isinstance(found, StorageError):
                    self._paths |= found
                elif self._objects.get(build_manifest_path(pin)) is not None:
                    raise found

    def _read_references(
        self, pins: Iterable[Pin], readers: ThreadPoolExecutor
    ) -> Iterator[tuple[Pin, set[str] | StorageError]]:
        def references(pin: Pin) -> set[str] | StorageError:
            try:
                return self._tables.list_references(pin)
            except StorageError as error:
                return error

        wanted = [pin for pin in pins if pin not in self._read]
        self._read.update(wanted)
        # A page at a time: all answers at once would be most of the memory that is needed.
        for start in range(0, len(wanted), _TRACE_PAGE):
            page = wanted[start : start + _TRACE_PAGE]
            yield from zip(page, readers.map(references, page), strict=True)


def _folder_of(path: str) -> str:
    """The folder of an index or of the large blobs of a data file, as references name it."""
    parts = path.split("/", 4)
    return "/".join(parts[:4]) + "/" if len(parts) == 5 and parts[0] == layout.TABLES else ""

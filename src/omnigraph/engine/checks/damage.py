"""Which file of a damaged table version is to blame, as far as its bytes tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from omnigraph.engine.checks.problems import BLAMED, Failure, is_interrupt
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.objects import Objects
from omnigraph.storage.pins import Pin
from omnigraph.storage.tables import Tables

# What whole files end with.
_ENDS: Final = {".lance": b"LANC", ".manifest": b"LANC", ".arrow": b"ARROW1"}
# Larger files are not read only to see how they end.
_READ_MAX: Final = 256 * 1024 * 1024
_NAMED_MAX: Final = 3


class TornFiles:
    """Looks for the file behind a failed read."""

    def __init__(self, objects: Objects, tables: Tables) -> None:
        self._objects = objects
        self.tables = tables

    @contextmanager
    def explain_failures(self, pin: Pin) -> Iterator[None]:
        """Around reads of a version: a failure of the store names the files to blame."""
        try:
            yield
        except StorageError as error:
            if (named := self.explain_failure(pin, error)) is error:
                raise
            raise named from error

    def explain_failure(self, pin: Pin, error: Failure) -> Failure:
        """The same error; if it is one of the store, with the files to blame."""
        if not isinstance(error, StorageError) or is_interrupt(error):
            return error
        try:
            files = self._find_suspects(pin)
        except OmnigraphError:
            files = []
        unnamed = [file for file in files if file.rpartition("/")[2] not in error.reason]
        if not unnamed:
            return error
        shown = ", ".join(unnamed[:_NAMED_MAX]) + (" …" if len(unnamed) > _NAMED_MAX else "")
        return type(error)(error.operation, error.path, f"{error.reason}{BLAMED}{shown})")

    def _find_suspects(self, pin: Pin) -> list[str]:
        sizes = {entry.path: entry.size for entry in self._objects.list(pin.path)}
        if not sizes:
            return []
        try:
            files = sorted(self.tables.list_references(pin))
        except OmnigraphError:
            name = str(int(pin.version, 16))
            return [path for path in sizes if "/_versions/" in path and name in path]
        torn = [file for file in files if self._is_torn(file, sizes)]
        data = [file for file in files if "/_versions/" not in file]
        return torn or (data if len(data) == 1 else [])

    def _is_torn(self, file: str, sizes: dict[str, int]) -> bool:
        if file.endswith("/"):
            return False
        if file not in sizes:
            return True
        if sizes[file] > _READ_MAX:
            return False
        ends = list(_read_ends(file))
        data = self._objects.get(file) if ends else None
        return bool(ends) and (data is None or not data.endswith(tuple(ends)))


def _read_ends(file: str) -> Iterator[bytes]:
    yield from (end for suffix, end in _ENDS.items() if file.endswith(suffix))

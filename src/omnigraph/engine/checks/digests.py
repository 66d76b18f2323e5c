"""Every file that commits refer to, compared with the digest that was stored with it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from omnigraph.engine.checks.problems import Problems
from omnigraph.engine.checks.streams import WalkedStream
from omnigraph.storage.objects import Objects
from omnigraph.storage.pins import Pin
from omnigraph.storage.sealing import StoredFile
from omnigraph.storage.tables import Tables
from omnigraph.versioning import changes as change_sets
from omnigraph.versioning.record import Spilled

KIND = "digest"


class DigestCheck:
    """Compares files with their digests, each once; `count` of them matched or did not."""

    def __init__(self, objects: Objects, tables: Tables, problems: Problems) -> None:
        self._objects = objects
        self._tables = tables
        self._problems = problems
        self._seen: set[str] = set()
        self._without: dict[str, int] = {}
        self.count = 0

    def check(self, lines: Iterable[WalkedStream]) -> None:
        """Report files that are not what was written, and count those without a digest."""
        for line in lines:
            for record in line.records.values():
                for change in record.changes.values():
                    if isinstance(change, Spilled):
                        self._check_change_set(change)
            pins = {pin: None for at in line.snapshots.values() for pin in at.pins.values()}
            for pin in pins:
                self._check_version(pin)
        for path, count in sorted(self._without.items()):
            message = f"has {count} files that cannot be verified: they have no digest"
            self._problems.add_notice(KIND, path, message)

    def _check_change_set(self, change: Spilled) -> None:
        if self._is_new(change.file):
            load = partial(change_sets.load_change_set, self._objects, change)
            self._problems.attempt(KIND, change.file, load)
            self._add(change.file, has_digest=change.digest is not None)

    def _check_version(self, pin: Pin) -> None:
        if not self._is_new(f"{pin.path} {pin.version}"):
            return
        self._add(pin.path, has_digest=pin.digest is not None)
        # A version that cannot be opened was reported when it was opened first.
        stored = partial(self._tables.list_stored_files, pin)
        for file in self._problems.attempt("table", pin.path, stored) or ():
            if self._is_new(f"{pin.path}/{file.path}"):
                self._check_file(pin.path, file)

    def _check_file(self, table: str, file: StoredFile) -> None:
        self._add(table, has_digest=file.digest is not None)
        if file.digest is None:
            return
        where = f"{table}/{file.path}"
        problem = self._problems.attempt(
            KIND, where, partial(self._tables.find_damage, table, file)
        )
        if problem is not None:
            self._problems.add(KIND, where, problem)

    def _is_new(self, name: str) -> bool:
        is_new = name not in self._seen
        self._seen.add(name)
        return is_new

    def _add(self, path: str, *, has_digest: bool) -> None:
        if has_digest:
            self.count += 1
        else:
            self._without[path] = self._without.get(path, 0) + 1

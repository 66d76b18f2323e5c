"""Files of tables compared with the digests in their names, before the first read of a version.

Comparing reads a file as a whole, at 6 to 10 GB a second while it is in memory. That is nothing
beside a scan of its rows, and too much beside a look-up in a large table. So there is a bound on
what a first read may compare; beyond it, `omnigraph check --deep` does. What is copied gets a new
digest, so the inputs of a copy are compared every time: a file may be damaged at any moment.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from enum import Enum
from typing import Final

from lance import LanceDataset

from omnigraph.errors import CorruptObjectError
from omnigraph.storage.digests import digest_of, hash_files
from omnigraph.storage.pins import Pin
from omnigraph.storage.references import build_manifest_path
from omnigraph.storage.sealing import StoredFile, list_data_files, list_index_folders

# 10 ms for the first look-up in a version; smaller files come first.
LOOKUP_BYTES_MAX: Final = 64 * 1024**2
# A scan reads rows anyway: 10 ns more for each of them. Long vectors are beyond it.
SCAN_BYTES_PER_ROW: Final = 128
# A version costs 200 bytes here, a file 100.
_VERSIONS_MAX: Final = 4_096
_FILES_MAX: Final = 65_536
_HINT: Final = (
    "restore this file from a copy of the graph; `omnigraph check --deep` names all of its kind"
)


class VersionUse(Enum):
    """What is about to be read of a version."""

    SCAN = "scan"
    LOOKUP = "lookup"


class Verifier:
    """What is known to be as it was written, of one graph on a disk; safe to share."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.is_active = os.path.isabs(root)
        self._lock = threading.Lock()
        self._uses = _BoundedSet(_VERSIONS_MAX)
        self._files = _BoundedSet(_FILES_MAX)

    def compute_manifest_digest(self, path: str) -> str | None:
        """The digest of a manifest that was just written; None where files have none."""
        if not self.is_active:
            return None
        with open(f"{self.root}/{path}", "rb") as file:
            return digest_of(file.read())

    def require_manifest(self, pin: Pin) -> None:
        """Refuse a version whose manifest is not the one that was pinned; Lance would panic."""
        if pin.digest is None or not self.is_active:
            return
        path = build_manifest_path(pin)
        try:
            found = self.compute_manifest_digest(path)
        except OSError:
            # Lance says what became of it.
            return
        if found != pin.digest:
            raise CorruptObjectError(path, "its digest is not the one of its record", hint=_HINT)

    def require(self, pin: Pin, dataset: LanceDataset, use: VersionUse) -> None:
        """Refuse a version with a damaged file, as far as its use allows to look."""
        key = (pin.path, pin.version, use)
        with self._lock:
            if not self.is_active or key in self._uses:
                return
        files = list_data_files(dataset)
        if use is not VersionUse.SCAN:
            files += list_index_folders(dataset)
        for file in self._select_files(pin, files, use):
            self._require_file(pin.path, file)
            with self._lock:
                self._files.add(f"{pin.path}/{file.path}")
        with self._lock:
            self._uses.add(key)

    def require_inputs(self, table: str, files: Iterable[StoredFile]) -> None:
        """Refuse to copy from damaged files: the copy would have a valid digest.

        Nothing is remembered, and nothing that is remembered counts.
        """
        if not self.is_active:
            return
        for file in files:
            if file.digest is not None:
                self._require_file(table, file)

    def trust(self, base: Pin, tip: Pin) -> None:
        """A version that this process made of a verified one needs no second look."""
        with self._lock:
            for use in VersionUse:
                if (base.path, base.version, use) in self._uses:
                    self._uses.add((tip.path, tip.version, use))

    def _select_files(
        self, pin: Pin, files: list[StoredFile], use: VersionUse
    ) -> Iterator[StoredFile]:
        """The files to compare that were not compared yet, the smallest first."""
        with self._lock:
            new = [each for each in files if f"{pin.path}/{each.path}" not in self._files]
        sized = [
            (self._measure_file(pin.path, each), each) for each in new if each.digest is not None
        ]
        left = LOOKUP_BYTES_MAX + (pin.rows * SCAN_BYTES_PER_ROW if use is VersionUse.SCAN else 0)
        for size, file in sorted(sized, key=lambda each: (each[0], each[1].path)):
            left -= size
            if left >= 0:
                yield file

    def _require_file(self, table: str, file: StoredFile) -> None:
        if problem := self.find_problem(table, file):
            raise CorruptObjectError(f"{table}/{file.path}", problem, hint=_HINT)

    def find_problem(self, table: str, file: StoredFile) -> str | None:
        """What is wrong with a file that has a digest; None if nothing is, or if it is gone."""
        try:
            found = hash_files(file.list_files(f"{self.root}/{table}"))
        except FileNotFoundError:
            # Reading it raises an error; a collector may be at work.
            return None
        return None if found == file.digest else "its digest is not the one in its name"

    def _measure_file(self, table: str, file: StoredFile) -> int:
        try:
            return sum(map(os.path.getsize, file.list_files(f"{self.root}/{table}")))
        except FileNotFoundError:
            return 0


class _BoundedSet:
    """A set that forgets what was not added or asked for longest."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._found: OrderedDict[Hashable, None] = OrderedDict()

    def __contains__(self, value: Hashable) -> bool:
        if value not in self._found:
            return False
        self._found.move_to_end(value)
        return True

    def add(self, value: Hashable) -> None:
        self._found[value] = None
        self._found.move_to_end(value)
        while len(self._found) > self._size_max:
            self._found.popitem(last=False)

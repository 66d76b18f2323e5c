"""Sweeps: which files a collector may be removing.

A collector removes files that it listed and that no commit refers to. Some of them may belong to a
write that is still under way: one that was stopped for longer than the grace, or that a wrong clock
makes look old. So a collector works in this order:

    1. list the files that were written before a cutoff, by the clock of the store
    2. state the cutoff here
    3. publish a fence on every live branch: an empty commit that takes the next seq
    4. read which files commits refer to, and remove the others of the list

A write that was prepared before the fence loses its put, because the seq is taken. It then writes
its files anew, unless it can prove that no collector listed them: they were written after the
newest sweep was stated, or are younger than the cutoff of every sweep since, by the times that the
collector compared. A write that puts its record before the fence is seen in step 4. So no clock
decides whether an acknowledged commit keeps its files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.json_fields import decode_fields, encode_fields

# A write that began more sweeps ago is taken for one whose files are gone.
KEPT_MAX: Final = 100
_SECOND: Final = 1_000_000


class Sweeps:
    """The sweeps of one graph, numbered from 1."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def declare(self, cutoff_us: int) -> None:
        """State that unreferenced files written before a time may go."""
        while not self._put(number := self.find_newest() + 1, cutoff_us):
            pass
        stated = (entry.path for entry in self._objects.list(layout.SWEEPS))
        oldest = layout.build_sweep_path(max(0, number - KEPT_MAX))
        self._objects.delete([path for path in stated if path <= oldest])

    def _put(self, number: int, cutoff_us: int) -> bool:
        path = layout.build_sweep_path(number)
        return self._objects.put_new(path, encode_fields(path, {"cutoff": cutoff_us}))

    def find_newest(self) -> int:
        """The number of the sweep that was stated last; 0 if there was none."""
        listed = self._objects.list(layout.SWEEPS)
        numbers = (layout.parse_sweep_path(entry.path) for entry in listed)
        return max((each for each in numbers if each is not None), default=0)

    def may_remove(self, files: Iterable[str], *, after: int) -> bool:
        """Whether a collector may be removing some files that were written after a sweep."""
        # Tables in memory are Lance's own: no collector lists them.
        is_memory = self._objects.uri.startswith("memory://")
        wanted = {path for path in files if not (is_memory and layout.is_of_table(path))}
        newest = self.find_newest() if wanted else after
        if newest <= after:
            return False
        if newest - after > KEPT_MAX:
            return True
        cutoffs = [self._read_cutoff(number) for number in range(after + 1, newest + 1)]
        folders = {path.rpartition("/")[0] for path in wanted}
        safe = {
            entry.path
            for folder in folders
            for entry in self._objects.list(folder)
            if not any(cutoff is None or is_before(entry.modified, cutoff) for cutoff in cutoffs)
        }
        return not wanted <= safe

    def _read_cutoff(self, number: int) -> int | None:
        """The cutoff of a sweep; None if it is so old that it is gone."""
        path = layout.build_sweep_path(number)
        data = self._objects.get(path)
        return None if data is None else decode_fields(path, data).get_integer("cutoff")


def is_before(modified_s: float, cutoff_us: int) -> bool:
    """Whether a file is older than a cutoff: one comparison for collectors and writers."""
    return modified_s * _SECOND < cutoff_us

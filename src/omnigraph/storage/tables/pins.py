"""Pins: a version of a table that the layers above hold, and rows that are not visible yet."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from lance.fragment import FragmentMetadata

# A detached version has bit 63 set: it fits neither an int64 nor a JSON number, so it is text.
_VERSION = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Pin:
    """One immutable version of one table; `path` is relative to the graph's root.

    `high_water` is the highest fragment id ever used on the way to this version. Ids of removed
    fragments live on in the coverage of indexes, so no later version may use one again. `digest` is
    that of its manifest; older pins, and those of stores that are not a disk, have none.
    """

    path: str
    version: str
    rows: int
    fragments: int
    high_water: int
    digest: str | None = None

    def __post_init__(self) -> None:
        if not _VERSION.fullmatch(self.version):
            raise ValueError(f"a version is 16 hex digits, not {self.version!r}")


@dataclass(frozen=True)
class Staged:
    """Rows written to one table that no version refers to yet.

    The fragments have no ids: those are given by the commit, on the pin it builds on. `above` is
    the highest fragment id that was in use when they were written: only a fragment with a higher
    one can hold these rows already. `after_sweep` is the newest sweep of a collector that was
    stated before they were written: only a later one can have listed their files.
    """

    path: str
    fragments: tuple[FragmentMetadata, ...]
    rows: int
    above: int = 0
    # The rows themselves, if they are few and were written by this process.
    cached_rows: pa.Table | None = field(default=None, compare=False, repr=False)
    # What the commit has to sync, relative to the table; everything else is on the disk.
    unsynced: tuple[str, ...] = field(default=(), compare=False, repr=False)
    after_sweep: int = 0

    @cached_property
    def list_files(self) -> tuple[str, ...]:
        """The data files of the fragments, relative to the graph's root."""
        return tuple(
            f"{self.path}/data/{name}"
            for fragment in self.fragments
            for name in list_file_names(fragment)
        )

    def to_json(self) -> str:
        """The text that `from_json` reads, for a writer in another process."""
        assert not self.unsynced, "only the process that wrote them can sync its files"
        return json.dumps(
            {
                "path": self.path,
                "fragments": [fragment.to_json() for fragment in self.fragments],
                "rows": self.rows,
                "above": self.above,
                "after_sweep": self.after_sweep,
            }
        )

    @staticmethod
    def from_json(text: str) -> Staged:
        """What another process staged."""
        found: dict[str, Any] = json.loads(text)
        return Staged(
            path=found["path"],
            fragments=tuple(
                FragmentMetadata.from_json(json.dumps(each)) for each in found["fragments"]
            ),
            rows=found["rows"],
            above=found["above"],
            after_sweep=found["after_sweep"],
        )


def list_file_names(fragment: FragmentMetadata) -> list[str]:
    """The data files of a fragment, relative to the table's data folder."""
    # The public property defines a class on every access, which a commit would notice.
    return [file._path for file in fragment.files]  # noqa: SLF001


def format_version(version: int) -> str:
    """A version number as the text that pins carry."""
    return f"{version:016x}"

"""Where the tables of a graph are, for tasks of this process and of others."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from omnigraph.storage.tables.lance_tables import Tables


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where the tables of a graph are, for any process.

    `here` are those that this process has open. They do not cross processes: others open theirs by
    the address.
    """

    root: str
    # Among them are keys, which no message may show.
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    local_tables: Tables | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[StoreAddress], tuple[str, tuple[tuple[str, str], ...]]]:
        """The place for another process."""
        return StoreAddress, (self.root, self.options)

    @property
    def tables(self) -> Tables:
        """The tables, opened once in a process."""
        return (
            _open_tables(self.root, self.options)
            if self.local_tables is None
            else self.local_tables
        )


@lru_cache(maxsize=8)
def _open_tables(root: str, options: tuple[tuple[str, str], ...]) -> Tables:
    return Tables(root, options=dict(options) or None)


def make_local_address(tables: Tables) -> StoreAddress:
    """Where tables are, for tasks that this process may run itself."""
    return StoreAddress(tables.root, tuple(sorted((tables.options or {}).items())), tables)

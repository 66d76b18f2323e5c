"""The linear history of a table, which ends with its creation unless somebody else writes to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lance import LanceDataset

# Lance names linear manifests by the distance to the highest number, so that the newest is first.
_HIGHEST: Final = 2**64 - 1
# What leaves every row as it is.
_MAINTENANCE: Final = frozenset({"Rewrite", "ReserveFragments"})


@dataclass(frozen=True, slots=True)
class LinearHistory:
    """The newest linear version of a table, and what the versions above the first one did.

    `operations` is None where that cannot be read.
    """

    version: int
    operations: tuple[str, ...] | None = ()

    @property
    def is_foreign(self) -> bool:
        """Whether somebody wrote to the table who does not know of graphs."""
        return self.version > 1

    @property
    def is_maintenance(self) -> bool:
        """Whether all that was done left the rows as they were."""
        return self.operations is not None and set(self.operations) <= _MAINTENANCE

    @property
    def manifests(self) -> tuple[str, ...]:
        """The manifests above the first one, relative to the table."""
        versions = range(2, self.version + 1)
        return tuple(f"_versions/{_HIGHEST - version:020}.manifest" for version in versions)


def linear_of(latest: LanceDataset) -> LinearHistory:
    """The linear history of a table, opened at its newest linear version."""
    version = int(latest.version)
    try:
        done = [latest.read_transaction(each) for each in range(2, version + 1)]
    except (OSError, ValueError, RuntimeError):
        return LinearHistory(version, None)
    known = [type(each.operation).__name__ for each in done if each is not None]
    return LinearHistory(version, tuple(known) if len(known) == len(done) else None)

"""What two commits share, as a sum of commits: what their counts add up to counts once.

Commits with one merge base share what that has. After merges crosswise there are several: then it
is what the bases have, less what those share in turn, and so on. Each commit that both have is in
the sum exactly once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import HistoryGoneError
from omnigraph.versioning.lineage import Lineage
from omnigraph.versioning.log_snapshot import Snapshot

# Lines that were merged crosswise more often than this share a sum that is dear to read.
_SEARCHES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class WeighedSnapshot:
    """A commit that both lines have, how often it is added, and whether it is a merge base."""

    snapshot: Snapshot
    weight: int
    is_base: bool


def compute_shared_sum(
    lineage: Lineage, a: Snapshot, b: Snapshot
) -> tuple[WeighedSnapshot, ...] | None:
    """The sum for two commits, merge bases first; None if that is not stored, or too long."""
    search = _Search(lineage)
    try:
        bases = search.list_bases(a, b)
        weights = search.compute_weights(bases)
    except HistoryGoneError:
        return None
    order = sorted(weights, key=lambda commit: (commit not in bases, commit))
    return tuple(
        WeighedSnapshot(search.snapshots[each], weights[each], each in bases)
        for each in order
        if weights[each] or each in bases
    )


class _Search:
    """Merge bases of merge bases, each pair looked for once."""

    def __init__(self, lineage: Lineage) -> None:
        self.snapshots: dict[str, Snapshot] = {}
        self._lineage = lineage
        self._found: dict[tuple[str, str], list[str]] = {}

    def list_bases(self, a: Snapshot, b: Snapshot) -> list[str]:
        """The commits of the merge bases of two commits."""
        pair = min(a.commit, b.commit), max(a.commit, b.commit)
        if pair not in self._found:
            if len(self._found) == _SEARCHES_MAX:
                raise HistoryGoneError(f"commits {pair} share too many merges")
            bases = self._lineage.list_merge_bases(a, b)
            self.snapshots |= {each.commit: each for each in bases}
            self._found[pair] = [each.commit for each in bases]
        return self._found[pair]

    def compute_weights(self, bases: Sequence[str]) -> Counter[str]:
        """The sum of everything that some commits have, none of which is an ancestor of another."""
        weights: Counter[str] = Counter()
        for number, base in enumerate(bases):
            weights[base] += 1
            if number:
                weights.subtract(self.compute_weights(self._list_shared(base, bases[:number])))
        return weights

    def _list_shared(self, base: str, others: Sequence[str]) -> list[str]:
        """The newest commits that a commit shares with any of some others."""
        found = {each for other in others for each in self._list_pair(base, other)}
        return sorted(each for each in found if not self._is_older(each, found - {each}))

    def _is_older(self, commit: str, others: set[str]) -> bool:
        return any(self._list_pair(commit, other) == [commit] for other in others)

    def _list_pair(self, a: str, b: str) -> list[str]:
        return self.list_bases(self.snapshots[a], self.snapshots[b])

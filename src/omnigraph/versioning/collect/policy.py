"""How much of a branch is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Policy:
    """A commit goes when it is not among the newest `keep` and was superseded before `older_than`.

    One bound alone decides alone. Without any, all commits of live branches are kept.
    """

    keep: int | None = None
    older_than_s: float | None = None

    @property
    def keeps_all(self) -> bool:
        """Whether no commit of a live branch goes."""
        return self.keep is None and self.older_than_s is None


KEEP_ALL: Final = Policy()

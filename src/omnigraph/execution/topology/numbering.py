"""Who gave out numbers: only those that mean the same may meet."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Numbering:
    """Who gave out the numbers: each segment of them has a name, and ends somewhere.

    Two numberings agree on the numbers of the segments that both begin with.
    """

    segments: tuple[tuple[str, int], ...] = ()

    @property
    def size(self) -> int:
        """How many numbers were given out."""
        return self.segments[-1][1] if self.segments else 0

    def agreed(self, other: Numbering) -> int:
        """How many of the first numbers mean the same entities in both."""
        if self.segments == other.segments:
            return self.size
        size = 0
        for ours, theirs in zip(self.segments, other.segments, strict=False):
            if ours != theirs:
                break
            size = ours[1]
        return size

    def extended(self, count: int, name: str | None = None) -> Numbering:
        """The numbering with more numbers, under a name that nobody else uses for others."""
        if not count:
            return self
        return Numbering((*self.segments, (name or secrets.token_hex(8), self.size + count)))


def numbering_from(notes: Any) -> Numbering:  # Any: JSON
    """The numbering that notes tell of."""
    return Numbering(tuple((str(name), int(size)) for name, size in notes))


Numberings: TypeAlias = tuple[Numbering, Numbering]

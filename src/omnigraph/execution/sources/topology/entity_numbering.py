"""Which numbers were given out: only those that mean the same may meet."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Numbering:
    """The numbers that were given out: each segment of them has a name, and ends somewhere.

    Two numberings agree on the numbers of the segments that both begin with. A numbering shares
    all segments but its last one with the numbering before it.
    """

    name: str = ""
    size: int = 0
    before: Numbering | None = None

    def __eq__(self, other: object) -> bool:
        # Names are drawn at random: segments of one name have the same ones before them.
        return self is other or (
            isinstance(other, Numbering) and (self.name, self.size) == (other.name, other.size)
        )

    def __hash__(self) -> int:
        return hash((self.name, self.size))

    @property
    def segments(self) -> tuple[tuple[str, int], ...]:
        """Names and ends, from the first on: one for each version that added entities."""
        found: list[tuple[str, int]] = []
        each: Numbering | None = self
        while each is not None:
            if each.size:
                found.append((each.name, each.size))
            each = each.before
        return tuple(reversed(found))

    def count_agreed(self, other: Numbering) -> int:
        """How many of the first numbers mean the same entities in both."""
        ours: Numbering | None = self
        theirs: Numbering | None = other
        while ours is not None and theirs is not None:
            if ours.size > theirs.size:
                ours = ours.before
            elif theirs.size > ours.size:
                theirs = theirs.before
            elif ours == theirs:
                return ours.size
            else:
                ours, theirs = ours.before, theirs.before
        return 0

    def extend(self, count: int, name: str | None = None) -> Numbering:
        """The numbering with more numbers, under a name that is not used for others."""
        if not count:
            return self
        return Numbering(name or secrets.token_hex(8), self.size + count, self)


def decode_numbering(notes: Any) -> Numbering:  # Any: JSON
    """The numbering that notes describe."""
    found = Numbering()
    for name, size in notes:
        found = Numbering(str(name), int(size), found)
    return found


Numberings: TypeAlias = tuple[Numbering, Numbering]

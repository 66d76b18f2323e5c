"""Choices of a random text: the same dice make the same choices on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Pen:
    """Chooses with dice."""

    dice: Random

    def one_of(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return self.dice.choice(items)

    def number(self, least: int, most: int) -> int:
        """A number, both bounds included."""
        return self.dice.randint(least, most)

    def chance(self, percent: int) -> bool:
        """True so often."""
        return self.dice.randrange(100) < percent

    def some(self, items: Sequence[Item], most: int) -> list[Item]:
        """Distinct items, perhaps none."""
        return self.dice.sample(items, self.number(0, min(most, len(items))))

"""Choices of a random text; the first of several is the one that a failing example keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Pen:
    """Draws from a test case of hypothesis."""

    draw: DrawFn

    def one_of(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return self.draw(st.sampled_from(items))

    def number(self, least: int, most: int) -> int:
        """A number, both bounds included."""
        return self.draw(st.integers(least, most))

    def chance(self, percent: int) -> bool:
        """True so often."""
        # Shrinking leads to zero, which must mean no.
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def some(self, items: Sequence[Item], most: int) -> list[Item]:
        """Distinct items, perhaps none."""
        return self.draw(st.lists(st.sampled_from(items), max_size=most, unique=True))

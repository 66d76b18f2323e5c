"""Where in a file something is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A line and a column, both from 1."""

    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"

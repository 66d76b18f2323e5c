"""Where rows came from before they were rows: the records that whoever made them has read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

# A source, and two numbers that say which of its records.
RecordOrigin: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class OriginRecord:
    """A record where it was read: its place, its file or source, its number there, its text."""

    location: str
    file: str
    number: int | None
    text: str


# What finds records; those that it does not find are not in its answer.
LocateOrigins: TypeAlias = Callable[[Sequence[RecordOrigin]], Mapping[RecordOrigin, OriginRecord]]

"""What the caller of a merge decides: what is compared, and whose side counts in conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from omnigraph.errors import InvalidArgumentError
from omnigraph.writers.merge.conflict_kinds import parse_preferences

Prefer: TypeAlias = str | Mapping[str, str] | None


class MergeBy(StrEnum):
    """What both sides may change without a conflict: other properties, or other entities only."""

    PROPERTY = "property"
    ENTITY = "entity"


@dataclass(frozen=True, slots=True)
class MergeChoices:
    """How a merge decides: `prefer` is the side to take by kind of conflict."""

    prefer: Mapping[str, str] = field(default_factory=dict)
    by: MergeBy = MergeBy.PROPERTY


def build_choices(prefer: Prefer, by: str) -> MergeChoices:
    """The choices of a caller, checked."""
    if by not in tuple(MergeBy):
        raise InvalidArgumentError("by", f"'{by}' is neither 'property' nor 'entity'")
    return MergeChoices(parse_preferences(prefer), MergeBy(by))

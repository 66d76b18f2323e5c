"""What the caller of a merge decides: what is compared, and whose side counts in conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from omnigraph.errors import EntityConflict, InvalidArgumentError
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.versioning.record import MergeDecision
from omnigraph.writers.merge.conflict_decisions import (
    ConflictedCommits,
    Decision,
    OpenConflicts,
    Resolution,
    Resolver,
    Take,
    digest_conflicts,
    may_mend,
    parse_resolution,
    require_same_conflicts,
)
from omnigraph.writers.merge.conflict_kinds import PREFERABLE, parse_preferences

Prefer: TypeAlias = str | Mapping[str, str] | None
# Lines of decisions, or a function that is asked for each conflict.
Resolve: TypeAlias = Iterable[Mapping[str, object]] | Resolver | None


class MergeBy(StrEnum):
    """What both sides may change without a conflict: other properties, or other entities only."""

    PROPERTY = "property"
    ENTITY = "entity"


@dataclass(frozen=True, slots=True)
class MergeChoices:
    """How a merge decides: `prefer` is the side to take by kind of conflict.

    `resolve` are the decisions that a caller gave, or is asked for. `decisions` are those of them
    that were found to be about a conflict, and `recorded` is how the commit keeps them; the others
    must be about conflicts that come up when these are decided.
    """

    prefer: Mapping[str, str] = field(default_factory=dict)
    by: MergeBy = MergeBy.PROPERTY
    resolve: Resolution | Resolver | None = None
    decisions: tuple[Decision, ...] = ()
    recorded: tuple[MergeDecision, ...] = ()
    others: tuple[Decision, ...] = ()

    @property
    def may_edit(self) -> bool:
        """Whether decisions may bring what neither side has, or end what both have."""
        match self.resolve:
            case None:
                return False
            case Resolution(decisions):
                return any(each.take not in (Take.OURS, Take.THEIRS) for each in decisions)
            case _:
                return True

    def list_decisions(self, type_key: TypeKey) -> tuple[Decision, ...]:
        """The decisions on entities of a type."""
        return tuple(each for each in self.decisions if each.type_key == type_key)

    def decide(
        self, commits: tuple[str, str, str], conflicts: Sequence[EntityConflict]
    ) -> MergeChoices:
        """The choices with decisions on the conflicts between the base, ours and theirs."""
        if not isinstance(self.resolve, Resolution):
            return self
        about = ConflictedCommits(*commits, digest_conflicts(conflicts))
        require_same_conflicts(self.resolve, about)
        return self._match(self.resolve.decisions, conflicts)

    def decide_others(self, conflicts: Sequence[EntityConflict]) -> MergeChoices:
        """The choices with decisions on conflicts that came up when the others were decided."""
        chosen = self._match(
            self.others, [each for each in conflicts if each.kind not in PREFERABLE]
        )
        if len(chosen.others) == len(self.others):
            raise OpenConflicts(conflicts).refuse(chosen.others[0])
        return chosen

    def _match(
        self, decisions: Sequence[Decision], conflicts: Sequence[EntityConflict]
    ) -> MergeChoices:
        open_ = OpenConflicts(conflicts)
        matched = [(each, open_.match(each)) for each in decisions]
        others = tuple(each for each, recorded in matched if recorded is None)
        for each in others:
            if not may_mend(each):
                raise open_.refuse(each)
        known = tuple(each for each, recorded in matched if recorded is not None)
        recorded = tuple(recorded for _, recorded in matched if recorded is not None)
        return replace(
            self,
            decisions=(*self.decisions, *known),
            recorded=(*self.recorded, *recorded),
            others=others,
        )


def build_choices(prefer: Prefer, by: str, resolve: Resolve = None) -> MergeChoices:
    """The choices of a caller, checked."""
    if by not in tuple(MergeBy):
        raise InvalidArgumentError("by", f"'{by}' is neither 'property' nor 'entity'")
    asked = resolve if resolve is None or callable(resolve) else parse_resolution(resolve)
    return MergeChoices(parse_preferences(prefer), MergeBy(by), asked)

"""A merge whose two sides do not go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.errors.base import OmnigraphError

# How many conflicts the message of an error tells; it carries them all, or the first thousands.
CONFLICTS_SHOWN_MAX: Final = 3
_PREFERABLE: Final = frozenset({"divergent_insert", "divergent_update", "delete_vs_update"})


@dataclass(frozen=True, slots=True)
class EntityConflict:
    """One entity that two sides leave in different states, or that breaks a rule after a merge.

    `kind` is one of divergent_insert, divergent_update, delete_vs_update, orphan_edge,
    unique_violation, cardinality_violation, value_constraint_violation and schema_conflict. `ours`
    is the state on the branch that is merged into, `theirs` the one that is merged, `base` the one
    both came from; None where the entity does not exist. Of an entity that exists on all sides
    only the properties that differ are told; edges have their ends as `@src` and `@dst`.
    """

    kind: str
    entity_kind: str
    type_name: str
    entity_id: str | None
    message: str
    base: Mapping[str, object] | None = None
    ours: Mapping[str, object] | None = None
    theirs: Mapping[str, object] | None = None

    def to_json(self) -> dict[str, object]:
        """The document of a conflict: MergeConflict, with the three states."""
        return {
            "entity_kind": self.entity_kind,
            "type_name": self.type_name,
            "entity_id": self.entity_id,
            "kind": self.kind,
            "message": self.message,
            "base": self.base,
            "ours": self.ours,
            "theirs": self.theirs,
        }

    def __str__(self) -> str:
        return f"{self.kind} {self.message}"


class MergeConflictError(OmnigraphError):
    """Both sides of a merge changed the same entities, or break a rule together.

    So it is of a revert or a cherry-pick and what the branch has become; `operation` tells which.
    Nothing was written. `conflicts` are all of them, or the first thousands; `count` is how many
    there are.
    """

    code = "merge_conflicts"

    def __init__(
        self,
        conflicts: Sequence[EntityConflict],
        *,
        count: int | None = None,
        operation: str = "merge",
    ) -> None:
        self.operation = operation
        self.conflicts = tuple(conflicts)
        self.count = len(self.conflicts) if count is None else count
        told = "; ".join(str(each) for each in self.conflicts[:CONFLICTS_SHOWN_MAX])
        more = self.count - min(len(self.conflicts), CONFLICTS_SHOWN_MAX)
        super().__init__(
            f"{operation} conflicts: {told}{f'; and {more} more' if more else ''}",
            hint=self._format_hint(),
        )

    @property
    def is_preferable(self) -> bool:
        """Whether a preference for one side would decide every conflict."""
        return all(each.kind in _PREFERABLE for each in self.conflicts)

    def _format_hint(self) -> str:
        match self.operation == "merge", self.is_preferable:
            case True, True:
                return "change one side, or pass prefer='ours' or 'theirs'"
            case True, False:
                return "change one side so that both go together, and merge again"
            case _, True:
                way = "keep what the branch has with prefer='ours'"
                return f"{way}, or take what the {self.operation} makes of it with 'theirs'"
            case _:
                return f"change the branch so that the {self.operation} fits, and try again"

"""What merges answer, and the documents that commands and servers make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.engine.commit import Commit
from omnigraph.errors import EntityConflict
from omnigraph.execution.changes import Counts
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.shape import JsonObject
from omnigraph.writers.merge.publication import CheckedMerge
from omnigraph.writers.merge.three_way import MergedChange


@dataclass(frozen=True, slots=True)
class MergeSummary:
    """What a merge does to its target: entities by type, and the schema, told for people."""

    counts: Mapping[TypeKey, Counts] = field(default_factory=dict)
    schema_steps: tuple[str, ...] = ()
    # Values that vanish because one side dropped what the other goes on using.
    warnings: tuple[str, ...] = ()
    # The side that was taken in conflicts of each kind that there were.
    preferred: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """The part of a document that says what a merge does."""
        document: JsonObject = {
            "changes": [
                {"entity_kind": str(key.kind), "type_name": key.name, **counts.to_json()}
                for key, counts in self.counts.items()
            ]
        }
        if self.schema_steps:
            document["schema_changes"] = list(self.schema_steps)
        if self.warnings:
            document["warnings"] = list(self.warnings)
        if self.preferred:
            document["preferred"] = dict(self.preferred)
        return document


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What became of a merge, a revert or a cherry-pick; without a commit nothing was to do.

    `outcome` is already_up_to_date, fast_forward or merged; of the others reverted, cherry_picked
    or nothing_to_do. `source` is the branch or the commit that was merged.
    """

    outcome: str
    source: str
    target: str
    actor: str | None
    commit: Commit | None
    done: MergeSummary
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    # Whether an earlier request with its key had made the commit; the answer is the same.
    is_repeated: bool = field(default=False, compare=False)

    @property
    def id(self) -> str | None:
        """The id of the commit, if there is one."""
        return None if self.commit is None else self.commit.id

    @property
    def parents(self) -> tuple[str, ...]:
        """The parents of the commit: of a merge the target before it, and what was merged."""
        return () if self.commit is None else self.commit.parents

    @property
    def summary(self) -> Mapping[str, Counts]:
        """How many entities of each type changed on the target, by `node:Name` or `edge:Name`."""
        return {str(key): counts for key, counts in self.done.counts.items()}

    def to_json(self) -> JsonObject:
        """The document of a merge: BranchMergeOutput, its commit, and what it did."""
        document: JsonObject = {
            "source": self.source,
            "target": self.target,
            "outcome": self.outcome,
            "actor_id": self.actor,
            "commit": None if self.commit is None else self.commit.to_json(),
            **self.done.to_json(),
        }
        if self.branch_deleted is not None:
            document["branch_deleted"] = self.branch_deleted
        if self.branch_delete_error is not None:
            document["branch_delete_error"] = self.branch_delete_error
        return document


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge, a revert or a cherry-pick would do now, and every conflict that is in the way.

    `base` is the state that the target is compared with: of a revert the commit that is undone, of
    a cherry-pick the parent of the picked one.
    """

    outcome: str
    source: str
    target: str
    base: Commit
    done: MergeSummary
    conflicts: tuple[EntityConflict, ...] = ()
    conflict_count: int = 0

    @property
    def summary(self) -> Mapping[str, Counts]:
        """How many entities of each type would change, by `node:Name` or `edge:Name`."""
        return {str(key): counts for key, counts in self.done.counts.items()}

    def to_json(self) -> JsonObject:
        """The document of a plan."""
        return {
            "source": self.source,
            "target": self.target,
            "outcome": self.outcome,
            "base": self.base.to_json(),
            "merge_conflicts": [each.to_json() for each in self.conflicts],
            "conflict_count": self.conflict_count,
            **self.done.to_json(),
        }


def summarize_merge(checked: CheckedMerge | None) -> MergeSummary:
    """What a merge does, as far as it was found out."""
    if checked is None:
        return MergeSummary()
    merged = checked.merged
    steps = tuple(map(str, merged.schema.steps))
    return MergeSummary(merged.counts, steps, tuple(_list_warnings(merged)), merged.preferred)


def _list_warnings(merged: MergedChange) -> Iterator[str]:
    """What is gone after the merge although one side still has it."""
    told = {(each.type_key, each.property): each.by for each in merged.schema.dropped}
    for key in merged.counts:
        theirs = merged.schema.types[key].theirs
        if theirs is not None:
            kept, shape = set(theirs.columns.values()), merged.sides.theirs.get_shape(theirs.key)
            lost = (name for name, column in shape.columns.items() if column not in kept)
            told |= {(theirs.key, name): "ours" for name in lost}
    for (key, name), side in told.items():
        element = str(key) if name is None else f"{key}.{name}"
        yield f"{side} dropped {element}: what the other side has there is gone"

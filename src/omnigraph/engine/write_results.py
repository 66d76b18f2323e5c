"""The results of writes, and their JSON documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.changes.type_difference import Counts
from omnigraph.engine.commit import Commit
from omnigraph.errors import EntityConflict
from omnigraph.html_views import HtmlDocument
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.migration import MigrationPlan
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.writers.merge.conflict_decisions import iter_conflict_lines

if TYPE_CHECKING:
    from omnigraph.writers.merge.merge_commit import CheckedMerge
    from omnigraph.writers.merge.property_rules import MixedEntity
    from omnigraph.writers.merge.three_way import MergedChange


@dataclass(frozen=True, slots=True, repr=False)
class LoadResult(HtmlDocument):
    """A load that was committed: how many records of which types it wrote.

    For a repeated request they are counted from its commit, where records of one load that
    replaced each other are one. `rejected` is how many records were left out by a load that may do
    so, and `rejects` the file that lists them; of a repeated request that is not known. The
    `commit` of a dry run is the newest one of the branch.
    """

    uri: str
    branch: str
    mode: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    commit: Commit
    rejected: int | None = None
    rejects: str | None = None
    # Whether an earlier request with its key had made the commit; the answer is the same.
    is_repeated: bool = field(default=False, compare=False)
    # Whether nothing was written, because it was a dry run.
    is_dry: bool = False
    # Whether it made no commit, because it changes nothing; `commit` is the newest one then.
    is_unchanged: bool = False
    # How many entities of which types it ended; only a load of a pipeline ends any by itself.
    deleted: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        rejected = "" if self.rejected is None else f", rejected={self.rejected}"
        made = "dry_run=True" if self.is_dry else f"commit={_name_commit(self.commit)}"
        return (
            f"LoadResult({self.branch!r}, mode={self.mode!r}, nodes={dict(self.nodes)},"
            f" edges={dict(self.edges)}{rejected}, {made})"
        )

    @property
    def total_entities(self) -> int:
        """How many entities were loaded in all."""
        return sum(self.nodes.values()) + sum(self.edges.values())

    def to_json(self) -> JsonObject:
        """The document of a load into a branch that existed."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "branch_created": False,
            "mode": self.mode,
            "nodes": _describe_counts(self.nodes),
            "edges": _describe_counts(self.edges),
            "total_entities": self.total_entities,
            "actor_id": self.commit.actor,
            "commit": self.commit.to_json(),
            **({} if self.rejected is None else _describe_rejected(self.rejected, self.rejects)),
            **_describe_dry_run(self.is_dry),
        }


def _name_commit(commit: Commit | None) -> str:
    return repr(None if commit is None else commit.id)


def _describe_dry_run(is_dry: bool) -> JsonObject:
    return {"dry_run": True} if is_dry else {}


def _describe_rejected(count: int, file: str | None) -> JsonObject:
    return {"rejected": count, "rejects": file}


@dataclass(frozen=True, slots=True, repr=False)
class MutationResult(HtmlDocument):
    """What a mutation did; without a commit nothing matched and nothing was written.

    For a repeated request, entities are counted from its commit, each once.
    """

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor: str | None
    commit: Commit | None
    # Whether an earlier request with its key had made the commit; the answer is the same.
    is_repeated: bool = field(default=False, compare=False)
    # Whether nothing was written, because it was a dry run.
    is_dry: bool = False

    def __repr__(self) -> str:
        return (
            f"MutationResult({self.query_name!r} on {self.branch!r}, nodes={self.affected_nodes},"
            f" edges={self.affected_edges}, commit={_name_commit(self.commit)})"
        )

    def to_json(self) -> JsonObject:
        """The document of a mutation."""
        return {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "actor_id": self.actor,
            "commit": None if self.commit is None else self.commit.to_json(),
            **_describe_dry_run(self.is_dry),
        }


@dataclass(frozen=True, slots=True, repr=False)
class SchemaResult(HtmlDocument):
    """What a schema change did; without a commit the schema was in force already."""

    uri: str
    plan: MigrationPlan
    commit: Commit | None
    # The version of the branch on which the schema is in force.
    version: int
    # Whether an earlier request with its key had made the commit; the answer is the same.
    is_repeated: bool = field(default=False, compare=False)
    # Whether nothing was written, because it was a dry run.
    is_dry: bool = False

    def __repr__(self) -> str:
        return f"SchemaResult({self.plan!r}, commit={_name_commit(self.commit)})"

    def to_json(self) -> JsonObject:
        """The document of a schema change."""
        plan = self.plan.to_json()
        return {
            "uri": self.uri,
            "supported": plan["supported"],
            "applied": self.commit is not None,
            "step_count": plan["step_count"],
            "graph_manifest_version": self.version,
            "steps": plan["steps"],
            **_describe_dry_run(self.is_dry),
        }


@dataclass(frozen=True, slots=True)
class TableInfo(HtmlDocument):
    """Where a type lies at a snapshot: the table and its version, for other tools to open."""

    kind: str
    type_name: str
    path: str
    version: str
    rows: int
    # The column of each property, by its name; a graph on a server keeps them to itself.
    columns: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """The entry of a table in the document of a snapshot."""
        return {
            "entity_kind": self.kind,
            "type_name": self.type_name,
            "dataset_path": self.path,
            # A number of 64 bits, as clients of the reference read it.
            "published_dataset_version": int(self.version, 16),
            "native_dataset_branch": None,
            "entity_count": self.rows,
        }


def _describe_counts(counts: Mapping[str, int]) -> list[JsonObject]:
    return [{"name": name, "entities_loaded": counts[name]} for name in sorted(counts)]


@dataclass(frozen=True, slots=True)
class MergeSummary:
    """What a merge does to its target: entities by type, and steps of the schema, in words."""

    counts: Mapping[TypeKey, Counts] = field(default_factory=dict)
    schema_steps: tuple[str, ...] = ()
    # Values that vanish because one side dropped what the other goes on using.
    warnings: tuple[str, ...] = ()
    # The side that was taken in conflicts of each kind that there were.
    preferred: Mapping[str, str] = field(default_factory=dict)
    # Entities with values of both sides: the first of them, and how many there are.
    mixed: tuple[MixedEntity, ...] = ()
    mixed_count: int = 0

    def count_changes(self) -> str:
        """The number of changed entities in a few words."""
        found = self.counts.values()
        inserted, updated = (
            sum(each.inserted for each in found),
            sum(each.updated for each in found),
        )
        deleted = sum(each.deleted for each in found)
        return f"inserted={inserted}, updated={updated}, deleted={deleted}"

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
        if self.mixed_count:
            document["mixed_count"] = self.mixed_count
            document["mixed"] = [
                {
                    "entity_kind": str(each.type_key.kind),
                    "type_name": each.type_key.name,
                    "entity_id": each.entity_id,
                    "ours": list(each.ours),
                    "theirs": list(each.theirs),
                }
                for each in self.mixed
            ]
        return document


@dataclass(frozen=True, slots=True, repr=False)
class MergeResult(HtmlDocument):
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

    def __repr__(self) -> str:
        return (
            f"MergeResult({self.source!r} into {self.target!r}, {self.outcome},"
            f" {self.done.count_changes()}, commit={_name_commit(self.commit)})"
        )

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


@dataclass(frozen=True, slots=True, repr=False)
class MergePlan(HtmlDocument):
    """What a merge, a revert or a cherry-pick would do now, and every conflict that is in the way.

    `base` is the state that the target is compared with: of a revert the commit that is undone, of
    a cherry-pick the parent of the picked one. `ours` and `theirs` are the commits of both sides.
    """

    outcome: str
    source: str
    target: str
    base: Commit
    done: MergeSummary
    conflicts: tuple[EntityConflict, ...] = ()
    conflict_count: int = 0
    ours: str = ""
    theirs: str = ""

    def __repr__(self) -> str:
        return (
            f"MergePlan({self.source!r} into {self.target!r}, {self.outcome},"
            f" {self.done.count_changes()}, conflicts={self.conflict_count})"
        )

    @property
    def summary(self) -> Mapping[str, Counts]:
        """How many entities of each type would change, by `node:Name` or `edge:Name`."""
        return {str(key): counts for key, counts in self.done.counts.items()}

    def iter_decision_lines(self) -> Iterator[JsonObject]:
        """The conflicts as lines of a resolution, none of them decided yet."""
        return iter_conflict_lines(self.conflicts, (self.base.id, self.ours, self.theirs))

    def to_json(self) -> JsonObject:
        """The document of a plan."""
        return {
            "source": self.source,
            "target": self.target,
            "outcome": self.outcome,
            "base": self.base.to_json(),
            "ours_commit_id": self.ours,
            "theirs_commit_id": self.theirs,
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
    warnings, mixed = tuple(_list_warnings(merged)), merged.mixed
    return MergeSummary(merged.counts, steps, warnings, merged.preferred, mixed.listed, mixed.count)


def _list_warnings(merged: MergedChange) -> Iterator[str]:
    """What is gone after the merge although one side still has it."""
    dropped = {(each.type_key, each.property): each.by for each in merged.schema.dropped}
    for key in merged.counts:
        theirs = merged.schema.types[key].theirs
        if theirs is not None:
            kept, shape = set(theirs.columns.values()), merged.sides.theirs.get_shape(theirs.key)
            lost = (name for name, column in shape.columns.items() if column not in kept)
            dropped |= {(theirs.key, name): "ours" for name in lost}
    for (key, name), side in dropped.items():
        element = str(key) if name is None else f"{key}.{name}"
        yield f"{side} dropped {element}: what the other side has there is gone"

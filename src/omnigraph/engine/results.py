"""What writes answer, and the documents that commands and servers make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.engine.commit import Commit
from omnigraph.schema.migration import MigrationPlan
from omnigraph.schema.shape import JsonObject


@dataclass(frozen=True, slots=True)
class LoadResult:
    """A load that was committed: how many records of which types it wrote.

    For a repeated request they are counted from its commit, where records of one load that
    replaced each other are one. `rejected` is how many records were left out by a load that may do
    so, and `rejects` the file that tells of them; of a repeated request that is not known.
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
        }


def _describe_rejected(count: int, file: str | None) -> JsonObject:
    return {"rejected": count, "rejects": file}


@dataclass(frozen=True, slots=True)
class MutationResult:
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

    def to_json(self) -> JsonObject:
        """The document of a mutation."""
        return {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "actor_id": self.actor,
            "commit": None if self.commit is None else self.commit.to_json(),
        }


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """What a schema change did; without a commit the schema was in force already."""

    uri: str
    plan: MigrationPlan
    commit: Commit | None
    # The version of the branch on which the schema is in force.
    version: int
    # Whether an earlier request with its key had made the commit; the answer is the same.
    is_repeated: bool = field(default=False, compare=False)

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
        }


@dataclass(frozen=True, slots=True)
class TableInfo:
    """Where a type lies at a snapshot: the table and its version, for other tools to open."""

    kind: str
    type_name: str
    path: str
    version: str
    rows: int

    def to_json(self) -> JsonObject:
        """The entry of a table in the document of a snapshot."""
        return {
            "entity_kind": self.kind,
            "type_name": self.type_name,
            "dataset_path": self.path,
            "published_dataset_version": self.version,
            "native_dataset_branch": None,
            "entity_count": self.rows,
        }


def _describe_counts(counts: Mapping[str, int]) -> list[JsonObject]:
    return [{"name": name, "entities_loaded": counts[name]} for name in sorted(counts)]

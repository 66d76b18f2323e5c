"""The bodies of answers that are not changes or failures."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from omnigraph.wire.wire_enums import (
    BranchMergeOutcome,
    CommitPickOutcome,
    EntityKindOutput,
    LoadMode,
    MergeConflictKindOutput,
    ParamKind,
)
from omnigraph.wire.wire_model import Answer, Int64, JsonObject, UInt32, UInt64


class HealthOutput(Answer):
    """A server that is alive."""

    status: str
    version: str
    internal_schema_version: UInt32
    source_version: str | None = None


class GraphInfo(Answer):
    """A graph that a server serves."""

    graph_id: str
    uri: str


class GraphListResponse(Answer):
    """The graphs of a server, by id."""

    graphs: list[GraphInfo]
    quarantined: list[str] | None = None


class SessionOutput(Answer):
    """Who asks, which graphs that actor may read, and how the server decides it."""

    actor_id: str | None
    auth_mode: str
    version: str
    graphs: list[str]


class SnapshotDatasetOutput(Answer):
    """The entities of a type at a snapshot."""

    entity_kind: EntityKindOutput
    type_name: str
    dataset_path: str
    published_dataset_version: UInt64
    native_dataset_branch: str | None
    entity_count: UInt64


class SnapshotOutput(Answer):
    """A graph as of a commit."""

    graph_branch: str
    graph_manifest_version: UInt64
    internal_schema_version: UInt32
    datasets: list[SnapshotDatasetOutput]


class ReadTargetOutput(Answer):
    """What a read was about; one of the two is null."""

    branch: str | None
    snapshot: str | None


class ReadOutput(Answer):
    """The rows of a read."""

    query_name: str
    target: ReadTargetOutput
    row_count: UInt64
    columns: list[str] | None = None
    cursor: str | None = Field(
        default=None,
        description="Of a query with `after`: asks for the next page, if there is one.",
    )
    total: UInt64 | None = Field(
        default=None, description="Of a query with `total`: how many rows all pages have."
    )
    rows: list[JsonObject]
    graph_commit_id: str | None = None


class PlanOperatorOutput(Answer):
    """An operator of a read; without a run, its rows and time are null."""

    operator: str
    detail: str
    access: str
    index: str
    estimated_rows: UInt64 | None
    actual_rows: UInt64 | None
    time_ms: float | None


class ExplainOutput(Answer):
    """How a read is answered: its operators from the result down."""

    query_name: str
    target: ReadTargetOutput
    operators: list[PlanOperatorOutput]
    graph_commit_id: str


class MergeDecisionOutput(Answer):
    """What a merge was given to decide on a conflict; `states` is a hash of what conflicted."""

    entity_kind: EntityKindOutput
    type_name: str
    entity_id: str
    property: str | None = None
    kind: str
    take: str
    states: str


class CommitOutput(Answer):
    """A commit; the branch of one of `main` is null."""

    graph_commit_id: str
    graph_branch: str | None
    graph_manifest_version: UInt64
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: Int64 = Field(description="Microseconds since 1970 in UTC.")
    message: str | None = None
    preferred: dict[str, str] | None = None
    decisions: list[MergeDecisionOutput] | None = None
    reverts: str | None = None
    maintenance: bool | None = None


class BlameOutput(Answer):
    """The commit that gave each property its value; null if it was cleaned up."""

    type: str
    id: str
    properties: dict[str, CommitOutput | None]


class CommitListOutput(Answer):
    """Commits, newest first."""

    commits: list[CommitOutput]


class ChangeOutput(Answer):
    """What a mutation did; without a commit nothing matched and nothing was written."""

    branch: str
    query_name: str
    affected_nodes: UInt64
    affected_edges: UInt64
    actor_id: str | None
    commit: CommitOutput | None
    dry_run: bool | None = None


class LoadedTypeOutput(Answer):
    """How many entities of a type a load wrote."""

    name: str
    entities_loaded: UInt64


class GraphBatchLoadOutput(Answer):
    """What a load did."""

    branch: str
    base_branch: str | None
    branch_created: bool
    mode: LoadMode
    nodes: list[LoadedTypeOutput]
    edges: list[LoadedTypeOutput]
    total_entities: UInt64
    actor_id: str | None
    commit: CommitOutput | None
    rejected: UInt64 | None = None
    dry_run: bool | None = None


class IngestOutput(GraphBatchLoadOutput):
    """What a load did, and to which graph."""

    uri: str


class QueryParamOutput(Answer):
    """A parameter of a stored query."""

    name: str
    kind: ParamKind
    item_kind: ParamKind | None = None
    vector_dim: UInt32 | None = None
    nullable: bool
    fields: list[QueryParamOutput] | None = None


class StoredQueryOutput(Answer):
    """A stored query."""

    name: str
    tool_name: str
    description: str | None = None
    instruction: str | None = None
    mutation: bool
    params: list[QueryParamOutput]


class QueriesCatalogOutput(Answer):
    """The stored queries of a graph, by name."""

    queries: list[StoredQueryOutput]


class SchemaOutput(Answer):
    """The text of a schema."""

    schema_source: str


class SchemaMigrationStepOutput(Answer):
    """A step of a schema change; further members depend on its kind."""

    model_config = ConfigDict(extra="allow")

    kind: str


class SchemaApplyOutput(Answer):
    """What became of a schema change."""

    uri: str
    supported: bool
    applied: bool
    step_count: UInt64
    graph_manifest_version: UInt64
    steps: list[SchemaMigrationStepOutput]
    commit: CommitOutput | None = None
    findings: list[JsonObject] | None = None
    warnings: list[str] | None = None
    dry_run: bool | None = None


class BranchListOutput(Answer):
    """The branches of a graph, by name."""

    branches: list[str]


class BranchCreateOutput(Answer):
    """A branch that was started."""

    uri: str
    source: str = Field(alias="from")
    name: str
    actor_id: str | None


class BranchDeleteOutput(Answer):
    """A branch that was ended."""

    uri: str
    name: str
    actor_id: str | None


class MergedTypeOutput(Answer):
    """How many entities of a type a merge changed."""

    entity_kind: EntityKindOutput
    type_name: str
    inserted: UInt64
    updated: UInt64
    deleted: UInt64


class MixedEntityOutput(Answer):
    """An entity with values of both sides, and the properties that either of them changed."""

    entity_kind: EntityKindOutput
    type_name: str
    entity_id: str
    ours: list[str]
    theirs: list[str]


class BranchMergeOutput(Answer):
    """What became of a merge; the last two only when the branch was to be deleted."""

    source: str
    target: str
    outcome: BranchMergeOutcome
    actor_id: str | None
    commit: CommitOutput | None
    changes: list[MergedTypeOutput]
    schema_changes: list[str] | None = None
    warnings: list[str] | None = None
    preferred: dict[str, str] | None = None
    mixed_count: int | None = None
    mixed: list[MixedEntityOutput] | None = None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None


class CommitPickOutput(Answer):
    """What a commit changed that was undone, or done on another branch."""

    source: str
    target: str
    outcome: CommitPickOutcome
    actor_id: str | None
    commit: CommitOutput | None
    changes: list[MergedTypeOutput]
    schema_changes: list[str] | None = None
    warnings: list[str] | None = None
    preferred: dict[str, str] | None = None
    mixed_count: int | None = None
    mixed: list[MixedEntityOutput] | None = None


class IndexOutput(Answer):
    """A declared index of a type, and how many of its rows it covers."""

    type_key: str
    property: str
    kind: str
    covered_rows: UInt64
    total_rows: UInt64
    state: str
    reason: str | None


class IndexListOutput(Answer):
    """The declared indexes of a branch."""

    branch: str
    indexes: list[IndexOutput]


class TagOutput(Answer):
    """A name that keeps a commit; `graph_branch` is null for main."""

    name: str
    graph_commit_id: str
    graph_branch: str | None
    graph_manifest_version: UInt64
    actor_id: str | None
    created_at: Int64


class TagListOutput(Answer):
    """The tags of a graph, by name."""

    tags: list[TagOutput]


class TagDeleteOutput(Answer):
    """A tag that was deleted."""

    uri: str
    name: str
    actor_id: str | None


class MergeConflictOutput(Answer):
    """An entity that two sides left in different states, with the states."""

    entity_kind: str
    type_name: str
    entity_id: str | None
    kind: MergeConflictKindOutput
    message: str
    base: dict[str, Any] | None  # Any: JSON values
    ours: dict[str, Any] | None  # Any: JSON values
    theirs: dict[str, Any] | None  # Any: JSON values
    properties: list[str] = Field(default_factory=list)


class MergePlanOutput(Answer):
    """What a merge, a revert or a cherry-pick would do, with the first thousands of conflicts."""

    source: str
    target: str
    outcome: BranchMergeOutcome | CommitPickOutcome
    base: CommitOutput
    ours_commit_id: str
    theirs_commit_id: str
    merge_conflicts: list[MergeConflictOutput]
    conflict_count: UInt64
    changes: list[MergedTypeOutput]
    schema_changes: list[str] | None = None
    warnings: list[str] | None = None
    preferred: dict[str, str] | None = None
    mixed_count: int | None = None
    mixed: list[MixedEntityOutput] | None = None

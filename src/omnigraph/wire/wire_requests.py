"""The bodies of requests, and what their query strings may hold.

Members that the contract of the reference does not have are optional, so that its clients need not
know them.
"""

from __future__ import annotations

from typing import Final

from pydantic import AliasChoices, ConfigDict, Field

from omnigraph.wire.wire_enums import ChangeOpOutput, EntityKindOutput, LoadDialect, LoadMode
from omnigraph.wire.wire_model import ClosedRequest, JsonObject, Request

# Each takes up to a second of a thread of the server.
RETRIES_MAX: Final = 100


class QueryRequest(Request):
    """A read, of the newest state of a branch or of a commit."""

    query: str
    name: str | None = None
    params: JsonObject | None = None
    branch: str | None = None
    snapshot: str | None = None
    timeout: float | None = Field(None, ge=0, description="Seconds after which it is stopped.")
    memory: int | None = Field(None, ge=0, description="Bytes that it may use.")
    settings: JsonObject | None = None


class ExplainRequest(QueryRequest):
    """A read whose operators are wanted; to analyze it, it is run."""

    analyze: bool = True


class QueryCheckRequest(ClosedRequest):
    """A text of queries to be compiled on a state, and not run."""

    query: str
    branch: str | None = None
    snapshot: str | None = None


class ReadRequest(QueryRequest):
    """A read as the old route takes it."""

    model_config = ConfigDict(populate_by_name=True)

    query: str = Field(validation_alias=AliasChoices("query_source", "query"))
    name: str | None = Field(None, validation_alias=AliasChoices("query_name", "name"))


class ChangeRequest(Request):
    """A mutation."""

    model_config = ConfigDict(populate_by_name=True)

    query: str = Field(validation_alias=AliasChoices("query", "query_source"))
    name: str | None = Field(None, validation_alias=AliasChoices("name", "query_name"))
    params: JsonObject | None = None
    branch: str | None = None
    message: str | None = None
    key: str | None = Field(None, description="A repeated request with it does nothing.")
    retries: int = Field(
        0, ge=0, le=RETRIES_MAX, description="How often it may be run again after a conflict."
    )
    dry_run: bool = False
    timeout: float | None = Field(None, ge=0, description="Seconds after which it is stopped.")
    memory: int | None = Field(None, ge=0, description="Bytes that each of its patterns may use.")


class InvokeStoredQueryRequest(Request):
    """A call of a stored query; `expect_mutation` refuses one of the other kind."""

    params: JsonObject | None = None
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = None
    key: str | None = None
    timeout: float | None = Field(None, ge=0, description="Seconds after which it is stopped.")
    memory: int | None = Field(None, ge=0, description="Bytes that it may use.")


class SchemaApplyRequest(Request):
    """A schema to bring into force."""

    schema_source: str
    allow_data_loss: bool = Field(
        False, description="Whether a schema without types may drop all of them."
    )
    convert: bool = Field(
        False, description="Whether properties may get types that are not wider ones."
    )
    branch: str | None = None
    message: str | None = None
    key: str | None = None
    if_schema: str | None = Field(None, description="The SHA-256 of the schema text in force.")
    dry_run: bool = False


class IngestRequest(Request):
    """A load whose records are in the body; `from` is what a missing branch starts from."""

    model_config = ConfigDict(populate_by_name=True)

    data: str
    branch: str | None = None
    base: str | None = Field(None, alias="from")
    mode: LoadMode = LoadMode.MERGE
    type: str | None = None
    dialect: LoadDialect = LoadDialect.COMPATIBLE
    message: str | None = None
    key: str | None = None
    if_commit: str | None = None
    dry_run: bool = False


class BranchCreateRequest(Request):
    """A branch to start, at another one or at any other state."""

    model_config = ConfigDict(populate_by_name=True)

    name: str
    source: str | None = Field(None, alias="from")


class BranchMergeRequest(Request):
    """A merge by `property` or `entity`; `prefer` is a side for all conflicts, or one by kind."""

    source: str
    target: str | None = None
    delete_branch: bool = False
    prefer: str | dict[str, str] | None = None
    by: str | None = None
    resolve: list[JsonObject] | None = Field(
        None, description="Decisions on conflicts, as the lines of a resolution."
    )
    message: str | None = None
    if_commit: str | None = None
    key: str | None = None


class BranchMergePlanRequest(ClosedRequest):
    """A merge that is only planned; what makes a commit is refused."""

    source: str
    target: str | None = None
    prefer: str | dict[str, str] | None = None
    by: str | None = None
    resolve: list[JsonObject] | None = Field(
        None, description="Decisions on conflicts, as the lines of a resolution."
    )


class CommitPickPlanRequest(ClosedRequest):
    """A commit to undo, or to do on a branch, in a plan; what makes a commit is refused."""

    commit: str
    branch: str | None = None
    prefer: str | dict[str, str] | None = None
    by: str | None = None


class CommitPickRequest(Request):
    """A commit to undo on a branch, or to do there too."""

    commit: str
    branch: str | None = None
    prefer: str | dict[str, str] | None = None
    by: str | None = None
    message: str | None = None
    if_commit: str | None = None
    key: str | None = None


class TagCreateRequest(Request):
    """A name for a commit: by default the newest one of main."""

    name: str
    at: str | None = None


class ExportRequest(ClosedRequest):
    """What to export; unknown members are refused."""

    branch: str | None = None
    snapshot: str | None = None
    type_names: list[str] | None = None


class DiffRequest(ClosedRequest):
    """Two states to compare; a review compares `new` with where it left the branch `old`."""

    old: str
    new: str
    review: bool = False
    summary: bool = Field(False, description="Answer the first line only.")
    kind: list[EntityKindOutput] | None = None
    type: list[str] | None = None
    op: list[ChangeOpOutput] | None = None
    timeout: float | None = Field(None, ge=0, description="Seconds to compare the states in.")


class EntityBlameRequest(ClosedRequest):
    """One entity of a branch; without a kind, a node type wins over an edge type of its name."""

    type: str
    id: str
    kind: EntityKindOutput | None = None
    branch: str | None = None
    timeout: float | None = Field(None, ge=0, description="Seconds after which it is stopped.")


class EntityHistoryRequest(EntityBlameRequest):
    """One entity, and how many of its newest versions are wanted."""

    limit: int | None = Field(None, ge=1)


class ChangeBaselineRequest(ClosedRequest):
    """Which entities and later changes are wanted."""

    branch: str | None = None
    kind: list[EntityKindOutput] | None = None
    type: list[str] | None = None
    op: list[ChangeOpOutput] | None = None


# ---- what query strings hold; a list is a parameter that may be repeated ----


class BranchQuery(ClosedRequest):
    """The branch that is meant."""

    branch: str | None = None


class StateQuery(BranchQuery):
    """The newest state of a branch, or another one."""

    snapshot: str | None = None


class CommitListQuery(BranchQuery):
    """Which commits are listed."""

    limit: int | None = Field(None, ge=0)


class ChangesQuery(ClosedRequest):
    """Which changes of a commit are wanted, and how many at once."""

    page_token: str | None = None
    limit: int | None = Field(None, ge=1)
    kind: list[EntityKindOutput] | None = None
    type: list[str] | None = None
    op: list[ChangeOpOutput] | None = None


class FeedQuery(ChangesQuery):
    """Where a poll begins: at a cursor, a page or a start."""

    branch: str | None = None
    cursor: str | None = None
    start: str | None = None


class RunListQuery(ClosedRequest):
    """Which runs of pipelines are listed."""

    pipeline: str | None = None
    limit: int | None = Field(None, ge=1)


class RejectedRecordsQuery(ClosedRequest):
    """Of which target of a run the rejected records are wanted, and how many."""

    target: str
    limit: int | None = Field(None, ge=1)


class ImageQuery(StateQuery):
    """One entity; without a kind, a node type wins over an edge type of its name."""

    type: str
    id: str
    kind: EntityKindOutput | None = None


class EntityQuery(StateQuery):
    """One entity."""

    entity: EntityKindOutput
    type: str
    id: str


class BlobQuery(EntityQuery):
    """One property of one entity."""

    property: str


class BatchLoadQuery(ClosedRequest):
    """How the records of a streamed load are written."""

    branch: str | None = None
    base: str | None = Field(None, alias="from")
    mode: LoadMode | None = None
    type: str | None = None
    message: str | None = None
    key: str | None = None
    if_commit: str | None = None
    dry_run: bool = False

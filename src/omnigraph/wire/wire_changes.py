"""The bodies of answers about changes."""

from __future__ import annotations

from pydantic import Field

from omnigraph.wire.wire_enums import ChangeOpOutput, EntityKindOutput
from omnigraph.wire.wire_model import Answer, Int64, JsonObject


class ChangeCauseOutput(Answer):
    """The commit that made changes."""

    graph_commit_id: str
    parent_commit_id: str | None = None
    merged_parent_commit_id: str | None = None
    authored_branch: str
    actor_id: str | None = None
    authored_at: Int64


class EntityTypeOutput(Answer):
    """A type: its id survives a rename."""

    id: str
    name: str


class EndpointsOutput(Answer):
    """The ends of an edge."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")


class EntityImageOutput(Answer):
    """An entity before or after a change."""

    properties: JsonObject
    endpoints: EndpointsOutput | None = None


class EntityChangeOutput(Answer):
    """One entity that was inserted, updated or deleted."""

    kind: EntityKindOutput
    type: EntityTypeOutput
    id: str
    op: ChangeOpOutput
    before: EntityImageOutput | None = None
    after: EntityImageOutput | None = None


class CommitChangesOutput(Answer):
    """A page of what a commit changed."""

    cause: ChangeCauseOutput
    changes: list[EntityChangeOutput]
    next_page_token: str | None = None


class ChangeBlockOutput(Answer):
    """What one commit changed, or a part of it."""

    cause: ChangeCauseOutput
    changes: list[EntityChangeOutput]


class ChangeFeedOutput(Answer):
    """A page of a poll; the last one has a cursor."""

    blocks: list[ChangeBlockOutput]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None


class BaselineOutput(Answer):
    """Where a feed goes on after a baseline."""

    snapshot_commit_id: str
    resume_cursor: str


class BaselineRecordOutput(Answer):
    """The last line of a baseline."""

    baseline: BaselineOutput

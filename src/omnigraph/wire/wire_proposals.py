"""The bodies of requests and answers about proposals."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ConfigDict, Field

from omnigraph.wire.wire_enums import (
    ChangeOpOutput,
    EntityKindOutput,
    LoadDialect,
    LoadMode,
)
from omnigraph.wire.wire_model import Answer, ClosedRequest, Int64, UInt64


class ProposalStatus(StrEnum):
    """What became of a proposal."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class ReviewVerdict(StrEnum):
    """What a review says."""

    APPROVE = "approve"
    REQUEST_CHANGES = "request_changes"


class CheckResult(StrEnum):
    """How a check ended."""

    PASS = "pass"  # noqa: S105 — not a password
    FAIL = "fail"


class ProposalListQuery(ClosedRequest):
    """Which proposals are listed; all of them without a status."""

    status: ProposalStatus | None = None


class ProposalOpenRequest(ClosedRequest):
    """A branch to propose, or records to load into a new one, which is then proposed."""

    title: str
    source: str | None = Field(None, description="The branch; not with `data`.")
    target: str | None = Field(None, description="What it is merged into; main without it.")
    body: str | None = None
    key: str | None = None
    data: str | None = Field(None, description="Records, to be loaded into a new branch.")
    mode: LoadMode = LoadMode.MERGE
    type: str | None = None
    dialect: LoadDialect = LoadDialect.STRICT
    message: str | None = None


class ProposalEditRequest(ClosedRequest):
    """What is to be changed of a proposal."""

    title: str | None = None
    body: str | None = None
    target: str | None = None


class CommentAnchor(ClosedRequest):
    """The entity that a comment is about."""

    type_name: str
    entity_id: str
    property: str | None = None
    side: str | None = None


class ProposalCommentRequest(ClosedRequest):
    """A comment; one about an entity begins a thread."""

    text: str | None = None
    about: CommentAnchor | None = None
    replies_to: int | None = Field(None, ge=0)
    resolves: int | None = Field(None, ge=0)


class ProposalReviewRequest(ClosedRequest):
    """A review of the newest commit, which must be `head` if that is given."""

    verdict: ReviewVerdict
    text: str | None = None
    head: str | None = None


class ProposalCheckRequest(ClosedRequest):
    """The report of a check of the newest commit."""

    name: str
    outcome: CheckResult
    head: str | None = None
    link: str | None = None


class ProposalSyncRequest(ClosedRequest):
    """A merge of the target into the branch."""

    message: str | None = None


class ProposalMergeRequest(ClosedRequest):
    """A merge of the newest commit, which must be `head` if that is given."""

    head: str | None = None
    message: str | None = None
    delete_branch: bool = False


class ProposalCloseRequest(ClosedRequest):
    """Why a proposal is closed."""

    reason: str | None = None


class ProposalDiffRequest(ClosedRequest):
    """Which changes of a proposal are wanted."""

    summary: bool = Field(False, description="Answer the first line only.")
    kind: list[EntityKindOutput] | None = None
    type: list[str] | None = None
    op: list[ChangeOpOutput] | None = None
    timeout: float | None = Field(None, ge=0, description="Seconds to compare the states in.")


class ProposalListingOutput(Answer):
    """What a list shows of a proposal."""

    number: UInt64
    title: str
    status: ProposalStatus
    author_id: str | None
    source: str
    target: str
    created_at: Int64
    updated_at: Int64
    key: str | None


class ProposalListOutput(Answer):
    """Proposals, the newest first."""

    proposals: list[ProposalListingOutput]


class ProposalReviewOutput(Answer):
    """The newest review of an actor."""

    actor_id: str | None
    verdict: ReviewVerdict
    graph_commit_id: str
    created_at: Int64
    text: str | None
    stale: bool


class ProposalCheckOutput(Answer):
    """The newest report of a check."""

    name: str
    outcome: CheckResult
    graph_commit_id: str
    actor_id: str | None
    created_at: Int64
    link: str | None
    stale: bool


class CommentAnchorOutput(Answer):
    """The entity that a comment is about."""

    type_name: str
    entity_id: str
    property: str | None
    side: str | None


class ProposalCommentOutput(Answer):
    """A comment."""

    number: UInt64
    actor_id: str | None
    created_at: Int64
    text: str
    thread: UInt64
    about: CommentAnchorOutput | None
    resolved: bool


class UnmetRuleOutput(Answer):
    """A rule of the policy, and what a proposal lacks of it."""

    model_config = ConfigDict(strict=False)

    rule: str
    missing: list[str]


class ProposalChangeOutput(Answer):
    """How many entities of a type a merge changed."""

    type: str
    inserted: UInt64
    updated: UInt64
    deleted: UInt64


class ProposalOutput(ProposalListingOutput):
    """A proposal with its reviews, checks and comments."""

    body: str | None
    head_commit_id: str | None
    reviews: list[ProposalReviewOutput]
    checks: list[ProposalCheckOutput]
    comments: list[ProposalCommentOutput]
    unmet: list[UnmetRuleOutput]
    merge_commit_id: str | None
    changes: list[ProposalChangeOutput]
    ended_by: str | None
    ended_at: Int64 | None
    reason: str | None

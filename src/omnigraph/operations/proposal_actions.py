"""Proposals: opened, discussed, reviewed and merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from omnigraph.engine import Text
from omnigraph.errors import InvalidArgumentError
from omnigraph.operations.graph_reads import ReadBounds, choose_smaller
from omnigraph.operations.history_reads import iter_diff
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.wire.wire_proposals import ReviewVerdict

if TYPE_CHECKING:
    from omnigraph import Proposal
    from omnigraph.engine import Graph
    from omnigraph.wire.wire_proposals import (
        ProposalCheckRequest,
        ProposalCloseRequest,
        ProposalCommentRequest,
        ProposalDiffRequest,
        ProposalEditRequest,
        ProposalMergeRequest,
        ProposalOpenRequest,
        ProposalReviewRequest,
        ProposalSyncRequest,
    )

JsonObject = dict[str, Any]  # Any: a JSON document


def list_proposals(graph: Graph, status: str | None) -> JsonObject:
    """The proposals that the caller may see: ProposalListOutput."""
    return {"proposals": [each.to_json() for each in graph.proposals(status=status)]}


def open_proposal(graph: Graph, asked: ProposalOpenRequest) -> JsonObject:
    """Propose a branch, or records that are loaded into a new one: ProposalOutput."""
    target = MAIN_BRANCH if asked.target is None else asked.target
    if asked.data is None:
        if asked.source is None:
            raise InvalidArgumentError(
                "source", "it is missing", hint="name a branch, or give data"
            )
        opened = graph.open_proposal(
            asked.source, title=asked.title, target=target, body=asked.body, key=asked.key
        )
        return opened.read().to_json()
    if asked.source is not None:
        raise InvalidArgumentError("source", "data are loaded into a new branch: leave it out")
    draft = graph.branch(target).propose(asked.title, body=asked.body, key=asked.key)
    return _load(draft, asked).read().to_json()


def _load(draft: Any, asked: ProposalOpenRequest) -> Proposal:  # Any: a draft of the engine
    opened: Proposal = draft.load(
        Text(asked.data or "", "data"),
        mode=asked.mode.value,
        type=asked.type,
        dialect=asked.dialect.value,
        message=asked.message,
    )
    return opened


def read_proposal(graph: Graph, number: int) -> JsonObject:
    """A proposal: ProposalOutput."""
    return graph.proposal(number).read().to_json()


def edit_proposal(graph: Graph, number: int, asked: ProposalEditRequest) -> JsonObject:
    """Give a proposal another title, body or target: ProposalOutput."""
    proposal = graph.proposal(number)
    return proposal.edit(title=asked.title, body=asked.body, target=asked.target).to_json()


def comment_on(graph: Graph, number: int, asked: ProposalCommentRequest) -> JsonObject:
    """Say something about a proposal: ProposalOutput."""
    about = asked.about
    info = graph.proposal(number).comment(
        asked.text,
        about=None if about is None else (about.type_name, about.entity_id),
        property=None if about is None else about.property,
        side=None if about is None else about.side,
        replies_to=asked.replies_to,
        resolves=asked.resolves,
    )
    return info.to_json()


def review_proposal(graph: Graph, number: int, asked: ProposalReviewRequest) -> JsonObject:
    """Approve of a proposal, or request changes: ProposalOutput."""
    proposal = graph.proposal(number)
    if asked.verdict is ReviewVerdict.APPROVE:
        return proposal.approve(asked.text, head=asked.head).to_json()
    return proposal.request_changes(asked.text or "", head=asked.head).to_json()


def report_check(graph: Graph, number: int, asked: ProposalCheckRequest) -> JsonObject:
    """Report how a check of a proposal ended: ProposalOutput."""
    info = graph.proposal(number).report_check(
        asked.name, asked.outcome.value, head=asked.head, link=asked.link
    )
    return info.to_json()


def sync_proposal(graph: Graph, number: int, asked: ProposalSyncRequest) -> JsonObject:
    """Merge the target into the branch of a proposal: BranchMergeOutput."""
    return graph.proposal(number).sync_branch(message=asked.message).to_json()


def merge_proposal(graph: Graph, number: int, asked: ProposalMergeRequest) -> JsonObject:
    """Merge a proposal, once: BranchMergeOutput."""
    result = graph.proposal(number).merge(
        head=asked.head, message=asked.message, delete_branch=asked.delete_branch
    )
    return result.to_json()


def plan_merge(graph: Graph, number: int) -> JsonObject:
    """What the merge of a proposal would do: MergePlanOutput."""
    return graph.proposal(number).plan().to_json()


def close_proposal(graph: Graph, number: int, asked: ProposalCloseRequest) -> JsonObject:
    """Close a proposal: ProposalOutput."""
    return graph.proposal(number).close(asked.reason).to_json()


def begin_diff(
    graph: Graph, number: int, asked: ProposalDiffRequest, bounds: ReadBounds
) -> Iterator[bytes]:
    """What a proposal changes: a line of commits and counts, then a line per entity."""
    found = graph.proposal(number).diff(
        kinds=asked.kind,
        types=asked.type,
        ops=asked.op,
        timeout=choose_smaller(asked.timeout, bounds.timeout_s),
        cancel=bounds.cancel,
    )
    return iter_diff(found, is_whole=not asked.summary)

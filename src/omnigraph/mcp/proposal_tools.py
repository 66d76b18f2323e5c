"""The tools that agents propose with, and those of reviewers, which are offered on request."""

from __future__ import annotations

from typing import Final

import orjson

from omnigraph.engine import Diff
from omnigraph.errors import HistoryGoneError, PolicyDeniedError
from omnigraph.mcp.agent_tool import Arguments, JsonObject, ToolAnswer, describe_text
from omnigraph.mcp.graph_tools import KEY, ToolSpec
from omnigraph.mcp.tool_scope import PROPOSE, READ_GRAPH, REVIEW, ToolScope
from omnigraph.operations import proposal_actions
from omnigraph.operations.graph_writes import BRANCH_BYTES
from omnigraph.wire.wire_proposals import (
    ProposalCommentRequest,
    ProposalMergeRequest,
    ProposalOpenRequest,
    ProposalReviewRequest,
    ProposalSyncRequest,
)

# Of an answer, what is left to the changes of a proposal; the rest is for its comments.
_CHANGES_PART: Final = 2
_NUMBER: Final[JsonObject] = {"type": "integer", "minimum": 1, "description": "The proposal."}
_COMMENT: Final[JsonObject] = {
    "type": "integer",
    "minimum": 1,
    "description": "The number of a comment.",
}
_HEAD: Final = describe_text("Only if this is the newest commit: the head_commit_id that was read.")
_TEXT: Final = describe_text("What you think of it.")


def _list_proposals(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    status = arguments.get("status", "open")
    return proposal_actions.list_proposals(scope.graph, None if status == "all" else status)


def _get_proposal(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    number = arguments["number"]
    document = proposal_actions.read_proposal(scope.graph, number)
    try:
        found = scope.graph.proposal(number).diff(
            timeout=scope.bounds.timeout_s, cancel=scope.bounds.cancel
        )
        return document | _describe_changes(found, scope.exposure.answer_bytes_max)
    except (PolicyDeniedError, HistoryGoneError) as error:
        # Who may propose need not be allowed to read, and history is not kept for ever.
        return document | {"diff_error": error.message}


def _describe_changes(found: Diff, bytes_max: int) -> JsonObject:
    """The counts of a diff, and its first changes."""
    left, changes, is_whole = bytes_max // _CHANGES_PART, [], True
    for change in found:
        described = change.to_json()
        left -= len(orjson.dumps(described))
        if left < 0:
            is_whole = False
            break
        changes.append(described)
    summary = [each.to_json() for each in found.summary]
    return {"summary": summary, "diff": changes, "diff_is_whole": is_whole}


def _open_proposal(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    asked = ProposalOpenRequest.model_validate(dict(arguments), strict=False)
    with scope.admit(max(len(asked.data or ""), BRANCH_BYTES)):
        return proposal_actions.open_proposal(scope.graph, asked)


def _comment(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    asked = ProposalCommentRequest.model_validate(_drop_number(arguments))
    with scope.admit(BRANCH_BYTES):
        return proposal_actions.comment_on(scope.graph, arguments["number"], asked)


def _sync(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    asked = ProposalSyncRequest.model_validate(_drop_number(arguments))
    with scope.admit(BRANCH_BYTES):
        return proposal_actions.sync_proposal(scope.graph, arguments["number"], asked)


def _approve(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    return _review(scope, arguments, "approve")


def _request_changes(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    return _review(scope, arguments, "request_changes")


def _review(scope: ToolScope, arguments: Arguments, verdict: str) -> ToolAnswer:
    given = {**_drop_number(arguments), "verdict": verdict}
    asked = ProposalReviewRequest.model_validate(given, strict=False)
    with scope.admit(BRANCH_BYTES):
        return proposal_actions.review_proposal(scope.graph, arguments["number"], asked)


def _merge(scope: ToolScope, arguments: Arguments) -> ToolAnswer:
    asked = ProposalMergeRequest.model_validate(_drop_number(arguments))
    with scope.admit(BRANCH_BYTES):
        return proposal_actions.merge_proposal(scope.graph, arguments["number"], asked)


def _drop_number(arguments: Arguments) -> JsonObject:
    return {name: value for name, value in arguments.items() if name != "number"}


PROPOSAL_TOOLS: Final = (
    ToolSpec(
        "proposal_list",
        "The proposals to merge a branch, the newest first.",
        _list_proposals,
        (*READ_GRAPH, *PROPOSE),
        {"status": {"enum": ["open", "merged", "closed", "all"], "default": "open"}},
    ),
    ToolSpec(
        "proposal_get",
        "A proposal with its reviews, checks and comments, what its merge still lacks, and the"
        " first of its changes.",
        _get_proposal,
        (*READ_GRAPH, *PROPOSE),
        {"number": _NUMBER},
        ("number",),
    ),
    ToolSpec(
        "proposal_open",
        "Propose changes, which others review and merge: JSON lines in `data` are loaded into a new"
        " branch, or `source` names a branch that you have written to.",
        _open_proposal,
        PROPOSE,
        {
            "title": describe_text("What it does, in a line."),
            "body": describe_text("Why, in any number of lines."),
            "data": describe_text("The lines, as those of `load`."),
            "mode": {"enum": ["append", "merge", "patch", "overwrite"], "default": "merge"},
            "source": describe_text("The branch, without data."),
            "target": describe_text("What it is merged into; main without it."),
            "message": describe_text("What the commit of the load says."),
            "key": KEY,
        },
        ("title",),
        is_read=False,
    ),
    ToolSpec(
        "proposal_comment",
        "Say something about a proposal, answer a comment, or resolve a thread.",
        _comment,
        (*PROPOSE, *REVIEW),
        {
            "number": _NUMBER,
            "text": describe_text("The comment."),
            "about": {
                "type": "object",
                "description": "The entity it is about, which begins a thread.",
                "properties": {
                    "type_name": {"type": "string"},
                    "entity_id": {"type": "string"},
                    "property": {"type": "string"},
                    "side": {"enum": ["before", "after"]},
                },
                "required": ["type_name", "entity_id"],
                "additionalProperties": False,
            },
            "replies_to": _COMMENT,
            "resolves": _COMMENT,
        },
        ("number",),
        is_read=False,
    ),
    ToolSpec(
        "proposal_sync",
        "Merge the target into the branch of a proposal; its reviews become stale.",
        _sync,
        PROPOSE,
        {"number": _NUMBER, "message": describe_text("What the commit says.")},
        ("number",),
        is_read=False,
    ),
    ToolSpec(
        "proposal_approve",
        "Approve of the newest commit of a proposal.",
        _approve,
        REVIEW,
        {"number": _NUMBER, "text": _TEXT, "head": _HEAD},
        ("number",),
        is_read=False,
        is_review=True,
    ),
    ToolSpec(
        "proposal_request_changes",
        "Request changes of a proposal, which blocks its merge until you review it again.",
        _request_changes,
        REVIEW,
        {"number": _NUMBER, "text": _TEXT, "head": _HEAD},
        ("number", "text"),
        is_read=False,
        is_review=True,
    ),
    ToolSpec(
        "proposal_merge",
        "Merge a proposal, once, if the policy allows it.",
        _merge,
        REVIEW,
        {
            "number": _NUMBER,
            "head": _HEAD,
            "message": describe_text("What the commit says."),
            "delete_branch": {"type": "boolean"},
        },
        ("number",),
        is_read=False,
        is_review=True,
    ),
)

"""Proposals over HTTP."""

from __future__ import annotations

from typing import Final

from omnigraph.operations import proposal_actions
from omnigraph.operations.graph_writes import BRANCH_BYTES
from omnigraph.server.change_routes import LINES_UTF8, start_stream
from omnigraph.server.exchange import (
    Answer,
    Call,
    RequestRefusedError,
    StreamedAnswer,
    WriteAct,
    answer_json,
)

# A number of 64 bits; which of them are taken the engine knows.
_DIGITS_MAX: Final = 18


def _read_number(call: Call) -> int:
    text = call.path["number"]
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise RequestRefusedError(400, "the number of a proposal is a whole number")
    return int(text)


def list_proposals(call: Call) -> Answer:
    """The proposals."""
    status = call.query.status
    found = proposal_actions.list_proposals(
        call.open_graph(), None if status is None else status.value
    )
    return answer_json(found)


def open_proposal(call: Call) -> Answer:
    """Propose a branch, or records."""
    return answer_json(proposal_actions.open_proposal(call.open_graph(), call.body))


def get_proposal(call: Call) -> Answer:
    """One proposal."""
    return answer_json(proposal_actions.read_proposal(call.open_graph(), _read_number(call)))


def edit_proposal(call: Call) -> Answer:
    """Change what a proposal says."""
    number = _read_number(call)
    return answer_json(proposal_actions.edit_proposal(call.open_graph(), number, call.body))


def add_comment(call: Call) -> Answer:
    """Say something."""
    number = _read_number(call)
    return answer_json(proposal_actions.comment_on(call.open_graph(), number, call.body))


def add_review(call: Call) -> Answer:
    """Approve, or request changes."""
    number = _read_number(call)
    return answer_json(proposal_actions.review_proposal(call.open_graph(), number, call.body))


def add_check(call: Call) -> Answer:
    """Report a check."""
    number = _read_number(call)
    return answer_json(proposal_actions.report_check(call.open_graph(), number, call.body))


def sync_proposal(call: Call) -> Answer:
    """Merge the target into the branch."""
    number = _read_number(call)
    return answer_json(proposal_actions.sync_proposal(call.open_graph(), number, call.body))


def merge_proposal(call: Call) -> Answer:
    """Merge a proposal."""
    number = _read_number(call)
    return answer_json(proposal_actions.merge_proposal(call.open_graph(), number, call.body))


def plan_merge(call: Call) -> Answer:
    """What the merge would do."""
    return answer_json(proposal_actions.plan_merge(call.open_graph(), _read_number(call)))


def close_proposal(call: Call) -> Answer:
    """Close a proposal."""
    number = _read_number(call)
    return answer_json(proposal_actions.close_proposal(call.open_graph(), number, call.body))


def diff_proposal(call: Call) -> StreamedAnswer:
    """What a proposal changes."""
    lines = proposal_actions.begin_diff(
        call.open_graph(), _read_number(call), call.body, call.bounds
    )
    return StreamedAnswer(start_stream(lines), lambda: None, LINES_UTF8)


def act_of(call: Call) -> WriteAct:
    """What a proposal asks: the engine knows its branches, and asks the policy itself."""
    return WriteAct(None, max(call.body_bytes, BRANCH_BYTES))

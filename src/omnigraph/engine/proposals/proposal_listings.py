"""Lists the proposals of a graph, and opens them."""

from __future__ import annotations

from omnigraph.engine import arguments
from omnigraph.engine.graph_session import Session
from omnigraph.engine.proposals.proposal_info import ProposalListing, list_proposal
from omnigraph.engine.proposals.proposal_merge import find_outcome
from omnigraph.engine.proposals.proposal_rights import may_take_part
from omnigraph.engine.proposals.proposal_source import find_base
from omnigraph.engine.proposals.proposal_texts import require_optional_body, require_title
from omnigraph.errors import PolicyDeniedError, ProposalRefusedError
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning import Snapshot
from omnigraph.versioning.proposals import (
    Opened,
    ProposalLog,
    ProposalStatus,
    ProposalSummary,
)


def list_proposals(session: Session, status: str | None) -> list[ProposalListing]:
    """The proposals that the actor may see, the newest first; with a status, those that have it."""
    wanted = None if status is None else arguments.parse_choice(ProposalStatus, "status", status)
    found = [_settle(session, each) for each in _list_visible(session)]
    return [list_proposal(each) for each in found if wanted in (None, each.status)]


def _list_visible(session: Session) -> list[ProposalSummary]:
    try:
        session.authorize(Act(Action.READ), None)
    except PolicyDeniedError:
        found = [
            each
            for each in session.resources.proposals.list_summaries()
            if may_take_part(session, each.source, each.target)
        ]
        if found:
            return found
        raise
    return session.resources.proposals.list_summaries()


def _settle(session: Session, listed: ProposalSummary) -> ProposalSummary:
    """An entry with the outcome of a merge that stopped before it put its last event."""
    if not listed.is_merging:
        return listed
    state = session.resources.proposals.read(listed.number)
    return find_outcome(session, state).summarize()


def open_proposal(
    session: Session,
    branches: tuple[str, str],
    *,
    title: str,
    body: str | None,
    key: str | None,
) -> int:
    """Propose to merge a branch into another one; the number of the proposal."""
    source, target = (arguments.require_text("branch", each) for each in branches)
    session.authorize(Act(Action.PROPOSE, source, target))
    named, text = require_title("title", title), require_optional_body("body", body)
    given, log = arguments.require_optional_key(key), session.resources.proposals
    made = None if given is None else _find_by_key(log, given)
    if made is not None:
        # Its branch may be merged and deleted by now.
        return made
    stream = session.resources.branches.resolve(source)
    at = session.read_head(stream)
    _require_changes(session, at, target)

    def is_same(listed: ProposalSummary) -> bool:
        if given is not None and listed.key == given:
            return True
        is_of_both = (listed.source_stream, listed.target) == (stream.id, target)
        return is_of_both and _settle(session, listed).status is ProposalStatus.OPEN

    head = session.resources.history.find_written(at)
    opened = Opened(named, source, stream.id, target, head, text, given)
    state, is_new = log.open(opened, actor=session.actor, find_same=is_same)
    if not is_new and (given is None or state.opened.key != given):
        raise ProposalRefusedError(
            f"branch '{source}' has proposal {state.number} for '{target}' already",
            number=state.number,
            hint=f"look at `omnigraph proposal show {state.number}`",
        )
    return state.number


def _find_by_key(log: ProposalLog, key: str) -> int | None:
    return next((each.number for each in log.list_summaries() if each.key == key), None)


def _require_changes(session: Session, at: Snapshot, target: str) -> None:
    """Refuse a proposal of a branch that has nothing which its target has not."""
    base = find_base(session, target, at)
    if session.resources.log.is_at(at, base.commit):
        raise ProposalRefusedError(
            f"branch '{at.stream.branch}' has nothing that '{target}' has not",
            hint="write to the branch first",
        )

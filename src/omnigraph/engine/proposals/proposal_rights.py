"""Which rights a proposal asks of an actor: to see it, to take part in it, and to merge it."""

from __future__ import annotations

from omnigraph.engine.graph_session import Session
from omnigraph.errors import PolicyDeniedError
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning.proposals import ProposalState

_PARTS = (Action.PROPOSE, Action.REVIEW)


def may_take_part(session: Session, source: str, target: str) -> bool:
    """Whether an actor may propose or review merges of a branch into another one."""
    return any(session.is_allowed(Act(action, source, target)) for action in _PARTS)


def require_visible(session: Session, state: ProposalState) -> None:
    """Refuse who may neither read the graph, nor take part, nor merge the proposal.

    The denial names no branch: that would show what is proposed.
    """
    if session.is_allowed(Act(Action.READ)):
        return
    if may_take_part(session, state.opened.source, state.target):
        return
    if session.is_allowed(_build_merge_act(session, state), ()):
        return
    raise PolicyDeniedError(
        f"policy denies 'propose' and 'review' of proposal {state.number} to actor"
        f" '{session.actor}'",
        actor=session.actor,
        action=Action.PROPOSE,
    )


def require_part(session: Session, state: ProposalState) -> None:
    """Refuse who may neither propose nor review it."""
    if not may_take_part(session, state.opened.source, state.target):
        session.authorize(Act(Action.PROPOSE, state.opened.source, state.target))


def require_own(session: Session, state: ProposalState) -> None:
    """Its author may change or end it, and so may a reviewer."""
    is_author = state.author is not None and state.author == session.actor
    action = Action.PROPOSE if is_author else Action.REVIEW
    session.authorize(Act(action, state.opened.source, state.target))


def require_merger(session: Session, state: ProposalState) -> None:
    """Refuse who may not merge it, whatever it has of what rules require."""
    session.authorize(_build_merge_act(session, state))


def _build_merge_act(session: Session, state: ProposalState) -> Act:
    """The merge of the proposal once it has all that any rule requires."""
    met = tuple(each.rule for each in session.list_requirements(state.target))
    return Act(Action.BRANCH_MERGE, state.opened.source, state.target, met=met)

"""The branch of a proposal: the commit that it asks to merge, and what that changes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from omnigraph import versioning
from omnigraph.engine.graph_session import Session
from omnigraph.engine.proposals.proposal_rules import ReviewedHead, UnmetRule, list_unmet
from omnigraph.errors import (
    BranchNotFoundError,
    BranchRefusedError,
    CommitNotFoundError,
    HistoryGoneError,
    ProposalRefusedError,
)
from omnigraph.versioning.proposals import ProposalState
from omnigraph.versioning.record import CommitRef


@dataclass(frozen=True, slots=True)
class ProposedCommit:
    """The newest commit of a proposal's branch; `head` is before maintenance and fills."""

    at: versioning.Snapshot
    head: CommitRef


def find_proposed(session: Session, state: ProposalState) -> ProposedCommit | None:
    """What the branch of a proposal holds; None if the branch is gone, or is another one now."""
    with suppress(BranchRefusedError):
        stream = session.resources.branches.resolve(state.opened.source)
        if stream.id == state.opened.source_stream:
            at = session.read_head(stream)
            return ProposedCommit(at, session.resources.history.find_written(at))
    return None


def require_proposed(session: Session, state: ProposalState) -> ProposedCommit:
    """What the branch of a proposal holds."""
    found = find_proposed(session, state)
    if found is None:
        raise ProposalRefusedError(
            f"proposal {state.number}: its branch '{state.opened.source}' was deleted",
            number=state.number,
        )
    return found


def find_base(session: Session, target: str, at: versioning.Snapshot) -> versioning.Snapshot:
    """The commit that a merge into a target would start from."""
    stream = session.resources.branches.resolve(target)
    return session.resources.lineage.find_merge_base(session.read_head(stream), at)


def find_unmet(
    session: Session, state: ProposalState, proposed: ProposedCommit
) -> tuple[UnmetRule, ...]:
    """The rules that require something of a proposal which it lacks."""
    requirements = session.list_requirements(state.target)
    needs_base = any(each.requires.up_to_date for each in requirements)
    is_current = not needs_base or _is_up_to_date(session, state.target, proposed.at)
    return list_unmet(requirements, ReviewedHead(state, proposed.head.commit, is_current))


def _is_up_to_date(session: Session, target: str, at: versioning.Snapshot) -> bool:
    resources = session.resources
    newest = session.read_head(resources.branches.resolve(target))
    base = resources.lineage.find_merge_base(newest, at)
    return resources.log.is_at(newest, base.commit)


def find_compared(
    session: Session, state: ProposalState
) -> tuple[versioning.Snapshot, versioning.Snapshot]:
    """The two states whose difference a proposal asks to merge, or has merged."""
    if state.merged is not None:
        head = state.merged.head
        begun = next(each for each in reversed(state.merges) if each.head.commit == head)
        return _read_state(session, begun.base), _read_state(session, begun.head)
    found = find_proposed(session, state)
    if found is None:
        raise HistoryGoneError(
            f"the branch '{state.opened.source}' of proposal {state.number} was deleted"
        )
    return find_base(session, state.target, found.at), found.at


def _read_state(session: Session, ref: CommitRef) -> versioning.Snapshot:
    """A state that a proposal names, whatever became of its branch, while it is kept."""
    with suppress(BranchNotFoundError, CommitNotFoundError):
        stream = session.resources.branches.stream_of(ref.branch, ref.stream)
        if stream is not None:
            at = session.resources.log.read_snapshot(stream, ref.seq)
            session.resources.branches.require_retained(at)
            return at
    raise HistoryGoneError(f"commit '{ref.commit}' of branch '{ref.branch}' is not kept any more")

"""Proposals: requests to merge a branch, as append-only events and their fold.

In: events, each with its actor. Out: the state of a proposal. Guarantee: one put-if-absent
decides the number of a proposal and of each event, so that every process folds the same events; an
event is put only if the state it follows allows it; the index is derived, and no decision reads it.

    proposal_events   what can happen to a proposal, as data and as stored fields
    proposal_state    the fold of the events, and which event may follow
    proposal_log      events listed, read and put; the index of summaries
"""

from omnigraph.versioning.proposals.proposal_events import (
    Anchor,
    Checked,
    CheckOutcome,
    Closed,
    Commented,
    Event,
    Merged,
    Merging,
    Opened,
    Retargeted,
    Retitled,
    Reviewed,
    StoredEvent,
    Verdict,
)
from omnigraph.versioning.proposals.proposal_log import ProposalLog
from omnigraph.versioning.proposals.proposal_state import (
    CheckReport,
    Comment,
    ProposalState,
    ProposalStatus,
    ProposalSummary,
    Review,
    fold_events,
)

__all__ = [
    "Anchor",
    "CheckOutcome",
    "CheckReport",
    "Checked",
    "Closed",
    "Comment",
    "Commented",
    "Event",
    "Merged",
    "Merging",
    "Opened",
    "ProposalLog",
    "ProposalState",
    "ProposalStatus",
    "ProposalSummary",
    "Retargeted",
    "Retitled",
    "Review",
    "Reviewed",
    "StoredEvent",
    "Verdict",
    "fold_events",
]

"""Proposals as programs use them: requests to merge a branch, with reviews, checks and comments.

In: what an actor does with a proposal. Out: what is known of it, and one merge. Guarantee: a merge
brings the commit that was approved, and no newer one; it happens once, however many processes try
it and wherever they stop; the policy is asked before anything is read or written.

    proposal_texts     checks titles and bodies
    proposal_listings  lists proposals, and opens them
    proposal_info      what is known of a proposal, as data and as a document
    proposal_rules     which requirements of the policy a proposal meets, and what is missing
    proposal_rights    who may see a proposal, take part in it, and merge it
    proposal_source    the branch of a proposal, the commit it asks to merge, and what that changes
    proposal_merge     the merge of a proposal, and its recovery
    proposal           one proposal, and what can be done with it
    proposal_drafts    starts a branch, loads into it and opens a proposal, in one step
"""

from omnigraph.engine.proposals.proposal import Proposal
from omnigraph.engine.proposals.proposal_drafts import ProposalDraft
from omnigraph.engine.proposals.proposal_info import (
    ProposalCheck,
    ProposalComment,
    ProposalInfo,
    ProposalListing,
    ProposalReview,
)

__all__ = [
    "Proposal",
    "ProposalCheck",
    "ProposalComment",
    "ProposalDraft",
    "ProposalInfo",
    "ProposalListing",
    "ProposalReview",
]

"""Documents of proposals as the values that a graph in this process returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.engine.arguments import datetime_of
from omnigraph.engine.proposals import (
    ProposalCheck,
    ProposalComment,
    ProposalInfo,
    ProposalListing,
    ProposalReview,
)
from omnigraph.engine.proposals.proposal_info import COUNTS
from omnigraph.engine.proposals.proposal_rules import UnmetRule

JsonObject = Mapping[str, Any]  # Any: a JSON document


def decode_listing(document: JsonObject) -> ProposalListing:
    """What a list shows of a proposal."""
    return ProposalListing(
        document["number"],
        document["title"],
        document["status"],
        document["author_id"],
        document["source"],
        document["target"],
        datetime_of(document["created_at"]),
        datetime_of(document["updated_at"]),
        document["key"],
    )


def decode_proposal(document: JsonObject) -> ProposalInfo:
    """What is known of a proposal."""
    ended_at, is_merged = document["ended_at"], document["merge_commit_id"] is not None
    counts = {each["type"]: tuple(each[name] for name in COUNTS) for each in document["changes"]}
    return ProposalInfo(
        listing=decode_listing(document),
        body=document["body"],
        head=document["head_commit_id"],
        reviews=tuple(map(_decode_review, document["reviews"])),
        checks=tuple(map(_decode_check, document["checks"])),
        comments=tuple(map(_decode_comment, document["comments"])),
        unmet=tuple(UnmetRule(each["rule"], tuple(each["missing"])) for each in document["unmet"]),
        merge_commit=document["merge_commit_id"],
        counts=counts if is_merged else None,
        ended_by=document["ended_by"],
        ended_at=None if ended_at is None else datetime_of(ended_at),
        reason=document["reason"],
    )


def _decode_review(document: JsonObject) -> ProposalReview:
    return ProposalReview(
        document["actor_id"],
        document["verdict"],
        document["graph_commit_id"],
        datetime_of(document["created_at"]),
        document["text"],
        document["stale"],
    )


def _decode_check(document: JsonObject) -> ProposalCheck:
    return ProposalCheck(
        document["name"],
        document["outcome"],
        document["graph_commit_id"],
        document["actor_id"],
        datetime_of(document["created_at"]),
        document["link"],
        document["stale"],
    )


def _decode_comment(document: JsonObject) -> ProposalComment:
    return ProposalComment(
        document["number"],
        document["actor_id"],
        datetime_of(document["created_at"]),
        document["text"],
        document["thread"],
        document["about"],
        document["resolved"],
    )

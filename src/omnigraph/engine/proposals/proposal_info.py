"""What is known of a proposal, as data and as a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from omnigraph.engine.arguments import datetime_of, to_microseconds
from omnigraph.engine.proposals.proposal_rules import UnmetRule
from omnigraph.html_views import HtmlDocument
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.versioning.proposals import ProposalState, ProposalSummary

COUNTS: Final = ("inserted", "updated", "deleted")


@dataclass(frozen=True, slots=True, repr=False)
class ProposalListing(HtmlDocument):
    """What a list shows of a proposal; `status` is open, merged or closed."""

    number: int
    title: str
    status: str
    author: str | None
    source: str
    target: str
    created_at: datetime
    updated_at: datetime
    # The key of the request that opened it.
    key: str | None = None

    def __repr__(self) -> str:
        branches = f"{self.source!r} into {self.target!r}"
        return f"ProposalListing({self.number}, {self.title!r}, {branches}, {self.status})"

    def to_json(self) -> JsonObject:
        """The document of an entry of a list."""
        return {
            "number": self.number,
            "title": self.title,
            "status": self.status,
            "author_id": self.author,
            "source": self.source,
            "target": self.target,
            "created_at": to_microseconds(self.created_at),
            "updated_at": to_microseconds(self.updated_at),
            "key": self.key,
        }


@dataclass(frozen=True, slots=True)
class ProposalReview:
    """The newest review of an actor; a stale one speaks of another commit, or target, than now."""

    actor: str | None
    verdict: str
    commit_id: str
    created_at: datetime
    text: str | None
    is_stale: bool

    def to_json(self) -> JsonObject:
        """The document of a review."""
        return {
            "actor_id": self.actor,
            "verdict": self.verdict,
            "graph_commit_id": self.commit_id,
            "created_at": to_microseconds(self.created_at),
            "text": self.text,
            "stale": self.is_stale,
        }


@dataclass(frozen=True, slots=True)
class ProposalCheck:
    """The newest report of a check: `outcome` is pass or fail."""

    name: str
    outcome: str
    commit_id: str
    actor: str | None
    created_at: datetime
    link: str | None
    is_stale: bool

    def to_json(self) -> JsonObject:
        """The document of a check."""
        return {
            "name": self.name,
            "outcome": self.outcome,
            "graph_commit_id": self.commit_id,
            "actor_id": self.actor,
            "created_at": to_microseconds(self.created_at),
            "link": self.link,
            "stale": self.is_stale,
        }


@dataclass(frozen=True, slots=True)
class ProposalComment:
    """A comment by its number; one about an entity begins a thread, which can be resolved."""

    number: int
    actor: str | None
    created_at: datetime
    text: str
    thread: int
    about: Mapping[str, str | None] | None
    is_resolved: bool

    def to_json(self) -> JsonObject:
        """The document of a comment."""
        return {
            "number": self.number,
            "actor_id": self.actor,
            "created_at": to_microseconds(self.created_at),
            "text": self.text,
            "thread": self.thread,
            "about": None if self.about is None else dict(self.about),
            "resolved": self.is_resolved,
        }


@dataclass(frozen=True, slots=True, repr=False)
class ProposalInfo(HtmlDocument):
    """A proposal: `head` is the commit that it asks to merge, None if its branch is gone.

    `unmet` are the rules that require something of it which it lacks. `merge_commit` is what its
    merge made, and `counts` how many entities of each type that changed.
    """

    listing: ProposalListing
    body: str | None
    head: str | None
    reviews: tuple[ProposalReview, ...] = ()
    checks: tuple[ProposalCheck, ...] = ()
    comments: tuple[ProposalComment, ...] = ()
    unmet: tuple[UnmetRule, ...] = ()
    merge_commit: str | None = None
    counts: Mapping[str, tuple[int, int, int]] | None = None
    ended_by: str | None = None
    ended_at: datetime | None = None
    reason: str | None = None

    @property
    def number(self) -> int:
        """Its number."""
        return self.listing.number

    @property
    def title(self) -> str:
        """Its title."""
        return self.listing.title

    @property
    def status(self) -> str:
        """Open, merged or closed."""
        return self.listing.status

    @property
    def author(self) -> str | None:
        """Who opened it."""
        return self.listing.author

    @property
    def source(self) -> str:
        """The branch that it asks to merge."""
        return self.listing.source

    @property
    def target(self) -> str:
        """The branch that is to be merged into."""
        return self.listing.target

    @property
    def approvals(self) -> tuple[str | None, ...]:
        """Who approves of the commit that it asks to merge."""
        is_current = (
            each.actor for each in self.reviews if each.verdict == "approve" and not each.is_stale
        )
        return tuple(is_current)

    def __repr__(self) -> str:
        branches = f"{self.source!r} into {self.target!r}"
        return f"ProposalInfo({self.number}, {self.title!r}, {branches}, {self.status})"

    def to_json(self) -> JsonObject:
        """The document of a proposal."""
        return {
            **self.listing.to_json(),
            "body": self.body,
            "head_commit_id": self.head,
            "reviews": [each.to_json() for each in self.reviews],
            "checks": [each.to_json() for each in self.checks],
            "comments": [each.to_json() for each in self.comments],
            "unmet": [asdict(each) for each in self.unmet],
            "merge_commit_id": self.merge_commit,
            "changes": [_describe_counts(*each) for each in (self.counts or {}).items()],
            "ended_by": self.ended_by,
            "ended_at": None if self.ended_at is None else to_microseconds(self.ended_at),
            "reason": self.reason,
        }


def _describe_counts(type_key: str, counts: tuple[int, int, int]) -> JsonObject:
    return {"type": type_key, **dict(zip(COUNTS, counts, strict=True))}


def list_proposal(summary: ProposalSummary) -> ProposalListing:
    """The entry of a list."""
    return ProposalListing(
        summary.number,
        summary.title,
        str(summary.status),
        summary.author,
        summary.source,
        summary.target,
        datetime_of(summary.opened_at_us),
        datetime_of(summary.updated_at_us),
        summary.key,
    )


def describe_proposal(
    state: ProposalState, head: str | None, unmet: tuple[UnmetRule, ...]
) -> ProposalInfo:
    """What is known of a proposal whose branch has a head."""
    merged = state.merged
    return ProposalInfo(
        listing=list_proposal(state.summarize()),
        body=state.body,
        head=head,
        reviews=_describe_reviews(state, head),
        checks=_describe_checks(state, head),
        comments=_describe_comments(state),
        unmet=unmet,
        merge_commit=None if merged is None else merged.commit,
        counts=None if merged is None else merged.counts,
        ended_by=state.ended_by,
        ended_at=None if state.ended_at_us is None else datetime_of(state.ended_at_us),
        reason=None if state.closed is None else state.closed.reason,
    )


def _describe_reviews(state: ProposalState, head: str | None) -> tuple[ProposalReview, ...]:
    newest = sorted(state.newest_reviews.values(), key=lambda each: each.number)
    return tuple(
        ProposalReview(
            each.actor,
            str(each.verdict),
            each.head,
            datetime_of(each.at_us),
            each.text,
            is_stale=each.head != head or each.target != state.target,
        )
        for each in newest
    )


def _describe_checks(state: ProposalState, head: str | None) -> tuple[ProposalCheck, ...]:
    newest = {each.name: each for each in state.checks}
    return tuple(
        ProposalCheck(
            name,
            str(each.outcome),
            each.head,
            each.actor,
            datetime_of(each.at_us),
            each.link,
            is_stale=each.head != head,
        )
        for name, each in sorted(newest.items())
    )


def _describe_comments(state: ProposalState) -> tuple[ProposalComment, ...]:
    unresolved = set(state.open_threads)
    return tuple(
        ProposalComment(
            each.number,
            each.actor,
            datetime_of(each.at_us),
            each.text,
            each.thread,
            None if each.anchor is None else asdict(each.anchor),
            is_resolved=each.thread not in unresolved,
        )
        for each in state.comments
    )

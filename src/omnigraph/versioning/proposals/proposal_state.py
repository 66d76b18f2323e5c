"""The state of a proposal: the fold of its events, and which event may follow them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

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


class ProposalStatus(StrEnum):
    """What became of a proposal."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment by the number of its event. A `thread` is the comment that its replies follow."""

    number: int
    at_us: int
    actor: str | None
    text: str
    thread: int
    anchor: Anchor | None = None
    resolves: bool = False


@dataclass(frozen=True, slots=True)
class Review:
    """What an actor thinks of the merge of the commit `head` into the branch `target`."""

    number: int
    at_us: int
    actor: str | None
    verdict: Verdict
    head: str
    target: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """How a check of the commit `head` ended."""

    number: int
    at_us: int
    actor: str | None
    name: str
    outcome: CheckOutcome
    head: str
    link: str | None = None


@dataclass(frozen=True, slots=True)
class ProposalSummary:
    """What a list shows of a proposal. `events` is how many it has, and `is_merging` that a merge
    has begun whose outcome is not among them."""

    number: int
    events: int
    status: ProposalStatus
    title: str
    author: str | None
    source: str
    source_stream: str
    target: str
    opened_at_us: int
    updated_at_us: int
    is_merging: bool = False
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ProposalState:
    """A proposal as of its newest event."""

    number: int
    opened: Opened
    opened_at_us: int
    author: str | None
    title: str
    target: str
    events: int = 1
    updated_at_us: int = 0
    body: str | None = None
    comments: tuple[Comment, ...] = ()
    reviews: tuple[Review, ...] = ()
    checks: tuple[CheckReport, ...] = ()
    merges: tuple[Merging, ...] = ()
    merged: Merged | None = None
    closed: Closed | None = None
    # Who merged or closed it, and when.
    ended_by: str | None = None
    ended_at_us: int | None = None

    @property
    def status(self) -> ProposalStatus:
        """A merge is a fact: it counts also after a close that came first."""
        if self.merged is not None:
            return ProposalStatus.MERGED
        return ProposalStatus.OPEN if self.closed is None else ProposalStatus.CLOSED

    @property
    def is_merging(self) -> bool:
        """Whether a merge has begun, and what became of it is not among the events."""
        return bool(self.merges) and self.merged is None

    @property
    def newest_reviews(self) -> Mapping[str | None, Review]:
        """The newest review of each actor: it replaces the earlier ones."""
        return {each.actor: each for each in self.reviews}

    @property
    def open_threads(self) -> tuple[int, ...]:
        """The comments on entities that no later comment of their thread resolves."""
        resolved = {each.thread for each in self.comments if each.resolves}
        started = (each for each in self.comments if each.anchor and each.number == each.thread)
        return tuple(each.number for each in started if each.number not in resolved)

    def find_check(self, name: str) -> CheckReport | None:
        """The newest report of a check."""
        return next((each for each in reversed(self.checks) if each.name == name), None)

    def summarize(self) -> ProposalSummary:
        """What a list shows of it."""
        return ProposalSummary(
            number=self.number,
            events=self.events,
            status=self.status,
            title=self.title,
            author=self.author,
            source=self.opened.source,
            source_stream=self.opened.source_stream,
            target=self.target,
            opened_at_us=self.opened_at_us,
            updated_at_us=self.updated_at_us,
            is_merging=self.is_merging,
            key=self.opened.key,
        )

    def find_refusal(self, event: Event) -> str | None:
        """Why an event may not follow; None if it may."""
        match event:
            case Opened():
                return "it is open already"
            case Commented():
                return self._find_comment_refusal(event)
            case Merged():
                is_begun = any(each.head.commit == event.head for each in self.merges)
                if self.merged is not None:
                    return "it is merged"
                return None if is_begun else "no merge of that commit has begun"
            case Retargeted() if self.merges and self.status is ProposalStatus.OPEN:
                # It may be under way, and would be a second one.
                return f"a merge into '{self.target}' has begun"
            case Reviewed() | Checked() | Retitled() | Retargeted() | Closed() | Merging():
                return None if self.status is ProposalStatus.OPEN else f"it is {self.status}"
            case _:
                assert_never(event)

    def _find_comment_refusal(self, event: Commented) -> str | None:
        threads = {each.number: each for each in self.comments}
        for number in (event.replies_to, event.resolves):
            if number is not None and number not in threads:
                return f"it has no comment {number}"
        if event.resolves is not None:
            started = threads[threads[event.resolves].thread]
            return None if started.anchor else f"comment {event.resolves} is not about an entity"
        return None

    def apply(self, stored: StoredEvent) -> ProposalState:
        """The state after an event that may follow."""
        number, at_us, actor = stored.number, stored.at_us, stored.actor
        newer = replace(self, events=number, updated_at_us=at_us)
        match stored.event:
            case Opened():
                return newer
            case Commented() as said:
                return replace(newer, comments=(*self.comments, self._build_comment(stored, said)))
            case Reviewed(verdict, head, text):
                review = Review(number, at_us, actor, verdict, head, self.target, text)
                # The newest one of an actor is the last.
                return replace(newer, reviews=(*self.reviews, review))
            case Checked(name, outcome, head, link):
                report = CheckReport(number, at_us, actor, name, outcome, head, link)
                return replace(newer, checks=(*self.checks, report))
            case Retitled(title, body):
                return replace(newer, title=title, body=self.body if body is None else body)
            case Retargeted(target):
                return replace(newer, target=target)
            case Closed() as closed:
                return replace(newer, closed=closed, ended_by=actor, ended_at_us=at_us)
            case Merging() as merging:
                return replace(newer, merges=(*self.merges, merging))
            case Merged() as merged:
                return replace(newer, merged=merged, ended_by=actor, ended_at_us=at_us)
            case _:
                assert_never(stored.event)

    def _build_comment(self, stored: StoredEvent, said: Commented) -> Comment:
        follows = said.replies_to if said.resolves is None else said.resolves
        threads = {each.number: each.thread for each in self.comments}
        return Comment(
            stored.number,
            stored.at_us,
            stored.actor,
            said.text or "",
            stored.number if follows is None else threads[follows],
            said.anchor,
            said.resolves is not None,
        )


def fold_events(number: int, events: Iterable[StoredEvent]) -> ProposalState:
    """The state of a proposal after its events, of which the first one opened it."""
    state: ProposalState | None = None
    for stored in events:
        if state is None:
            assert isinstance(stored.event, Opened), "the first event opens a proposal"
            state = _begin(number, stored, stored.event)
        else:
            state = state.apply(stored)
    assert state is not None, "a proposal has an event"
    return state


def _begin(number: int, stored: StoredEvent, opened: Opened) -> ProposalState:
    return ProposalState(
        number=number,
        opened=opened,
        opened_at_us=stored.at_us,
        author=stored.actor,
        title=opened.title,
        target=opened.target,
        updated_at_us=stored.at_us,
        body=opened.body,
    )

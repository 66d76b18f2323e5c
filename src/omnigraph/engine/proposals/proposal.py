"""One proposal, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from omnigraph.engine import arguments
from omnigraph.engine.commit_loop import Terms
from omnigraph.engine.diff import Diff, compute_diff
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.graph_session import Session
from omnigraph.engine.merger import Merger
from omnigraph.engine.proposals.proposal_info import ProposalInfo, describe_proposal
from omnigraph.engine.proposals.proposal_merge import ProposalMerger, ProposalTerms
from omnigraph.engine.proposals.proposal_rights import (
    require_own,
    require_part,
    require_visible,
)
from omnigraph.engine.proposals.proposal_source import (
    find_compared,
    find_proposed,
    find_unmet,
    require_proposed,
)
from omnigraph.engine.proposals.proposal_texts import (
    require_body,
    require_name,
    require_optional_body,
    require_optional_line,
    require_title,
)
from omnigraph.engine.read_requests import build_time_budget
from omnigraph.engine.write_results import MergePlan, MergeResult
from omnigraph.errors import InvalidArgumentError, PreconditionFailedError
from omnigraph.execution.query_budget import Cancellation
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning.proposals import (
    Anchor,
    Checked,
    CheckOutcome,
    Closed,
    Commented,
    Event,
    ProposalState,
    ProposalStatus,
    Retargeted,
    Retitled,
    Reviewed,
    Verdict,
)

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph

_SIDES = ("before", "after")


class Proposal:
    """A request to merge a branch into another one, with its reviews, checks and comments.

    Each method sees the proposal as it is at that moment; those that do something return it as it
    is afterwards. A review counts for the commit that was the newest of the branch, and for the
    target: later commits make it stale, and so does another target.
    """

    def __init__(self, graph: Graph, session: Session, number: int) -> None:
        self.graph = graph
        self._session = session
        self._number = arguments.require_count("number", number)

    @property
    def number(self) -> int:
        """Its number, which counts the proposals of the graph."""
        return self._number

    def read(self) -> ProposalInfo:
        """What is known of it now, with what the policy still requires of it."""
        state = ProposalMerger(self._session, self._number).read()
        require_visible(self._session, state)
        return self._describe(state)

    def comment(
        self,
        text: str | None = None,
        *,
        about: tuple[str, str] | None = None,
        property: str | None = None,  # noqa: A002
        side: str | None = None,
        replies_to: int | None = None,
        resolves: int | None = None,
    ) -> ProposalInfo:
        """Say something: about all of it, or about an entity, which begins a thread.

        `about` is a type and an id, with a `property` if one is meant; `side` is `before` or
        `after` the change. `replies_to` and `resolves` are numbers of comments. A thread is
        resolved by a comment, which may be without a text.
        """
        said = Commented(
            require_optional_body("text", text),
            build_anchor(about, property, side),
            arguments.require_optional_count("replies_to", replies_to),
            arguments.require_optional_count("resolves", resolves),
        )
        if said.text is None and said.resolves is None:
            raise InvalidArgumentError("text", "it is empty", hint="say something")

        def decide(state: ProposalState) -> Event:
            require_part(self._session, state)
            return said

        return self._append(decide)

    def approve(self, text: str | None = None, *, head: str | None = None) -> ProposalInfo:
        """Approve of the newest commit of the branch, which must be `head` if that is given."""
        return self._review(Verdict.APPROVE, text, head)

    def request_changes(self, text: str, *, head: str | None = None) -> ProposalInfo:
        """Ask for changes, which blocks until the same actor reviews it again."""
        return self._review(Verdict.REQUEST_CHANGES, require_body("text", text), head)

    def report_check(
        self, name: str, outcome: str, *, head: str | None = None, link: str | None = None
    ) -> ProposalInfo:
        """Report how a check of the newest commit ended: `pass` or `fail`."""
        ended = arguments.parse_choice(CheckOutcome, "outcome", outcome)
        line = require_optional_line("link", link)
        called = require_title("name", name)

        def decide(state: ProposalState) -> Event:
            self._authorize(Action.REVIEW, state)
            return Checked(called, ended, self._find_reviewed_head(state, head), line)

        return self._append(decide)

    def edit(
        self, *, title: str | None = None, body: str | None = None, target: str | None = None
    ) -> ProposalInfo:
        """Give it another title or body, or another branch to be merged into."""
        named = None if title is None else require_title("title", title)
        text = require_optional_body("body", body)
        if target is not None:
            self._require_target(arguments.require_text("target", target))
        elif named is None and text is None:
            raise InvalidArgumentError("title", "nothing is changed", hint="pass what is new")

        def retitle(state: ProposalState) -> Event | None:
            require_own(self._session, state)
            is_same = named in (None, state.title) and text in (None, state.body)
            return None if is_same else Retitled(named or state.title, text)

        def retarget(state: ProposalState) -> Event | None:
            require_own(self._session, state)
            if target is None or target == state.target:
                return None
            self._session.authorize(Act(Action.PROPOSE, state.opened.source, target))
            return Retargeted(target)

        self._append(retitle)
        return self._append(retarget)

    def close(self, reason: str | None = None) -> ProposalInfo:
        """Say that it will not be merged; one that is closed stays as it is."""
        text = require_optional_body("reason", reason)

        def decide(state: ProposalState) -> Event | None:
            require_own(self._session, state)
            return None if state.status is ProposalStatus.CLOSED else Closed(text)

        require_own(self._session, self._read_visible())
        # A merge that stopped half way may have happened.
        ProposalMerger(self._session, self._number).settle()
        return self._append(decide)

    def diff(
        self,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> Diff:
        """What it asks to merge, or has merged, as long as that history is kept."""
        budget = build_time_budget(timeout, cancel)
        state = ProposalMerger(self._session, self._number).read()
        require_visible(self._session, state)
        states = find_compared(self._session, state)
        return compute_diff(self._session, *states, parse_filters(kinds, types, ops), budget)

    def plan(self) -> MergePlan:
        """What its merge would do now, with every conflict; nothing is written."""
        state = self._read_visible()
        proposed = require_proposed(self._session, state)
        merger = self._create_merger(state.target, Action.READ, Action.READ)
        return merger.plan(proposed.at.stream.branch, chosen=merger.choose(None, None))

    def sync_branch(self, *, message: str | None = None) -> MergeResult:
        """Merge the target into its branch, which makes the reviews stale."""
        state = self._read_visible()
        require_part(self._session, state)
        require_proposed(self._session, state)
        text = arguments.require_optional_text("message", message)
        merger = self._create_merger(state.opened.source, None, Action.CHANGE)
        return merger.merge(
            state.target,
            chosen=merger.choose(None, None),
            delete_branch=False,
            terms=Terms(message=text or f"Merge '{state.target}' for proposal {self._number}"),
        )

    def merge(
        self,
        *,
        head: str | None = None,
        message: str | None = None,
        delete_branch: bool = False,
    ) -> MergeResult:
        """Merge the newest commit of its branch, which must be `head` if that is given.

        What the policy requires must be true of that commit, and it must not conflict with the
        target. A proposal is merged once: another call answers with the same commit.
        """
        terms = ProposalTerms(
            arguments.require_optional_text("head", head),
            arguments.require_optional_text("message", message),
            delete_branch,
        )
        return ProposalMerger(self._session, self._number).merge(terms)

    def __repr__(self) -> str:
        return f"Proposal({self._number})"

    def _review(self, verdict: Verdict, text: str | None, head: str | None) -> ProposalInfo:
        said = require_optional_body("text", text)

        def decide(state: ProposalState) -> Event:
            self._authorize(Action.REVIEW, state)
            return Reviewed(verdict, self._find_reviewed_head(state, head), said)

        return self._append(decide)

    def _find_reviewed_head(self, state: ProposalState, expected: str | None) -> str:
        found = require_proposed(self._session, state).head.commit
        wanted = arguments.require_optional_text("head", expected)
        if wanted not in (None, found):
            raise PreconditionFailedError(state.opened.source, expected=str(wanted), actual=found)
        return found

    def _append(self, decide: Callable[[ProposalState], Event | None]) -> ProposalInfo:
        log, actor = self._session.resources.proposals, self._session.actor

        def decide_visible(state: ProposalState) -> Event | None:
            require_visible(self._session, state)
            return decide(state)

        return self._describe(log.add_event(self._number, decide_visible, actor=actor))

    def _read_visible(self) -> ProposalState:
        state = self._session.resources.proposals.read(self._number)
        require_visible(self._session, state)
        return state

    def _require_target(self, target: str) -> None:
        """Refuse a branch that is not there, to who may propose to merge into it."""
        state = self._read_visible()
        require_own(self._session, state)
        self._session.authorize(Act(Action.PROPOSE, state.opened.source, target))
        self._session.resources.branches.resolve(target)

    def _describe(self, state: ProposalState) -> ProposalInfo:
        if state.merged is not None:
            return describe_proposal(state, state.merged.head, ())
        proposed = find_proposed(self._session, state)
        if proposed is None:
            return describe_proposal(state, None, ())
        is_open = state.status is ProposalStatus.OPEN
        unmet = find_unmet(self._session, state, proposed) if is_open else ()
        return describe_proposal(state, proposed.head.commit, unmet)

    def _create_merger(self, target: str, source_action: Action | None, action: Action) -> Merger:
        """Merges into a branch by other rights than that to merge."""

        def list_acts(source: str | None, into: str) -> tuple[Act, ...]:
            asked = () if source_action is None else (Act(source_action, source),)
            return (*asked, Act(action, into))

        stream = self._session.resources.branches.resolve(target)
        return Merger(self._session, stream, list_acts=list_acts)

    def _authorize(self, action: Action, state: ProposalState) -> None:
        self._session.authorize(Act(action, state.opened.source, state.target))


def build_anchor(
    about: tuple[str, str] | None, property_name: str | None, side: str | None
) -> Anchor | None:
    """What a comment is about, as a caller names it."""
    if about is None:
        if property_name is not None or side is not None:
            raise InvalidArgumentError("about", "no entity is named", hint="pass a type and an id")
        return None
    type_name, entity_id = (require_name("about", each) for each in about)
    if side not in (None, *_SIDES):
        raise InvalidArgumentError("side", f"'{side}' is not one of 'before', 'after'")
    name = None if property_name is None else require_name("property", property_name)
    return Anchor(type_name, entity_id, name, side)

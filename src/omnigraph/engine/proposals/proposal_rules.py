"""Which requirements of the policy a proposal meets, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.policy.requirements import Requirement
from omnigraph.versioning.proposals import CheckOutcome, ProposalState, Verdict


@dataclass(frozen=True, slots=True)
class UnmetRule:
    """A rule with `requires`, and what a proposal lacks of it."""

    rule: str
    missing: tuple[str, ...]

    def __str__(self) -> str:
        return f"rule '{self.rule}' requires {'; '.join(self.missing)}"


@dataclass(frozen=True, slots=True)
class ReviewedHead:
    """A proposal with the commit that it asks to merge, and whether the target has newer ones."""

    state: ProposalState
    head: str
    is_up_to_date: bool


def list_unmet(
    requirements: tuple[Requirement, ...], reviewed: ReviewedHead
) -> tuple[UnmetRule, ...]:
    """The rules of which a proposal lacks something."""
    found = (UnmetRule(each.rule, tuple(_iter_missing(each, reviewed))) for each in requirements)
    return tuple(each for each in found if each.missing)


def _iter_missing(requirement: Requirement, reviewed: ReviewedHead) -> Iterator[str]:
    requires, state = requirement.requires, reviewed.state
    if requires.approvals:
        yield from _iter_missing_reviews(requirement, reviewed)
    for name in requires.checks:
        report = state.find_check(name)
        if report is None:
            yield f"check '{name}', which was never reported"
        elif report.head != reviewed.head:
            yield f"check '{name}' of the newest commit: the last report is of an earlier one"
        elif report.outcome is CheckOutcome.FAIL:
            yield f"check '{name}' to pass: it failed"
    if requires.threads_resolved and state.open_threads:
        numbers = ", ".join(map(str, state.open_threads))
        yield f"threads to be resolved: {numbers}"
    if requires.up_to_date and not reviewed.is_up_to_date:
        yield f"the newest commit of '{state.target}' in '{state.opened.source}': sync it"


def _iter_missing_reviews(requirement: Requirement, reviewed: ReviewedHead) -> Iterator[str]:
    requires, state = requirement.requires, reviewed.state
    counted = [
        each
        for actor, each in state.newest_reviews.items()
        if actor in requirement.approvers and (requires.author_may_approve or actor != state.author)
    ]
    approving = [each for each in counted if each.verdict is Verdict.APPROVE]
    of_head = [each for each in approving if each.head == reviewed.head]
    current = sum(each.target == state.target for each in of_head)
    if current < requires.approvals:
        by = "" if requires.approvers is None else f" from '{requires.approvers}'"
        stale, elsewhere = len(approving) - len(of_head), len(of_head) - current
        noun = "approval" if requires.approvals == 1 else "approvals"
        note = f", {stale} of an earlier commit" if stale else ""
        note += f", {elsewhere} for another target" if elsewhere else ""
        yield f"{requires.approvals} {noun}{by}: there are {current}{note}"
    for each in sorted(counted, key=lambda each: each.number):
        if each.verdict is Verdict.REQUEST_CHANGES:
            yield f"another review of '{each.actor}', who requests changes"

"""Random lives of proposals, with lost answers and crashes, compared with a plain model.

The model keeps lists and dicts. A process may die before or after the put of an event: whoever
reads next finds the proposal as it was, or with that event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from omnigraph.errors import ProposalNotFoundError, ProposalRefusedError, StorageError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.faults import (
    Fault,
    FaultKind,
    FaultyObjects,
    SimulatedCrash,
    Steps,
)
from omnigraph.versioning.proposals import (
    Anchor,
    Checked,
    CheckOutcome,
    Closed,
    Commented,
    Event,
    Merged,
    Merging,
    Opened,
    ProposalLog,
    ProposalState,
    Retargeted,
    Retitled,
    Reviewed,
    Verdict,
)
from omnigraph.versioning.record import CommitRef
from unit.versioning.memory_storage import MemoryObjects

ACTORS = st.sampled_from(["ada", "bob", None])
HEADS = st.sampled_from(["c1", "c2"])
BRANCHES = st.sampled_from(["main", "next"])
PICKS = st.integers(0, 5)
FAULTS = (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER, FaultKind.ERROR, FaultKind.UNKNOWN_AFTER)
THING = Anchor("Person", "ada")


def ref(commit: str) -> CommitRef:
    return CommitRef("draft", "draft.x", 3, commit)


@dataclass
class Model:
    """One proposal in plain lists."""

    source: str
    title: str
    target: str
    status: str = "open"
    events: int = 1
    reviews: dict[str | None, tuple[str, str]] = field(default_factory=dict)
    checks: dict[str, tuple[str, str]] = field(default_factory=dict)
    # Of each comment the number of its thread, and whether that is about an entity.
    threads: dict[int, tuple[int, bool]] = field(default_factory=dict)
    resolved: set[int] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)

    def accept(self, change: Callable[[], object], *, ended: bool = False) -> bool:
        """Change the model as a real event would, unless the proposal has ended."""
        if self.status != "open" and not ended:
            return False
        self.events += 1
        change()
        return True


class Proposals(RuleBasedStateMachine):
    """A log of proposals and its model, through the lives of several processes."""

    @initialize()
    def begin(self) -> None:
        self.objects = MemoryObjects()
        self.models: list[Model] = []
        self.fault: Fault | None = None

    @rule(kind=st.sampled_from(FAULTS), number=st.integers(1, 3))
    def plan_a_fault(self, kind: FaultKind, number: int) -> None:
        self.fault = Fault(number, kind, "")

    @rule(cut=st.integers(0, 80))
    def tear_the_index(self, cut: int) -> None:
        data = self.objects.get(layout.PROPOSAL_INDEX)
        self.objects.put(layout.PROPOSAL_INDEX, (data or b'{"digest":"x"}')[:cut])

    @rule(source=st.sampled_from("abc"), into=BRANCHES)
    def open(self, source: str, into: str) -> None:
        opened = Opened("first", source, source, into, ref("c1"))
        same = [
            at
            for at, model in enumerate(self.models, 1)
            if (model.source, model.target, model.status) == (source, into, "open")
        ]

        def is_same(listed: Any) -> bool:
            found = listed.source, listed.target, str(listed.status)
            return found == (source, into, "open")

        def attempt(log: ProposalLog) -> None:
            state, is_new = log.open(opened, actor="ada", find_same=is_same)
            assert is_new == (not same)
            assert state.number == (max(same) if same else len(self.models) + 1)

        before = self.count_proposals()
        self._run(attempt)
        if self.count_proposals() > before:
            assert not same
            self.models.append(Model(source, "first", into))

    @rule(pick=PICKS, actor=ACTORS, head=HEADS, verdict=st.sampled_from(list(Verdict)))
    def review(self, pick: int, actor: str | None, head: str, verdict: Verdict) -> None:
        def change(model: Model) -> bool:
            return model.accept(lambda: model.reviews.update({actor: (verdict, head)}))

        self._add(pick, Reviewed(verdict, head), change, actor)

    @rule(pick=PICKS, name=st.sampled_from("xy"), head=HEADS, ended=st.sampled_from(CheckOutcome))
    def check(self, pick: int, name: str, head: str, ended: CheckOutcome) -> None:
        def change(model: Model) -> bool:
            return model.accept(lambda: model.checks.update({name: (ended, head)}))

        self._add(pick, Checked(name, ended, head), change)

    @rule(pick=PICKS, is_about=st.booleans(), to=st.none() | st.integers(1, 9), ends=st.booleans())
    def comment(self, pick: int, is_about: bool, to: int | None, ends: bool) -> None:
        numbers = (None, to) if ends else (to, None)
        event = Commented("text", THING if is_about else None, *numbers)

        def change(model: Model) -> bool:
            number = model.events + 1
            if to is not None and to not in model.threads:
                return False
            thread, was_about = (number, is_about) if to is None else model.threads[to]
            if to is not None and ends:
                if not was_about:
                    return False
                model.resolved.add(thread)
            model.threads[number] = thread, was_about
            return model.accept(lambda: None, ended=True)

        self._add(pick, event, change)

    @rule(pick=PICKS, title=st.sampled_from(["one", "two"]))
    def retitle(self, pick: int, title: str) -> None:
        self._add(
            pick, Retitled(title), lambda model: model.accept(lambda: _set(model, title=title))
        )

    @rule(pick=PICKS, to=BRANCHES)
    def retarget(self, pick: int, to: str) -> None:
        def change(model: Model) -> bool:
            return not model.begun and model.accept(lambda: _set(model, target=to))

        self._add(pick, Retargeted(to), change)

    @rule(pick=PICKS)
    def close(self, pick: int) -> None:
        self._add(pick, Closed(), lambda model: model.accept(lambda: _set(model, status="closed")))

    @rule(pick=PICKS, head=HEADS)
    def begin_a_merge(self, pick: int, head: str) -> None:
        event = Merging(ref(head), ref("base"), "main", "main.0", 7)
        self._add(pick, event, lambda model: model.accept(lambda: model.begun.add(head)))

    @rule(pick=PICKS, head=HEADS)
    def merge(self, pick: int, head: str) -> None:
        event = Merged(head, "main", "m", "merged", {"node:Person": (1, 2, 3)})

        def change(model: Model) -> bool:
            if model.status == "merged" or head not in model.begun:
                return False
            return model.accept(lambda: _set(model, status="merged"), ended=True)

        self._add(pick, event, change)

    @invariant()
    def every_process_sees_the_model(self) -> None:
        log = self._open_log()
        states = [log.read(number) for number in range(1, len(self.models) + 1)]
        assert list(map(_describe, states)) == list(map(_describe_model, self.models))
        assert [each.summarize() for each in reversed(states)] == log.list_summaries()
        with pytest.raises(ProposalNotFoundError):
            log.read(len(self.models) + 1)

    def _add(
        self,
        pick: int,
        event: Event,
        change: Callable[[Model], bool],
        actor: str | None = "ada",
    ) -> None:
        """Add an event to a proposal: it is refused exactly if the model refuses it."""
        if not self.models:
            return
        number = pick % len(self.models) + 1
        model = self.models[number - 1]
        before, refused = model.events, []

        def attempt(log: ProposalLog) -> None:
            try:
                log.add_event(number, lambda _: event, actor=actor)
            except ProposalRefusedError:
                refused.append(number)

        self._run(attempt)
        after = self._open_log().read(number).events
        if refused:
            assert (after, change(model)) == (before, False)
        elif after > before:
            assert change(model)
            assert after == model.events

    def _run(self, attempt: Callable[[ProposalLog], None]) -> None:
        steps = Steps() if self.fault is None else self.fault.create_steps()
        self.fault = None
        try:
            attempt(ProposalLog(FaultyObjects(self.objects, steps), lambda: 1))
        except (SimulatedCrash, StorageError):
            assert steps.has_fired

    def _open_log(self) -> ProposalLog:
        return ProposalLog(self.objects, lambda: 1)

    def count_proposals(self) -> int:
        return len(self._open_log().list_summaries())


def _set(model: Model, **values: str) -> None:
    vars(model).update(values)


def _describe(state: ProposalState) -> object:
    return (
        (state.title, state.target, str(state.status), state.events),
        {actor: (each.verdict, each.head) for actor, each in state.newest_reviews.items()},
        {name: (at.outcome, at.head) for name in "xy" if (at := state.find_check(name))},
        {each.number: each.thread for each in state.comments},
        set(state.open_threads),
    )


def _describe_model(model: Model) -> object:
    about = {thread for thread, is_about in model.threads.values() if is_about}
    return (
        (model.title, model.target, model.status, model.events),
        model.reviews,
        model.checks,
        {number: thread for number, (thread, _) in model.threads.items()},
        about - model.resolved,
    )


class ManyProposals(Proposals):
    """The same, longer and more often."""


Proposals.TestCase.settings = settings(max_examples=5, stateful_step_count=25)
ManyProposals.TestCase.settings = settings(max_examples=100, stateful_step_count=50)
TestProposals = Proposals.TestCase
TestManyProposals = pytest.mark.slow(ManyProposals.TestCase)

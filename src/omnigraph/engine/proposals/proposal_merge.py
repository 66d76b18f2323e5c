"""The merge of a proposal, once, however many processes try it and wherever they stop.

The steps in order, and what a crash after each of them means:

    1. the event `merging` names the commit, and the version of the target that the merge follows:
       nothing is merged, and the next merge goes on from here
    2. the commit, with the key of the proposal, of which a branch has one: it is found by that key
       above the version that `merging` names, by whichever call comes next
    3. the event `merged` names the commit
    4. the branch is deleted, if that was asked for

The event `merging` is put only if the newest state of the proposal meets what the policy requires.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from omnigraph.changes.type_difference import Counts
from omnigraph.engine.commit import changes_of, commit_of
from omnigraph.engine.commit_loop import RESERVED_KEYS, Terms
from omnigraph.engine.graph_session import Session
from omnigraph.engine.merge_operations import MERGED
from omnigraph.engine.merger import Merger
from omnigraph.engine.proposals.proposal_rights import require_merger, require_visible
from omnigraph.engine.proposals.proposal_rules import UnmetRule
from omnigraph.engine.proposals.proposal_source import (
    ProposedCommit,
    find_base,
    find_proposed,
    find_unmet,
    require_proposed,
)
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.write_results import MergeResult, MergeSummary
from omnigraph.errors import (
    BranchRefusedError,
    CommitNotFoundError,
    PolicyDeniedError,
    PreconditionFailedError,
    ProposalRefusedError,
    SnapshotGoneError,
)
from omnigraph.policy.acts import Act, Action
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.versioning.proposals import (
    Event,
    Merged,
    Merging,
    ProposalState,
    StoredEvent,
)
from omnigraph.versioning.record import Record
from omnigraph.versioning.retention_floors import Floors


@dataclass(frozen=True, slots=True)
class ProposalTerms:
    """What a caller says of a merge: `head` is the commit that he expects to be merged."""

    head: str | None = None
    message: str | None = None
    deletes_branch: bool = False


class ProposalMerger:
    """Merges one proposal."""

    def __init__(self, session: Session, number: int) -> None:
        self._session = session
        self._number = number
        self._log = session.resources.proposals

    def read(self) -> ProposalState:
        """The proposal, merged if its commit is there although no event says so."""
        return find_outcome(self._session, self._log.read(self._number))

    def merge(self, terms: ProposalTerms) -> MergeResult:
        """Merge the commit that the proposal asks to merge; a merge that was made is its answer."""
        begun = self._log.read(self._number)
        require_visible(self._session, begun)
        # Also before the outcome of a merge that stopped is put: it names who found it.
        require_merger(self._session, begun)
        state = self.settle()
        if state.merged is not None:
            return self._answer_merged(state, terms)
        proposed = require_proposed(self._session, state)
        if terms.head not in (None, proposed.head.commit):
            raise PreconditionFailedError(
                state.opened.source, expected=str(terms.head), actual=proposed.head.commit
            )
        begun = self._log.add_event(
            self._number, partial(self._begin, proposed), actor=self._session.actor
        )
        if begun.merged is not None:
            return self._answer_merged(begun, terms)
        return self._merge(begun, proposed, terms)

    def settle(self) -> ProposalState:
        """The proposal, with the event that a stopped merge did not come to put."""
        state = self._log.read(self._number)
        found = find_outcome(self._session, state)
        if found.merged is None or state.merged is not None:
            return found
        return self._record(found.merged)

    def _begin(self, proposed: ProposedCommit, state: ProposalState) -> Event | None:
        """The event that begins a merge of a state, which must fulfil what the policy requires."""
        if state.merged is not None:
            return None
        if state.closed is not None:
            raise ProposalRefusedError(
                f"proposal {state.number}: it is {state.status}", number=state.number
            )
        self._authorize(state, proposed)
        session, head = self._session, proposed.head
        stream = session.resources.branches.resolve(state.target)
        begun = ((each.head.commit, each.target_stream) for each in state.merges)
        if (head.commit, stream.id) in begun:
            # A merge that stopped: its commit would be above the version of that event.
            return None
        version = session.read_head(stream).seq
        base = find_base(session, state.target, proposed.at)
        return Merging(head, base.ref, state.target, stream.id, version)

    def _authorize(self, state: ProposalState, proposed: ProposedCommit) -> tuple[str, ...]:
        """Ask for the merge; a denial names what the proposal lacks. The rules that are met."""
        unmet = find_unmet(self._session, state, proposed)
        lacking = {each.rule for each in unmet}
        rules = (each.rule for each in self._session.list_requirements(state.target))
        met = tuple(rule for rule in rules if rule not in lacking)
        act = Act(Action.BRANCH_MERGE, state.opened.source, state.target, met=met)
        try:
            self._session.authorize(act)
        except PolicyDeniedError as denied:
            raise self._explain_denial(denied, act, unmet) from None
        return met

    def _explain_denial(
        self, denied: PolicyDeniedError, act: Act, unmet: tuple[UnmetRule, ...]
    ) -> PolicyDeniedError:
        """A denial with what is missing of the rules that would allow the merge."""
        allow = [
            each
            for each in unmet
            if self._session.is_allowed(act._replace(met=(*act.met, each.rule)))
        ]
        if not allow:
            return denied
        missing = " or ".join(map(str, allow))
        return PolicyDeniedError(
            f"policy denies {act} to actor '{denied.actor}': {missing}",
            actor=denied.actor,
            action=denied.action,
            hint=f"look at `omnigraph proposal show {self._number}`",
        )

    def _merge(
        self, state: ProposalState, proposed: ProposedCommit, terms: ProposalTerms
    ) -> MergeResult:
        session, head = self._session, proposed.head.commit
        met = self._authorize(state, proposed)
        stream = session.resources.branches.resolve(state.target)

        def list_acts(source: str | None, target: str) -> tuple[Act, ...]:
            return (Act(Action.BRANCH_MERGE, source, target, met=met),)

        merger = Merger(session, stream, list_acts=list_acts)
        message = terms.message or f"Merge proposal {self._number}: {state.title}"
        result = merger.merge(
            Snapshot(session, proposed.at),
            chosen=merger.choose(None, None),
            delete_branch=False,
            terms=Terms(message=message, key=build_key(self._number)),
        )
        if result.is_repeated:
            # Another process has merged it meanwhile, perhaps an earlier commit of the branch.
            return self._answer_merged(self.settle(), terms)
        commit = session.read_head(stream).commit if result.commit is None else result.commit.id
        counts = {
            str(key): (each.inserted, each.updated, each.deleted)
            for key, each in result.done.counts.items()
        }
        done = self._record(Merged(head, state.target, commit, result.outcome, counts))
        return self._finish(replace(result, source=state.opened.source), done, terms)

    def _record(self, merged: Merged) -> ProposalState:
        def decide(state: ProposalState) -> Event | None:
            return merged if state.merged is None else None

        return self._log.add_event(self._number, decide, actor=self._session.actor)

    def _answer_merged(self, state: ProposalState, terms: ProposalTerms) -> MergeResult:
        """The answer of a merge that was made before."""
        assert state.merged is not None, "it is merged"
        merged = state.merged
        commit = None
        with suppress(CommitNotFoundError):
            at = self._session.resources.history.read_by_commit(merged.commit)
            commit = self._session.read_commit(at)
        source, actor = state.opened.source, self._session.actor
        done = MergeSummary({_parse_key(key): Counts(*each) for key, each in merged.counts.items()})
        result = MergeResult(
            merged.outcome, source, merged.target, actor, commit, done, is_repeated=True
        )
        return self._finish(result, state, terms)

    def _finish(
        self, result: MergeResult, state: ProposalState, terms: ProposalTerms
    ) -> MergeResult:
        """The result, after the branch was deleted if that was asked for and it is still there."""
        proposed = find_proposed(self._session, state) if terms.deletes_branch else None
        if proposed is None:
            return result
        stream = proposed.at.stream
        assert state.merged is not None, "it is merged"
        merged = state.merged.head
        error = Merger(self._session, stream).delete_source(result.source, merged)
        return replace(result, branch_deleted=error is None, branch_delete_error=error)


def build_key(number: int) -> str:
    """The idempotency key of the merge of a proposal."""
    return f"{RESERVED_KEYS}{number}"


def find_outcome(session: Session, state: ProposalState) -> ProposalState:
    """A proposal with the outcome of a merge that stopped before its event, if it came about."""
    if not state.is_merging:
        return state
    # The first merge that was begun on a stream names the lowest version.
    first = {each.target_stream: each for each in reversed(state.merges)}
    for begun in first.values():
        merged = _find_merged(session, state, begun)
        if merged is not None:
            return state.apply(StoredEvent(state.events, state.updated_at_us, None, merged))
    return state


def _find_merged(session: Session, state: ProposalState, begun: Merging) -> Merged | None:
    """The merge of a proposal, by its key above the version that an event names."""
    resources, key = session.resources, build_key(state.number)
    stream = resources.branches.stream_of(begun.target, begun.target_stream)
    if stream is None:
        return None
    with suppress(BranchRefusedError):
        try:
            made = resources.history.find_above(stream, key, begun.version)
        except SnapshotGoneError:
            # A floor names the keys of what it released.
            commit = Floors(resources.log.objects).find_key(stream.id, begun.version, key)
            head = state.merges[-1].head.commit
            return None if commit is None else Merged(head, begun.target, commit, MERGED)
        return None if made is None else _describe_made(state, begun, made)
    return None


def _describe_made(state: ProposalState, begun: Merging, made: Record) -> Merged:
    """The event of a merge that was made: of the newest commit that its record can mean."""
    seq = begun.head.seq if made.merged is None else made.merged.seq
    heads = [each.head for each in state.merges if each.head.seq <= seq]
    head = max(heads, key=lambda each: each.seq, default=begun.head)
    counts = {
        str(key): (each.inserted, each.updated, each.deleted)
        for key, each in changes_of(made).items()
    }
    return Merged(head.commit, begun.target, commit_of(made).id, MERGED, counts)


def _parse_key(name: str) -> TypeKey:
    kind, _, type_name = name.partition(":")
    return TypeKey(TypeKind(kind), type_name)

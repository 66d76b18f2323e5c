"""Merges, cherry-picks and reverts: from the arguments of a caller to a commit or a plan."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Final

from omnigraph.engine.commit import Commit, changes_of, commit_of
from omnigraph.engine.commit_loop import Terms, WriteOutcome, write
from omnigraph.engine.graph_session import Session
from omnigraph.engine.merge_operations import (
    FAST_FORWARD,
    MERGED,
    NOTHING_TO_DO,
    OUTCOMES,
    ListActs,
    MergeOperation,
    PickedCommit,
    PickOperation,
    list_merge_acts,
)
from omnigraph.engine.refs import (
    BranchLike,
    ResolvedRef,
    SnapshotLike,
    StateRef,
    resolve,
    use_newest,
)
from omnigraph.engine.write_results import MergePlan, MergeResult, MergeSummary, summarize_merge
from omnigraph.errors import (
    BranchRefusedError,
    CommitHasNoParentError,
    CommitNotFoundError,
    InvalidArgumentError,
    OmnigraphError,
    SnapshotGoneError,
)
from omnigraph.lang.lexer import Mode
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning import BranchAt, Record, Retained, Stream
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.writers.merge.conflict_kinds import MergeAction
from omnigraph.writers.merge.merge_choices import (
    MergeBy,
    MergeChoices,
    Prefer,
    Resolve,
    build_choices,
)
from omnigraph.writers.merge.merge_commit import CheckedMerge

# The message of a commit that was picked without one: what it did, and what that had done before.
_PICKED: Final = re.compile(
    rf"(?P<action>{MergeAction.REVERT}|{MergeAction.CHERRY_PICK}) (?P<commit>[0-9A-Z]{{26}})"
    r"(, the [a-z-]+ of [0-9A-Z]{26})?(: (?P<text>.*))?",
    re.DOTALL,
)


class Merger:
    """Merges into one branch."""

    def __init__(
        self, session: Session, stream: Stream, *, list_acts: ListActs = list_merge_acts
    ) -> None:
        self._session = session
        self._stream = stream
        self._list_acts = list_acts

    def choose(self, prefer: Prefer, by: str | None, resolve: Resolve = None) -> MergeChoices:
        """The choices of a caller; strict graphs merge whole entities unless asked otherwise."""
        is_strict = self._session.resources.environment.mode is Mode.STRICT
        by = by or (MergeBy.ENTITY if is_strict else MergeBy.PROPERTY)
        return build_choices(prefer, by, resolve)

    def merge(
        self, source: StateRef, *, chosen: MergeChoices, delete_branch: bool, terms: Terms
    ) -> MergeResult:
        """Bring a commit into the branch."""
        # Before the source is looked for: an earlier request with this key may have ended it.
        if (made := self._find_repeated(terms)) is not None:
            return self._answer_repeated_merge(source, made, delete_branch=delete_branch)
        found = self._resolve_source(source)
        if delete_branch and not found.is_branch:
            raise InvalidArgumentError(
                "delete_branch",
                f"{found.name} is not a branch",
                hint="pass the branch that is to end",
            )
        merge = partial(self._merge, chosen, terms)
        operation, written = use_newest(
            self._session, found, resolve_again=partial(self._resolve_source, source), use=merge
        )
        if written.is_repeated and written.record is not None:
            return self._answer_repeated_merge(source, written.record, delete_branch=delete_branch)
        looked = operation.state
        result = self._build_result(looked.outcome, looked.checked, found.name, written.record)
        if not delete_branch:
            return result
        error = self.delete_source(found.name, operation.source.commit)
        return replace(result, branch_deleted=error is None, branch_delete_error=error)

    def _merge(
        self,
        chosen: MergeChoices,
        terms: Terms,
        source: ResolvedRef,
    ) -> tuple[MergeOperation, WriteOutcome]:
        """Merge a commit of a source, and keep it meanwhile."""
        operation = MergeOperation(self._session, source.at, chosen, self._list_acts)
        with self._acquire_lease(source) as retained:
            terms = replace(terms, requires=(retained,))
            return operation, write(self._session, self._stream, operation, terms)

    def plan(self, source: StateRef, *, chosen: MergeChoices) -> MergePlan:
        """What a merge would do now; nothing is published."""
        found = self._resolve_source(source)
        operation = MergeOperation(self._session, found.at, chosen, self._list_acts)
        return self._plan(operation, found.name)

    def revert(self, commit: StateRef, *, chosen: MergeChoices, terms: Terms) -> MergeResult:
        """Undo what a commit changed, as a commit of its own."""
        return self._pick(commit, MergeAction.REVERT, chosen, terms)

    def cherry_pick(self, commit: StateRef, *, chosen: MergeChoices, terms: Terms) -> MergeResult:
        """Do what a commit changed on this branch too, as a commit of its own."""
        return self._pick(commit, MergeAction.CHERRY_PICK, chosen, terms)

    def plan_revert(self, commit: StateRef, *, chosen: MergeChoices) -> MergePlan:
        """What a revert would do now; nothing is published."""
        return self._plan_pick(self._resolve_pick(commit, MergeAction.REVERT), chosen)

    def plan_cherry_pick(self, commit: StateRef, *, chosen: MergeChoices) -> MergePlan:
        """What a cherry-pick would do now; nothing is published."""
        return self._plan_pick(self._resolve_pick(commit, MergeAction.CHERRY_PICK), chosen)

    def _plan_pick(self, picked: PickedCommit, chosen: MergeChoices) -> MergePlan:
        operation = PickOperation(self._session, picked, chosen)
        return self._plan(operation, picked.own.commit)

    def _plan(self, operation: MergeOperation | PickOperation, source: str) -> MergePlan:
        # A plan lists conflicts of any type.
        for act in operation.list_acts(self._stream.branch):
            self._session.authorize(act, None)
        head = self._session.read_head(self._stream)
        looked = operation.evaluate(self._session.open_view(head))
        return MergePlan(
            outcome=looked.outcome,
            source=source,
            target=self._stream.branch,
            base=self._session.read_commit(looked.base),
            ours=head.commit,
            theirs=operation.source.commit,
            done=summarize_merge(looked.checked),
            conflicts=() if looked.checked is None else looked.checked.conflicts.listed,
            conflict_count=0 if looked.checked is None else looked.checked.conflicts.count,
        )

    def _pick(
        self, commit: StateRef, action: MergeAction, chosen: MergeChoices, terms: Terms
    ) -> MergeResult:
        if (made := self._find_repeated(terms)) is not None:
            return self._build_repeated_result(OUTCOMES[action], _name_of(commit), made)
        picked = self._resolve_pick(commit, action)
        message = terms.message or f"{picked.action} {picked.title}"
        reverts = picked.own.commit if picked.action is MergeAction.REVERT else None
        terms = replace(terms, message=message, reverts=reverts)
        operation = PickOperation(self._session, picked, chosen)
        with self._session.resources.branches.leases.acquire(picked.own, picked.parent) as retained:
            terms = replace(terms, requires=(retained,))
            written = write(self._session, self._stream, operation, terms)
        record = written.record
        if written.is_repeated and record is not None:
            return self._build_repeated_result(picked.outcome, picked.own.commit, record)
        outcome = NOTHING_TO_DO if record is None else picked.outcome
        return self._build_result(outcome, operation.state.checked, picked.own.commit, record)

    def _find_repeated(self, terms: Terms) -> Record | None:
        """The commit that an earlier request with the same key made."""
        if terms.key is None:
            return None
        self._session.read_head(self._stream)
        made = self._session.resources.history.find_by_key(self._stream, terms.key)
        if made is not None:
            source = None if made.merged is None else made.merged.branch
            changed = (Act(Action.CHANGE, self._stream.branch),)
            merged = self._list_acts(source, self._stream.branch)
            for act in changed if made.merged is None else merged:
                self._session.authorize(act)
        return made

    def _answer_repeated_merge(
        self, source: StateRef, made: Record, *, delete_branch: bool
    ) -> MergeResult:
        """The answer of a merge that was made before; what it left undone is done now."""
        name = _name_of(source)
        outcome = FAST_FORWARD if self._was_forward(made) else MERGED
        result = self._build_repeated_result(outcome, name, made)
        if not delete_branch:
            return result
        error = None
        with suppress(BranchRefusedError):
            at = self._session.resources.branches.resolve(name)
            # Another branch of that name was never merged by this request.
            if made.merged is not None and at.id == made.merged.stream:
                error = self.delete_source(name, made.merged.commit)
        return replace(result, branch_deleted=error is None, branch_delete_error=error)

    def _was_forward(self, made: Record) -> bool:
        """Whether a merge had nothing of its target to be merged with, as far as is known still."""
        if made.merged is None or made.parent is None:
            return False
        resources, merged = self._session.resources, made.merged
        stream = resources.branches.stream_of(merged.branch, merged.stream)
        if stream is None:
            return False
        with suppress(CommitNotFoundError, SnapshotGoneError):
            theirs = resources.log.read_snapshot(stream, merged.seq)
            ours = resources.history.read_by_commit(made.parent)
            return resources.log.is_at(ours, resources.lineage.find_merge_base(theirs, ours).commit)
        return False

    def _build_repeated_result(self, outcome: str, source: str, made: Record) -> MergeResult:
        return MergeResult(
            outcome=outcome,
            source=source,
            target=self._stream.branch,
            actor=self._session.actor,
            commit=commit_of(made),
            done=MergeSummary(counts=changes_of(made), preferred=made.preferred),
            is_repeated=True,
        )

    def _build_result(
        self, outcome: str, checked: CheckedMerge | None, source: str, record: Record | None
    ) -> MergeResult:
        return MergeResult(
            outcome=outcome,
            source=source,
            target=self._stream.branch,
            actor=self._session.actor,
            commit=None if record is None else commit_of(record),
            done=summarize_merge(checked),
        )

    def _resolve_source(self, source: StateRef) -> ResolvedRef:
        """The commit that is merged: captured now, whatever happens to its branch later."""
        found = resolve(self._session, "source", source, expects_branch=True)
        if not found.is_branch:
            self._session.resources.branches.require_retained(found.at)
        elif found.at.stream.id == self._stream.id:
            raise BranchRefusedError(
                f"branch '{found.name}' cannot be merged into itself", branch=found.name
            )
        return found

    def _acquire_lease(self, source: ResolvedRef) -> AbstractContextManager[Retained]:
        """Around a merge: what it is made from is not collected, or the merge is refused."""
        branches = self._session.resources.branches
        # The newest commit of a branch stays for the grace, whatever happens to the branch.
        if source.is_branch:
            return nullcontext(Retained(partial(branches.require_retained, source.at)))
        return branches.leases.acquire(source.at)

    def delete_source(self, name: str, merged: str) -> str | None:
        """End a merged branch; why not, if it cannot be. What it got meanwhile is not lost."""
        try:
            self._session.authorize(Act(Action.BRANCH_DELETE, target_branch=name))
            branches = self._session.resources.branches
            branches.delete(name, actor=self._session.actor, requires=(BranchAt(merged),))
        except OmnigraphError as error:
            return error.message
        return None

    def _resolve_pick(self, commit: StateRef, action: MergeAction) -> PickedCommit:
        # What is undone was done here; what is picked was done on another branch.
        branch = self._stream.branch if action is MergeAction.REVERT else MAIN_BRANCH
        resources = self._session.resources
        commit_id = resolve(self._session, "commit", commit, branch=branch).at.commit
        record = resources.history.read_commit(commit_id)
        if record.parent is None:
            raise CommitHasNoParentError(commit_id)
        own = resources.history.read_by_commit(commit_id)
        # The stream of a snapshot owns its record; what it started from is below its first seq.
        try:
            parent = resources.log.read_snapshot(own.stream, own.seq - 1)
            resources.branches.require_retained(parent)
        except CommitNotFoundError as error:
            what = f"the commit before '{commit_id}' was collected: what it changed is not known"
            raise SnapshotGoneError(
                what, oldest=resources.history.find_oldest(own.stream)
            ) from error
        return PickedCommit(own, parent, action, title_of(commit_id, record.signature.message))


def _name_of(source: StateRef) -> str:
    """What callers call what they merge, which may be gone by now."""
    match source:
        case Commit():
            return source.id
        case SnapshotLike():
            return source.at.commit
        case BranchLike():
            return source.name
        case _:
            return str(source)


def title_of(commit_id: str, message: str | None) -> str:
    """How a message calls a commit: by its id, and by its message without what that picked."""
    picked = _PICKED.fullmatch(message or "")
    if picked is None:
        return f"{commit_id}: {message}" if message else commit_id
    action, first, text = picked["action"], picked["commit"], picked["text"]
    return f"{commit_id}, the {action} of {first}{f': {text}' if text else ''}"

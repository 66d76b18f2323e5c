"""Merges, reverts and cherry-picks of a branch, and what each of them would do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, cast, overload

from omnigraph.engine.commit import Commit
from omnigraph.engine.commit_loop import build_terms
from omnigraph.engine.refs import StateRef
from omnigraph.engine.write_results import MergePlan, MergeResult
from omnigraph.errors import InvalidArgumentError

if TYPE_CHECKING:
    from omnigraph.engine.branch import Branch
    from omnigraph.engine.merger import Merger
    from omnigraph.engine.proposals.proposal_drafts import ProposalDraft
    from omnigraph.writers.merge.merge_choices import Prefer, Resolve


class BranchMerges(ABC):
    """What brings the changes of other commits into a branch; `dry_run` only plans it."""

    @property
    @abstractmethod
    def _merger(self) -> Merger: ...

    @overload
    def merge(
        self,
        source: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        resolve: Resolve = None,
        dry_run: Literal[True],
    ) -> MergePlan: ...

    @overload
    def merge(
        self,
        source: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        resolve: Resolve = None,
        delete_branch: bool = False,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> MergeResult: ...

    def merge(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        source: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        resolve: Resolve = None,
        delete_branch: bool = False,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
        dry_run: bool = False,
    ) -> MergeResult | MergePlan:
        """Bring what another branch, or any other state, changed into this one.

        A text is what `Graph.snapshot` takes; times and versions are those of main.

        Where both changed a property of an entity differently (with `by="entity"`: anything of
        it), `prefer` takes `ours` (this branch) or `theirs`, for all conflicts or by kind; without,
        and for broken rules, a MergeConflictError is raised.
        `resolve` decides conflicts one by one: lines such as those of `plan.iter_decision_lines()`
        with a `take`, or a function that is called with each conflict and returns one. What it
        leaves open is for `prefer`.
        `delete_branch` ends the merged branch, unless it has got newer commits. A call repeated
        with its `key` answers with the commit of the first one, also when the branch is gone. A
        dry run writes nothing, and answers with a plan that has every conflict.
        """
        if dry_run:
            _require_no_commit(delete_branch or None, message, if_commit, key)
            return self._merger.plan(source, chosen=self._merger.choose(prefer, by, resolve))
        terms = build_terms(if_commit, message=message, key=key)
        return self._merger.merge(
            source,
            chosen=self._merger.choose(prefer, by, resolve),
            delete_branch=delete_branch,
            terms=terms,
        )

    def plan_merge(
        self,
        source: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        resolve: Resolve = None,
    ) -> MergePlan:
        """The same as `merge` with `dry_run`."""
        return self._merger.plan(source, chosen=self._merger.choose(prefer, by, resolve))

    def propose(
        self, title: str, *, body: str | None = None, key: str | None = None
    ) -> ProposalDraft:
        """A proposal to merge into this branch, which is opened by what it loads or mutates.

        `main.propose("New people").load(...)` starts a branch, loads into it and opens the
        proposal. A call repeated with its `key` finds what the first one made.
        """
        from omnigraph.engine.proposals.proposal_drafts import ProposalDraft  # noqa: PLC0415

        return ProposalDraft(cast("Branch", self), title, body=body, key=key)

    @overload
    def revert(
        self,
        commit: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        dry_run: Literal[True],
    ) -> MergePlan: ...

    @overload
    def revert(
        self,
        commit: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> MergeResult: ...

    def revert(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        commit: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
        dry_run: bool = False,
    ) -> MergeResult | MergePlan:
        """Undo what a commit changed, in a new commit; what changed since then is a conflict.

        A version or a time is one of this branch.
        A dry run writes nothing, and answers with a plan.
        """
        if dry_run:
            _require_no_commit(message, if_commit, key)
            return self._merger.plan_revert(commit, chosen=self._merger.choose(prefer, by))
        terms = build_terms(if_commit, message=message, key=key)
        return self._merger.revert(commit, chosen=self._merger.choose(prefer, by), terms=terms)

    def plan_revert(
        self, commit: StateRef, *, prefer: Prefer = None, by: str | None = None
    ) -> MergePlan:
        """The same as `revert` with `dry_run`."""
        return self._merger.plan_revert(commit, chosen=self._merger.choose(prefer, by))

    @overload
    def cherry_pick(
        self,
        commit: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        dry_run: Literal[True],
    ) -> MergePlan: ...

    @overload
    def cherry_pick(
        self,
        commit: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> MergeResult: ...

    def cherry_pick(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        commit: StateRef,
        *,
        prefer: Prefer = None,
        by: str | None = None,
        message: str | None = None,
        if_commit: Commit | str | None = None,
        key: str | None = None,
        dry_run: bool = False,
    ) -> MergeResult | MergePlan:
        """Change here what a commit of any branch changed there, in a new commit.

        A version or a time is one of main.
        A dry run writes nothing, and answers with a plan.
        """
        if dry_run:
            _require_no_commit(message, if_commit, key)
            return self._merger.plan_cherry_pick(commit, chosen=self._merger.choose(prefer, by))
        terms = build_terms(if_commit, message=message, key=key)
        return self._merger.cherry_pick(commit, chosen=self._merger.choose(prefer, by), terms=terms)

    def plan_cherry_pick(
        self, commit: StateRef, *, prefer: Prefer = None, by: str | None = None
    ) -> MergePlan:
        """The same as `cherry_pick` with `dry_run`."""
        return self._merger.plan_cherry_pick(commit, chosen=self._merger.choose(prefer, by))


def _require_no_commit(*given: object) -> None:
    if any(each is not None for each in given):
        raise InvalidArgumentError(
            "dry_run", "it makes no commit: of the other arguments, give `prefer`"
        )

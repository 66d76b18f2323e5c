"""What merges, cherry-picks and reverts prepare, and which rights they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from omnigraph import versioning
from omnigraph.engine.graph_session import Session
from omnigraph.engine.visible_rows import hide_states
from omnigraph.policy.acts import Act, Action
from omnigraph.rows.view import View
from omnigraph.versioning import Transaction
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.merge.conflict_kinds import MergeAction
from omnigraph.writers.merge.decision_rounds import check_decided_merge
from omnigraph.writers.merge.merge_choices import MergeChoices
from omnigraph.writers.merge.merge_commit import CheckedMerge, build_merge_transaction, check_merge
from omnigraph.writers.merge.merge_sides import MergeSides
from omnigraph.writers.merge.three_way import merge_three_way
from omnigraph.writers.prepare import Request
from omnigraph.writers.row_staging import RowStaging

UP_TO_DATE = "already_up_to_date"
FAST_FORWARD = "fast_forward"
MERGED = "merged"
REVERTED = "reverted"
CHERRY_PICKED = "cherry_picked"
NOTHING_TO_DO = "nothing_to_do"
OUTCOMES: Final = {MergeAction.REVERT: REVERTED, MergeAction.CHERRY_PICK: CHERRY_PICKED}


@dataclass(frozen=True, slots=True)
class PickedCommit:
    """A commit and its first parent, what is done with them, and how the commit is called."""

    own: versioning.Snapshot
    parent: versioning.Snapshot
    action: MergeAction
    title: str

    @property
    def between(self) -> tuple[versioning.Snapshot, versioning.Snapshot]:
        """Where what is done starts, and where it leads."""
        is_revert = self.action is MergeAction.REVERT
        return (self.own, self.parent) if is_revert else (self.parent, self.own)

    @property
    def outcome(self) -> str:
        """What it is called when it is done."""
        return OUTCOMES[self.action]


@dataclass(frozen=True, slots=True)
class MergeState:
    """How a merge or a pick stands on one head of its target.

    Without `checked` the target has the commit itself.
    """

    outcome: str
    base: versioning.Snapshot
    checked: CheckedMerge | None = None


# What a merge of a branch into another one asks of the policy.
ListActs: TypeAlias = Callable[[str | None, str], tuple[Act, ...]]


def list_merge_acts(source: str | None, target: str) -> tuple[Act, ...]:
    """A merge of a branch, or of what is left of one, into another branch."""
    return (Act(Action.BRANCH_MERGE, source, target),)


class MergeOperation:
    """A merge of one commit into whatever its target is by then."""

    # Another commit on the target changes what is merged into, never what is merged.
    may_repeat = True

    def __init__(
        self,
        session: Session,
        source: versioning.Snapshot,
        chosen: MergeChoices,
        list_acts: ListActs = list_merge_acts,
    ) -> None:
        self._session = session
        self.source = source
        self._choices = chosen
        self._list_acts = list_acts
        self._staging = RowStaging(session.resources.storage.tables)
        self._found: MergeState | None = None

    @property
    def state(self) -> MergeState:
        """How the merge stood when it was last examined."""
        assert self._found is not None, "a merge is asked for after its preparation"
        return self._found

    def evaluate(self, view: View) -> MergeState:
        """How the merge stands on a view of its target."""
        resources = self._session.resources
        base = resources.lineage.find_merge_base(self.source, view.snapshot)
        if resources.log.is_at(self.source, base.commit):
            return MergeState(UP_TO_DATE, base)
        is_forward = resources.log.is_at(view.snapshot, base.commit)
        between, chosen = (base, self.source), self._choices
        found = _check_merge(self._session, between, view, chosen, is_forward=is_forward)
        return MergeState(FAST_FORWARD if is_forward else MERGED, base, found)

    def list_acts(self, branch: str) -> tuple[Act, ...]:
        """It merges the branch of its source into another one, and may change more than that."""
        acts = self._list_acts(self.source.stream.branch, branch)
        return (*acts, Act(Action.CHANGE, branch)) if self._choices.may_edit else acts

    def prepare(self, view: View, request: Request) -> Transaction | None:
        """The merge on a view; None when the target has it already."""
        self._found = found = self.evaluate(view)
        if found.checked is None:
            return None
        return build_merge_transaction(
            found.checked,
            self._staging,
            request,
            source=self.source.ref,
            schemas=self._session.resources.schemas,
        )

    def abandon(self) -> None:
        """Remove what was written for a merge that will never be a commit."""
        self._staging.abandon()


class PickOperation:
    """What lies between two neighbouring commits, done again or undone on another head."""

    may_repeat = True

    def __init__(
        self,
        session: Session,
        picked: PickedCommit,
        chosen: MergeChoices,
    ) -> None:
        self._session = session
        self._picked = picked
        self._choices = chosen
        self._staging = RowStaging(session.resources.storage.tables)
        self._found: MergeState | None = None

    @property
    def state(self) -> MergeState:
        """How the change stood when it was last examined."""
        assert self._found is not None, "a change is asked for after its preparation"
        return self._found

    @property
    def source(self) -> versioning.Snapshot:
        """The state that the change leads to."""
        return self._picked.between[1]

    def evaluate(self, view: View) -> MergeState:
        """How the change stands on a view of its target."""
        picked = self._picked
        between, chosen = picked.between, self._choices
        found = _check_merge(self._session, between, view, chosen, action=picked.action)
        # Opaque ids that differ for the same names are not visible to users.
        is_same_schema = found.merged.schema.source == view.schema.source
        is_nothing = is_same_schema and not found.merged.change and not found.conflicts.count
        return MergeState(NOTHING_TO_DO if is_nothing else picked.outcome, between[0], found)

    def list_acts(self, branch: str) -> tuple[Act, ...]:
        """It changes its branch by what another one shows."""
        return (
            Act(Action.CHANGE, branch),
            Act(Action.READ, self._picked.own.stream.branch),
        )

    def prepare(self, view: View, request: Request) -> Transaction | None:
        """The change on a view; None when nothing is left of it."""
        self._found = found = self.evaluate(view)
        if found.checked is None or found.outcome == NOTHING_TO_DO:
            return None
        schemas = self._session.resources.schemas
        return build_merge_transaction(
            found.checked, self._staging, request, source=None, schemas=schemas
        )

    def abandon(self) -> None:
        """Remove what was written for a change that will never be a commit."""
        self._staging.abandon()


def _check_merge(
    session: Session,
    between: tuple[versioning.Snapshot, versioning.Snapshot],
    view: View,
    chosen: MergeChoices,
    *,
    is_forward: bool = False,
    action: MergeAction = MergeAction.MERGE,
) -> CheckedMerge:
    """What happened between two commits, brought to a view."""
    resources = session.resources
    base, theirs = map(session.open_view, between)
    sides = MergeSides(base, ours=view, theirs=theirs, lineage=resources.lineage, action=action)
    with session.guard_reads(base.snapshot), session.guard_reads(theirs.snapshot):
        check = partial(_check_choices, sides, keys=resources.keys, is_forward=is_forward)
        checked = check_decided_merge(check, sides.commits, chosen)
    return _hide_values(session, checked, (base, view, theirs))


def _hide_values(
    session: Session, checked: CheckedMerge, views: tuple[View, View, View]
) -> CheckedMerge:
    """The merge, whose conflicts show no values of rows that its actor may not see."""
    conflicts = checked.conflicts
    seen = [
        (session.find_row_limits(Act(Action.READ, each.snapshot.stream.branch)), each.catalog)
        for each in views
    ]
    if not conflicts.listed or all(limits is None for limits, _ in seen):
        return checked
    listed = hide_states(conflicts.listed, seen)
    return replace(checked, conflicts=replace(conflicts, listed=listed))


def _check_choices(
    sides: MergeSides, chosen: MergeChoices, *, keys: KeyCache, is_forward: bool
) -> CheckedMerge:
    merged = merge_three_way(sides, chosen, is_forward=is_forward)
    return check_merge(merged, keys=keys, is_forward=is_forward)

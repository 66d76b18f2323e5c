"""Random lives of a graph whose branches are merged crosswise, migrated, reverted and followed."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fuzz.merging import laws
from fuzz.merging.both import ROW_KINDS, Both, Prefer
from fuzz.merging.edits import EDITS, Edit, edited
from fuzz.merging.world import mutation, record
from model.merging import Side

BRANCHES_MAX = 6
DICE = st.integers(0, 2**20)
PLACES = st.integers(0, BRANCHES_MAX - 1)
PREFER: st.SearchStrategy[Prefer | None] = st.one_of(
    st.none(),
    st.sampled_from([dict.fromkeys(ROW_KINDS, "ours"), dict.fromkeys(ROW_KINDS, "theirs")]),
    st.sampled_from([{"divergent_update": "theirs"}, {"delete_vs_update": "ours"}]),
)


class Merging(RuleBasedStateMachine):
    """One graph and the model of it; each rule checks that they agree."""

    @initialize()
    def begin(self) -> None:
        self.both = Both()
        self.names = 0
        self.create_branch(0)

    @rule(dice=st.lists(DICE, min_size=1, max_size=3), place=PLACES)
    def load(self, dice: list[int], place: int) -> None:
        branch = self._branch(place)
        catalog = self.both.model.graph(branch).catalog
        self.both.load(branch, [record(Random(each), catalog) for each in dice])

    @rule(dice=DICE, place=PLACES)
    def mutate(self, dice: int, place: int) -> None:
        branch = self._branch(place)
        catalog = self.both.model.graph(branch).catalog
        self.both.mutate(branch, mutation(Random(dice), catalog))

    @rule(edit=st.sampled_from(EDITS), place=PLACES)
    def migrate(self, edit: Edit, place: int) -> None:
        branch = self._branch(place)
        schema = edited(self.both.model.graph(branch).catalog, edit)
        if schema is not None:
            self.both.migrate(branch, schema)

    @rule(place=PLACES)
    def create_branch(self, place: int) -> None:
        if len(self.both.model.list()) < BRANCHES_MAX:
            self.names += 1
            self.both.create(f"b{self.names}", self._branch(place))

    @rule(place=PLACES)
    def delete_branch(self, place: int) -> None:
        branch = self._branch(place)
        if branch != "main":
            self.both.delete(branch)

    @rule(source=PLACES, into=PLACES, prefer=PREFER)
    def merge(self, source: int, into: int, prefer: Prefer | None) -> None:
        one, other = self._branch(source), self._branch(into)
        if one != other:
            self.both.merge(one, other, prefer)

    @rule(source=PLACES, into=PLACES)
    def merge_crosswise(self, source: int, into: int) -> None:
        """Each takes what the other one was before."""
        one, other = self._branch(source), self._branch(into)
        if one != other:
            self.both.create("before", one)
            self.both.merge(other, one)
            self.both.merge("before", other)
            self.both.delete("before")

    @rule(place=PLACES, back=st.integers(0, 4), prefer=PREFER)
    def revert(self, place: int, back: int, prefer: Prefer | None) -> None:
        branch = self._branch(place)
        self.both.revert(branch, self._number(branch, back), prefer)

    @rule(place=PLACES, source=PLACES, back=st.integers(0, 4), prefer=PREFER)
    def cherry_pick(self, place: int, source: int, back: int, prefer: Prefer | None) -> None:
        number = self._number(self._branch(source), back)
        self.both.cherry_pick(self._branch(place), number, prefer)

    @rule(place=PLACES, verb=st.sampled_from(["optimize", "ensure_indices"]))
    def maintain(self, place: int, verb: str) -> None:
        self.both.maintain(self._branch(place), verb)

    @rule()
    def reopen(self) -> None:
        self.both.reopen()

    @rule(source=PLACES, into=PLACES)
    def merges_commute(self, source: int, into: int) -> None:
        laws.merges_commute(self.both, self._branch(source), self._branch(into))

    @rule(source=PLACES, into=PLACES, side=st.sampled_from(["ours", "theirs"]))
    def decisions_are_preferences(self, source: int, into: int, side: Side) -> None:
        one, other = self._branch(source), self._branch(into)
        if one != other:
            laws.decisions_are_preferences(self.both, one, other, side)

    @rule(old=PLACES, new=PLACES)
    def differences_can_be_applied(self, old: int, new: int) -> None:
        laws.diff_leads_from_one_to_the_other(self.both, self._branch(old), self._branch(new))

    @rule(place=PLACES)
    def changes_can_be_folded(self, place: int) -> None:
        laws.feed_folds_to_the_head(self.both, self._branch(place))

    def teardown(self) -> None:
        if hasattr(self, "both"):
            for branch in self.both.model.list():
                self.both.agree_on_content(branch)
            self.both.close()

    def _branch(self, place: int) -> str:
        names = self.both.model.list()
        return names[place % len(names)]

    def _number(self, branch: str, back: int) -> int:
        """A commit of a branch, so many commits before its newest."""
        number = self.both.model.head(branch)
        for _ in range(back):
            parents = self.both.model.commits[number].parents
            number = parents[0] if parents else number
        return number

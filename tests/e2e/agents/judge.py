"""Goes through the history of main after the agents have left: is every merge what it should be?"""

from __future__ import annotations

from collections.abc import Sequence

from e2e.agents.agent import Turn
from fuzz.merging.laws import Entities, entities_of
from model.merging import conflict
from omnigraph import Graph


class Judge:
    """The states of one graph, read from the exports of its commits."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._states: dict[str, Entities] = {}

    def judge(self, turns: Sequence[Turn]) -> None:
        """Every merge is in the history of main and brought what it should; conflicts are true."""
        main = list(reversed(list(self._graph.branch().commits())))
        line = [commit.id for commit in main]
        merged = {commit.parents[1]: commit for commit in main if len(commit.parents) == 2}
        assert merged.keys() == {turn.source for turn in turns if turn.outcome != "conflict"}
        for turn in turns:
            if turn.outcome == "conflict":
                heads = line[line.index(turn.base) :]
                assert self._is_true(turn, heads), f"no true conflict: {turn}"
            else:
                commit = merged[turn.source]
                expected, conflicts = self._merged(turn.base, commit.parents[0], turn.source)
                assert conflicts == set(), f"a merge went over conflicts: {turn}"
                assert self._state(commit.id) == expected, f"a merge brought something else: {turn}"

    def _is_true(self, turn: Turn, heads: Sequence[str]) -> bool:
        """Whether what was reported stood in the way at some moment since the branch began."""
        told = set(turn.conflicts)
        return any(told == self._merged(turn.base, head, turn.source)[1] for head in heads)

    def _merged(
        self, base: str, ours: str, theirs: str
    ) -> tuple[Entities, set[tuple[str, str, str | None]]]:
        before, mine, other = map(self._state, (base, ours, theirs))
        after = dict(mine)
        conflicts: set[tuple[str, str, str | None]] = set()
        for key in before.keys() | other.keys():
            old, own, new = before.get(key), mine.get(key), other.get(key)
            kind = conflict(old, own, new)
            if kind is not None:
                conflicts.add((kind, key[1], key[2]))
            elif new == old:
                continue
            elif new is None:
                after.pop(key, None)
            else:
                after[key] = new
        return after, conflicts or _orphans(after)

    def _state(self, commit: str) -> Entities:
        if commit not in self._states:
            text = b"".join(self._graph.snapshot(commit).export()).decode()
            self._states[commit] = entities_of(text.splitlines())
        return self._states[commit]


def _orphans(entities: Entities) -> set[tuple[str, str, str | None]]:
    return {
        ("orphan_edge", type_name, id_)
        for (kind, type_name, id_), (_, ends) in entities.items()
        if kind == "edge"
        if any(("node", "Person", end) not in entities for end in ends.values())
    }

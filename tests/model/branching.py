"""The model of branching: every commit keeps the whole graph, a merge compares entities."""

from collections import Counter
from collections.abc import Callable, Mapping, Set
from copy import copy
from types import MappingProxyType
from typing import Literal, NamedTuple, Self, TypeVar

from model.graph import ModelGraph
from model.merging import By, MergeConflicts, Shared, Side, merged, renumbered, same_things
from model.migrating import checked, evolved
from omnigraph.errors import OmnigraphError
from omnigraph.schema.catalog import Catalog

__all__ = ["BranchError", "MergeConflicts", "ModelBranches"]

Outcome = Literal["already_up_to_date", "fast_forward", "merged"]
Result = TypeVar("Result")
MAIN = "main"


class BranchError(OmnigraphError):
    """A branch that does not exist, already exists, or cannot be deleted."""

    code = "branch_error"


class Commit(NamedTuple):
    """A graph as it was left, the numbers of the commits it came from, its place on its line.

    Maintenance leaves the graph as it was.
    """

    graph: ModelGraph
    parents: tuple[int, ...] = ()
    seq: int = 0
    is_maintenance: bool = False


class ModelBranches:
    """A graph with branches; commits are numbered in the order in which they were made."""

    def __init__(self, graph: ModelGraph) -> None:
        self.commits = [Commit(graph.copy())]
        self.heads = {MAIN: 0}
        # No two branches give one number to different things; what both add is one thing.
        self._next_number = graph.accepted.next_identity_id
        self._same: dict[int, int] = {}

    def copy(self) -> Self:
        """The same branches, to change on their own."""
        other = copy(self)
        other.commits, other.heads = [*self.commits], dict(self.heads)
        other._same = dict(self._same)
        return other

    def list(self) -> list[str]:
        """The names of all branches, in byte order."""
        return sorted(self.heads)

    def create(self, name: str, source: str = MAIN) -> None:
        """Start a branch at the head of another one."""
        if name in self.heads:
            raise BranchError(f"branch '{name}' already exists")
        if not name or name != name.strip():
            raise BranchError(f"'{name}' is not a branch name")
        self.heads[name] = self.head(source)

    def delete(self, name: str) -> None:
        """Forget a branch."""
        if name == MAIN:
            raise BranchError(f"branch '{MAIN}' cannot be deleted")
        self.head(name)
        del self.heads[name]

    def head(self, name: str) -> int:
        """The newest commit of a branch."""
        if name not in self.heads:
            raise BranchError(f"branch '{name}' not found")
        return self.heads[name]

    def graph(self, name: str = MAIN) -> ModelGraph:
        """The graph at the head of a branch, to read."""
        return self.commits[self.head(name)].graph.copy()

    def write(self, name: str, action: Callable[[ModelGraph], Result]) -> Result:
        """Run a mutation or a load on a branch; what changed nothing leaves no commit."""
        graph = self.graph(name)
        result = action(graph)
        if getattr(result, "changed", True):
            self._commit(name, graph, self.head(name))
        return result

    def migrate(self, name: str, desired: Catalog) -> None:
        """Bring another schema into force on a branch."""
        graph = self.graph(name)
        schema = evolved(graph.accepted, desired, first_number=self._next_number)
        self._commit(name, checked(graph, schema), self.head(name))
        self._next_number = schema.next_identity_id

    def maintain(self, name: str) -> None:
        """A commit that changes nothing."""
        self._commit(name, self.graph(name), self.head(name))
        self.commits[-1] = self.commits[-1]._replace(is_maintenance=True)

    def merge(
        self,
        source: str,
        target: str = MAIN,
        prefer: Mapping[str, Side] | None = None,
        by: By = "property",
    ) -> Outcome:
        """Bring what a branch changed into another one."""
        if source == target:
            raise BranchError(f"branch '{source}' cannot be merged into itself")
        ours, theirs = self.head(target), self.head(source)
        base = self.base(ours, theirs)
        if self._is_at(theirs, base):
            return "already_up_to_date"
        if self._is_at(ours, base):
            self._commit(target, self.graph(source), ours, theirs)
            return "fast_forward"
        shared = self._shared(ours, theirs)
        self._commit(target, self._merged(base, ours, theirs, prefer, by, shared), ours, theirs)
        return "merged"

    def cherry_pick(
        self, number: int, target: str = MAIN, prefer: Mapping[str, Side] | None = None
    ) -> bool:
        """Do to a branch what a commit did to its first parent; False if that changes nothing."""
        return self._apply(self._parent(number), number, target, prefer)

    def revert(
        self, number: int, target: str = MAIN, prefer: Mapping[str, Side] | None = None
    ) -> bool:
        """Undo on a branch what a commit did to its first parent; False if that changes nothing."""
        return self._apply(number, self._parent(number), target, prefer)

    def _apply(
        self, base: int, theirs: int, target: str, prefer: Mapping[str, Side] | None
    ) -> bool:
        ours = self.head(target)
        after = self._merged(base, ours, theirs, prefer)
        before = self.commits[ours].graph
        if (before.accepted.catalog, before.export()) == (after.accepted.catalog, after.export()):
            return False
        self._commit(target, after, ours)
        return True

    def _parent(self, number: int) -> int:
        if not self.commits[number].parents:
            raise BranchError("the first commit has no parent")
        return self.commits[number].parents[0]

    def _merged(
        self,
        base: int,
        ours: int,
        theirs: int,
        prefer: Mapping[str, Side] | None,
        by: By = "property",
        shared: Mapping[int, tuple[int, bool]] = MappingProxyType({}),
    ) -> ModelGraph:
        graphs = [self.commits[number].graph.copy() for number in (base, ours, theirs, *shared)]
        self._same |= same_things(*(renumbered(each.accepted, self._same) for each in graphs[:3]))
        for graph in graphs:
            graph.accepted = renumbered(graph.accepted, self._same)
        before, mine, other, *states = graphs
        weighed = zip(states, shared.values(), strict=True)
        parts = [Shared(graph, *each) for graph, each in weighed]
        return merged(before, mine, other, prefer or {}, by, parts)

    def _shared(self, ours: int, theirs: int) -> dict[int, tuple[int, bool]]:
        """What two commits share as a sum of commits: how often each, and whether it is a base.

        Each commit adds to its ancestors something of its own, which is shared or is not.
        """
        common = self._distances(ours).keys() & self._distances(theirs).keys()
        own: dict[int, Counter[int]] = {}
        for number in sorted(common):
            own[number] = Counter([number])
            for older in self._distances(number).keys() - {number}:
                own[number].subtract(own[older])
        weights: Counter[int] = Counter()
        for each in own.values():
            weights.update(each)
        bases = self._nearest(common)
        return {number: (weights[number], number in bases) for number in common if weights[number]}

    def _is_at(self, number: int, base: int) -> bool:
        """Whether a commit is another one, or maintenance of it."""
        while self.commits[number].is_maintenance and number != base:
            number = self._parent(number)
        return number == base

    def _commit(self, name: str, graph: ModelGraph, *parents: int) -> None:
        self.commits.append(Commit(graph, parents, self.commits[parents[0]].seq + 1))
        self.heads[name] = len(self.commits) - 1

    def base(self, ours: int, theirs: int) -> int:
        """A common ancestor that is no ancestor of another one.

        Of several it is the closest to both, then the latest on its line.
        """
        mine, other = self._distances(ours), self._distances(theirs)
        return min(
            self._nearest(mine.keys() & other.keys()),
            key=lambda number: (mine[number] + other[number], -self.commits[number].seq, -number),
        )

    def _nearest(self, common: Set[int]) -> Set[int]:
        """The commits that are no ancestors of others among them."""
        older = {far for near in common for far in self._distances(near) if far != near}
        return common - older

    def _distances(self, head: int) -> dict[int, int]:
        distances = {head: 0}
        queue = [head]
        for number in queue:
            for parent in self.commits[number].parents:
                if parent not in distances:
                    distances[parent] = distances[number] + 1
                    queue.append(parent)
        return distances

"""The model of branching: every commit keeps the whole graph, a merge compares entities."""

from collections.abc import Callable
from typing import Literal, TypeVar

from model.graph import ModelGraph
from model.store import types_of
from model.validation import validate
from omnigraph.errors import OmnigraphError, WriteRefused

Outcome = Literal["already_up_to_date", "fast_forward", "merged"]
Result = TypeVar("Result")
# A kind, and the type and id of the entity or the rule that is broken.
Conflict = tuple[str, str]
# A graph as it was left, and the numbers of the commits it came from.
Commit = tuple[ModelGraph, tuple[int, ...]]
MAIN = "main"
_RULE_KINDS = {
    "not found in": "orphan_edge",
    "@unique": "unique_violation",
    "@card": "cardinality_violation",
}


class BranchError(OmnigraphError):
    """A branch that does not exist, already exists, or cannot be deleted."""

    code = "branch_error"


class MergeConflicts(WriteRefused):
    """Both sides of a merge changed the same entity, or break a rule together."""

    code = "merge_conflicts"

    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__("merge conflicts: " + "; ".join(map(": ".join, conflicts)))
        self.conflicts = conflicts


class ModelBranches:
    """A graph with branches; commits are numbered in the order in which they were made."""

    def __init__(self, graph: ModelGraph) -> None:
        self.commits: list[Commit] = [(graph.copy(), ())]
        self.heads = {MAIN: 0}

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
        return self.commits[self.head(name)][0].copy()

    def write(self, name: str, action: Callable[[ModelGraph], Result]) -> Result:
        """Run a mutation or a load on a branch; what changed nothing leaves no commit."""
        graph = self.graph(name)
        result = action(graph)
        if getattr(result, "changed", True):
            self._commit(name, graph, self.head(name))
        return result

    def merge(self, source: str, target: str = MAIN) -> Outcome:
        """Bring what a branch changed into another one."""
        if source == target:
            raise BranchError(f"branch '{source}' cannot be merged into itself")
        ours, theirs = self.head(target), self.head(source)
        base = self._base(ours, theirs)
        if base == theirs:
            return "already_up_to_date"
        if base == ours:
            self._commit(target, self.graph(source), ours, theirs)
            return "fast_forward"
        merged = _merged(*(self.commits[number][0] for number in (base, ours, theirs)))
        self._commit(target, merged, ours, theirs)
        return "merged"

    def _commit(self, name: str, graph: ModelGraph, *parents: int) -> None:
        self.commits.append((graph, parents))
        self.heads[name] = len(self.commits) - 1

    def _base(self, ours: int, theirs: int) -> int:
        """The common ancestor closest to both heads; of equally close ones the newest."""
        mine, other = self._distances(ours), self._distances(theirs)
        common = mine.keys() & other.keys()
        return min(common, key=lambda number: (mine[number] + other[number], -number))

    def _distances(self, head: int) -> dict[int, int]:
        distances = {head: 0}
        queue = [head]
        for number in queue:
            for parent in self.commits[number][1]:
                if parent not in distances:
                    distances[parent] = distances[number] + 1
                    queue.append(parent)
        return distances


def _merged(base: ModelGraph, ours: ModelGraph, theirs: ModelGraph) -> ModelGraph:
    merged = ours.copy()
    conflicts: list[Conflict] = []
    for type_ in types_of(ours.catalog):
        before, mine, other = (graph.table(type_) for graph in (base, ours, theirs))
        for id_ in sorted(before | mine | other):
            old, own, new = before.get(id_), mine.get(id_), other.get(id_)
            if new in (old, own):
                continue
            if own != old:
                kind = "delete_vs_update" if None in (own, new) else "divergent_update"
                conflicts.append((kind if old else "divergent_insert", f"{type_.name} '{id_}'"))
            elif new is None:
                del merged.table(type_)[id_]
            else:
                merged.table(type_)[id_] = new
    if conflicts := conflicts or _broken_rules(ours, merged):
        raise MergeConflicts(conflicts)
    return merged


def _broken_rules(ours: ModelGraph, merged: ModelGraph) -> list[Conflict]:
    try:
        validate(ours, merged, [])
    except WriteRefused as violation:
        kinds = [kind for fragment, kind in _RULE_KINDS.items() if fragment in violation.message]
        return [(kinds[0] if kinds else "value_constraint_violation", violation.message)]
    return []

"""One agent: branch, edit, merge into main, again and again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

import omnigraph
from omnigraph import Branch
from omnigraph.errors import MergeConflictError

SCHEMA = """
node Person {
  name: String @key
  age: I64?
}
edge Knows: Person -> Person {
  @key(@src, @dst)
}
"""
# People whom everybody edits, so that some merges must conflict.
SHARED = 60
EDITS = """
query insert_person($name: String, $age: I64) { insert Person { name: $name, age: $age } }
query age($name: String, $age: I64) { update Person set { age: $age } where name = $name }
query knows($a: String, $b: String) { insert Knows { from: $a, to: $b } }
query leave($name: String) { delete Person where name = $name }
"""

Conflicts: TypeAlias = tuple[tuple[str, str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One branch of an agent: where it began and ended, and what became of it."""

    base: str
    source: str
    outcome: str
    # The kind, the type and the id of whatever stood in the way.
    conflicts: Conflicts
    edits_s: float
    merge_s: float


def work(uri: str, number: int, rounds: int, edits: int) -> list[Turn]:
    """The turns of an agent; it opens the graph for itself."""
    with omnigraph.open(uri, actor=f"agent {number}", durable=False) as graph:
        return [_turn(graph, f"agent{number}/{turn}", edits) for turn in range(rounds)]


def _turn(graph: omnigraph.Graph, name: str, edits: int) -> Turn:
    branch = graph.create_branch(name)
    base = branch.head.id
    chance = Random(name)
    began = time.perf_counter()
    own: list[str] = []
    for number in range(edits):
        _edit(branch, chance, own, f"{name}/{number}")
    edited = time.perf_counter()
    outcome, source, conflicts = _merge(graph, branch)
    merged = time.perf_counter()
    return Turn(base, source, outcome, conflicts, edited - began, merged - edited)


def _edit(branch: Branch, chance: Random, own: list[str], fresh: str) -> None:
    dice = chance.random()
    shared = f"p{chance.randrange(SHARED)}"
    age = chance.randrange(1_000_000)
    if dice < 0.5 or len(own) < 2:
        own.append(fresh)
        branch.mutate(EDITS, name="insert_person", params={"name": fresh, "age": age})
    elif dice < 0.8:
        a, b = chance.sample(own, 2)
        branch.mutate(EDITS, name="knows", params={"a": a, "b": b})
    elif dice < 0.9:
        who = own.pop(chance.randrange(len(own)))
        branch.mutate(EDITS, name="leave", params={"name": who})
    elif dice < 0.98:
        branch.mutate(EDITS, name="age", params={"name": shared, "age": age})
    else:
        branch.mutate(EDITS, name="leave", params={"name": shared})


def _merge(graph: omnigraph.Graph, branch: Branch) -> tuple[str, str, Conflicts]:
    """The outcome, the commit that was merged, and what stood in the way."""
    try:
        result = graph.branch().merge(branch)
    except MergeConflictError as error:
        found = [(each.kind, each.type_name, each.entity_id) for each in error.conflicts]
        return "conflict", branch.head.id, tuple(found)
    # Maintenance may have come behind what was merged.
    return result.outcome, result.parents[1], ()

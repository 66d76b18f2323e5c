"""Diffs of random histories: any two states, on any branches, compared with their exports."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

import omnigraph
import places
from omnigraph import Branch, Graph, Snapshot
from omnigraph.changes import type_difference
from omnigraph.errors import MergeConflictError
from unit.engine.exported import expected, told

SCHEMA = """node Person {{
  name: String @key
  age: I32?
  tags: [String]?
  face: Vector(2)?
{properties}}}
edge Knows: Person -> Person {{
  since: I32?
}}
{types}"""
STEPS = 30
PEOPLE = [f"p{number}" for number in range(8)]


@dataclass
class Life:
    """A graph with branches, every state it was in, and what happens to it next."""

    graph: Graph
    chance: random.Random
    states: list[Snapshot] = field(default_factory=list)

    def step(self) -> None:
        """Do something on some branch, and keep the state that it leads to."""
        branch = self.graph.branch(self.chance.choice(self.graph.branches()))
        self.chance.choice(self.actions())(branch)
        self.states.append(branch.snapshot())

    def actions(self) -> list[Callable[[Branch], None]]:
        """What may happen."""
        often = [self.write, self.write, self.write, self.connect, self.delete, self.merge]
        return [*often, self.replace_all, self.split, self.migrate, _optimize]

    def person(self, branch: Branch, name: str) -> dict[str, Any]:
        """A record of somebody."""
        values: dict[str, Any] = {
            "age": self.chance.choice([None, 1, 2]),
            "tags": self.chance.choice([None, [], ["a"], ["a", "b"]]),
            "face": self.chance.choice([None, [0, 1], [1, 0]]),
        }
        if "nick" in branch.schema:
            values["nick"] = self.chance.choice([None, "", "x"])
        return {"type": "Person", "data": {"name": name, **values}}

    def write(self, branch: Branch) -> None:
        """Insert or replace a few people."""
        names = self.chance.sample(PEOPLE, self.chance.randrange(1, 4))
        branch.load([self.person(branch, name) for name in names], mode="merge")

    def connect(self, branch: Branch) -> None:
        """Insert or move an edge."""
        ids = branch.snapshot().to_arrow("Person")["@id"].to_pylist()
        if ids:
            ends = {end: self.chance.choice(ids) for end in ("from", "to")}
            entity = {"edge": "Knows", "id": self.chance.choice("xyz"), **ends}
            branch.load([{**entity, "data": {"since": self.chance.randrange(2)}}], mode="merge")

    def delete(self, branch: Branch) -> None:
        """Delete somebody, with the edges there."""
        name = self.chance.choice(PEOPLE)
        branch.mutate("query q($n: String) { delete Person where name = $n }", params={"n": name})

    def replace_all(self, branch: Branch) -> None:
        """Overwrite the edges, or what there is of the other type."""
        if "Tool" in branch.schema:
            names = self.chance.sample("abc", self.chance.randrange(1, 3))
            records = [{"type": "Tool", "data": {"name": name}} for name in names]
            branch.load(records, mode="overwrite")

    def split(self, _: Branch) -> None:
        """Start a branch anywhere."""
        names = self.graph.branches()
        if len(names) < 5:
            self.graph.create_branch(f"b{len(names)}", source=self.chance.choice(self.states))

    def migrate(self, branch: Branch) -> None:
        """Add a property or a type, which another branch may add too."""
        is_wide, has_tool = "nick" in branch.schema, "Tool" in branch.schema
        is_wide, has_tool = (True, has_tool) if self.chance.randrange(2) else (is_wide, True)
        branch.apply_schema(_schema(is_wide=is_wide, has_tool=has_tool))

    def merge(self, branch: Branch) -> None:
        """Bring another branch in, if both go together."""
        others = [name for name in self.graph.branches() if name != branch.name]
        if others:
            with suppress(MergeConflictError):
                branch.merge(self.chance.choice(others))


def _optimize(branch: Branch) -> None:
    branch.optimize()


def _schema(*, is_wide: bool, has_tool: bool) -> str:
    return SCHEMA.format(
        properties="  nick: String?\n" if is_wide else "",
        types="node Tool { name: String @key }\n" if has_tool else "",
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_any_two_states_differ_in_what_their_exports_differ_in(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        # As it is with many candidates.
        monkeypatch.setattr(type_difference, "READ_ALONG_MAX", 0)
    schema = _schema(is_wide=False, has_tool=False)
    with omnigraph.create(places.fresh_uri(), schema=schema) as graph:
        chance = random.Random(seed)
        life = Life(graph, chance, [graph.branch().snapshot()])
        for _ in range(STEPS):
            life.step()
        for _ in range(30):
            old, new = chance.choice(life.states), chance.choice(life.states)
            diff = graph.diff(old, new)
            lines = b"".join(diff.to_json_lines()).splitlines()
            assert list(map(json.loads, lines)) == [each.to_json() for each in diff]
            found = told(diff)
            assert _without_lost(found, new) == _without_lost(expected(old, new), new)


def _without_lost(changes: dict[Any, Any], new: Snapshot) -> dict[Any, Any]:
    """The changes without what only the schema lost: a property that the new state has not."""
    if "nick" in new.schema:
        return changes
    kept = {}
    for entity, (op, before, after) in changes.items():
        old = None if before is None else _without_nick(before)
        if old != after:
            kept[entity] = op, old, after
    return kept


def _without_nick(image: dict[str, Any]) -> dict[str, Any]:
    properties = {name: each for name, each in image["properties"].items() if name != "nick"}
    return {**image, "properties": properties}

"""Branches that migrate, load and merge at random hold what a model of schemas and values says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.errors import MergeConflictError
from places import fresh_uri
from unit.schema.random_migrations import Born, changed
from unit.schema.schema_model import (
    Births,
    Disagreement,
    Kind,
    Model,
    Prop,
    find,
    merge,
    written,
)

BRANCHES = ("main", "one", "two")
STEPS_MAX = 10

# The values of an entity, by the births of their properties.
Values = dict[Births, Any]


@dataclass
class State:
    """A branch at a commit: its schema, and the entities of each node type by their keys."""

    model: Model
    entities: dict[Births, dict[str, Values]] = field(default_factory=dict)

    def of(self, births: Births) -> dict[str, Values]:
        """The entities of a type."""
        return next((found for each, found in self.entities.items() if each & births), {})

    def shown(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What an export shows: entities by the name of their type, values by that of theirs."""
        return {
            kind.name: {
                key: dict(_named(kind, values)) for key, values in self.of(kind.births).items()
            }
            for kind in self.model.kinds
            if kind.ends is None and self.of(kind.births)
        }


def _named(kind: Kind, values: Values) -> list[tuple[str, Any]]:
    return [
        (prop.name, value)
        for births, value in values.items()
        if (prop := find(kind.props, births)) is not None
    ]


def _image(values: Values | None, kind: Kind) -> dict[str, Any] | None:
    return None if values is None else dict(_named(kind, values))


def merged_state(base: State, ours: State, theirs: State) -> State:
    """What a merge leaves; raises `Disagreement`."""
    model = merge(base.model, ours.model, theirs.model)
    entities: dict[Births, dict[str, Values]] = {}
    for kind in model.kinds:
        before, here, there = (each.of(kind.births) for each in (base, ours, theirs))
        kept: dict[str, Values] = {}
        for key in {**here, **there}:
            images = [_image(each.get(key), kind) for each in (before, here, there)]
            is_theirs = images[2] != images[0] and images[1] == images[0]
            if images[1] not in (images[0], images[2]) and images[2] != images[0]:
                raise Disagreement(key)
            chosen = there.get(key) if is_theirs else here.get(key)
            if chosen is not None:
                kept[key] = {
                    births: value for births, value in chosen.items() if find(kind.props, births)
                }
        entities[kind.births] = kept
    return State(model, entities)


class World:
    """A graph and its model."""

    def __init__(self, graph: Graph, model: Model, births: count[int]) -> None:
        self.graph = graph
        self.births = births
        self.values = count(1)
        self.states: dict[str, State] = {}
        start = State(model)
        for name in BRANCHES:
            if name != "main":
                graph.create_branch(name)
            self.keep(self.branch(name), start)

    def born(self) -> Births:
        return frozenset({next(self.births)})

    def branch(self, name: str) -> Branch:
        return self.graph.branch(name)

    def state(self, branch: Branch) -> State:
        return self.states[branch.head.id]

    def keep(self, branch: Branch, state: State) -> None:
        self.states[branch.head.id] = state
        assert exported(branch) == state.shown()

    def migrate(self, branch: Branch, model: Model) -> None:
        state = self.state(branch)
        branch.apply_schema(written(model, state.model))
        entities = {}
        for kind in model.kinds:
            entities[kind.births] = {
                key: {births: each for births, each in values.items() if find(kind.props, births)}
                for key, values in state.of(kind.births).items()
            }
        self.keep(branch, State(model, entities))

    def load(self, branch: Branch, kind: Kind) -> None:
        state = self.state(branch)
        key = f"e{next(self.values)}"
        values: Values = {each.births: self._value(each, key) for each in kind.props}
        data = {each.name: values[each.births] for each in kind.props}
        branch.load([{"type": kind.name, "data": data}], mode="append")
        of_kind = {**state.of(kind.births), key: values}
        others = {each: found for each, found in state.entities.items() if not each & kind.births}
        self.keep(branch, State(state.model, {**others, kind.births: of_kind}))

    def _value(self, prop: Prop, key: str) -> Any:
        if prop.name == "k":
            return key
        return min(prop.values) if prop.values else next(self.values)

    def merge(self, target: Branch, source: Branch) -> None:
        plan = target.plan_merge(source)
        if plan.outcome == "already_up_to_date":
            return
        base = self.states[plan.base.id]
        try:
            expected = merged_state(base, self.state(target), self.state(source))
        except Disagreement:
            with pytest.raises(MergeConflictError):
                target.merge(source)
            return
        target.merge(source)
        self.keep(target, expected)


def exported(branch: Branch) -> dict[str, dict[str, dict[str, Any]]]:
    """The entities of a branch, without nulls."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for line in b"".join(branch.export()).decode().splitlines():
        record = json.loads(line)
        data = {name: value for name, value in record["data"].items() if value is not None}
        found.setdefault(record["type"], {})[data["k"]] = data
    return found


def first_model(born: Born) -> Model:
    ant = Kind(born(), "Ant", (Prop(born(), "k"), Prop(born(), "p")))
    bee = Kind(born(), "Bee", (Prop(born(), "k"), Prop(born(), "q", frozenset("uv"))))
    return Model((ant, bee, Kind(born(), "Eats", (), (ant.births, bee.births))))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_random_migrations_loads_and_merges_agree_with_the_model(data: st.DataObject) -> None:
    births = count()
    model = first_model(lambda: frozenset({next(births)}))
    with omnigraph.create(fresh_uri(), schema=written(model), durable=False) as graph:
        world = World(graph, model, births)
        for _ in range(data.draw(st.integers(2, STEPS_MAX))):
            branch = world.branch(data.draw(st.sampled_from(BRANCHES)))
            what = data.draw(st.sampled_from(["migrate", "migrate", "load", "load", "merge"]))
            model = world.state(branch).model
            if what == "merge":
                others = [each for each in BRANCHES if each != branch.name]
                world.merge(branch, world.branch(data.draw(st.sampled_from(others))))
            elif what == "load":
                nodes = [each for each in model.kinds if each.ends is None]
                world.load(branch, data.draw(st.sampled_from(nodes)))
            elif (new := changed(model, data, world.born)) is not None and new != model:
                world.migrate(branch, new)
        for target, source in (("main", "one"), ("two", "main"), ("one", "two")):
            world.merge(world.branch(target), world.branch(source))
        report = graph.check(commits_max=None)
        assert report.is_healthy, report.problems

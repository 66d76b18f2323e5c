"""Branches that migrate and merge at random agree with a model that knows every birth."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.schema import format_schema, hash_shape, load_catalog, plan_migration
from omnigraph.schema.accepted_decoder import decode_accepted
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.identity_map import map_identities
from omnigraph.schema.merging import NewNumbers, WrittenSchema, merge_written_schemas
from unit.schema.merges import first
from unit.schema.random_migrations import changed
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
STEPS_MAX = 14


@dataclass(frozen=True, eq=False)
class Commit:
    """A schema on a branch, as the program has it and as the model has it."""

    number: int
    schema: WrittenSchema
    model: Model
    parents: tuple[Commit, ...] = ()


@dataclass
class World:
    """Branches of one graph."""

    births: count[int] = field(default_factory=count)
    commits: count[int] = field(default_factory=count)
    heads: dict[str, Commit] = field(default_factory=dict)
    # What branches other than main number starts far above everything that was ever numbered.
    numbers: int = 10_000

    def born(self) -> Births:
        return frozenset({next(self.births)})

    def start(self) -> None:
        ant = Kind(self.born(), "Ant", (Prop(self.born(), "k"), Prop(self.born(), "p")))
        props = (Prop(self.born(), "k"), Prop(self.born(), "q", frozenset("uv")))
        bee = Kind(self.born(), "Bee", props)
        eats = Kind(self.born(), "Eats", (Prop(self.born(), "r"),), (ant.births, bee.births))
        model = Model((ant, bee, eats))
        commit = Commit(next(self.commits), first(written(model)), model)
        self.heads = dict.fromkeys(BRANCHES, commit)

    def numbers_from(self, branch: str, *schemas: AcceptedSchema) -> int:
        if branch == "main":
            return max(each.next_identity_id for each in schemas)
        self.numbers += 10_000
        return self.numbers

    def migrate(self, branch: str, model: Model) -> None:
        head = self.heads[branch]
        text = written(model, head.model)
        numbers_from = self.numbers_from(branch, head.schema.accepted)
        plan = plan_migration(head.schema.accepted, load_catalog(text), numbers_from=numbers_from)
        assert plan.schema is not None, plan.refusal
        schema = WrittenSchema(text, plan.schema)
        self.heads[branch] = Commit(next(self.commits), schema, model, (head,))

    def merge(self, target: str, source: str) -> None:
        ours, theirs = self.heads[target], self.heads[source]
        base = merge_base(ours, theirs)
        if base is theirs:
            return
        new = self.numbers_from(target, ours.schema.accepted, theirs.schema.accepted)
        found = merge_written_schemas(
            base.schema, ours.schema, theirs.schema, numbers=NewNumbers(new)
        )
        expected = _expected(base, ours, theirs)
        if expected is None:
            assert found.conflicts
            assert found.schema == ours.schema
            return
        assert not found.conflicts, [str(each) for each in found.conflicts]
        require_agreement(found.schema, expected)
        require_numbers(ours, found.schema.accepted)
        for side in (base, ours, theirs):
            require_continuity(side, found.schema.accepted, expected)
        again = merge_written_schemas(theirs.schema, found.schema, theirs.schema)
        assert again.schema == found.schema
        self.heads[target] = Commit(next(self.commits), found.schema, expected, (ours, theirs))


def _expected(base: Commit, ours: Commit, theirs: Commit) -> Model | None:
    try:
        return merge(base.model, ours.model, theirs.model)
    except Disagreement:
        return None


def merge_base(one: Commit, two: Commit) -> Commit:
    """The common ancestor with the smallest sum of distances, the newest of several."""
    first_, second = _distances(one), _distances(two)
    common = [
        (first_[each] + second[each], -each.number, each) for each in first_ if each in second
    ]
    return min(common, key=lambda found: found[:2])[2]


def _distances(commit: Commit) -> dict[Commit, int]:
    found = {commit: 0}
    waiting = deque([commit])
    while waiting:
        each = waiting.popleft()
        for parent in each.parents:
            if parent not in found:
                found[parent] = found[each] + 1
                waiting.append(parent)
    return found


# ---- what must hold ----


def require_agreement(schema: WrittenSchema, model: Model) -> None:
    assert hash_shape(load_catalog(schema.source)) == hash_shape(load_catalog(written(model)))
    assert schema.accepted.catalog == decode_accepted(schema.accepted.to_json()).catalog
    assert format_schema(format_schema(schema.source)) == format_schema(schema.source)


def require_numbers(ours: Commit, merged: AcceptedSchema) -> None:
    """What goes on keeps its numbers: tables are not renumbered by a merge."""
    same = map_identities(ours.schema.accepted, merged)
    for key, now in same.types.items():
        before, after = ours.schema.accepted.identities[key], merged.identities[now]
        assert (before.id, before.incarnation_id) == (after.id, after.incarnation_id)
        for name, new_name in same.properties_of(key).items():
            assert before.property_ids[name] == after.property_ids[new_name]


def require_continuity(side: Commit, merged: AcceptedSchema, model: Model) -> None:
    """Numbers and aliases tell what goes on from a side just as births do."""
    same = map_identities(side.schema.accepted, merged)
    types = {}
    for kind in side.model.kinds:
        now = find(model.kinds, kind.births)
        if now is None:
            continue
        types[_key(kind)] = _key(now)
        props = {
            each.name: new.name
            for each in kind.props
            if (new := find(now.props, each.births)) is not None
        }
        assert dict(same.properties_of(_key(kind))) == props
    assert dict(same.types) == types


def _key(kind: Kind) -> TypeKey:
    return TypeKey(TypeKind.NODE if kind.ends is None else TypeKind.EDGE, kind.name)


@pytest.mark.slow
@given(data=st.data())
def test_random_migrations_and_merges_agree_with_the_model(data: st.DataObject) -> None:
    world = World()
    world.start()
    for _ in range(data.draw(st.integers(2, STEPS_MAX))):
        branch = data.draw(st.sampled_from(BRANCHES))
        if data.draw(st.integers(0, 3)) == 0:
            others = [each for each in BRANCHES if each != branch]
            world.merge(branch, data.draw(st.sampled_from(others)))
            continue
        model = changed(world.heads[branch].model, data, world.born)
        if model is not None and model != world.heads[branch].model:
            world.migrate(branch, model)
    for target, source in (("main", "one"), ("one", "main"), ("two", "main")):
        world.merge(target, source)

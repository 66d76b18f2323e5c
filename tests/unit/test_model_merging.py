"""Merges of the model: bases, preferences, picked and reverted commits, and schemas."""

from __future__ import annotations

import pytest

from model.branching import BranchError, MergeConflicts, ModelBranches
from model.merging import Side
from omnigraph.errors import MigrationUnsupportedError
from omnigraph.schema import load_catalog
from unit.model_world import change, graph_of

PERSON = "node Person { name: String @key  age: I64? }\n"
TEAM = "node Team { title: String }\n"
SEED = """
{"type":"Person","data":{"name":"ada","age":1}}
{"type":"Person","data":{"name":"bob","age":2}}
{"type":"Team","id":"t1","data":{"title":"x"}}
"""


@pytest.fixture
def branches() -> ModelBranches:
    made = ModelBranches(graph_of(PERSON + TEAM, SEED))
    made.create("work")
    return made


def age(branches: ModelBranches, branch: str, name: str, value: int) -> None:
    text = f'update Person set {{ age: {value} }} where name = "{name}"'
    branches.write(branch, lambda graph: change(graph, text))


def ages(branches: ModelBranches, branch: str = "main") -> dict[str, int]:
    return {name: row["age"] for name, row in branches.graph(branch).nodes["Person"].items()}


def migrate(branches: ModelBranches, branch: str, *texts: str) -> None:
    branches.migrate(branch, load_catalog("".join(texts)))


def kinds(failure: pytest.ExceptionInfo[MergeConflicts]) -> list[str]:
    return [kind for kind, _ in failure.value.conflicts]


def test_a_base_is_never_an_ancestor_of_another_common_ancestor(branches: ModelBranches) -> None:
    branches.create("late")
    age(branches, "work", "ada", 10)
    fork = branches.head("work")
    branches.merge("work")
    for value in range(5):
        age(branches, "main", "bob", value)
    age(branches, "late", "bob", 4)
    branches.merge("late")
    # The first commit is closer to both, through the branch that was merged late.
    assert branches.base(branches.head("main"), branches.head("work")) == fork
    assert branches.merge("work") == "already_up_to_date"


def test_branches_that_merged_crosswise_have_the_closest_base(branches: ModelBranches) -> None:
    age(branches, "main", "ada", 10)
    age(branches, "work", "bob", 20)
    branches.create("before", "work")
    branches.merge("main", "work")
    branches.merge("before", "main")
    age(branches, "main", "bob", 21)
    # Both sides of the cross are equally close: the one that was made later counts.
    assert branches.base(branches.head("main"), branches.head("work")) == branches.head("before")
    assert branches.merge("main", "work") == "merged"
    assert ages(branches, "work") == {"ada": 10, "bob": 21}


def test_maintenance_is_nothing_to_merge(branches: ModelBranches) -> None:
    branches.maintain("work")
    assert branches.merge("work") == "already_up_to_date"
    age(branches, "work", "ada", 10)
    branches.maintain("main")
    assert branches.merge("work") == "fast_forward"


@pytest.mark.parametrize(("side", "expected"), [("ours", 10), ("theirs", 20)])
def test_a_preference_decides_a_conflict(
    branches: ModelBranches, side: Side, expected: int
) -> None:
    age(branches, "main", "ada", 10)
    age(branches, "work", "ada", 20)
    with pytest.raises(MergeConflicts):
        branches.merge("work", prefer={"divergent_insert": "ours"})
    assert branches.merge("work", prefer={"divergent_update": side}) == "merged"
    assert ages(branches)["ada"] == expected


def test_a_picked_commit_brings_its_own_change_alone(branches: ModelBranches) -> None:
    age(branches, "work", "ada", 10)
    age(branches, "work", "bob", 20)
    assert branches.cherry_pick(branches.head("work")) is True
    assert ages(branches) == {"ada": 1, "bob": 20}
    assert branches.cherry_pick(branches.head("work")) is False
    assert branches.commits[branches.head("main")].parents == (0,)


def test_a_reverted_commit_is_undone_unless_its_change_was_changed(
    branches: ModelBranches,
) -> None:
    age(branches, "main", "ada", 10)
    first = branches.head("main")
    age(branches, "main", "bob", 20)
    assert branches.revert(first) is True
    assert ages(branches) == {"ada": 1, "bob": 20}
    age(branches, "main", "ada", 30)
    with pytest.raises(MergeConflicts) as failure:
        branches.revert(first)
    assert kinds(failure) == ["divergent_update"]
    with pytest.raises(BranchError):
        branches.revert(0)


def test_properties_and_types_of_both_sides_merge(branches: ModelBranches) -> None:
    migrate(branches, "main", PERSON.replace("}", "nick: String? }"), TEAM)
    migrate(branches, "work", PERSON, TEAM.replace("}", "size: I64? }"), "node Memo { a: I64 }")
    branches.write(
        "work", lambda graph: graph.load('{"type":"Memo","id":"m","data":{"a":1}}', mode="append")
    )
    assert branches.merge("work") == "merged"
    found = branches.graph().catalog.nodes
    assert {name: sorted(type_.properties) for name, type_ in found.items()} == {
        "Memo": ["a"],
        "Person": ["age", "name", "nick"],
        "Team": ["size", "title"],
    }
    assert branches.graph().nodes["Memo"]["m"]["a"] == 1
    assert branches.merge("main", "work") == "fast_forward"


def test_what_both_sides_add_alike_is_one_thing_from_then_on(branches: ModelBranches) -> None:
    sized = TEAM.replace("}", "size: I64? }")
    migrate(branches, "main", PERSON.replace("}", "nick: String? }"), TEAM)
    migrate(branches, "main", PERSON.replace("}", "nick: String? }"), sized)
    migrate(branches, "work", PERSON, sized)
    assert branches.merge("work") == "merged"
    migrate(
        branches,
        "work",
        PERSON,
        sized.replace("size", "heads").replace("I64?", 'I64? @rename_from("size")'),
    )
    assert branches.merge("work") == "merged"
    assert sorted(branches.graph().catalog.nodes["Team"].properties) == ["heads", "title"]


def test_a_property_renamed_on_one_side_keeps_the_values_of_the_other(
    branches: ModelBranches,
) -> None:
    renamed = 'node Person { name: String @key  years: I64? @rename_from("age") }\n'
    migrate(branches, "work", renamed, TEAM)
    age(branches, "main", "ada", 10)
    assert branches.merge("work") == "merged"
    assert branches.graph().nodes["Person"]["ada"]["years"] == 10


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (PERSON + TEAM.replace("}", "size: I64? }"), PERSON + TEAM.replace("}", "size: String? }")),
        (PERSON, PERSON + TEAM + "edge In: Person -> Team"),
        (PERSON, PERSON + TEAM.replace("}", "size: I64? }")),
    ],
)
def test_schemas_that_do_not_go_together_conflict(
    branches: ModelBranches, ours: str, theirs: str
) -> None:
    migrate(branches, "main", ours)
    migrate(branches, "work", theirs)
    with pytest.raises(MergeConflicts) as failure:
        branches.merge("work")
    assert set(kinds(failure)) == {"schema_conflict"}


def test_a_schema_that_cannot_come_into_force_is_refused(branches: ModelBranches) -> None:
    with pytest.raises(MigrationUnsupportedError):
        migrate(branches, "main", PERSON.replace("age: I64?", "age: [I64]?"), TEAM)

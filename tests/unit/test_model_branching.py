"""Branches of the model: commits, merges and their conflicts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from model import Affected, Loaded, ModelGraph
from model.branching import BranchError, MergeConflicts, ModelBranches
from unit.model_world import change, graph_of

SCHEMA = """
node Person { name: String @key  age: I64?  email: String? @unique }
edge Knows: Person -> Person @card(0..2)
"""
SEED = """
{"type":"Person","data":{"name":"Alice","age":30}}
{"type":"Person","data":{"name":"Bob"}}
{"type":"Person","data":{"name":"Carol"}}
{"type":"Person","data":{"name":"Dan"}}
{"edge":"Knows","id":"k","from":"Bob","to":"Carol"}
"""


@pytest.fixture
def branches() -> ModelBranches:
    return ModelBranches(graph_of(SCHEMA, SEED))


def does(statements: str) -> Callable[[ModelGraph], Affected]:
    return lambda graph: change(graph, statements)


ADD_EDGE = 'insert Knows { from: "Alice", to: "Carol" }'
OPERATIONS = {
    "noop": [],
    "addNode": ['insert Person { name: "Eve" age: AGE }'],
    "removeNode": ['delete Person where name = "Alice"'],
    "addEdge": [ADD_EDGE],
    "removeEdge": ['delete Knows where @id = "k"'],
    "setProperty": ['update Person set { age: AGE } where name = "Alice"'],
    "netZeroEdge": [ADD_EDGE, 'delete Knows where from = "Alice"'],
}
CONFLICTS = {
    ("addNode", "addNode"): "divergent_insert",
    ("removeNode", "addEdge"): "orphan_edge",
    ("removeNode", "setProperty"): "delete_vs_update",
    ("addEdge", "removeNode"): "orphan_edge",
    ("setProperty", "removeNode"): "delete_vs_update",
    ("setProperty", "setProperty"): "divergent_update",
}


def run(branches: ModelBranches, name: str, operation: str, age: int) -> None:
    for statement in OPERATIONS[operation]:
        branches.write(name, does(statement.replace("AGE", str(age))))


@pytest.mark.parametrize("target", OPERATIONS)
@pytest.mark.parametrize("source", OPERATIONS)
def test_every_pair_of_changes_merges_or_conflicts(
    branches: ModelBranches, source: str, target: str
) -> None:
    branches.create("work")
    run(branches, "work", source, 31)
    run(branches, "main", target, 32)
    before = branches.graph().export()
    if (source, target) in CONFLICTS:
        with pytest.raises(MergeConflicts) as failure:
            branches.merge("work")
        assert [kind for kind, _ in failure.value.conflicts] == [CONFLICTS[source, target]]
        assert str(failure.value).startswith("merge conflicts: ")
        assert branches.graph().export() == before
        return
    expected = "merged" if target != "noop" else "fast_forward"
    assert branches.merge("work") == ("already_up_to_date" if source == "noop" else expected)
    after = branches.graph()
    if target == "noop":
        assert after.export() == branches.graph("work").export()
    if source in ("noop", "netZeroEdge"):
        assert after.export() == before
    if source == target == "addEdge":
        assert len(after.edges["Knows"]) == 3
    assert branches.merge("work") == "already_up_to_date"


def test_the_same_change_on_both_sides_merges(branches: ModelBranches) -> None:
    branches.create("work")
    for name in ("work", "main"):
        run(branches, name, "setProperty", 31)
    assert branches.merge("work") == "merged"


def test_null_and_an_empty_text_are_different(branches: ModelBranches) -> None:
    branches.write("main", does('update Person set { email: "x" } where name = "Bob"'))
    branches.create("work")
    branches.write("work", does('update Person set { email: "" } where name = "Bob"'))
    assert branches.merge("work") == "fast_forward"
    assert branches.graph().nodes["Person"]["Bob"]["email"] == ""


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ('update Person set { email: "x" } where name = "%s"', "unique_violation"),
        ('insert Knows { from: "Bob", to: "%s" }', "cardinality_violation"),
    ],
)
def test_a_rule_may_break_only_when_both_sides_meet(
    branches: ModelBranches, statement: str, kind: str
) -> None:
    branches.create("work")
    branches.write("work", does(statement % "Alice"))
    branches.write("main", does(statement % "Dan"))
    with pytest.raises(MergeConflicts) as failure:
        branches.merge("work")
    assert failure.value.conflicts[0][0] == kind


def test_a_mutation_without_effect_leaves_no_commit_but_an_empty_load_does(
    branches: ModelBranches,
) -> None:
    branches.write("main", does("delete Person where age > 99"))
    assert branches.head("main") == 0

    def load(graph: ModelGraph) -> Loaded:
        return graph.load("", mode="append")

    branches.write("main", load)
    assert branches.head("main") == 1


def test_a_failed_write_leaves_the_branch_alone(branches: ModelBranches) -> None:
    with pytest.raises(Exception, match="not found in Person"):
        branches.write("main", does('insert Knows { from: "Alice", to: "Zed" }'))
    assert branches.head("main") == 0


def test_a_nested_branch_merges_into_its_parent(branches: ModelBranches) -> None:
    branches.create("review")
    branches.create("review/x", "review")
    run(branches, "review/x", "addNode", 5)
    assert branches.list() == ["main", "review", "review/x"]
    assert branches.merge("review/x", "review") == "fast_forward"
    assert "Eve" not in branches.graph().nodes["Person"]
    run(branches, "main", "setProperty", 31)
    assert branches.merge("review") == "merged"
    assert branches.merge("main", "review") == "fast_forward"


def test_a_deleted_branch_is_not_found_and_its_name_is_free(branches: ModelBranches) -> None:
    branches.create("work")
    run(branches, "work", "addNode", 5)
    branches.delete("work")
    for action in (branches.graph, branches.delete, branches.merge):
        with pytest.raises(BranchError, match="branch 'work' not found"):
            action("work")
    branches.create("work")
    assert "Eve" not in branches.graph("work").nodes["Person"]


@pytest.mark.parametrize("name", ["main", "", " padded"])
def test_a_name_may_be_taken_or_malformed(branches: ModelBranches, name: str) -> None:
    with pytest.raises(BranchError):
        branches.create(name)


def test_main_stays_and_no_branch_merges_into_itself(branches: ModelBranches) -> None:
    with pytest.raises(BranchError):
        branches.delete("main")
    with pytest.raises(BranchError):
        branches.merge("main")

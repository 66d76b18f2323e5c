"""Rules that change on one branch, and the entities of another one: merges, reverts and writers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Branch, Graph, errors
from omnigraph.engine.graph import create_on
from omnigraph.engine.resources import Environment, open_storage
from omnigraph.engine.write_operations import MigrationOperation
from omnigraph.errors import MergeConflictError, MigrationUnsupportedError
from omnigraph.lang.lexer import Mode
from omnigraph.versioning.record import NO_SIGNATURE
from omnigraph.writers.prepare import Request
from places import fresh_uri
from unit.engine.migrated_branches import (
    PEOPLE,
    both_directions,
    changed,
    entity,
    people,
    people_graph,
    sides,
)

REQUIRED = changed(PEOPLE, ("age: I32?", "age: I32"))
UNIQUE = changed(PEOPLE, ("age: I32?", "age: I32? @unique"))


@pytest.fixture
def graph() -> Iterator[Graph]:
    """Ada, 36, and Bob, 41, in Rome, and a branch called review."""
    with people_graph() as graph:
        yield graph


@both_directions
def test_a_value_that_one_branch_requires_is_missing_on_the_other(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    target.apply_schema(REQUIRED)
    source.load([entity("Person", name="Cyd")], mode="append")
    assert conflicts(target, source) == [("value_constraint_violation", "Person", "Cyd")]
    assert conflicts(source, target) == [("value_constraint_violation", "Person", "Cyd")]
    source.load([entity("Person", name="Cyd", age=7)], mode="merge")
    assert target.merge(source).outcome == "merged"
    assert target.schema == REQUIRED
    assert people(target, "age")["Cyd"] == (7,)


@both_directions
def test_a_uniqueness_of_one_branch_meets_a_value_of_the_other(
    graph: Graph, *, is_reversed: bool
) -> None:
    target, source = sides(graph, is_reversed=is_reversed)
    target.apply_schema(UNIQUE)
    source.load([entity("Person", name="Cyd", age=41)], mode="append")
    for into, other in ((target, source), (source, target)):
        found = conflicts(into, other)
        assert {kind for kind, _, _ in found} == {"unique_violation"}
        assert "Cyd" in {id_ for _, _, id_ in found}


@both_directions
def test_a_value_that_one_branch_allows_to_be_missing_may_be(
    graph: Graph, *, is_reversed: bool
) -> None:
    graph.branch().apply_schema(REQUIRED)
    graph.branch("review").merge("main")
    target, source = sides(graph, is_reversed=is_reversed)
    target.apply_schema(PEOPLE)
    target.load([entity("Person", name="Cyd")], mode="append")
    source.load([entity("Person", name="Dov", age=9)], mode="append")
    assert target.merge(source).outcome == "merged"
    assert people(target, "age") == {"Ada": (36,), "Bob": (41,), "Cyd": (None,), "Dov": (9,)}


def test_a_revert_of_a_relaxed_rule_needs_entities_that_obey_it(graph: Graph) -> None:
    main = graph.branch()
    main.apply_schema(REQUIRED)
    relaxed = main.apply_schema(PEOPLE).commit
    main.load([entity("Person", name="Cyd")], mode="append")
    assert relaxed is not None
    with pytest.raises(MergeConflictError, match="'Cyd' contradicts"):
        main.revert(relaxed)
    main.mutate('query q() { delete Person where name = "Cyd" }')
    main.revert(relaxed)
    assert main.schema == REQUIRED


def test_a_schema_change_is_checked_again_on_what_others_wrote_meanwhile(graph: Graph) -> None:
    main = graph.branch()
    operation = MigrationOperation(main._session.resources, REQUIRED)
    assert operation.prepare(main.snapshot().view, Request(NO_SIGNATURE)) is not None
    main.load([entity("Person", name="Cyd")], mode="append")
    with pytest.raises(MigrationUnsupportedError, match=r"^\[OG-MF-104\] node:Person: 1 .* 'Cyd'"):
        operation.prepare(main.snapshot().view, Request(NO_SIGNATURE))


def test_old_commits_diffs_and_writes_see_each_their_own_rules(graph: Graph) -> None:
    main = graph.branch()
    before = main.head
    main.apply_schema(REQUIRED)
    with pytest.raises(errors.WriteRefusedError):
        main.load([entity("Person", name="Cyd")], mode="append")
    main.apply_schema(changed(PEOPLE, ("age: I32?", "age: I32?  nick: String?")))
    main.load([entity("Person", name="Cyd", nick="c")], mode="append")
    old = graph.snapshot(before).query("query q() { match { $p: Person } return { $p.age } }")
    assert sorted(old.to_arrow()["p.age"].to_pylist()) == [36, 41]
    assert [(each.kind, each.id) for each in graph.diff(before, main.head)] == [("node", "Cyd")]
    assert people(main, "age", "nick")["Cyd"] == (None, "c")
    assert graph.check().problems == ()


def test_a_strict_graph_changes_its_schema_as_the_reference_does() -> None:
    strict = Environment(mode=Mode.STRICT)
    with create_on(
        open_storage(fresh_uri(), is_durable=False, options=None), schema=PEOPLE, environment=strict
    ) as graph:
        plan = graph.branch().plan_schema(changed(PEOPLE, ("age: I32?", "age: String?")))
        assert not plan.supported
        with pytest.raises(MigrationUnsupportedError, match="OG-MF-106"):
            graph.branch().apply_schema(REQUIRED)


def conflicts(target: Branch, source: Branch) -> list[tuple[str, str, str | None]]:
    with pytest.raises(MergeConflictError) as failure:
        target.merge(source)
    assert target.plan_merge(source).conflicts == failure.value.conflicts
    return [(each.kind, each.type_name, each.entity_id) for each in failure.value.conflicts]

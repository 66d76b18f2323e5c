"""One entity through time: its versions, who gave it its values, and how it was at a commit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Branch, Commit, Graph, errors
from omnigraph.execution.query_budget import Cancellation
from unit.engine.company import CHANGES, SCHEMA, company, person


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph with two people and a team."""
    with company(actor="ada") as graph:
        yield graph


@pytest.fixture
def main(graph: Graph) -> Branch:
    """Its main branch."""
    return graph.branch()


def age(branch: Branch, who: str, years: int | None) -> Commit:
    """A commit that says how old somebody is."""
    commit = branch.mutate(CHANGES, name="birthday", params={"who": who, "age": years}).commit
    assert commit is not None
    return commit


def image(years: int) -> dict[str, object]:
    """Ada at an age."""
    return {"properties": {"age": years, "badge": None, "name": "Ada"}}


def versions(branch: Branch, who: str) -> list[tuple[str, str]]:
    """The commits and operations of a person's history."""
    return [(each.commit.id, each.op) for each in branch.history("Person", who)]


def test_a_history_tells_every_commit_that_changed_an_entity_and_no_other(main: Branch) -> None:
    born = main.head
    aged = age(main, "Ada", 37)
    age(main, "Bob", 50)
    main.load([person("Ada", 37)], mode="merge")
    gone = main.mutate(CHANGES, name="leave", params={"who": "Ada"}).commit
    assert gone is not None
    back = main.load([person("Ada", 1)], mode="append").commit
    assert versions(main, "Ada") == [
        (back.id, "insert"),
        (gone.id, "delete"),
        (aged.id, "update"),
        (born.id, "insert"),
    ]
    _, deleted, updated, inserted = main.history("Person", "Ada")
    assert updated.changed == ("age",)
    assert inserted.changed == ("age", "name")
    assert updated.before == inserted.after == image(36)
    assert updated.after == deleted.before == image(37)
    assert updated.to_json()["commit"] == aged.to_json()


def test_an_entity_that_never_was_has_no_history(main: Branch) -> None:
    assert versions(main, "Zed") == []
    with pytest.raises(errors.TypeNotFoundError):
        main.history("Persn", "Ada")
    with pytest.raises(errors.EntityNotFoundError):
        main.blame("Person", "Zed")


def test_blame_names_the_commit_of_each_value(main: Branch) -> None:
    born = main.head
    aged = age(main, "Ada", 37)
    age(main, "Bob", 1)
    assert main.blame("Person", "Ada") == {"age": aged, "badge": born, "name": born}
    back = age(main, "Ada", 36)
    assert main.blame("Person", "Ada")["age"] == back


def test_the_walk_along_commits_is_stopped_by_its_time_and_from_outside(main: Branch) -> None:
    stopped = Cancellation()
    begun = main.history("Person", "Ada", cancel=stopped)
    stopped.cancel()
    with pytest.raises(errors.QueryCancelledError):
        next(begun)
    with pytest.raises(errors.QueryTimeoutError):
        next(main.history("Person", "Ada", timeout=0))
    with pytest.raises(errors.QueryTimeoutError):
        main.blame("Person", "Ada", timeout=0)


def test_what_a_merge_brought_is_blamed_on_who_made_it(graph: Graph, main: Branch) -> None:
    born = main.head
    review = graph.create_branch("review")
    aged = age(review, "Ada", 37)
    new = review.load([person("Cleo", 9)], mode="append").commit
    ours = age(main, "Bob", 50)
    merge = main.merge(review, delete_branch=True).commit
    assert merge is not None
    assert main.blame("Person", "Ada") == {"age": aged, "badge": born, "name": born}
    assert main.blame("Person", "Cleo") == {"age": new, "badge": new, "name": new}
    assert main.blame("Person", "Bob")["age"] == ours
    assert versions(main, "Ada") == [
        (merge.id, "update"),
        (aged.id, "update"),
        (born.id, "insert"),
    ]
    assert versions(main, "Bob") == [(ours.id, "update"), (born.id, "insert")]


def test_what_a_merge_renamed_is_blamed_on_who_made_it(graph: Graph, main: Branch) -> None:
    review = graph.create_branch("review")
    aged = age(review, "Ada", 37)
    main.apply_schema(SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")', 1))
    main.merge(review)
    assert main.blame("Person", "Ada")["years"] == aged


def test_merges_of_merges_are_followed_and_every_commit_is_told_once(
    graph: Graph, main: Branch
) -> None:
    born = main.head
    a, b = graph.create_branch("a"), graph.create_branch("b")
    first = age(a, "Ada", 37)
    b.merge(a)
    second = age(b, "Ada", 38)
    a.merge(b)
    age(main, "Bob", 1)
    main.merge(a)
    blamed = main.blame("Person", "Ada")
    assert (blamed["age"], blamed["name"]) == (second, born)
    told = [commit for commit, _ in versions(main, "Ada")]
    assert len(set(told)) == len(told)
    assert {first.id, second.id, born.id} <= set(told)
    assert told[-1] == born.id


def test_a_preferred_side_shows_both_edits_and_blames_the_one_that_won(
    graph: Graph, main: Branch
) -> None:
    review = graph.create_branch("review")
    theirs, ours = age(review, "Ada", 37), age(main, "Ada", 38)
    merge = main.merge(review, prefer="theirs").commit
    assert merge is not None
    assert main.blame("Person", "Ada")["age"] == theirs
    told = [commit for commit, _ in versions(main, "Ada")]
    assert told[0] == merge.id
    assert {theirs.id, ours.id} < set(told)


def test_the_ends_of_an_edge_have_a_history_too(main: Branch) -> None:
    born = main.head
    [edge] = [record["id"] for record in main.baseline(kinds=["edge"])]
    moved = {"edge": "MemberOf", "id": edge, "from": "Bob", "to": "Engines", "data": {}}
    commit = main.load([moved], mode="merge").commit
    assert main.blame("MemberOf", edge) == {"@src": commit, "@dst": born, "since": commit}
    newest, _ = main.history("MemberOf", edge, kind="edge")
    assert newest.changed == ("@src", "since")


def test_values_are_blamed_across_renames_of_types_and_properties(main: Branch) -> None:
    born = main.head
    aged = age(main, "Ada", 37)
    renamed = (
        SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
        .replace("  age: I32?", '  years: I32? @rename_from("age")\n  city: String?')
        .replace("Person ->", "Human ->")
        .replace("-> Person", "-> Human")
    )
    main.apply_schema(renamed)
    bath = {"type": "Human", "data": {"name": "Ada", "years": 37, "city": "Bath"}}
    moved = main.load([bath], mode="merge").commit
    assert main.blame("Human", "Ada") == {
        "years": aged,
        "name": born,
        "badge": born,
        "city": moved,
    }
    newest, middle, _ = main.history("Human", "Ada")
    assert (newest.changed, middle.changed) == (("city",), ("age",))


def test_a_large_change_set_is_looked_into(main: Branch) -> None:
    born = main.head
    crowd = main.load([person(f"p{n}", n) for n in range(3000)], mode="append").commit
    assert versions(main, "p7") == [(crowd.id, "insert")]
    assert versions(main, "Ada") == [(born.id, "insert")]


def test_an_entity_can_be_read_at_any_commit(main: Branch) -> None:
    before = main.snapshot()
    age(main, "Ada", 37)
    main.mutate(CHANGES, name="leave", params={"who": "Bob"})
    now = main.snapshot()
    assert before.entity("Person", "Ada") == image(36)
    assert now.entity("Person", "Ada") == image(37)
    assert now.entity("Person", "Bob") is None
    assert before.entity("Person", "Bob") is not None
    assert now.entity("Team", "Engines", kind="node") == {"properties": {"name": "Engines"}}
    assert now.entity("Person", "nobody") is None

"""Writes with a key: mutations, merges, picks and schema changes happen once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph import Branch
from omnigraph.errors import InvalidArgumentError, PreconditionFailedError
from unit.engine.company import company, person

RAISE = 'query raise() { update Person set { age: 40 } where name = "Ada" }'
HIRE = 'query hire() { insert Person { name: "Eve", age: 30 } }'
FIRE = 'query fire() { delete Person where name = "Ada" }'


@pytest.fixture
def main() -> Iterator[Branch]:
    """The main branch of a graph."""
    with company() as graph:
        yield graph.branch()


@pytest.mark.parametrize("text", [RAISE, HIRE, FIRE])
def test_a_repeated_mutation_answers_what_the_first_one_did(main: Branch, text: str) -> None:
    first = main.mutate(text, key="job")
    main.load([person("Zoe")], mode="append")
    again = main.mutate(text, key="job")
    assert again == first
    assert (first.is_repeated, again.is_repeated) == (False, True)
    assert first.commit is not None
    assert main.head.version == first.commit.version + 1


def test_a_repeated_mutation_needs_neither_its_old_head_nor_its_old_schema(main: Branch) -> None:
    head = main.head
    first = main.mutate(RAISE, key="job", if_commit=head)
    main.apply_schema(main.schema.replace("age: I32?", ""))
    assert main.mutate(RAISE, key="job", if_commit=head) == first
    with pytest.raises(PreconditionFailedError):
        main.mutate(HIRE, key="other", if_commit=head)


def test_a_mutation_that_changes_nothing_keeps_no_key(main: Branch) -> None:
    nobody = 'query q() { update Person set { age: 1 } where name = "nobody" }'
    assert main.mutate(nobody, key="job").commit is None
    made = main.mutate(HIRE, key="job")
    assert made.commit is not None
    assert not made.is_repeated


@pytest.mark.parametrize("key", ["", "x" * 1_001])
def test_an_empty_or_endless_key_is_refused(main: Branch, key: str) -> None:
    with pytest.raises(InvalidArgumentError, match="key"):
        main.mutate(HIRE, key=key)


def test_the_key_of_another_schema_is_refused(main: Branch) -> None:
    one, other = (main.schema + f"\nnode {name} {{ k: String @key }}\n" for name in ("One", "Two"))
    assert main.apply_schema(one, key="job").commit is not None
    assert main.apply_schema(one, key="job").is_repeated
    with pytest.raises(InvalidArgumentError, match="another schema"):
        main.apply_schema(other, key="job")


def test_threads_that_mutate_with_one_key_make_one_commit(main: Branch) -> None:
    version = main.head.version
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: main.mutate(HIRE, key="job"), range(8)))
    assert {each.commit for each in made} == {made[0].commit}
    assert main.head.version == version + 1
    assert sum(not each.is_repeated for each in made) == 1


@pytest.mark.parametrize("is_deleted", [True, False])
@pytest.mark.parametrize("moves", [True, False])
def test_a_repeated_merge_answers_what_the_first_one_did(
    main: Branch, is_deleted: bool, moves: bool
) -> None:
    review = main.graph.create_branch("review")
    review.load([person("Cyd"), person("Ada", 99)], mode="merge")
    if moves:
        main.load([person("Dov")], mode="append")
    first = main.merge("review", delete_branch=is_deleted, key="job")
    assert first.outcome == ("merged" if moves else "fast_forward")
    main.load([person("Zoe")], mode="append")
    again = main.merge("review", delete_branch=is_deleted, key="job")
    assert (again.commit, again.outcome, again.done) == (first.commit, first.outcome, first.done)
    assert again == first
    assert again.is_repeated


def test_a_repeated_merge_ends_the_branch_that_the_first_one_left(main: Branch) -> None:
    review = main.graph.create_branch("review")
    review.load([person("Cyd")], mode="append")
    main.merge("review", key="job")
    assert main.merge("review", delete_branch=True, key="job").branch_deleted
    assert list(main.graph.branches()) == ["main"]


def test_a_repeated_merge_leaves_a_new_branch_of_the_name_alone(main: Branch) -> None:
    review = main.graph.create_branch("review")
    review.load([person("Cyd")], mode="append")
    main.merge("review", delete_branch=True, key="job")
    main.graph.create_branch("review")
    assert main.merge("review", delete_branch=True, key="job").is_repeated
    assert "review" in list(main.graph.branches())


def test_a_repeated_revert_or_pick_answers_what_the_first_one_did(main: Branch) -> None:
    hired = main.mutate(HIRE).commit
    assert hired is not None
    first = main.revert(hired, key="undo")
    assert main.revert(hired, key="undo") == first
    picked = main.cherry_pick(hired, key="redo")
    assert main.cherry_pick(hired.id, key="redo") == picked
    assert (first.outcome, picked.outcome) == ("reverted", "cherry_picked")
    assert main.head == picked.commit


def test_a_repeated_schema_change_answers_what_the_first_one_did(main: Branch) -> None:
    text = main.schema + "\nnode City { name: String @key }\n"
    first = main.apply_schema(text, key="job")
    main.apply_schema(text + "node River { name: String @key }\n")
    again = main.apply_schema(text, key="job")
    assert again == first
    assert again.is_repeated
    assert "River" in main.schema

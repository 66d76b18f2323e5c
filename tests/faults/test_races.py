"""Races between processes: nothing is lost, nobody wins twice, no rule of the schema breaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import places
from faults import race_workers
from faults.race_workers import DONE
from faults.world import create, names, person, problems, reopen, rows

ROUNDS = 60 if places.is_on_s3() else 300
INSERTS = 50 if places.is_on_s3() else 200

Worker = Callable[..., list[str]]


def race(worker: Worker, uri: str, *, processes: int, rounds: int) -> list[list[str]]:
    """Run a worker in several new processes at once; the outcomes of each."""
    # Lance does not survive a fork.
    context = get_context("spawn")
    with context.Manager() as manager:
        barrier = manager.Barrier(processes)
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            runs = [
                pool.submit(worker, uri, barrier, number, rounds) for number in range(processes)
            ]
            return [run.result() for run in runs]


def pair(worker: Worker, uri: str) -> list[tuple[str, ...]]:
    """The outcomes of two processes, round by round."""
    return list(zip(*race(worker, uri, processes=2, rounds=ROUNDS), strict=True))


@pytest.fixture
def graph(tmp_path: Path) -> str:
    """The address of a graph with two people per round."""
    uri = places.fresh_uri(tmp_path / "race.omni")
    with create(uri) as made:
        people = [person(f"{who}{number}") for number in range(ROUNDS) for who in "ab"]
        teams = [{"type": "Team", "data": {"name": f"team{number}"}} for number in range(2)]
        made.branch().load([*people, *teams, person("ada", age=0)], mode="append")
    return uri


@pytest.mark.slow
def test_four_processes_insert_distinct_keys_and_no_error_reaches_them(graph: str) -> None:
    before = len(names(reopen(graph).branch()))
    runs = race(race_workers.insert_many, graph, processes=4, rounds=INSERTS)
    assert [Counter(run) for run in runs] == [{DONE: INSERTS}] * 4
    opened = reopen(graph)
    assert len(names(opened.branch())) == opened.branch().count("Person") == before + 4 * INSERTS
    assert list(problems(opened)) == []


@pytest.mark.slow
def test_of_eight_writers_that_append_one_key_one_succeeds(graph: str) -> None:
    runs = race(race_workers.append_one, graph, processes=8, rounds=3)
    for outcomes in zip(*runs, strict=True):
        assert Counter(outcomes) == {DONE: 1, "KeyConflictError": 7}
    assert list(problems(reopen(graph))) == []


@pytest.mark.slow
def test_no_strict_update_of_one_entity_is_lost(graph: str) -> None:
    runs = race(race_workers.increment, graph, processes=4, rounds=25)
    assert all(run.count(DONE) == 25 for run in runs)
    main = reopen(graph).branch()
    ages = rows(main, 'query a() { match { $p: Person { name: "ada" } } return { $p.age } }')
    assert ages == [{"p.age": 100}]


@pytest.mark.slow
def test_an_edge_never_lands_beside_the_deletion_of_its_end(graph: str) -> None:
    outcomes = pair(race_workers.connect_or_delete, graph)
    opened = reopen(graph)
    assert list(problems(opened)) == []
    assert not [each for pair_ in outcomes for each in pair_ if each.startswith("unexpected")]
    deleted = sum(pair_[1] == DONE for pair_ in outcomes)
    assert opened.branch().count("Person") == 2 * ROUNDS + 1 - deleted
    # Whoever was deleted last took the edge along; an edge is left where the deletion was refused.
    assert opened.branch().count("Knows") == ROUNDS - deleted
    # Who wins may always be the same: far away, a deletion takes longer than an insertion.
    assert any(set(pair_) != {DONE} for pair_ in outcomes), "the two never met"


@pytest.mark.slow
def test_one_unique_value_never_has_two_owners(graph: str) -> None:
    outcomes = pair(race_workers.claim, graph)
    opened = reopen(graph)
    assert list(problems(opened)) == []
    assert all(sorted(pair_)[1] == DONE and pair_.count(DONE) == 1 for pair_ in outcomes), Counter(
        outcomes
    )
    text = "query e() { match { $p: Person } $p.email is not null return { $p.email } }"
    found = rows(opened.branch(), text.replace("} $p.email is not null", " $p.email is not null }"))
    assert len(found) == ROUNDS


@pytest.mark.slow
def test_a_second_edge_never_joins_one_where_one_is_allowed(graph: str) -> None:
    outcomes = pair(race_workers.lead, graph)
    opened = reopen(graph)
    assert list(problems(opened)) == []
    assert all(pair_.count(DONE) == 1 for pair_ in outcomes), Counter(outcomes)
    assert opened.branch().count("Leads") == ROUNDS


@pytest.mark.slow
def test_of_several_creators_of_one_graph_one_wins(tmp_path: Path) -> None:
    uri = places.fresh_uri(tmp_path / "new.omni")
    runs = race(race_workers.create_graph, uri, processes=4, rounds=3)
    for number, outcomes in enumerate(zip(*runs, strict=True)):
        assert Counter(outcomes) == {DONE: 1, "GraphExistsError": 3}
        assert list(problems(reopen(f"{uri}-{number}"))) == []


@pytest.mark.slow
def test_of_several_creators_of_one_branch_one_wins(graph: str) -> None:
    runs = race(race_workers.create_branch, graph, processes=4, rounds=5)
    for outcomes in zip(*runs, strict=True):
        assert Counter(outcomes) == {DONE: 1, "BranchExistsError": 3}
    assert reopen(graph).branches() == ["main", *(f"review/{number}" for number in range(5))]


@pytest.mark.slow
def test_a_name_is_never_both_a_tag_and_a_branch(graph: str) -> None:
    runs = race(race_workers.tag_or_create_branch, graph, processes=4, rounds=40)
    for outcomes in zip(*runs, strict=True):
        refusals = Counter(outcomes) - Counter([DONE])
        assert outcomes.count(DONE) == 1, outcomes
        assert refusals.keys() <= {
            "BranchExistsError",
            "BranchRefusedError",
            "TagExistsError",
            "InvalidArgumentError",
        }
    opened = reopen(graph)
    branches, tags = set(opened.branches()) - {"main"}, {tag.name for tag in opened.tags()}
    assert not branches & tags
    assert branches | tags == {f"both-{number}" for number in range(40)}
    assert list(problems(opened)) == []

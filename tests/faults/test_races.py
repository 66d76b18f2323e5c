"""Races between processes: nothing is lost, nobody wins twice, no rule of the schema breaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from faults import race_workers
from faults.race_workers import DONE
from faults.world import create, names, person, problems, reopen, rows

ROUNDS = 300

Worker = Callable[..., list[str]]


def race(worker: Worker, uri: Path, *, processes: int, rounds: int) -> list[list[str]]:
    """Run a worker in several new processes at once; the outcomes of each."""
    # Lance does not survive a fork.
    context = get_context("spawn")
    with context.Manager() as manager:
        barrier = manager.Barrier(processes)
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            runs = [
                pool.submit(worker, str(uri), barrier, number, rounds)
                for number in range(processes)
            ]
            return [run.result() for run in runs]


def pair(worker: Worker, uri: Path) -> list[tuple[str, ...]]:
    """The outcomes of two processes, round by round."""
    return list(zip(*race(worker, uri, processes=2, rounds=ROUNDS), strict=True))


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph with two people per round."""
    uri = tmp_path / "race.omni"
    with create(uri) as made:
        people = [person(f"{who}{number}") for number in range(ROUNDS) for who in "ab"]
        teams = [{"type": "Team", "data": {"name": f"team{number}"}} for number in range(2)]
        made.branch().load([*people, *teams, person("ada", age=0)], mode="append")
    return uri


def test_four_processes_insert_distinct_keys_and_no_error_reaches_them(graph: Path) -> None:
    before = len(names(reopen(graph).branch()))
    runs = race(race_workers.insert_many, graph, processes=4, rounds=200)
    assert [Counter(run) for run in runs] == [{DONE: 200}] * 4
    opened = reopen(graph)
    assert len(names(opened.branch())) == opened.branch().count("Person") == before + 800
    assert list(problems(opened)) == []


def test_of_eight_writers_that_append_one_key_one_succeeds(graph: Path) -> None:
    runs = race(race_workers.append_one, graph, processes=8, rounds=3)
    for outcomes in zip(*runs, strict=True):
        assert Counter(outcomes) == {DONE: 1, "KeyConflict": 7}
    assert list(problems(reopen(graph))) == []


def test_no_strict_update_of_one_entity_is_lost(graph: Path) -> None:
    runs = race(race_workers.increment, graph, processes=4, rounds=25)
    assert all(run.count(DONE) == 25 for run in runs)
    main = reopen(graph).branch()
    ages = rows(main, 'query a() { match { $p: Person { name: "ada" } } return { $p.age } }')
    assert ages == [{"p.age": 100}]


def test_an_edge_never_lands_beside_the_deletion_of_its_end(graph: Path) -> None:
    outcomes = pair(race_workers.connect_or_delete, graph)
    opened = reopen(graph)
    assert list(problems(opened)) == []
    assert not [each for pair_ in outcomes for each in pair_ if each.startswith("unexpected")]
    deleted = sum(pair_[1] == DONE for pair_ in outcomes)
    assert opened.branch().count("Person") == 2 * ROUNDS + 1 - deleted
    # Whoever was deleted last took the edge along; an edge is left where the deletion was refused.
    assert opened.branch().count("Knows") == ROUNDS - deleted
    assert len(set(outcomes)) > 1, "the two never met"


def test_one_unique_value_never_has_two_owners(graph: Path) -> None:
    outcomes = pair(race_workers.claim, graph)
    opened = reopen(graph)
    assert list(problems(opened)) == []
    assert all(sorted(pair_)[1] == DONE and pair_.count(DONE) == 1 for pair_ in outcomes), Counter(
        outcomes
    )
    text = "query e() { match { $p: Person } $p.email is not null return { $p.email } }"
    found = rows(opened.branch(), text.replace("} $p.email is not null", " $p.email is not null }"))
    assert len(found) == ROUNDS


def test_a_second_edge_never_joins_one_where_one_is_allowed(graph: Path) -> None:
    outcomes = pair(race_workers.lead, graph)
    opened = reopen(graph)
    assert list(problems(opened)) == []
    assert all(pair_.count(DONE) == 1 for pair_ in outcomes), Counter(outcomes)
    assert opened.branch().count("Leads") == ROUNDS


def test_of_several_creators_of_one_graph_one_wins(tmp_path: Path) -> None:
    runs = race(race_workers.create_graph, tmp_path / "new.omni", processes=4, rounds=3)
    for number, outcomes in enumerate(zip(*runs, strict=True)):
        assert Counter(outcomes) == {DONE: 1, "GraphExists": 3}
        assert list(problems(reopen(tmp_path / f"new.omni-{number}"))) == []


def test_of_several_creators_of_one_branch_one_wins(graph: Path) -> None:
    runs = race(race_workers.create_branch, graph, processes=4, rounds=5)
    for outcomes in zip(*runs, strict=True):
        assert Counter(outcomes) == {DONE: 1, "BranchExists": 3}
    assert reopen(graph).branches() == ["main", *(f"review/{number}" for number in range(5))]

"""What the processes of a race do; module-level functions, so that a new process can import them.

Every worker opens the graph for itself and meets the others at a barrier before each round.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.synchronize import Barrier

import omnigraph
from faults.world import MUTATIONS, person, reopen
from omnigraph.errors import (
    BranchExistsError,
    BranchRefusedError,
    ConflictError,
    GraphExistsError,
    InvalidArgumentError,
    OmnigraphError,
    TagExistsError,
    WriteRefusedError,
)

DONE = "done"
# Long enough for a loaded machine, short enough to notice a worker that died.
BARRIER_S_MAX = 120.0
_REFUSALS = (
    ConflictError,
    WriteRefusedError,
    GraphExistsError,
    BranchExistsError,
    BranchRefusedError,
    TagExistsError,
    InvalidArgumentError,
)


def insert_many(uri: str, barrier: Barrier, worker: int, count: int) -> list[str]:
    """Insert distinct people one by one; no error is expected."""
    branch = reopen(uri).branch()
    barrier.wait(BARRIER_S_MAX)
    outcomes = []
    for number in range(count):
        if number % 2:
            branch.load([person(f"p{worker}-{number}")], mode="append")
        else:
            params = {"name": f"p{worker}-{number}", "age": number % 100}
            branch.mutate(MUTATIONS, name="add_person", params=params)
        outcomes.append(DONE)
    return outcomes


def append_one(uri: str, barrier: Barrier, worker: int, count: int) -> list[str]:
    """Append the same person as everybody else, once per round."""
    branch = reopen(uri).branch()

    def write(number: int) -> object:
        return branch.load([person(f"same-{number}", age=worker)], mode="append")

    return _rounds(barrier, count, write)


def increment(uri: str, barrier: Barrier, _worker: int, count: int) -> list[str]:
    """Raise one person's age `count` times, by compare-and-set."""
    branch = reopen(uri).branch()
    barrier.wait(BARRIER_S_MAX)
    outcomes: list[str] = []
    while outcomes.count(DONE) < count:
        found = branch.query('query a() { match { $p: Person { name: "ada" } } return { $p.age } }')
        old = found.to_pylist()[0]["p.age"]
        text = """query set($old: I32, $new: I32) {
            update Person set { age: $new } where name = "ada" and age = $old
        }"""
        try:
            result = branch.mutate(text, params={"old": old, "new": old + 1})
        except ConflictError:
            outcomes.append("Conflict")
        else:
            outcomes.append(DONE if result.affected_nodes else "changed before")
    return outcomes


def connect_or_delete(uri: str, barrier: Barrier, worker: int, count: int) -> list[str]:
    """One inserts an edge while the other deletes its end."""
    branch = reopen(uri).branch()

    def write(number: int) -> object:
        if worker == 0:
            params = {"a": f"a{number}", "b": f"b{number}"}
            return branch.mutate(MUTATIONS, name="knows", params=params)
        return branch.mutate(MUTATIONS, name="leave", params={"name": f"b{number}"})

    return _rounds(barrier, count, write)


def claim(uri: str, barrier: Barrier, worker: int, count: int) -> list[str]:
    """Both claim the same unique value, each for another person."""
    branch = reopen(uri).branch()

    def write(number: int) -> object:
        who = f"{'ab'[worker]}{number}"
        if number % 2:
            params = {"name": who, "email": f"mail{number}"}
            return branch.mutate(MUTATIONS, name="claim", params=params)
        return branch.load([person(who, email=f"mail{number}")], mode="merge")

    return _rounds(barrier, count, write)


def lead(uri: str, barrier: Barrier, worker: int, count: int) -> list[str]:
    """Both give one person a team to lead, where one is allowed."""
    branch = reopen(uri).branch()

    def write(number: int) -> object:
        params = {"a": f"a{number}", "b": f"team{worker}"}
        return branch.mutate(MUTATIONS, name="leads", params=params)

    return _rounds(barrier, count, write)


def create_graph(uri: str, barrier: Barrier, worker: int, count: int) -> list[str]:
    """Everybody creates the same graph."""
    schema = "node Person { name: String @key }"

    def write(number: int) -> object:
        return omnigraph.create(f"{uri}-{number}", schema=schema, actor=f"w{worker}")

    return _rounds(barrier, count, write)


def create_branch(uri: str, barrier: Barrier, worker: int, count: int) -> list[str]:
    """Everybody creates the same branch."""
    graph = omnigraph.open(uri, actor=f"w{worker}", durable=False)
    return _rounds(barrier, count, lambda number: graph.create_branch(f"review/{number}"))


def tag_or_create_branch(uri: str, barrier: Barrier, worker: int, count: int) -> list[str]:
    """Give a new name to a tag or to a branch, once per round."""
    graph = reopen(uri)

    def write(number: int) -> object:
        name = f"both-{number}"
        return graph.tag(name) if worker % 2 else graph.create_branch(name)

    return _rounds(barrier, count, write)


def _rounds(barrier: Barrier, count: int, write: Callable[[int], object]) -> list[str]:
    """What each round gave: done, or the name of the error that refused it."""
    outcomes = []
    for number in range(count):
        barrier.wait(BARRIER_S_MAX)
        try:
            write(number)
        except _REFUSALS as refusal:
            outcomes.append(type(refusal).__name__)
        except OmnigraphError as error:
            outcomes.append(f"unexpected {type(error).__name__}: {error}")
        else:
            outcomes.append(DONE)
    return outcomes

"""Mutations that are stopped before their commit: by their time, their memory or their caller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Branch, Cancellation, Graph
from omnigraph.errors import QueryCancelledError, QueryTimeoutError, ResourceLimitError
from places import fresh_uri

SCHEMA = "node Person { name: String @key age: I64? }  edge Knows: Person -> Person"
PEOPLE = 300
# To enumerate the rows of this takes many minutes.
PRODUCT = """query q() {
  match {
    $a: Person $b: Person $c: Person $d: Person
    $a.age != $b.age  $b.age != $c.age  $c.age != $d.age  $a.age < 0 - $d.age
  }
  update $a set { age: 1 }
}"""
OLDER = """query q() { match { $p: Person $p.age >= 0 } update $p set { age: $p.age + 1 } }"""
SCANS = "query q() { update Person set { age: 1 } where age >= 0 and age % 2 = 0 }"
DELETES = "query q() { delete Person where age >= 0 and age % 2 = 0 }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    uri = fresh_uri(tmp_path_factory.mktemp("bounded") / "bounded.omni")
    with omnigraph.create(uri, schema=SCHEMA, durable=False) as graph:
        names = [f"p{number}" for number in range(PEOPLE)]
        people = pa.table({"name": names, "age": pa.array(range(PEOPLE), pa.int64())})
        graph.branch().load(people, type="Person", mode="append")
        yield graph


class LateCancellation(Cancellation):
    """Is cancelled as soon as a mutation has looked so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._left = looks

    @property
    def is_cancelled(self) -> bool:
        self._left -= 1
        return self._left < 0

    @property
    def looks_left(self) -> int:
        return self._left


def _require_unchanged(branch: Branch, write: Callable[[], object], refusal: type) -> None:
    before = branch.head.id
    with pytest.raises(refusal):
        write()
    assert branch.head.id == before


def test_a_pattern_is_stopped_when_its_time_is_over(graph: Graph) -> None:
    main, started = graph.branch(), time.process_time()
    _require_unchanged(main, lambda: main.mutate(PRODUCT, timeout=0.1), QueryTimeoutError)
    assert time.process_time() - started < 2.0


def test_another_thread_stops_a_pattern(graph: Graph) -> None:
    main, cancellation = graph.branch(), Cancellation()
    timer = threading.Timer(0.1, cancellation.cancel)
    timer.start()
    _require_unchanged(main, lambda: main.mutate(PRODUCT, cancel=cancellation), QueryCancelledError)
    timer.join()


def test_the_memory_of_a_pattern_is_bounded(graph: Graph) -> None:
    main = graph.branch()
    _require_unchanged(main, lambda: main.mutate(OLDER, memory=1), ResourceLimitError)


@pytest.mark.parametrize("text", [OLDER, SCANS, DELETES])
def test_a_mutation_may_be_stopped_at_each_look_before_its_commit(graph: Graph, text: str) -> None:
    branch = graph.create_branch(f"stopped-{len(text)}", source="main")
    # What the first run compiles and reads is there for those after it.
    branch.mutate(text, dry_run=True)
    counted = LateCancellation(10**6)
    branch.mutate(text, cancel=counted, dry_run=True)
    looks = 10**6 - counted.looks_left
    # At its start, while it reads, and when the rows are ready to be committed.
    assert looks > 3
    for count in range(looks):
        write = partial(branch.mutate, text, cancel=LateCancellation(count))
        _require_unchanged(branch, write, QueryCancelledError)
    done = branch.mutate(text, cancel=LateCancellation(looks))
    assert done.commit is not None


def test_a_pattern_is_analyzed_once_however_often_it_runs(graph: Graph) -> None:
    branch = graph.create_branch("often", source="main")
    branch.mutate(OLDER)
    known = branch.session.resources.reads.planner._known
    analyzed = len(known)
    for _ in range(3):
        branch.mutate(OLDER)
    assert len(known) == analyzed

"""Queries that are stopped: by their time, by another thread, and by an interruption."""

from __future__ import annotations

import gc
import signal
import threading
import time
import traceback
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Cancellation, Graph
from omnigraph.errors import (
    InvalidArgumentError,
    QueryCancelledError,
    QueryTimeoutError,
    ResourceLimitError,
)
from places import fresh_uri

SCHEMA = "node Person { name: String @key age: I64? }  edge Knows: Person -> Person"
PEOPLE = 400
# To count the rows of this takes many minutes.
PRODUCT = """query q() {
  match {
    $a: Person $b: Person $c: Person $d: Person
    $a.age != $b.age  $b.age != $c.age  $c.age != $d.age
  }
  return { count($a) as n }
}"""
# So long a text takes longer to compile than any of these tests has.
LONG = (
    "query q() { match { $p: Person "
    + " or ".join(f'$p.name = "somebody called {number}"' for number in range(60_000))
    + " } return { $p.name } }"
)
LISTED_AGES = "query q($l: [I64]) { match { $p: Person $p.age in $l } return { count($p) as n } }"
LISTED_NAMES = LISTED_AGES.replace("I64", "String").replace(".age", ".name")
# A busy machine may take its time; what is measured exactly is in `benchmarks/hostile.py`.
SOON_S = 2.0


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    uri = fresh_uri(tmp_path_factory.mktemp("stopped") / "stopped.omni")
    with omnigraph.create(uri, schema=SCHEMA, durable=False) as graph:
        names = [f"p{number}" for number in range(PEOPLE)]
        people = pa.table({"name": names, "age": pa.array(range(PEOPLE), pa.int64())})
        graph.branch().load(people, type="Person", mode="append")
        yield graph


@pytest.mark.parametrize("text", [PRODUCT, LONG], ids=["running", "compiling"])
def test_another_thread_cancels_a_query(graph: Graph, text: str) -> None:
    cancellation = Cancellation()
    cancelled: list[float] = []

    def cancel() -> None:
        cancelled.append(time.monotonic())
        cancellation.cancel()

    timer = threading.Timer(0.2, cancel)
    timer.start()
    with pytest.raises(QueryCancelledError):
        graph.branch().query(text, cancel=cancellation)
    assert time.monotonic() - cancelled[0] < SOON_S
    timer.join()


def test_a_cancellation_is_for_good(graph: Graph) -> None:
    cancellation = Cancellation()
    text = "query q() { match { $p: Person } return { count($p) as n } }"
    assert graph.branch().query(text, cancel=cancellation).to_pylist() == [{"n": PEOPLE}]
    cancellation.cancel()
    assert cancellation.is_cancelled
    for read in (graph.branch().query, graph.branch().explain, graph.branch().snapshot().query):
        with pytest.raises(QueryCancelledError):
            read(text, cancel=cancellation)


def test_only_a_cancellation_cancels(graph: Graph) -> None:
    with pytest.raises(InvalidArgumentError, match=r"not an omnigraph\.Cancellation"):
        graph.branch().query(PRODUCT, cancel=threading.Event())  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [PRODUCT, LONG], ids=["running", "compiling"])
def test_time_counts_from_the_first_character(graph: Graph, text: str) -> None:
    for read in (graph.branch().query, graph.branch().snapshot().query, graph.branch().explain):
        # Time of this process alone: other work of the machine does not count.
        started = time.process_time()
        with pytest.raises(QueryTimeoutError) as stopped:
            read(text, timeout=0.2)
        assert stopped.value.timeout_s == pytest.approx(0.2, abs=0.01)
        assert time.process_time() - started < SOON_S


def test_a_text_counts_as_memory(graph: Graph) -> None:
    with pytest.raises(ResourceLimitError, match="query_memory_bytes"):
        graph.branch().query(LONG, memory=64 * 2**20)


@pytest.mark.parametrize("items", [list(range(50_000)), [f"p{n}" for n in range(50_000)]])
def test_a_list_counts_as_memory(graph: Graph, items: list[object]) -> None:
    text = LISTED_AGES if isinstance(items[0], int) else LISTED_NAMES
    with pytest.raises(ResourceLimitError, match="query_memory_bytes"):
        graph.branch().query(text, params={"l": items}, memory=2**20)
    found = graph.branch().query(text, params={"l": items}, memory=64 * 2**20).to_pylist()
    assert found == [{"n": PEOPLE}]


class LateCancellation(Cancellation):
    """Is cancelled as soon as a query has looked so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._left = looks

    @property
    def is_cancelled(self) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize(
    ("test", "word"),
    [('not ($p.name contains "z{}")', " and "), ('$p.name starts_with "z{}"', " or ")],
)
def test_a_query_looks_at_its_time_between_the_operands_of_a_condition(
    graph: Graph, test: str, word: str
) -> None:
    tests = word.join(map(test.format, range(500)))
    text = f"query q() {{ match {{ $p: Person {tests} }} return {{ count($p) as n }} }}"
    graph.branch().query(text)
    with pytest.raises(QueryCancelledError):
        graph.branch().query(text, cancel=LateCancellation(200))


@contextmanager
def interruption(after_s: float) -> Iterator[None]:
    """Raise KeyboardInterrupt once, at the first moment where Python does not swallow it.

    Python prints and drops what is raised in the callbacks of its collector (Hypothesis installs
    one) and of weak references. A person would press the keys again; so does the timer.
    """

    def interrupt(_signal: int, frame: FrameType | None) -> None:
        if any(at.f_code.co_filename == weakref.__file__ for at, _ in traceback.walk_stack(frame)):
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt

    gc.disable()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, after_s, 0.01)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


@pytest.mark.parametrize("text", [PRODUCT, LONG], ids=["running", "compiling"])
def test_an_interruption_ends_a_query_soon(graph: Graph, text: str) -> None:
    started = time.monotonic()
    with interruption(after_s=0.2), pytest.raises(KeyboardInterrupt):
        graph.branch().query(text)
    assert time.monotonic() - started < 0.2 + SOON_S
    names = "query q() { match { $p: Person } return { $p.name } limit 3 }"
    assert len(graph.branch().query(names)) == 3


def test_a_pattern_of_very_many_steps_is_no_recursion(graph: Graph) -> None:
    variables = "  ".join(f"$v{number}: Person" for number in range(3_000))
    text = f"query q() {{ match {{ {variables} }} return {{ $v0.name }} }}"
    with pytest.raises((QueryTimeoutError, ResourceLimitError)):
        graph.branch().query(text, timeout=0.5)

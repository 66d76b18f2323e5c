from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Cancellation, Graph
from omnigraph.engine.read_requests import PreparedRead, build_read_request, prepare_read
from omnigraph.errors import (
    EngineUnsupportedError,
    InvalidArgumentError,
    QueryCancelledError,
    QueryTimeoutError,
    ResourceLimitError,
)
from omnigraph.execution.result import Result
from omnigraph.spark.query import run_query
from omnigraph.spark.query.query_frames import SizeThresholds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  score: F64?
  serial: U64?
  born: Date?
  bio: String?
  place: Vector(2)?
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person
edge LivesIn: Person -> City
"""
PEOPLE = 60
# Every table is large, and every hop asks for its frontier first.
LARGE = SizeThresholds(local_rows=0, small_rows=0)
# Large tables, and more starts than can be told to tasks.
JOINED = SizeThresholds(local_rows=0, small_rows=0, hashed_rows=0, frontier_max=2)
SIZES = {"small": SizeThresholds(), "large": LARGE, "joined": JOINED}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with omnigraph.create(tmp_path_factory.mktemp("query") / "g", schema=SCHEMA) as made:
        main = made.branch()
        # Several commits, so that tables have several fragments.
        for first in range(0, PEOPLE, 20):
            numbers = range(first, first + 20)
            main.load(people(numbers), mode="append", type="Person")
        main.load(pa.table({"name": ["Rome", "Oslo"]}), mode="append", type="City")
        every = range(PEOPLE)
        main.load(edges(every, lambda n: (n * 3 + 1) % PEOPLE), mode="append", type="Knows")
        # The same again: parallel edges.
        main.load(edges(range(10), lambda n: (n * 3 + 1) % PEOPLE), mode="append", type="Knows")
        main.load(edges(range(0, PEOPLE, 2), lambda n: n // 2), mode="append", type="Likes")
        lives = pa.table({"from": [f"p{n}" for n in range(40)], "to": ["Rome", "Oslo"] * 20})
        main.load(lives, mode="append", type="LivesIn")
        yield made


def people(numbers: range) -> pa.Table:
    return pa.table(
        {
            "name": [f"p{n}" for n in numbers],
            "age": pa.array([None if n % 5 == 0 else n % 7 for n in numbers], pa.int32()),
            "score": [n / 3 if n % 4 else -0.0 for n in numbers],
            "serial": pa.array([2**63 + n for n in numbers], pa.uint64()),
            "bio": ["likes graphs" if n % 3 else "likes tea" for n in numbers],
            "place": pa.array([[n, -n] for n in numbers], pa.list_(pa.float32(), 2)),
        }
    )


def edges(starts: range, end: object) -> pa.Table:
    assert callable(end)
    return pa.table({"from": [f"p{n}" for n in starts], "to": [f"p{end(n)}" for n in starts]})


def prepared(graph: Graph, text: str, **params: object) -> PreparedRead:
    snapshot = graph.branch().snapshot()
    resources = snapshot._session.resources
    return prepare_read(resources, snapshot.view, build_read_request(text, params=params))


def on_spark(spark: SparkSession, read: PreparedRead, sizes: SizeThresholds) -> Result:
    return run_query(
        spark, read.plan, read.view, read.params, now=read.now, options=read.options, sizes=sizes
    )


def in_any_order(result: Result, read: PreparedRead) -> list[str]:
    rows = [repr(row) for row in result.to_json_rows()]
    return rows if read.plan.is_ordered else sorted(rows)


QUERIES = {
    "a scan": """
        query q($least: I32) {
          match { $p: Person  $p.age >= $least }
          return { $p, $p.serial, $p.place, $least as least }
          order { $p.serial desc } limit 9 }""",
    "a key": 'query q() { match { $p: Person { name: "p7" } } return { $p.name, $p.score } }',
    "text": 'query q() { match { $p: Person  search($p.bio, "tea") } return { $p.name } }',
    "rows that may lack a node": """
        query q() {
          match {
            $p: Person
            optional { $p $w:likes $x  $x.age > 2 }
            each { $p knows $y }
            $x is null or $x.score > 3.0
          }
          return { $p.name, $x, $w.@id as w, count(*) as n, count($x) as m, max($y.age) as a }
          order { w desc, $p.name } }""",
    "groups": """
        query q() {
          match { $p: Person }
          return { $p.age, $p.bio, count($p) as n, sum($p.score) as s, avg($p.serial) as a,
                   min($p.name) as low, max($p.score) as high }
          order { n desc, s } }""",
    "one group of nothing": """
        query q() {
          match { $p: Person  $p.age > 100 } return { count($p) as n, sum($p.score) as s } }""",
    "a chain": """
        query q() {
          match { $p: Person { name: "p5" }  $p knows $x  $x likes $y  $y.age < $x.age }
          return { $p.name, $x.name, $y.name, $y.born } }""",
    "from everywhere": """
        query q() {
          match { $p: Person  $p knows $x } return { $x.age, count($p) as n } order { n desc } }""",
    "from everywhere, both ways": """
        query q() {
          match { $p: Person  $p <knows> $x }
          return { $x.age, count($p) as n } order { n desc } }""",
    "from everywhere by edges": """
        query q() {
          match { $p: Person  $p $e:(knows | likes) $x }
          return { $x.name, count($p) as n } order { n desc, $x.name } }""",
    "several hops": """
        query q() {
          match { $p: Person  $p.age = 3  $p <knows>{2,3} $x  $x.age > 1 }
          return { $p.name, $x.name } }""",
    "a cycle": """
        query q() {
          match { $p: Person  $p knows $x  $x knows $y  $y likes $p }
          return { $p.name, $x.name, $y.name } }""",
    "loops": "query q() { match { $p: Person  $p likes{1,2} $p } return { $p.name } }",
    "edges": """
        query q() {
          match { $p: Person  $p $e:(knows | likes) $x  $p.age > 4 }
          return { $p.name, $x.name, $e.@type, count($x) as n }
          order { n desc, $p.name, $x.name } limit 20 }""",
    "blocks": """
        query q() {
          match { $p: Person  $p livesIn $c
                  not { $p likes $x }
                  count { $p knows $y  $y.age > 1 } >= 1 }
          return { $p.name, $c.name } }""",
    "a join by values": """
        query q() {
          match { $a: Person  $b: Person  $a.age = $b.score  $a.bio = $b.bio  $a.name != $b.name }
          return { $a.name, $b.name } }""",
    "a product": """
        query q() {
          match { $a: City  $b: City  $p: Person  $p.age = 2  $a.name != $b.name }
          return { $a.name, $b.name, $p.name } }""",
}


# Only traversals have a frontier.
RUNS = [(name, size) for size in ("small", "large") for name in QUERIES]
RUNS += [(name, "joined") for name in ("a chain", "several hops", "edges")]
SMOKE = {("a scan", "small"), ("groups", "large"), ("a chain", "joined")}


@pytest.mark.parametrize(
    ("name", "size"),
    [pytest.param(*run, marks=[pytest.mark.smoke] if run in SMOKE else []) for run in RUNS],
)
def test_a_read_on_spark_answers_as_the_local_engine_does(
    graph: Graph, spark: SparkSession, name: str, size: str
) -> None:
    params = {"least": 5} if "$least" in QUERIES[name] else {}
    read = prepared(graph, QUERIES[name], **params)
    local = read.run()
    found = on_spark(spark, read, SIZES[size])
    assert found.to_arrow().schema == local.to_arrow().schema
    assert in_any_order(found, read) == in_any_order(local, read)
    assert len(local) > 0


def test_a_ranked_read_is_refused_and_says_who_runs_it(graph: Graph, spark: SparkSession) -> None:
    text = """
        query q() {
          match { $p: Person } return { $p.name } order { bm25($p.bio, "tea") desc } limit 3 }"""
    with pytest.raises(EngineUnsupportedError, match="bm25") as refused:
        on_spark(spark, prepared(graph, text), SizeThresholds())
    assert "local" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("match { $p: Person } with { $p } return { $p.name }", "a read with stages"),
        ("return { 1 as n } union return { 2 as n }", "combined reads"),
        ("match { for $p, $n in cores(edges: knows) } return { $n }", "table function 'cores'"),
    ],
)
def test_stages_and_tables_are_refused_before_spark_is_asked(
    graph: Graph, text: str, what: str
) -> None:
    def get_session() -> SparkSession:
        raise AssertionError("a refused read needs no session")

    read = prepared(graph, f"query q() {{ {text} }}")
    with pytest.raises(EngineUnsupportedError, match=what):
        run_query(get_session, read.plan, read.view, read.params, now=read.now)


@pytest.mark.parametrize(
    ("clauses", "what"),
    [
        ("optional { $p knows $x } limit 1", "with a limit"),
        ("optional { $p knows $x }  not { $x knows $y }", "may leave out"),
        ("for $n in [1, 2]", "'for'"),
        ("let $n = count { $p knows $x }", "a block in an expression"),
    ],
)
def test_what_only_this_process_runs_is_refused(
    graph: Graph, spark: SparkSession, clauses: str, what: str
) -> None:
    item = "$n" if "$n" in clauses else "$x.name"
    text = f"query q() {{ match {{ $p: Person  {clauses} }} return {{ $p.name, {item} }} }}"
    with pytest.raises(EngineUnsupportedError, match=what):
        on_spark(spark, prepared(graph, text), SizeThresholds())


def test_the_edges_of_a_selection_are_counted_on_spark(graph: Graph, spark: SparkSession) -> None:
    text = """
        set traversal_work_limit = 20;
        query q() { match { $p: Person  $p (knows | likes) $x } return { $p.name, $x.name } }"""
    with pytest.raises(ResourceLimitError):
        on_spark(spark, prepared(graph, text), SizeThresholds())


@pytest.mark.parametrize("timeout", [0, 1])
def test_a_read_ends_when_its_time_is_over(
    graph: Graph, spark: SparkSession, timeout: float
) -> None:
    assert spark is not None
    people = "  ".join(f"$p{number}: Person" for number in range(4))
    text = f"query q() {{ match {{ {people} }} return {{ count($p0) as n }} }}"
    started = time.monotonic()
    with pytest.raises(QueryTimeoutError):
        graph.branch().query(text, engine="spark", timeout=timeout)
    # All of its 12,960,000 rows would take minutes.
    assert time.monotonic() - started < 60


def test_a_read_on_spark_can_be_cancelled(graph: Graph, spark: SparkSession) -> None:
    assert spark is not None
    people = "  ".join(f"$p{number}: Person" for number in range(4))
    text = f"query q() {{ match {{ {people} }} return {{ count($p0) as n }} }}"
    cancellation = Cancellation()
    cancelling = threading.Timer(1.0, cancellation.cancel)
    cancelling.start()
    started = time.monotonic()
    with pytest.raises(QueryCancelledError):
        graph.branch().query(text, engine="spark", cancel=cancellation)
    assert time.monotonic() - started < 60
    cancelling.join()


def test_branches_and_snapshots_take_the_engine_as_a_word(
    graph: Graph, spark: SparkSession
) -> None:
    assert spark is not None
    text = "query q() { match { $c: City } return { $c.name } order { $c.name } }"
    found = graph.branch().snapshot().query(text, engine="spark")
    assert found.to_pylist() == [{"c.name": "Oslo"}, {"c.name": "Rome"}]
    with pytest.raises(InvalidArgumentError, match="neither 'local' nor 'spark'"):
        graph.branch().query(text, engine="flink")  # type: ignore[arg-type]

"""Asynchronous graphs: the same answers as synchronous ones, and calls that are cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import AsyncBranch, AsyncGraph, Graph
from omnigraph.errors import (
    GraphClosedError,
    MergeConflictError,
    QueryCancelledError,
    QueryTimeoutError,
)
from places import fresh_uri

Returned = TypeVar("Returned")
Work = Callable[[AsyncBranch], Awaitable[Any]]

SCHEMA = "node Person { name: String @key age: I64? }  edge Knows: Person -> Person"
PEOPLE = 400
NAMES = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
COUNT = "query q() { match { $p: Person } return { count($p) as n } }"
RENAME = "query q($n: String) { update Person set { age: 1 } where name = $n }"
# To count the rows of this takes many minutes.
PRODUCT = """query q() {
  match {
    $a: Person $b: Person $c: Person $d: Person
    $a.age != $b.age  $b.age != $c.age  $c.age != $d.age
  }
  return { count($a) as n }
}"""
# The engine stops within 0.2 s; a busy machine may take its time.
SOON_S = 2.0


@pytest.fixture
def graph(tmp_path: Any) -> Iterator[Graph]:
    with omnigraph.create(fresh_uri(tmp_path / "a.omni"), schema=SCHEMA, durable=False) as graph:
        names = [f"p{number:03}" for number in range(PEOPLE)]
        people = pa.table({"name": names, "age": pa.array(range(PEOPLE), pa.int64())})
        graph.branch().load(people, type="Person", mode="append", key="people")
        yield graph


def run(work: Coroutine[Any, Any, Returned]) -> Returned:
    return asyncio.run(work)


def test_a_graph_that_is_awaited_answers_as_a_graph(graph: Graph) -> None:
    async def work() -> None:
        async with omnigraph.connect_async(graph.uri, actor="ada") as opened:
            assert (opened.uri, opened.actor) == (graph.uri, "ada")
            main = await opened.branch("main")
            found = await main.query(NAMES)
            assert found.to_pylist() == graph.branch().query(NAMES).to_pylist()
            assert (await main.snapshot()).version == await main.version()
            assert await main.schema() == SCHEMA
            assert await opened.branches() == ["main"]
            assert opened.acting_as("bob").actor == "bob"

    run(work())


def test_an_awaited_graph_is_open_until_it_is_closed(graph: Graph) -> None:
    async def work() -> None:
        opened = await omnigraph.connect_async(graph.uri)
        main = await opened.branch()
        await opened.close()
        await opened.close()
        with pytest.raises(GraphClosedError):
            await main.query(COUNT)

    run(work())


def test_branches_are_written_merged_and_compared(graph: Graph) -> None:
    async def work() -> None:
        opened = AsyncGraph(graph)
        main = await opened.branch()
        review = await opened.create_branch("review", source=main)
        await review.load([{"name": "new"}], type="Person", mode="append")
        await review.mutate('query q() { delete Person where name = "p000" }')
        diff = await main.diff(review)
        assert diff
        assert [(each.op, each.id) async for each in diff] == [
            ("insert", "new"),
            ("delete", "p000"),
        ]
        await main.mutate('query q() { update Person set { age: 7 } where name = "p000" }')
        with pytest.raises(MergeConflictError):
            await main.merge(review)
        assert (await main.merge(review, prefer="theirs")).outcome == "merged"
        assert (await main.query(COUNT)).to_pylist() == [{"n": PEOPLE}]

    run(work())


def test_iterators_are_read_with_async_for(graph: Graph) -> None:
    async def work() -> None:
        main = await AsyncGraph(graph).branch()
        ids = [each.id async for each in main.commits()]
        assert ids == [each.id for each in graph.branch().commits()]
        async for each in main.commits():
            assert each.id == ids[0]
            break
        lines = b"".join([chunk async for chunk in main.export()])
        assert lines == b"".join(graph.branch().export())
        baseline = await main.baseline()
        records = [each async for each in baseline]
        assert len(records) == PEOPLE
        assert (await main.changes(cursor=baseline.resume_cursor)).caught_up

    run(work())


def test_a_follower_sees_commits_and_is_cancelled_while_it_waits(graph: Graph) -> None:
    async def work() -> None:
        main = await AsyncGraph(graph).branch()
        seen: list[str] = []
        arrived = asyncio.Event()

        async def follow() -> None:
            async for block in main.follow(start="now", poll_s=0.01):
                seen.append(block.cause.commit_id)
                arrived.set()

        task = asyncio.create_task(follow())
        await asyncio.sleep(0.05)
        made = await main.mutate(RENAME, params={"n": "p001"})
        await asyncio.wait_for(arrived.wait(), SOON_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert made.commit is not None
        assert seen == [made.commit.id]

    run(work())


def test_the_loop_runs_while_a_query_does(graph: Graph) -> None:
    async def work() -> None:
        main = await AsyncGraph(graph).branch()
        query = asyncio.create_task(main.query(PRODUCT, timeout=0.5))
        turns = 0
        while not query.done():
            await asyncio.sleep(0.01)
            turns += 1
        with pytest.raises(QueryTimeoutError):
            await query
        assert turns > 5

    run(work())


def test_a_cancelled_task_stops_its_query_and_frees_its_memory(graph: Graph) -> None:
    async def work() -> None:
        async with omnigraph.connect_async(graph.uri) as opened:
            main = await opened.branch()
            await main.query(COUNT)
            before = pa.total_allocated_bytes()
            query = asyncio.create_task(main.query(PRODUCT))
            await asyncio.sleep(0.2)
            started = time.monotonic()
            query.cancel()
            with pytest.raises(asyncio.CancelledError):
                await query
            assert time.monotonic() - started < SOON_S
            assert pa.total_allocated_bytes() <= before + 2**20
            # The thread of the query is free: nothing of it runs on.
            assert (await main.query(COUNT)).to_pylist() == [{"n": PEOPLE}]

    run(work())


def test_closing_stops_queries_and_waits_for_writes(graph: Graph) -> None:
    async def work() -> None:
        opened = await omnigraph.connect_async(graph.uri)
        main = await opened.branch()
        query = asyncio.create_task(main.query(PRODUCT))
        write = asyncio.create_task(main.mutate(RENAME, params={"n": "p002"}, key="while-closing"))
        await asyncio.sleep(0.1)
        await opened.close()
        with pytest.raises(QueryCancelledError):
            await query
        assert (await write).commit is not None

    run(work())


@pytest.mark.parametrize("delay_s", [0, 0.001, 0.003, 0.01, 0.03])
def test_the_key_of_a_cancelled_write_says_what_became_of_it(graph: Graph, delay_s: float) -> None:
    async def work() -> None:
        main = await AsyncGraph(graph).branch()

        def load(key: str) -> Coroutine[Any, Any, omnigraph.LoadResult]:
            return main.load([{"name": key}], type="Person", mode="append", key=key)

        task = asyncio.create_task(load("late"))
        await asyncio.sleep(delay_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        again = await load("late")
        assert (await load("late")).commit.id == again.commit.id
        entity = await main.entity("Person", "late")
        assert entity is not None
        # Genesis, the people, and one commit for the key.
        assert len([each async for each in main.commits()]) == 3

    run(work())


def test_a_write_that_waits_for_a_thread_is_not_begun_once_cancelled(graph: Graph) -> None:
    async def work() -> None:
        opened = AsyncGraph(graph)
        main = await opened.branch()
        release = threading.Event()
        threads = opened._threads
        waiting = [asyncio.create_task(threads.run(release.wait)) for _ in range(64)]
        await asyncio.sleep(0.05)
        write = asyncio.create_task(main.mutate(RENAME, params={"n": "p003"}))
        await asyncio.sleep(0.01)
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
        release.set()
        await asyncio.gather(*waiting)
        assert len([each async for each in main.commits()]) == 2

    run(work())


def test_a_cancelled_task_stops_a_mutation_that_reads(graph: Graph) -> None:
    async def work() -> None:
        main = await AsyncGraph(graph).branch()
        before = await main.head()
        text = PRODUCT[: PRODUCT.index("return")] + "update $a set { age: 1 } }"
        write = asyncio.create_task(main.mutate(text))
        await asyncio.sleep(0.1)
        write.cancel()
        started = time.monotonic()
        await asyncio.gather(write, return_exceptions=True)
        assert write.cancelled()
        assert time.monotonic() - started < SOON_S
        assert (await main.head()).id == before.id

    run(work())


def test_each_public_method_has_a_twin() -> None:
    for name in ("Graph", "Branch", "Snapshot"):
        twin = getattr(omnigraph, f"Async{name}")
        public = {each for each in dir(getattr(omnigraph, name)) if not each.startswith("_")}
        assert public - set(dir(twin)) == set(twin.HIDDEN)

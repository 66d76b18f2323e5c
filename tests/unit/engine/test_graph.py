"""Graphs: created, opened, closed, and shared by threads and processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import errors
from omnigraph.engine.background import TableThreads
from omnigraph.engine.resources import Resources, open_storage
from omnigraph.storage import open_objects
from omnigraph.storage.objects import layout
from places import fresh_uri
from unit.engine.company import (
    CHANGES,
    PEOPLE,
    QUERIES,
    SCHEMA,
    ages,
    company,
    person,
)


def stored(uri: str) -> list[str]:
    """The path of every object at an address."""
    return [entry.path for entry in open_objects(uri).list("")]


def test_a_created_graph_can_be_opened_again(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "org.omni")
    with company(uri, actor="ada") as graph:
        before = ages(graph.branch())
    with omnigraph.open(uri) as graph:
        assert ages(graph.branch()) == before == {"Ada": 36, "Bob": 41}
        assert graph.uri == uri
        assert graph.actor is None


def test_a_session_as_a_newcomer_would_write_it(tmp_path: Path) -> None:
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(each) + "\n" for each in PEOPLE))
    hires = pa.table({"name": ["Cyd", "Dov"], "age": [29, None]})
    pq.write_table(hires, tmp_path / "new_hires.parquet")

    graph = omnigraph.create(fresh_uri(tmp_path / "org.omni"), schema=SCHEMA, actor="ada")
    main = graph.branch("main")
    main.load(tmp_path / "people.jsonl", mode="append")
    review = graph.create_branch("review/new-hires", source=main)
    review.load(tmp_path / "new_hires.parquet", type="Person", mode="merge")
    changed = review.mutate(CHANGES, name="join", params={"who": "Cyd", "team": "Engines"})
    frame = review.query(QUERIES, name="aged", params={"at_least": 29}).to_pandas()
    assert frame["p.name"].tolist() == ["Ada", "Bob", "Cyd"]
    assert changed.commit is not None
    before = graph.snapshot(changed.commit.parents[0])
    assert (before.count("MemberOf"), review.count("MemberOf")) == (1, 2)
    assert (main.count("Person"), review.count("Person")) == (2, 4)
    assert graph.check().is_healthy


def test_a_graph_in_memory_lives_on_under_its_name() -> None:
    uri = fresh_uri()
    company(uri).close()
    assert ages(omnigraph.open(uri).branch()) == {"Ada": 36, "Bob": 41}


def test_the_first_commit_is_signed_and_has_no_parent() -> None:
    graph = omnigraph.create(fresh_uri(), schema=SCHEMA, actor="ada")
    head = graph.branch().head
    assert (head.version, head.parents, head.actor, head.branch) == (0, (), "ada", "main")
    assert graph.commit(head.id) == head
    assert graph.branch().schema == SCHEMA


def test_a_missing_graph_is_not_found_and_nothing_is_created(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "absent")
    with pytest.raises(errors.GraphNotFoundError, match="no graph at"):
        omnigraph.open(uri)
    assert stored(uri) == []


def test_creating_a_graph_twice_is_refused(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "org.omni")
    company(uri)
    before = stored(uri)
    with pytest.raises(errors.GraphExistsError):
        omnigraph.create(uri, schema=SCHEMA)
    assert stored(uri) == before
    assert len(ages(omnigraph.open(uri).branch())) == 2


def test_of_several_creators_one_wins(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "org.omni")
    barrier = threading.Barrier(4)

    def create(_: int) -> bool:
        barrier.wait()
        try:
            omnigraph.create(uri, schema=SCHEMA)
        except errors.GraphExistsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(create, range(4))) == [False, False, False, True]
    assert ages(omnigraph.open(uri).branch()) == {}


def test_a_schema_with_errors_leaves_nothing_behind(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "org.omni")
    with pytest.raises(errors.CompileError):
        omnigraph.create(uri, schema="node Person {")
    assert stored(uri) == []


def test_a_graph_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "org.omni")
    company(uri).close()
    open_objects(uri).put(layout.FORMAT, json.dumps({"format": 99}).encode())
    with pytest.raises(errors.FormatTooNewError) as caught:
        omnigraph.open(uri)
    assert "upgrade" in str(caught.value.hint)


def test_a_closed_graph_refuses_every_use() -> None:
    graph = company()
    main, snapshot = graph.branch(), graph.branch().snapshot()
    graph.close()
    graph.close()
    for use in (
        graph.branches,
        graph.branch,
        main.snapshot,
        lambda: main.load([], mode="append"),
        lambda: snapshot.query("query q() { match { $p: Person } return { $p.name } }"),
        snapshot.export,
    ):
        with pytest.raises(errors.GraphClosedError):
            use()


def test_handles_of_one_process_share_what_they_know(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "org.omni")
    first, second = company(uri), omnigraph.open(uri)
    assert first._session.resources is second._session.resources
    background = first._session.resources.background
    first.close()
    second.branch().load([person("Cyd")], mode="append")
    background.submit(lambda: None).result(timeout=60)
    second.close()
    with pytest.raises(RuntimeError):
        background.submit(lambda: None)
    third = omnigraph.open(uri)
    assert third._session.resources is not first._session._resources
    assert len(ages(third.branch())) == 3


@pytest.mark.on_disk
def test_a_new_graph_at_an_old_address_shares_nothing_with_the_old_one(tmp_path: Path) -> None:
    uri = tmp_path / "org.omni"
    old = company(str(uri))
    uri.rename(tmp_path / "moved.omni")
    new = omnigraph.create(str(uri), schema=SCHEMA)
    assert old._session.resources is not new._session.resources
    new.branch().load([person("Zoe")], mode="append")
    assert ages(new.branch()) == {"Zoe": None}


def test_a_forgotten_graph_leaves_no_resources_behind(tmp_path: Path) -> None:
    import gc  # noqa: PLC0415

    uri = fresh_uri(tmp_path / "org.omni")
    company(uri)
    gc.collect()
    assert uri not in {each.storage.objects.uri for each in Resources._shared.values()}


def test_an_empty_actor_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="actor"):
        omnigraph.create(fresh_uri(), schema=SCHEMA, actor=" ")


@pytest.mark.on_disk
def test_connect_opens_what_open_opens(tmp_path: Path) -> None:
    uri = str(tmp_path / "org.omni")
    company(uri).close()
    assert ages(omnigraph.connect(f"file://{uri}", actor="bob").branch()) == {"Ada": 36, "Bob": 41}


@pytest.mark.parametrize("part", ["graph", "branch", "snapshot"])
def test_pickling_is_refused_with_what_to_do(part: str) -> None:
    graph = company()
    thing = {"graph": graph, "branch": graph.branch(), "snapshot": graph.branch().snapshot()}[part]
    with pytest.raises(TypeError, match="pass its address"):
        pickle.dumps(thing)


def test_a_forked_child_is_told_to_open_the_graph_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = company()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(errors.GraphClosedError) as caught:
        graph.branches()
    assert "spawn" in str(caught.value.hint)


@pytest.mark.slow
def test_spawned_processes_write_to_one_graph(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "org.omni")
    graph = company(uri)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_hire, args=(uri, n)) for n in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(ages(graph.branch())) == 2 + 2 * 10


def _hire(uri: str, number: int) -> None:
    with omnigraph.open(uri, durable=False) as graph:
        for each in range(10):
            graph.branch().load([person(f"p{number}-{each}")], mode="append")


@pytest.mark.slow
def test_a_program_that_never_closes_its_graph_ends(tmp_path: Path) -> None:
    script = f"""
import omnigraph
graph = omnigraph.create({fresh_uri(tmp_path / "org.omni")!r}, schema={SCHEMA!r}, durable=False)
main = graph.branch()
for number in range(41):
    main.load([{{"type": "Person", "data": {{"name": f"p{{number}}"}}}}], mode="append")
print(main.count("Person"))
"""
    finished = subprocess.run(
        [sys.executable, "-c", script], timeout=120, capture_output=True, text=True, check=False
    )
    assert (finished.stdout, finished.stderr, finished.returncode) == ("41\n", "", 0)


def test_small_commits_are_compacted_behind_the_scenes(tmp_path: Path) -> None:
    graph = company(fresh_uri(tmp_path / "org.omni"), durable=False)
    main = graph.branch()
    for number in range(80):
        main.load([person(f"p{number}")], mode="append")
    _wait_for_background(graph)
    graph.close()
    with omnigraph.open(graph.uri) as again:
        commits = list(again.branch().commits())
        assert any(commit.is_maintenance for commit in commits)
        assert again.branch().count("Person") == 82
        assert again.branch().snapshot().at.pins["node:Person"].fragments < 60


def _wait_for_background(graph: omnigraph.Graph) -> None:
    """Wait for the jobs so far: they are done in order."""
    graph._session.resources.background.submit(lambda: None).result(timeout=120)


def test_a_sound_graph_passes_its_check(tmp_path: Path) -> None:
    graph = company(fresh_uri(tmp_path / "org.omni"))
    graph.create_branch("review").load([person("Cyd")], mode="append")
    report = graph.check()
    assert (report.problems, report.is_healthy) == ((), True)
    assert (report.branches, report.commits) == (2, 3)


def test_a_check_reads_what_is_stored_and_not_what_is_remembered(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "org.omni")
    graph = company(uri)
    assert len(ages(graph.branch())) == 2
    files = [path for path in stored(uri) if re.match(r"t/Person-.*\.lance/data/", path)]
    open_objects(uri).delete(files)
    assert not graph.check().is_healthy


def test_statements_run_on_a_graph() -> None:
    graph = company()
    assert graph.execute("branch create review") == []
    assert graph.execute("branch list") == [{"name": "main"}, {"name": "review"}]
    (merged,) = graph.execute("branch merge review")
    assert (merged["outcome"], merged["commit"]) == ("already_up_to_date", None)
    graph.execute("branch delete review")
    assert graph.branches() == ["main"]
    names = {row["name"] for row in graph.execute("show all;")}
    assert "traversal_work_limit" in names
    rows = graph.execute("explain query q() { match { $p: Person } return { $p.name } }")
    assert rows
    with pytest.raises(errors.InvalidArgumentError):
        graph.execute("query q() { match { $p: Person } return { $p.name } }")
    with pytest.raises(errors.BranchNotFoundError, match="review"):
        graph.execute("branch merge review")


def test_the_package_starts_without_the_engine() -> None:
    script = "import sys, omnigraph; print('lance' in sys.modules, 'open' in dir(omnigraph))"
    finished = subprocess.run(
        [sys.executable, "-c", script], timeout=60, capture_output=True, text=True, check=False
    )
    assert finished.stdout == "False True\n"
    with pytest.raises(AttributeError, match="nothing"):
        _ = omnigraph.nothing


def test_only_writes_start_threads_and_a_closed_graph_leaves_none_behind(tmp_path: Path) -> None:
    uri = fresh_uri(tmp_path / "org.omni")
    company(uri).close()
    before = set(threading.enumerate())
    with omnigraph.open(uri) as graph:
        main = graph.branch()
        assert main.count("Person") == 2
        assert not _write_threads(before)
        main.load([person("Cyd"), {"type": "Team", "data": {"name": "Ops"}}], mode="append")
        assert _write_threads(before)
    deadline = time.monotonic() + 10
    while _write_threads(before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _write_threads(before)
    assert main.name == "main"


def _write_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    found = set(threading.enumerate()) - before
    return [thread for thread in found if thread.name.startswith("omnigraph-write")]


def test_a_write_that_is_under_way_when_the_graph_is_closed_goes_on_alone() -> None:
    threads = TableThreads()
    assert list(threads.map(str, [1, 2])) == ["1", "2"]
    threads.shutdown()
    assert list(threads.map(str, [1, 2])) == ["1", "2"]
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result()


def test_no_secret_is_shown_with_a_storage() -> None:
    options = {"aws_access_key_id": "somebody", "aws_secret_access_key": "do-not-tell"}
    storage = open_storage("s3://bucket/graph", is_durable=True, options=options)
    assert "do-not-tell" not in repr(storage) + repr(storage.key)
    others = {**options, "aws_region": "elsewhere"}
    other = open_storage("s3://bucket/graph", is_durable=True, options=others)
    assert other.key != storage.key

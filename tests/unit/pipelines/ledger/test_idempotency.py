"""When a run may be skipped: only if the target still has what it would load."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.engine import LoadResult
from omnigraph.engine.branch_log import BranchLog
from omnigraph.errors import OmnigraphError
from omnigraph.ids import generate_ulid
from omnigraph.pipelines.config.definition import Pipeline, Target
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.ledger.run_ledger import Run
from omnigraph.pipelines.run.pipeline_inspection import read_runs
from omnigraph.pipelines.run.pipeline_run import RunContext, RunOptions, run_with_records
from omnigraph.pipelines.run.run_slot import Slot
from omnigraph.pipelines.run.target_attempt import LoadRequest
from omnigraph.storage import Objects, open_objects
from omnigraph.storage.objects.faults import (
    CRASHES,
    FAILURES,
    Fault,
    FaultyObjects,
    SimulatedCrash,
    Steps,
    iter_faults,
)
from omnigraph.versioning import commit_history
from omnigraph.versioning.retention_floors import Floors
from unit.pipelines.definitions import PEOPLE, SCHEMA, read

REVIEWED = PEOPLE.replace(
    "    map:", "    run_branch: {name: 'in/{slot}', merge: review}\n    map:"
)
MERGED = REVIEWED.replace("merge: review", "merge: automatic")
FILES = {"A": "from A", "B": "from the file B"}


class FileOfPeople:
    """The people of a file, loaded without Spark."""

    def __init__(self, running: RunContext, slot: Slot) -> None:
        del slot
        self._path = running.pipeline.folder / "people.jsonl"

    def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
        """Merge them with the key and the message of the run."""
        name = json.loads(self._path.read_text())["name"]
        row = {"type": "Person", "data": {"handle": "ada", "name": name, "level": "junior"}}
        return branch.load([row], mode="merge", key=terms.key, message=terms.message)

    def count_rows(self, target: Target) -> int:
        """All of them."""
        del target
        return 1

    def retain(self) -> None:
        """They stay what they are."""

    def discard(self) -> None:
        """They stay what they are."""


class World:
    """A pipeline of one file, and the graph that it loads."""

    def __init__(self, folder: Path, text: str = PEOPLE) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.uri = f"memory://{generate_ulid()}"
        omnigraph.create(self.uri, schema=SCHEMA).close()
        self.put("A")
        self.pipeline: Pipeline = read(folder, text.replace("company.omni", self.uri))

    def put(self, file: str) -> None:
        """Move a file to the place of the one that is there: it keeps its time."""
        path = self.folder / "people.jsonl"
        path.write_text(json.dumps({"name": FILES[file]}))
        os.utime(path, (ord(file), ord(file)))

    def run(self, *, slot: str | None = None, steps: Steps | None = None) -> Run:
        """Run the pipeline once."""
        counted = Steps() if steps is None else steps

        def store(uri: str) -> Objects:
            return FaultyObjects(open_objects(uri), counted)

        options = RunOptions(slot=slot, wait=lambda _: None, open_store=store)
        return run_with_records(self.pipeline, options, FileOfPeople)

    def loads(self, file: str, *, slot: str | None = None) -> bool:
        """Put a file and run; whether it was loaded, rather than skipped."""
        self.put(file)
        run = self.run(slot=slot)
        (target,) = run.targets
        assert target.status == "succeeded"
        return not target.is_repeated

    @contextmanager
    def graph(self) -> Iterator[Graph]:
        """The graph that is loaded."""
        with omnigraph.open(self.uri) as graph:
            yield graph

    def name(self) -> str | None:
        """What the graph has."""
        with self.graph() as graph:
            rows = graph.branch("main").query(
                "query q() { match { $p: Person } return { $p.name } }"
            )
            return next((row["p.name"] for row in rows.to_pylist()), None)

    @property
    def commits(self) -> int:
        """How many commits of main, or merged into it, are loads."""
        with self.graph() as graph:
            found = BranchLog(graph.branch("main")).iter_since(0)
            return sum((each.key or "").startswith("pipeline:people:") for each, _ in found)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("text", [PEOPLE, MERGED], ids=["direct", "run branch"])
def test_a_file_that_comes_back_is_loaded_again(tmp_path: Path, text: str) -> None:
    world = World(tmp_path, text)
    for file in ("A", "B", "A", "B"):
        assert world.loads(file)
        assert world.name() == FILES[file]
        assert not world.loads(file)
    assert world.commits == 4
    with world.graph() as graph:
        assert graph.branches() == ["main"]


def _revert(branch: Branch, message: str | None = None) -> None:
    branch.revert(branch.head, message=message)


def _revert_on_a_branch(branch: Branch) -> None:
    fix = branch.graph.create_branch("fix")
    _revert(fix)
    branch.merge("fix", delete_branch=True)


@pytest.mark.parametrize("text", [PEOPLE, MERGED], ids=["direct", "run branch"])
@pytest.mark.parametrize(
    "undo", [_revert, lambda main: _revert(main, "no good"), _revert_on_a_branch]
)
def test_what_was_reverted_is_loaded_again(
    tmp_path: Path, text: str, undo: Callable[[Branch], None]
) -> None:
    world = World(tmp_path, text)
    assert world.loads("A")
    for _ in range(2):
        with world.graph() as graph:
            undo(graph.branch("main"))
        assert world.name() is None
        assert world.loads("A")
        assert world.name() == FILES["A"]
        assert not world.loads("A")
    assert world.commits == 3


def test_a_load_whose_revert_was_reverted_is_in_force(world: World) -> None:
    assert world.loads("A")
    with world.graph() as graph:
        _revert(graph.branch("main"))
        _revert(graph.branch("main"))
    assert world.name() == FILES["A"]
    assert not world.loads("A")


def test_a_branch_that_was_made_anew_is_loaded_again(tmp_path: Path) -> None:
    world = World(tmp_path, PEOPLE.replace("    map:", "    branch: dev\n    map:"))
    with world.graph() as graph:
        graph.create_branch("dev")
    assert world.loads("A")
    assert not world.loads("A")
    with world.graph() as graph:
        graph.delete_branch("dev")
        graph.create_branch("dev")
    assert world.loads("A")


def test_a_slot_that_somebody_named_is_written_once_unless_it_was_reverted(world: World) -> None:
    assert world.loads("A", slot="x")
    assert world.loads("B", slot="y")
    assert not world.loads("A", slot="x")
    assert world.name() == FILES["B"]
    # What the file holds is another matter: that was not what was loaded last.
    assert world.loads("A")
    with world.graph() as graph:
        _revert(graph.branch("main"))
        second = next(
            each
            for each, _ in BranchLog(graph.branch("main")).iter_since(0)
            if ", y, " in (each.message or "")
        )
        graph.branch("main").revert(second)
    assert world.name() == FILES["A"]
    assert not world.loads("B", slot="x")
    assert world.loads("B", slot="y")
    assert world.name() == FILES["B"]


def test_a_run_whose_branch_was_thrown_away_is_made_again(tmp_path: Path) -> None:
    world = World(tmp_path, REVIEWED)
    assert world.loads("A")
    assert not world.loads("A")
    with world.graph() as graph:
        (own,) = [name for name in graph.branches() if name != "main"]
        graph.delete_branch(own)
    assert world.loads("A")
    with world.graph() as graph:
        graph.branch("main").merge(own, delete_branch=True)
    assert not world.loads("A")
    assert world.loads("B")


def test_where_commits_were_collected_nothing_is_taken_for_granted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_history, "KEY_RECORDS_MAX", 2)
    assert world.loads("A")
    with world.graph() as graph:
        main = graph.branch("main")
        for number in range(4):
            main.mutate(f'query i() {{ insert Note {{ text: "{number}" }} }}')
        assert not world.loads("A")
        Floors(open_objects(world.uri)).put(main.life, main.head.version)
    # One of the commits that are gone may have reverted the load.
    assert world.loads("A")
    assert not world.loads("A")


def _faults(folder: Path) -> list[Fault]:
    world = World(folder)
    assert world.loads("A")
    assert world.loads("B")
    world.put("A")
    return list(iter_faults(lambda steps: world.run(steps=steps), (*CRASHES, *FAILURES)))


@pytest.mark.slow
def test_a_file_that_comes_back_is_loaded_once_wherever_a_process_ends(tmp_path: Path) -> None:
    faults = _faults(tmp_path / "counted")
    # A start, the key, three marks, an event, an end, and a heartbeat around.
    assert len(faults) == 9 * len((*CRASHES, *FAILURES))
    for fault in faults:
        world, steps = World(tmp_path / str(fault)), fault.create_steps()
        assert world.loads("A")
        assert world.loads("B")
        world.put("A")
        with suppress(SimulatedCrash, OmnigraphError):
            world.run(steps=steps)
        assert steps.has_fired
        assert world.run().status == "succeeded"
        assert (world.name(), world.commits) == (FILES["A"], 3)
        assert not world.loads("A")
        told = [
            target.commit
            for run in read_runs(
                world.pipeline, Resolver.from_environment(world.pipeline, {}), limit=None
            )
            for target in run.targets
            if target.commit is not None and not target.is_repeated
        ]
        assert len(set(told)) == len(told) == 3


def test_runs_that_race_make_one_commit(world: World) -> None:
    assert world.loads("A")
    assert world.loads("B")
    world.put("A")
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: world.run(), range(8)))
    assert {run.status for run in runs} == {"succeeded"}
    assert sum(not run.targets[0].is_repeated for run in runs) == 1
    assert (world.name(), world.commits) == (FILES["A"], 3)

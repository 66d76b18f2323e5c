"""Runs that end at every object that they write, without Spark: one commit, and a true ledger.

The steps of a commit are in the matrix of the engine; these are the marks beside it: batches, runs,
targets, keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Branch
from omnigraph.engine import LoadResult
from omnigraph.errors import OmnigraphError, SourceFailedError
from omnigraph.ids import generate_ulid
from omnigraph.pipelines.config.definition import FeedSource, Pipeline, Target
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.ledger.run_ledger import Ledger, Run, TargetRun
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
from unit.pipelines.definitions import PEOPLE, SCHEMA, read

ONE = PEOPLE.replace("company: company.omni", "company: MEMORY-company")
SECOND = PEOPLE[PEOPLE.index("  - graph") :].replace("graph: company", "graph: other")
TWO = ONE.replace("graphs:\n", "graphs:\n  other: MEMORY-other\n") + SECOND
OWN_BRANCH = "run_branch: {name: 'in/{slot}', merge: automatic}\n    map:"
FEED = "source: {kind: graph, uri: MEMORY-feed}"
DEFINITIONS = {
    "files": TWO,
    "branches of runs": TWO.replace("map:", OWN_BRANCH),
    "a ledger elsewhere": TWO + "ledger: MEMORY-runs\n",
    "batches": TWO.replace("source: {kind: files, paths: people.jsonl}", FEED),
}
NAMES = ["ada", "bo"]


class Two:
    """The same two people each time, loaded without Spark."""

    def __init__(self, running: RunContext, slot: Slot) -> None:
        del running, slot

    def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
        """Load them with the key and the message of the run."""
        rows = [_person(name) for name in NAMES]
        return branch.load(rows, mode="append", key=terms.key, message=terms.message)

    def count_rows(self, target: Target) -> int:
        """All of them."""
        del target
        return len(NAMES)

    def retain(self) -> None:
        """They stay what they are."""

    def discard(self) -> None:
        """They stay what they are."""


def _person(name: str) -> dict[str, object]:
    return {"type": "Person", "data": {"handle": name, "name": name, "level": "junior"}}


def _world(folder: Path, text: str) -> Pipeline:
    """A definition whose graphs and ledger are in memory."""
    folder.mkdir()
    (folder / "people.jsonl").write_text('{"login": "ada"}\n')
    pipeline = read(folder, text.replace("MEMORY", f"memory://{generate_ulid()}"))
    for place in pipeline.graphs.values():
        omnigraph.create(place.uri, schema=SCHEMA).close()
    for source in pipeline.sources.values():
        if isinstance(source, FeedSource):
            with omnigraph.create(source.uri, schema=SCHEMA) as graph:
                graph.branch("main").load([_person("ada")], mode="append")
    return pipeline


def _run(pipeline: Pipeline, steps: Steps | None = None) -> Run:
    counted = Steps() if steps is None else steps

    def store(uri: str) -> Objects:
        return FaultyObjects(open_objects(uri), counted)

    return run_with_records(pipeline, RunOptions(wait=lambda _: None, open_store=store), Two)


def _made(pipeline: Pipeline) -> Iterator[tuple[str, TargetRun]]:
    """The commits that runs say they made themselves."""
    for run in read_runs(pipeline, Resolver.from_environment(pipeline, {}), limit=None):
        yield from (
            (run.id, each)
            for each in run.targets
            if each.commit is not None and not each.is_repeated
        )


def _written(pipeline: Pipeline) -> list[str]:
    """The graphs that have a commit of a run, each as often as it has one."""
    found = []
    for name, place in sorted(pipeline.graphs.items()):
        with omnigraph.open(place.uri) as graph:
            branches = [graph.branch(each) for each in graph.branches()]
            every = {each.id: each for branch in branches for each in branch.commits()}
            made = [each for each in every.values() if (each.message or "").startswith("pipeline ")]
            # What is merged has the same message as what is merged into it.
            found += [name for _ in {each.message for each in made}]
    return found


def _require_truth(pipeline: Pipeline) -> None:
    """Every commit is told once, by the run that made it."""
    told = list(_made(pipeline))
    assert sorted(each.graph for _, each in told) == _written(pipeline)
    for run_id, each in told:
        assert each.made_by == run_id
        assert each.written == len(NAMES)


def _require_complete(pipeline: Pipeline) -> None:
    for place in pipeline.graphs.values():
        with omnigraph.open(place.uri) as graph:
            assert graph.branches() == ["main"]
            rows = graph.branch("main").query(
                "query q() { match { $p: Person } return { $p.handle } order { $p.handle asc } }"
            )
            assert [row["p.handle"] for row in rows.to_pylist()] == NAMES


def _faults(folder: Path, text: str) -> list[Fault]:
    def life(steps: Steps) -> None:
        _run(_world(folder / "counted", text), steps)

    return list(iter_faults(life, (*CRASHES, *FAILURES)))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(DEFINITIONS))
def test_a_run_that_ends_at_any_object_is_made_up_for_by_the_next(
    tmp_path: Path, name: str
) -> None:
    faults = _faults(tmp_path, DEFINITIONS[name])
    # A start, for each of two targets three marks and an event, an end, and a heartbeat around.
    marks = 14 if name == "batches" else 12
    assert len(faults) == marks * len((*CRASHES, *FAILURES))
    for fault in faults:
        pipeline, steps = _world(tmp_path / str(fault), DEFINITIONS[name]), fault.create_steps()
        with suppress(SimulatedCrash, OmnigraphError):
            _run(pipeline, steps)
        assert steps.has_fired
        _require_truth(pipeline)
        again = _run(pipeline)
        assert again.status == "succeeded"
        _require_truth(pipeline)
        assert len(list(_made(pipeline))) == 2
        _require_complete(pipeline)
        _require_one_batch(pipeline, name)


def _require_one_batch(pipeline: Pipeline, name: str) -> None:
    if name != "batches":
        return
    ledger = Ledger.open(Resolver.from_environment(pipeline, {}).resolve_ledger(), pipeline.name)
    last = ledger.find_last_batch()
    assert last is not None
    assert (last[0], ledger.is_batch_finished(0)) == (0, True)


def test_a_run_that_was_stopped_before_its_commit_has_none_of_the_next(tmp_path: Path) -> None:
    pipeline = _world(tmp_path / "w", ONE)

    class Stopped(Two):
        def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
            """Somebody presses Ctrl-C."""
            del branch, terms
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with_records(pipeline, RunOptions(), Stopped)
    made = _run(pipeline)
    newest, stopped = read_runs(pipeline, Resolver.from_environment(pipeline, {}), limit=None)
    assert (newest.id, newest.status, stopped.status) == (made.id, "succeeded", "interrupted")
    (target,) = stopped.targets
    assert (target.status, target.commit, target.written) == ("interrupted", None, 0)


def test_a_run_that_was_stopped_behind_its_commit_shows_it_as_its_own(tmp_path: Path) -> None:
    pipeline = _world(tmp_path / "w", ONE)

    class Late(Two):
        def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
            """Somebody presses Ctrl-C when the commit is there."""
            super().load(branch, terms)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with_records(pipeline, RunOptions(), Late)
    again = _run(pipeline)
    assert [each.is_repeated for each in again.targets] == [True]
    _, stopped = read_runs(pipeline, Resolver.from_environment(pipeline, {}), limit=None)
    (target,) = stopped.targets
    assert (stopped.status, target.status) == ("interrupted", "succeeded")
    assert (target.commit, target.made_by) == (again.targets[0].commit, stopped.id)
    assert again.targets[0].made_by == stopped.id


def test_a_run_that_is_killed_behind_the_commit_of_a_later_attempt_shows_it(tmp_path: Path) -> None:
    pipeline = _world(tmp_path / "w", ONE)
    attempts = iter(range(3))

    class SecondTime(Two):
        def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
            """The source is gone for a moment; then somebody presses Ctrl-C behind the commit."""
            if next(attempts) == 0:
                raise SourceFailedError("gone for a moment")
            super().load(branch, terms)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with_records(pipeline, RunOptions(wait=lambda _: None), SecondTime)
    (stopped,) = read_runs(pipeline, Resolver.from_environment(pipeline, {}), limit=None)
    (target,) = stopped.targets
    assert (stopped.status, target.status, target.error) == ("interrupted", "succeeded", None)
    assert (target.made_by, target.attempts) == (stopped.id, 2)
    _require_truth(pipeline)

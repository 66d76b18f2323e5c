"""Runs whose records cannot be had: the ledger tells how they ended, and the others go on."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Branch
from omnigraph.engine import LoadResult
from omnigraph.errors import SourceFailed
from omnigraph.pipelines import run as run_module
from omnigraph.pipelines.definition import Pipeline, Target
from omnigraph.pipelines.due import run_due
from omnigraph.pipelines.ledger import Ledger, Run
from omnigraph.pipelines.loading import Terms
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.run import Running, RunOptions, run_pipeline
from omnigraph.pipelines.slots import Slot
from omnigraph.pipelines.sources import Survey
from omnigraph.storage import Objects
from unit.pipelines.definitions import PEOPLE, SCHEMA, read

TWO = PEOPLE.replace("graphs:\n", "graphs:\n  other: other.omni\n") + PEOPLE[
    PEOPLE.index("  - graph") :
].replace("graph: company", "graph: other")


class Broken:
    """Records that fail each time."""

    def __init__(self, failure: BaseException) -> None:
        self._failure = failure
        self.told: list[str] = []

    def load(self, branch: Branch, terms: Terms) -> LoadResult:
        """It fails."""
        del branch, terms
        self.told.append("asked")
        raise self._failure

    def rows(self, target: Target) -> int | None:
        """Nobody counts them."""
        raise AssertionError(target)

    def keep(self) -> None:
        """Nobody has them."""
        raise AssertionError

    def forget(self) -> None:
        """They are asked for anew."""
        self.told.append("forgotten")


@pytest.fixture
def two(tmp_path: Path) -> Pipeline:
    for name in ("company", "other"):
        omnigraph.create(tmp_path / f"{name}.omni", schema=SCHEMA).close()
    return read(tmp_path, TWO)


def _run(pipeline: Pipeline, records: Broken) -> Run:
    resolver = Resolver.of(pipeline, {})
    with ExitStack() as stack:
        options = RunOptions(wait=lambda _: None)
        ledger = Ledger.at(resolver.ledger(), pipeline.name)
        running = Running(pipeline, options, resolver, ledger, stack)
        return running.all(Slot("s", {"source": Survey({})}), running.graphs(), records)


def _told(pipeline: Pipeline) -> Run:
    (run,) = Ledger.at(Resolver.of(pipeline, {}).ledger(), pipeline.name).runs()
    return run


def test_a_failure_that_nobody_expected_ends_its_target_and_is_raised_at_the_end(
    two: Pipeline,
) -> None:
    records = Broken(KeyError("x"))
    with pytest.raises(KeyError):
        _run(two, records)
    run = _told(two)
    assert (run.status, run.is_over) == ("failed", True)
    assert [(each.status, each.attempts, each.error) for each in run.targets] == [
        ("failed", 1, "KeyError: 'x'")
    ] * 2


def test_an_interrupted_run_says_so(two: Pipeline) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(two, Broken(KeyboardInterrupt()))
    run = _told(two)
    assert (run.status, run.is_over, run.error) == ("interrupted", True, "it was stopped")
    assert [(each.status, each.commit) for each in run.targets] == [("interrupted", None)] * 2


def test_an_attempt_after_one_that_failed_reads_anew(two: Pipeline) -> None:
    records = Broken(SourceFailed("the connection was lost"))
    run = _run(two, records)
    assert (run.status, run.rows_read) == ("failed", None)
    once = ["asked", "forgotten", "asked", "forgotten", "asked"]
    assert records.told == once * 2


def test_a_schedule_goes_on_after_a_failure_that_nobody_expected(two: Pipeline) -> None:
    text = TWO + 'schedule: "0 * * * *"\n'
    due = [read(two.folder, text, name=f"{name}.yaml") for name in ("a", "b")]

    def broken(uri: str) -> Objects:
        raise LookupError(uri)

    now = datetime(2026, 11, 16, 10, 7, tzinfo=UTC)
    ran = list(run_due(due, now, RunOptions(open_store=broken)))
    assert [each.pipeline for each in ran] == ["a", "b"]
    assert all(each.error and each.error.startswith("LookupError: ") for each in ran)


def test_a_run_that_fails_unexpectedly_before_it_begins_is_in_the_ledger(
    two: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Slot:
        raise LookupError("a source of another make")

    monkeypatch.setattr(run_module, "choose_slot", broken)
    with pytest.raises(LookupError):
        run_pipeline(two)
    run = _told(two)
    assert (run.status, run.error) == ("failed", "LookupError: a source of another make")

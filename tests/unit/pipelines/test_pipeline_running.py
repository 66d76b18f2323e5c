"""Runs whose records cannot be had: the ledger tells how they ended, and the others go on."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Branch
from omnigraph.engine import LoadResult
from omnigraph.errors import SourceFailedError
from omnigraph.pipelines.config.definition import Pipeline, Target, format_slot
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.ledger.run_ledger import Ledger, Run
from omnigraph.pipelines.run import pipeline_run as run_module
from omnigraph.pipelines.run.pipeline_run import RunContext, RunOptions, run_pipeline
from omnigraph.pipelines.run.run_slot import Slot
from omnigraph.pipelines.run.scheduler import INTERRUPTED_RUNS_MAX, ScheduledRun, run_due
from omnigraph.pipelines.run.target_attempt import LoadRequest
from omnigraph.pipelines.sources import SourceState
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

    def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
        """It fails."""
        del branch, terms
        self.told.append("asked")
        raise self._failure

    def count_rows(self, target: Target) -> int | None:
        """Nobody counts them."""
        raise AssertionError(target)

    def retain(self) -> None:
        """Nobody has them."""
        raise AssertionError

    def discard(self) -> None:
        """They are asked for anew."""
        self.told.append("forgotten")


@pytest.fixture
def two(tmp_path: Path) -> Pipeline:
    for name in ("company", "other"):
        omnigraph.create(tmp_path / f"{name}.omni", schema=SCHEMA).close()
    return read(tmp_path, TWO)


def _run(pipeline: Pipeline, records: Broken) -> Run:
    resolver = Resolver.from_environment(pipeline, {})
    with ExitStack() as stack:
        options = RunOptions(wait=lambda _: None)
        ledger = Ledger.open(resolver.resolve_ledger(), pipeline.name)
        running = RunContext(pipeline, options, resolver, ledger, stack)
        return running.run_slot(
            Slot("s", {"source": SourceState({})}), running.open_graphs(), records
        )


def _told(pipeline: Pipeline) -> Run:
    (run,) = Ledger.open(
        Resolver.from_environment(pipeline, {}).resolve_ledger(), pipeline.name
    ).list_runs()
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
    records = Broken(SourceFailedError("the connection was lost"))
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


def test_records_that_cannot_be_let_go_are_a_failed_attempt(two: Pipeline) -> None:
    class Stuck(Broken):
        def discard(self) -> None:
            """The connection is lost here too."""
            super().discard()
            raise SourceFailedError("it cannot be closed")

    run = _run(two, Stuck(SourceFailedError("the connection was lost")))
    assert [(each.attempts, each.error) for each in run.targets] == [(3, "it cannot be closed")] * 2


def test_readings_that_cannot_be_ended_fail_no_run(two: Pipeline) -> None:
    def lost() -> None:
        raise SourceFailedError("the connection was lost")

    resolver = Resolver.from_environment(two, {})
    with ExitStack() as stack:
        ledger = Ledger.open(resolver.resolve_ledger(), two.name)
        running = RunContext(two, RunOptions(), resolver, ledger, stack)
        records = run_module._SlotRecords(running, Slot("s", {}))
        records._held.callback(lost)
        records.discard()
        records._held.callback(lost)


def test_a_slot_whose_runs_are_always_killed_is_given_up(tmp_path: Path) -> None:
    omnigraph.create(tmp_path / "company.omni", schema=SCHEMA).close()
    pipeline = read(tmp_path, PEOPLE + 'schedule: "0 * * * *"\n')
    ledger = Ledger.open(Resolver.from_environment(pipeline, {}).resolve_ledger(), pipeline.name)
    now = datetime.now(UTC)
    slot = format_slot(now.replace(minute=0))

    def due() -> list[ScheduledRun]:
        return list(run_due([pipeline], now, RunOptions(open_store=_nothing)))

    for number in range(INTERRUPTED_RUNS_MAX):
        assert [each.error for each in due()] == ["LookupError: asked"], number
        # Every second one has no time to say so: its process is gone.
        log = ledger.start_run({"slot": "files-1", "asked": slot, "trigger": "schedule"})
        if number % 2:
            log.add_event("finished", {"status": "interrupted"})
        else:
            _change_started(tmp_path, log.run_id, pid=2**22 + 1)
    (given_up,) = due()
    assert given_up.run is not None
    assert (given_up.run.status, given_up.run.requested_slot) == ("failed", slot)
    assert f"{INTERRUPTED_RUNS_MAX} runs" in (given_up.run.error or "")
    assert "--slot" in (given_up.run.error or "")
    assert due() == []


def test_a_slot_that_others_may_be_running_is_not_begun_ever_again(tmp_path: Path) -> None:
    omnigraph.create(tmp_path / "company.omni", schema=SCHEMA).close()
    pipeline = read(tmp_path, PEOPLE + 'schedule: "0 * * * *"\n')
    ledger = Ledger.open(Resolver.from_environment(pipeline, {}).resolve_ledger(), pipeline.name)
    now = datetime.now(UTC)
    for _ in range(INTERRUPTED_RUNS_MAX):
        assert len(list(run_due([pipeline], now, RunOptions(open_store=_nothing)))) == 1
        # Nobody here can tell whether a process of another machine is still there.
        log = ledger.start_run({"slot": format_slot(now.replace(minute=0)), "trigger": "schedule"})
        _change_started(tmp_path, log.run_id, host="elsewhere")
    assert list(run_due([pipeline], now, RunOptions(open_store=_nothing))) == []
    assert {run.status for run in ledger.list_runs()} == {"running"}


def _nothing(uri: str) -> Objects:
    del uri
    raise LookupError("asked")


def _change_started(folder: Path, run_id: str, **members: object) -> None:
    (event,) = folder.rglob(f"{run_id}/0000.json")
    event.write_text(json.dumps({**json.loads(event.read_text()), **members}))

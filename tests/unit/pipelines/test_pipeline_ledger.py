from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.errors import CorruptObjectError, RunFencedError, StorageUnknownError
from omnigraph.ids import generate_ulid
from omnigraph.pipelines.ledger.run_ledger import (
    FAILED,
    INTERRUPTED,
    PARTIAL,
    RUNNING,
    SUCCEEDED,
    UNCHANGED,
    Ledger,
    RunLog,
    TargetRun,
    encode_target,
    status_of,
)
from omnigraph.pipelines.ledger.run_liveness import BEAT_S, LOST_AFTER_S
from omnigraph.storage import Objects, open_objects
from omnigraph.storage.objects.faults import (
    Fault,
    FaultKind,
    FaultyObjects,
    SimulatedCrash,
    Steps,
)
from omnigraph.storage.objects.layout import Entry

TARGETS = (TargetRun("a/main", "a", "main", "k:a"), TargetRun("b/main", "b", "main", "k:b"))


def _ledger(folder: Path) -> Ledger:
    return Ledger.open(str(folder / "ledger"), "people")


def _start(ledger: Ledger, slot: str = "s") -> RunLog:
    targets = [encode_target(target) for target in TARGETS]
    return ledger.start_run({"slot": slot, "digest": "d", "trigger": "manual", "targets": targets})


def test_a_run_is_the_fold_of_its_events(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    log = _start(ledger)
    run = ledger.find_run(log.run_id)
    assert run is not None
    assert (run.status, run.slot, run.is_over) == (RUNNING, "s", False)
    assert [target.status for target in run.targets] == [RUNNING, RUNNING]
    first = TargetRun("a/main", "a", "main", "k:a", SUCCEEDED, "C1", 4, {"node:P": 3}, rejected=1)
    log.record_target(first)
    log.record_target(
        TargetRun("b/main", "b", "main", "k:b", FAILED, is_retryable=True, error="no")
    )
    log.add_event("finished", {"status": PARTIAL})
    run = ledger.find_run(log.run_id)
    assert run is not None
    assert (run.status, run.rows_read, run.find_target("a/main")) == (PARTIAL, 4, first)
    document = run.to_json()
    assert document["conditions"] == ["PartialPipelineRun"]
    assert document["rows_read"] == document["targets"][0]["rows_read"] == 4
    assert document["targets"][0]["rows_written"] == 3
    assert document["targets"][1]["rows_read"] is None
    assert document["targets"][1]["retryable"] is True
    json.dumps(document)


def test_a_later_event_of_a_target_replaces_the_one_before(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    log = _start(ledger)
    log.record_target(TargetRun("a/main", "a", "main", "k:a", FAILED, attempts=1))
    log.record_target(TargetRun("a/main", "a", "main", "k:a", SUCCEEDED, "C", attempts=2))
    (run,) = ledger.list_runs()
    assert (run.targets[0].status, run.targets[0].attempts) == (SUCCEEDED, 2)


def test_runs_come_newest_first(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    ids = [_start(ledger, str(number)).run_id for number in range(3)]
    assert {run.id for run in ledger.list_runs()} == set(ids)
    assert [run.id for run in ledger.list_runs(limit=2)] == sorted(ids, reverse=True)[:2]
    assert ledger.find_run("nothing") is None


class Counted:
    """A store that counts what it lists."""

    def __init__(self, inner: Objects) -> None:
        self.uri = inner.uri
        self.put_new, self.put, self.replace = inner.put_new, inner.put, inner.replace
        self.get, self.get_range, self.delete = inner.get, inner.get_range, inner.delete
        self._list = inner.list
        self.listed = 0

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        """What the store lists."""
        for entry in self._list(prefix, after=after):
            self.listed += 1
            yield entry


def test_the_newest_runs_are_found_without_listing_old_ones(tmp_path: Path) -> None:
    objects = Counted(open_objects(str(tmp_path / "ledger")))
    ledger = Ledger(objects, "people")
    day_ms = 24 * 3_600_000
    now_ms = time.time_ns() // 1_000_000
    ages = (400, 399, 40, 39, 3, 2)
    old = [generate_ulid(now_ms - days * day_ms) for days in ages]
    for run_id in old:
        RunLog(objects, f"__pipelines/people/runs/{run_id}").add_event("started", {"slot": run_id})
    newest = _start(ledger).run_id
    assert [run.id for run in ledger.list_runs(limit=1)] == [newest]
    assert objects.listed == 1
    assert [run.id for run in ledger.list_runs()] == [newest, *reversed(old)]
    since = datetime.now(UTC) - timedelta(days=10)
    assert [run.id for run in ledger.iter_newest_runs(since=since)] == [newest, *reversed(old[-2:])]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 21])
def test_the_last_batch_is_found_without_listing_them(tmp_path: Path, count: int) -> None:
    objects = Counted(open_objects(str(tmp_path / "ledger")))
    ledger = Ledger(objects, "people")
    for number in range(count):
        ledger.claim_batch(number, {"position": number})
    last, batch = ledger.find_last_batch() or (None, {})
    assert (last, batch["position"]) == (count - 1, count - 1)
    assert objects.listed == 1


def test_an_event_whose_answer_was_lost_takes_nothing_from_the_next(tmp_path: Path) -> None:
    steps = Steps(Fault(2, FaultKind.UNKNOWN_AFTER, "put_new"))
    ledger = Ledger(FaultyObjects(open_objects(str(tmp_path / "ledger")), steps), "people")
    log = _start(ledger)
    with pytest.raises(StorageUnknownError):
        log.record_target(TargetRun("a/main", "a", "main", "k:a", FAILED))
    log.add_event("finished", {"status": FAILED})
    (run,) = ledger.list_runs()
    assert run.is_over


def _end_process(ledger: Ledger, *, host: str, pid: int, ago_s: float) -> str:
    """A run that began some time ago, and did not say how it ended."""
    run_id = generate_ulid(int((time.time() - ago_s) * 1000))
    log = ledger.open_run_log(run_id)
    log.add_event("started", {"slot": "s", "host": host, "pid": pid})
    return run_id


def _set_beat(folder: Path, run_id: str, ago_s: float) -> None:
    path = folder / "ledger" / "__pipelines" / "people" / "beats" / f"{run_id}.json"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("{}")
    os.utime(path, (time.time() - ago_s,) * 2)


def _status(ledger: Ledger, run_id: str) -> str:
    run = ledger.find_run(run_id)
    assert run is not None
    return run.status


def test_a_run_whose_process_is_gone_is_interrupted(tmp_path: Path) -> None:
    ledger, here = _ledger(tmp_path), socket.gethostname()
    # No process has the highest number there can be.
    gone = _end_process(ledger, host=here, pid=2**22 + 1, ago_s=0)
    assert _status(ledger, gone) == INTERRUPTED
    assert _status(ledger, _end_process(ledger, host=here, pid=os.getpid(), ago_s=0)) == RUNNING


def test_a_run_of_another_host_is_interrupted_when_its_heartbeat_stops(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    alive, lost = (_end_process(ledger, host="elsewhere", pid=1, ago_s=900) for _ in range(2))
    _set_beat(tmp_path, alive, BEAT_S)
    _set_beat(tmp_path, lost, LOST_AFTER_S + 1)
    assert [_status(ledger, run_id) for run_id in (alive, lost)] == [RUNNING, INTERRUPTED]
    # Nor is a process of this host that has the number of one that is gone.
    reused = _end_process(ledger, host=socket.gethostname(), pid=os.getpid(), ago_s=900)
    _set_beat(tmp_path, reused, LOST_AFTER_S + 1)
    assert _status(ledger, reused) == INTERRUPTED
    assert sorted(ledger.liveness.fence_lost_runs()) == sorted([lost, reused])
    # Should it go on after all, it beats again and publishes nothing.
    _set_beat(tmp_path, lost, 0)
    assert _status(ledger, lost) == INTERRUPTED
    with pytest.raises(RunFencedError):
        ledger.liveness.require_not_fenced(lost)
    ledger.liveness.require_not_fenced(alive)


def test_a_heartbeat_goes_on_until_the_run_ends(tmp_path: Path) -> None:
    ledger, run_id = _ledger(tmp_path), generate_ulid()
    path = tmp_path / "ledger" / "__pipelines" / "people" / "beats" / f"{run_id}.json"
    with ledger.liveness.send_heartbeats(run_id, every_s=0.01):
        os.utime(path, (0, 0))
        deadline = time.monotonic() + 10
        while path.stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 0
    assert not path.exists()


def test_what_no_run_needs_is_pruned_from_a_ledger(tmp_path: Path) -> None:
    ledger, now = _ledger(tmp_path), datetime.now(UTC)
    day_ms, now_ms = 24 * 3_600_000, time.time_ns() // 1_000_000
    old, waiting, beaten, empty, newest = (
        generate_ulid(now_ms - days * day_ms) for days in (400, 300, 200, 100, 50)
    )
    target = encode_target(replace(TARGETS[0], status=SUCCEEDED))
    for run_id in (old, waiting, beaten, empty, newest):
        log, is_empty = ledger.open_run_log(run_id), run_id in (empty, newest)
        log.add_event("started", {"slot": run_id, "targets": [] if is_empty else [target]})
        if run_id == waiting:
            log.record_target(replace(TARGETS[0], status=SUCCEEDED, awaits_review=True))
        if run_id == beaten:
            log.record_target(replace(TARGETS[0], status=SUCCEEDED))
        log.add_event("finished", {"status": SUCCEEDED})
    for number in range(5):
        ledger.claim_batch(number, {"position": number})
        ledger.finish_batch(number, old)
    pruned = ledger.prune(now + timedelta(days=1))
    assert (pruned.runs, pruned.batches) == (1, 4)
    # The newest run with targets says what the next one has to do.
    assert [run.id for run in ledger.list_runs()] == [newest, empty, beaten, waiting]
    assert ledger.find_last_batch() == (4, {"format": 1, "position": 4})
    assert ledger.is_batch_finished(4)
    ledger.claim_batch(5, {"position": 5})
    assert ledger.find_last_batch() == (5, {"format": 1, "position": 5})
    assert ledger.prune(now - timedelta(days=60)).runs == 0


def test_a_prune_that_is_killed_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    def remove(steps: Steps, folder: Path) -> None:
        ledger = _ledger(folder)
        now_ms = time.time_ns() // 1_000_000
        for days in (3, 2, 1):
            log = ledger.open_run_log(generate_ulid(now_ms - days * 24 * 3_600_000))
            target = encode_target(replace(TARGETS[0], status=SUCCEEDED))
            log.add_event("started", {"slot": "s", "targets": [target]})
            log.add_event("finished", {"status": SUCCEEDED})
        for number in range(3):
            ledger.claim_batch(number, {"position": number})
        faulty = FaultyObjects(open_objects(str(folder / "ledger")), steps)
        with suppress(SimulatedCrash):
            Ledger(faulty, "people").prune(datetime.now(UTC) + timedelta(days=1))
        assert (ledger.find_last_batch() or (None,))[0] == 2
        ledger.prune(datetime.now(UTC) + timedelta(days=1))
        assert [run.status for run in ledger.list_runs()] == [SUCCEEDED]

    number, steps = 0, Steps()
    while not number or steps.has_fired:
        number += 1
        steps = Steps(Fault(number, FaultKind.CRASH_BEFORE, "delete"))
        remove(steps, tmp_path / str(number))
    assert number > 3


@pytest.mark.parametrize(
    ("statuses", "outcome"),
    [
        ((SUCCEEDED, SUCCEEDED), SUCCEEDED),
        ((SUCCEEDED, FAILED), PARTIAL),
        ((FAILED, FAILED), FAILED),
        ((UNCHANGED,), SUCCEEDED),
    ],
)
def test_a_run_succeeds_only_if_every_target_does(statuses: tuple[str, ...], outcome: str) -> None:
    targets = tuple(TargetRun(str(at), "", "", "", each) for at, each in enumerate(statuses))
    assert status_of(targets) == outcome


def test_only_one_can_say_what_a_batch_is(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    assert ledger.find_last_batch() is None
    assert ledger.claim_batch(0, {"position": {"to": 1}})["position"] == {"to": 1}
    assert ledger.claim_batch(0, {"position": {"to": 2}})["position"] == {"to": 1}
    ledger.claim_batch(1, {"position": {"to": 3}})
    number, batch = ledger.find_last_batch() or (None, {})
    assert (number, batch["position"]) == (1, {"to": 3})
    ledger.finish_batch(0, "run")
    ledger.finish_batch(0, "another run")
    assert (ledger.is_batch_finished(0), ledger.is_batch_finished(1)) == (True, False)


def test_an_event_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    objects = open_objects(str(tmp_path / "ledger"))
    run_id = generate_ulid()
    objects.put_new(f"__pipelines/people/runs/{run_id}/0000.json", b"[")
    with pytest.raises(CorruptObjectError, match="not JSON"):
        ledger.find_run(run_id)

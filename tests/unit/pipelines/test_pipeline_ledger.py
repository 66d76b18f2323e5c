from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omnigraph.errors import CorruptObjectError, StorageUnknownError
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
    fold_events,
    status_of,
)
from omnigraph.storage import Objects, open_objects
from omnigraph.storage.objects.faults import Fault, FaultKind, FaultyObjects, Steps
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
        self.put_new, self.put = inner.put_new, inner.put
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
def test_the_last_batch_is_found_without_listing_any(tmp_path: Path, count: int) -> None:
    objects = Counted(open_objects(str(tmp_path / "ledger")))
    ledger = Ledger(objects, "people")
    for number in range(count):
        ledger.claim_batch(number, {"position": number})
    last, batch = ledger.find_last_batch() or (None, {})
    assert (last, batch["position"]) == (count - 1, count - 1)
    assert objects.listed == 0


def test_an_event_whose_answer_was_lost_takes_nothing_from_the_next(tmp_path: Path) -> None:
    steps = Steps(Fault(2, FaultKind.UNKNOWN_AFTER, "put_new"))
    ledger = Ledger(FaultyObjects(open_objects(str(tmp_path / "ledger")), steps), "people")
    log = _start(ledger)
    with pytest.raises(StorageUnknownError):
        log.record_target(TargetRun("a/main", "a", "main", "k:a", FAILED))
    log.add_event("finished", {"status": FAILED})
    (run,) = ledger.list_runs()
    assert run.is_over


def test_a_run_whose_process_is_gone_is_interrupted() -> None:
    here = {"event": "started", "at": "t", "host": socket.gethostname()}
    # No process has the highest number there can be.
    gone = {**here, "pid": 2**22 + 1}
    assert fold_events("r", "p", [gone]).status == INTERRUPTED
    assert fold_events("r", "p", [{**here, "pid": os.getpid()}]).status == RUNNING
    assert fold_events("r", "p", [{**gone, "host": "elsewhere"}]).status == RUNNING


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

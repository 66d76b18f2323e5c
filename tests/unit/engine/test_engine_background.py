"""Work after commits: in order, off the caller's thread, and never in anybody's way."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from omnigraph.engine import background
from omnigraph.engine.background import Background


def test_jobs_are_done_one_after_the_other_on_another_thread() -> None:
    executor = Background()
    seen: list[tuple[int, int]] = []

    def job(number: int) -> None:
        seen.append((number, threading.get_ident()))

    for future in [executor.submit(job, number) for number in (1, 2)]:
        future.result(timeout=10)
    assert [number for number, _ in seen] == [1, 2]
    assert threading.get_ident() not in {thread for _, thread in seen}


def test_an_error_of_a_job_is_given_to_whoever_asks_and_stops_nothing() -> None:
    executor = Background()
    failed, after = executor.submit(lambda: 1 // 0), executor.submit(lambda: "done")
    with pytest.raises(ZeroDivisionError):
        failed.result(timeout=10)
    assert after.result(timeout=10) == "done"


def test_no_thread_is_left_when_there_is_no_work() -> None:
    executor = Background()
    executor.submit(lambda: None).result(timeout=10)
    deadline = time.monotonic() + 10
    while _background_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _background_threads()


def test_a_stop_waits_for_the_running_job_and_drops_the_waiting_ones() -> None:
    executor, started, done = Background(), threading.Event(), []

    def job() -> None:
        started.set()
        time.sleep(0.2)
        done.append("running")

    executor.submit(job)
    waiting = executor.submit(lambda: done.append("waiting"))
    assert started.wait(10)
    executor.shutdown()
    assert done == ["running"]
    assert waiting.cancelled()
    with pytest.raises(RuntimeError):
        executor.submit(lambda: None)


def test_a_stop_lets_the_first_job_begin_while_its_thread_is_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = background._Jobs._run_jobs

    def work_late(jobs: background._Jobs) -> None:
        time.sleep(0.1)
        work(jobs)

    monkeypatch.setattr(background._Jobs, "_run_jobs", work_late)
    executor, done = Background(), list[str]()
    executor.submit(done.append, "first")
    waiting = executor.submit(done.append, "second")
    executor.shutdown()
    assert done == ["first"]
    assert waiting.cancelled()


def test_a_job_in_pieces_has_time_until_a_stop_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "STOP_TIMEOUT_S", 0.5)
    executor, started, pieces = Background(), threading.Event(), list[bool]()

    def job() -> None:
        while executor.has_time(True):
            pieces.append(executor._jobs._is_stopped)
            started.set()
            time.sleep(0.01)

    executor.submit(job)
    assert started.wait(10)
    executor.shutdown()
    assert pieces[0] is False
    assert pieces[-1] is True
    assert not executor.has_time(False)
    count = len(pieces)
    time.sleep(0.1)
    assert len(pieces) <= count + 1


def test_a_stop_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "STOP_TIMEOUT_S", 0.05)
    executor, release = Background(), threading.Event()
    executor.submit(release.wait)
    executor.shutdown()
    release.set()


@pytest.mark.slow
def test_a_program_ends_although_a_job_never_does() -> None:
    script = (
        "import threading; from omnigraph.engine import background;"
        "background.STOP_TIMEOUT_S = 0.1;"
        "executor = background.Background();"
        "executor.submit(threading.Event().wait);"
        "[executor.submit(print, n) for n in range(3)]"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], timeout=60, capture_output=True, check=False
    )
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, b"", b"")


def _background_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "omnigraph-background"]

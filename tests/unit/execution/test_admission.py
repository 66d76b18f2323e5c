"""Short reads take turns; long ones and failures keep nobody waiting."""

from __future__ import annotations

import threading
import time

import pytest

from omnigraph.execution.admission import SHORT_S, WAIT_S_MAX, Pace, Turn


def _work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_plan_is_short_as_soon_as_a_run_was() -> None:
    lane, pace, turns = threading.Lock(), Pace(), []
    for seconds in (0.0, 2 * SHORT_S, 0.0):
        with Turn(lane, pace):
            turns.append(lane.locked())
            _work(seconds)
    # Nothing is known of the first run, and the second one was long.
    assert turns == [False, True, False]
    assert not lane.locked()


def test_a_read_that_waits_is_not_a_long_one() -> None:
    lane, pace = threading.Lock(), Pace()
    with Turn(lane, pace):
        time.sleep(2 * SHORT_S)
    assert pace.is_short


def test_a_read_that_takes_long_keeps_others_waiting_for_a_bounded_time() -> None:
    lane, pace = threading.Lock(), Pace()
    pace.seconds = 0.0
    with lane:
        started = time.monotonic()
        with Turn(lane, pace):
            assert time.monotonic() - started >= WAIT_S_MAX / 2
        # It did not have the turn, so it does not end it either.
        assert lane.locked()


def test_a_failure_ends_the_turn() -> None:
    lane, pace = threading.Lock(), Pace()
    pace.seconds = 0.0
    with pytest.raises(ValueError, match="no"), Turn(lane, pace):
        raise ValueError("no")
    assert not lane.locked()

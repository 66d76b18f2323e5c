"""Short reads take turns; long ones and failures keep nobody waiting."""

from __future__ import annotations

import threading
import time

import pytest

from omnigraph.execution.admission import (
    BESIDE_GROWTH,
    BESIDE_RUNS_MAX,
    SHORT_S,
    WAIT_S_MAX,
    AdmissionSlot,
    PlanTiming,
)


def _work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_plan_is_short_as_soon_as_a_run_was() -> None:
    lane, pace, turns = threading.Lock(), PlanTiming(), []
    for seconds in (0.0, 2 * SHORT_S, 0.0):
        with AdmissionSlot(lane, pace):
            turns.append(lane.locked())
            _work(seconds)
    # Nothing is known of the first run, and the second one was long.
    assert turns == [False, True, False]
    assert not lane.locked()


def test_a_read_that_waits_beside_others_is_not_a_long_one() -> None:
    lane, pace = threading.Lock(), PlanTiming()
    with AdmissionSlot(lane, pace):
        time.sleep(2 * SHORT_S)
    assert pace.is_short


def test_a_read_that_waits_for_a_store_rarely_has_its_turn_meanwhile() -> None:
    lane, pace, turns = threading.Lock(), PlanTiming(), []
    for _ in range(60):
        with AdmissionSlot(lane, pace):
            turns.append(lane.locked())
            time.sleep(2 * SHORT_S)
    assert [place for place, had_turn in enumerate(turns) if had_turn] == [1, 6, 23]


def test_a_read_that_was_slow_once_soon_has_its_turns_again() -> None:
    pace = PlanTiming()
    pace.note_turn(0.0, passed_s=2 * SHORT_S)
    runs = 0
    while not pace.is_short:
        pace.note_beside(0.0)
        runs += 1
    assert runs == BESIDE_GROWTH
    pace.note_turn(0.0, passed_s=0.0)
    assert pace.is_short


def test_a_read_that_always_waits_is_given_another_turn_after_a_bounded_number_of_runs() -> None:
    pace, runs = PlanTiming(), []
    for _ in range(5):
        pace.note_turn(0.0, passed_s=1.0)
        runs.append(0)
        while not pace.is_short:
            pace.note_beside(0.0)
            runs[-1] += 1
    assert runs == [4, 16, BESIDE_RUNS_MAX, BESIDE_RUNS_MAX, BESIDE_RUNS_MAX]


def test_a_read_that_takes_long_keeps_others_waiting_for_a_bounded_time() -> None:
    lane, pace = threading.Lock(), PlanTiming()
    pace.seconds = 0.0
    with lane:
        started = time.monotonic()
        with AdmissionSlot(lane, pace):
            assert time.monotonic() - started >= WAIT_S_MAX / 2
        # It did not have the turn, so it does not end it either.
        assert lane.locked()


def test_a_failure_ends_the_turn() -> None:
    lane, pace = threading.Lock(), PlanTiming()
    pace.seconds = 0.0
    with pytest.raises(ValueError, match="no"), AdmissionSlot(lane, pace):
        raise ValueError("no")
    assert not lane.locked()

"""Short reads take turns; long ones and failures keep nobody waiting."""

from __future__ import annotations

import signal
import threading
import time
from functools import partial

import pytest

from omnigraph.execution import admission
from omnigraph.execution.admission import (
    BESIDE_GROWTH,
    BESIDE_RUNS_MAX,
    LOST_S,
    RETURNS_MIN,
    SHORT_S,
    TEXT_LENGTH_MAX,
    WAIT_S_MAX,
    AdmissionSlot,
    PlanTiming,
    ReadTurns,
    TurnQueue,
)


def _work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_plan_is_short_as_soon_as_a_run_was() -> None:
    lane, pace, turns = TurnQueue(), PlanTiming(), []
    for seconds in (0.0, 2 * SHORT_S, 0.0):
        with AdmissionSlot(lane, pace):
            turns.append(lane.is_taken)
            _work(seconds)
    # Nothing is known of the first run, and the second one was long.
    assert turns == [False, True, False]
    assert not lane.is_taken


def test_a_read_that_waits_beside_others_is_not_a_long_one() -> None:
    lane, pace = TurnQueue(), PlanTiming()
    with AdmissionSlot(lane, pace):
        time.sleep(2 * SHORT_S)
    assert pace.is_short


def test_a_read_that_waits_for_a_store_rarely_has_its_turn_meanwhile() -> None:
    lane, pace, turns = TurnQueue(), PlanTiming(), []
    for _ in range(60):
        with AdmissionSlot(lane, pace):
            turns.append(lane.is_taken)
            time.sleep(2 * SHORT_S)
    assert [place for place, had_turn in enumerate(turns) if had_turn] == [1, 6, 23]


def test_a_read_that_was_slow_once_soon_has_its_turns_again() -> None:
    pace = PlanTiming()
    pace.note_turn(2 * SHORT_S)
    runs = 0
    while not pace.is_short:
        pace.note_beside(0.0)
        runs += 1
    assert runs == BESIDE_GROWTH
    pace.note_turn(0.0)
    assert pace.is_short


def test_a_read_that_always_waits_is_given_another_turn_after_a_bounded_number_of_runs() -> None:
    pace, runs = PlanTiming(), []
    for _ in range(5):
        pace.note_turn(1.0)
        runs.append(0)
        while not pace.is_short:
            pace.note_beside(0.0)
            runs[-1] += 1
    assert runs == [4, 16, BESIDE_RUNS_MAX, BESIDE_RUNS_MAX, BESIDE_RUNS_MAX]


def test_a_read_that_takes_long_keeps_others_waiting_for_a_bounded_time() -> None:
    lane, pace = TurnQueue(), PlanTiming()
    pace.seconds = 0.0
    assert lane.wait()
    started = time.monotonic()
    with AdmissionSlot(lane, pace):
        assert time.monotonic() - started >= WAIT_S_MAX / 2
    # It did not have the turn, so it does not end it either.
    assert lane.is_taken
    lane.end_turn()
    assert not lane.is_taken


def test_a_thread_that_waited_for_long_is_given_its_turn_by_one_that_always_comes_back() -> None:
    lane, turns, is_over = TurnQueue(), [], threading.Event()

    def take_turn(name: int) -> None:
        # On a busy machine the bounded time may pass: then it waits again.
        while not is_over.is_set():
            if lane.wait():
                turns.append(name)
                lane.end_turn()
                return

    others = [threading.Thread(target=take_turn, args=[name]) for name in range(3)]
    is_mine = lane.wait()
    for each in others:
        each.start()
    returned = 0
    # Bounded, so that a thread that gets no turn fails the test and does not hang it.
    while len(turns) < len(others) and returned < 10_000:
        if is_mine:
            lane.end_turn()
        is_mine = lane.wait()
        returned += 1
        time.sleep(SHORT_S / 10)
    is_over.set()
    if is_mine:
        lane.end_turn()
    for each in others:
        each.join()
    assert sorted(turns) == [0, 1, 2]
    assert not lane.is_taken


@pytest.mark.parametrize("returns", [0, 2 * RETURNS_MIN])
def test_a_thread_that_does_not_come_back_leaves_its_turn_to_one_that_waits(
    monkeypatch: pytest.MonkeyPatch, returns: int
) -> None:
    # None is overdue, and however busy the machine is, every return is soon.
    monkeypatch.setattr(admission, "WAIT_S_MAX", 3600.0)
    monkeypatch.setattr(admission, "RETURN_S", 3600.0)
    lane = TurnQueue()
    turns: list[bool] = []
    for _ in range(returns):
        assert lane.wait()
        lane.end_turn()
    assert lane.wait()
    take_turn = partial(_take_turn, lane, turns)
    others = [threading.Thread(target=take_turn, daemon=True) for _ in range(3)]
    for each in others:
        each.start()
    time.sleep(SHORT_S)
    lane.end_turn()
    for each in others:
        each.join(timeout=20)
    assert turns == [True] * 3
    assert not lane.is_taken


def _take_turn(lane: TurnQueue, turns: list[bool]) -> None:
    turns.append(lane.wait())
    lane.end_turn()


def test_a_turn_that_is_given_to_an_interrupted_thread_goes_on_to_the_next() -> None:
    lane = TurnQueue()
    assert lane.wait()
    late = threading.Timer(2 * WAIT_S_MAX, lane.end_turn)

    def interrupt(*_: object) -> None:
        late.join()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        late.start()
        signal.setitimer(signal.ITIMER_REAL, 1.5 * WAIT_S_MAX)
        # The alarm comes while it is overdue; the turn is given to it before it stops waiting.
        lane._began = time.monotonic() + 1
        with pytest.raises(KeyboardInterrupt):
            lane.wait()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not lane.is_taken


def test_a_turn_that_is_never_ended_is_taken_for_lost() -> None:
    lane = TurnQueue()
    assert lane.wait()
    lane._began -= LOST_S
    for _ in range(3):
        assert lane.wait()
        lane.end_turn()
    assert not lane.is_taken
    # The one that seemed lost may end after all.
    lane.end_turn()
    assert lane.wait()


def test_a_failure_ends_the_turn() -> None:
    lane, pace = TurnQueue(), PlanTiming()
    pace.seconds = 0.0
    with pytest.raises(ValueError, match="no"), AdmissionSlot(lane, pace):
        raise ValueError("no")
    assert not lane.is_taken


def test_a_text_has_a_turn_from_its_second_run_on_unless_it_is_long_or_may_wait() -> None:
    reads, turns = ReadTurns(), {}
    texts = ["short", "search", "x" * (TEXT_LENGTH_MAX + 1)]
    for text in 2 * texts:
        with reads.admit(text, None):
            turns[text] = reads.queue.is_taken
            if text == "search":
                reads.exclude(text, None)
    assert list(turns.values()) == [True, False, False]
    with reads.admit("short", "another name"):
        assert not reads.queue.is_taken

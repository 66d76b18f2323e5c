"""Long calls that a request does not wait for."""

from __future__ import annotations

from threading import Event

import pytest

from omnigraph.rows.stoppable_call import BYTES_MIN, call_stoppably


class Stopped(Exception):
    pass


def test_work_on_few_bytes_is_not_checked() -> None:
    def stop() -> None:
        raise Stopped

    assert call_stoppably(lambda: 3, stop, nbytes=BYTES_MIN - 1) == 3


def test_a_request_that_stops_leaves_the_work_to_itself() -> None:
    may_end, has_ended = Event(), Event()

    def work() -> None:
        may_end.wait()
        has_ended.set()

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        call_stoppably(work, stop, nbytes=BYTES_MIN)
    assert not has_ended.is_set()
    may_end.set()
    assert has_ended.wait(60)


def test_the_result_of_the_work_or_its_failure_comes_back() -> None:
    def fail() -> None:
        raise ValueError("no")

    assert call_stoppably(lambda: "done", lambda: None, nbytes=BYTES_MIN) == "done"
    with pytest.raises(ValueError, match="no"):
        call_stoppably(fail, lambda: None, nbytes=BYTES_MIN)

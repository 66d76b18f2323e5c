"""What one query may use."""

from __future__ import annotations

import time

import pytest

from omnigraph.errors import QueryCancelledError, QueryTimeoutError, ResourceLimitError
from omnigraph.execution.query_budget import Budget, Cancellation


def test_memory_is_refused_before_it_is_taken() -> None:
    budget = Budget(memory_bytes=100)
    budget.require_memory(100)
    with pytest.raises(ResourceLimitError) as refused:
        budget.require_memory(101)
    assert refused.value.resource == "query_memory_bytes"
    assert (refused.value.limit, refused.value.actual) == (100, 101)


def test_memory_that_is_held_counts_until_it_is_given_back() -> None:
    budget = Budget(memory_bytes=100)
    with budget.reserve(60):
        budget.require_memory(40)
        with pytest.raises(ResourceLimitError) as refused:
            budget.require_memory(41)
        assert refused.value.actual == 101
    budget.require_memory(100)


def test_memory_is_given_back_after_an_error() -> None:
    budget = Budget(memory_bytes=100)
    with pytest.raises(KeyError), budget.reserve(60):
        raise KeyError
    budget.require_memory(100)


def test_no_bound_means_none() -> None:
    budget = Budget()
    budget.require_memory(2**60)
    budget.check_interrupts()


def test_a_query_stops_when_its_time_is_over() -> None:
    budget = Budget(deadline=time.monotonic() + 60)
    budget.check_interrupts()
    late = Budget(deadline=time.monotonic())
    with pytest.raises(QueryTimeoutError) as stopped:
        late.check_interrupts()
    assert stopped.value.code == "query_timeout"
    assert stopped.value.timeout_s == pytest.approx(0, abs=0.5)
    assert "-" not in stopped.value.message


def test_a_cancelled_query_stops_at_the_next_check() -> None:
    cancellation = Cancellation()
    budget = Budget(cancellation=cancellation)
    budget.check_interrupts()
    cancellation.cancel()
    with pytest.raises(QueryCancelledError):
        budget.check_interrupts()


def test_work_is_an_error_beyond_its_limit() -> None:
    budget = Budget(work_limit=3)
    budget.spend_work(1)
    budget.spend_work(2)
    assert budget.work_left == 0
    with pytest.raises(
        ResourceLimitError, match="traversal_work_limit is limited to 3, this needs 4"
    ):
        budget.spend_work(1)


def test_the_time_that_is_left_is_never_negative() -> None:
    assert Budget().time_left is None
    assert Budget(deadline=time.monotonic() - 5).time_left == 0
    left = Budget(deadline=time.monotonic() + 60).time_left
    assert left is not None
    assert 50 < left <= 60

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from omnigraph.pipelines.config.definition import (
    compute_next_slot,
    find_due_slot,
    format_slot,
    is_schedule,
)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("0 * * * *", True),
        ("*/5 9-17 * * mon-fri", True),
        ("* * * * * *", False),
        ("61 * * * *", False),
        ("@hourly", False),
        ("0 0 31 2 *", False),
    ],
)
def test_a_schedule_has_five_fields_and_comes_true(text: str, is_one: bool) -> None:
    assert is_schedule(text) is is_one


def test_the_newest_slot_is_due_until_it_is_too_long_ago() -> None:
    now = datetime(2026, 11, 16, 10, 0, tzinfo=UTC)
    assert find_due_slot("0 * * * *", now) == now
    assert find_due_slot("30 * * * *", now) == datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
    assert find_due_slot("0 0 1 * *", now) is None
    assert compute_next_slot("30 * * * *", now) == datetime(2026, 11, 16, 10, 30, tzinfo=UTC)
    assert format_slot(now) == "2026-11-16T10-00Z"

"""Time spans as people write them."""

from __future__ import annotations

import pytest

from omnigraph.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("30s", 30), ("15m", 900), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600)],
)
def test_a_span_is_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "-5", "1.5h", "d", "7 d", "7D", "٣"])
def test_what_is_no_span_is_none(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (90, "90s"), (604_800, "7d"), (86_400, "24h"), (1_209_600, "2w"), (0.5, "0.5s")],
)
def test_a_span_is_told_in_the_largest_unit_that_fits(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text

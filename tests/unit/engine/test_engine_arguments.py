"""Values of Python as parameters."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from omnigraph.engine.arguments import datetime_of, microseconds, plain_parameters
from omnigraph.errors import InvalidArgument


def test_what_json_knows_stays_and_the_rest_becomes_it() -> None:
    cet = timezone(timedelta(hours=1))
    given = {
        "none": None,
        "number": 1,
        "day": date(2024, 5, 6),
        "instant": datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=cet),
        "blob": b"abc",
        "numpy": np.int64(7),
        "vector": np.array([1.0, 2.0], dtype=np.float32),
        "days": (date(2024, 5, 6),),
    }
    assert plain_parameters(given) == {
        "none": None,
        "number": 1,
        "day": "2024-05-06",
        "instant": "2024-05-06T06:08:09.123000Z",
        "blob": "base64:YWJj",
        "numpy": 7,
        "vector": [1.0, 2.0],
        "days": ["2024-05-06"],
    }


def test_what_is_no_mapping_is_left_to_the_binder() -> None:
    assert plain_parameters([1]) == [1]
    assert plain_parameters(None) is None


def test_times_keep_their_microseconds() -> None:
    at = datetime(2024, 5, 6, 7, 8, 9, 123457, tzinfo=UTC)
    assert datetime_of(microseconds(at)) == at


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="time zone"):
        microseconds(datetime(2024, 5, 6))

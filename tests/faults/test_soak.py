"""The short form of the soak; `make soak` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

import places
from faults.soak import soak


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_killed_writers_lose_no_acknowledged_commit_and_leave_no_part_of_one(
    tmp_path: Path,
) -> None:
    outcome = soak(tmp_path, kills=6 if places.is_on_s3() else 12)
    assert outcome.acknowledged > outcome.kills

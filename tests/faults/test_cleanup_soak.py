"""The short form of the clean-up soak; `make soak` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.cleanup_soak import soak


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_clean_up_beside_writers_and_readers_loses_nothing_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    outcome = soak(tmp_path, seconds=10)
    assert min(outcome.writes, outcome.reads, outcome.cleanups, outcome.checks) > 0
    assert outcome.removed > 0

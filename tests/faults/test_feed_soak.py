"""The short form of the soak of the feed; `make soak` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.feed_soak import BACKLOG, soak


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_killed_follower_is_told_every_commit_once_and_in_order(tmp_path: Path) -> None:
    outcome = soak(tmp_path, kills=4)
    assert outcome.commits > BACKLOG
    assert outcome.told >= outcome.commits

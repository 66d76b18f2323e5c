"""The short form of the agents; `make soak` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.agents.crowd import run


@pytest.mark.timeout(280)
def test_agents_merge_into_main_or_meet_a_true_conflict(tmp_path: Path) -> None:
    result = run(tmp_path, agents=4, rounds=2, edits=20)
    assert len(result.turns) == 8
    assert result.outcomes["merged"] + result.outcomes["fast_forward"] > 0

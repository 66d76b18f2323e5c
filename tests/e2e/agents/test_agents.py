"""The short form of the agents; `make soak` runs the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.agents.crowd import run


@pytest.mark.timeout(280)
@pytest.mark.parametrize(
    ("agents", "rounds", "edits"), [(2, 1, 2), pytest.param(4, 2, 20, marks=pytest.mark.slow)]
)
def test_agents_merge_into_main_or_meet_a_true_conflict(
    tmp_path: Path, agents: int, rounds: int, edits: int
) -> None:
    result = run(tmp_path, agents=agents, rounds=rounds, edits=edits)
    assert len(result.turns) == agents * rounds
    assert result.outcomes["merged"] + result.outcomes["fast_forward"] > 0

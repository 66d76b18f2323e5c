"""A sample of the damage matrix: `python -m faults.damage 2000` is the whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = 40
SEED = "7"


@pytest.mark.on_disk
@pytest.mark.timeout(300)
def test_damage_ends_in_the_right_answer_or_in_a_typed_error(tmp_path: Path) -> None:
    # Processes are forked, which one that has used Lance cannot be.
    command = [sys.executable, "-W", "ignore", "-m", "faults.damage", str(SAMPLE), SEED]
    found = subprocess.run(
        [*command, str(tmp_path / "damage")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert found.returncode == 0, f"{found.stdout}{found.stderr}"
    assert f"{SAMPLE} damages" in found.stdout

"""A sample of the damage matrix: `python -m faults.damage 2000` is the whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = 40
INDEX_SAMPLE = 6
SEED = "7"


@pytest.mark.slow
@pytest.mark.on_disk
@pytest.mark.timeout(300)
def test_damage_ends_in_the_right_answer_or_in_a_typed_error(tmp_path: Path) -> None:
    assert f"{SAMPLE} damages" in _run(tmp_path, SAMPLE)


@pytest.mark.slow
@pytest.mark.on_disk
@pytest.mark.timeout(300)
def test_damage_of_an_index_ends_in_right_answers_and_in_successful_writes(tmp_path: Path) -> None:
    found = _run(tmp_path, INDEX_SAMPLE, "index")
    assert f"{INDEX_SAMPLE} damages of 1 kinds" in found
    assert "'error'" not in found


def _run(folder: Path, count: int, *kinds: str) -> str:
    # Processes are forked, which one that has used Lance cannot be.
    command = [sys.executable, "-W", "ignore", "-m", "faults.damage", str(count), SEED]
    found = subprocess.run(
        [*command, str(folder / "damage"), *kinds],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert found.returncode == 0, f"{found.stdout}{found.stderr}"
    return found.stdout
